#!/bin/sh
# Spoiled scenarios through the real program: exit status 0 to 3, a sentence, no signal.
# Reads MESHWRIGHT; exits 77 where it is not built.
set -eu
[ -x "$MESHWRIGHT" ] || exit 77
command -v python3 >/dev/null || exit 77
here=$(dirname "$0")
exec python3 "$here/mutations.py" "$MESHWRIGHT" "$here/../fuzz/seeds" 200
