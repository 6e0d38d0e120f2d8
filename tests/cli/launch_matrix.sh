#!/bin/sh
# Start scripts are run, not only read: every stack x scheduler x feature under bash, with stand-ins
# for scontrol, srun, torchrun, mpirun and Python (tests/launch/run_matrix.py).
set -eu
. tests/support.sh
python3 -c 'import yaml' 2>/dev/null || exit 77
python3 tests/launch/run_matrix.py "$MESHWRIGHT" "$temp/matrix"
