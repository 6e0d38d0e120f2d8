#!/bin/sh
# Steps of the bundled runtime on one H100 and one H200 are predicted within 5 % from their boards'
# profiles, which are what their measurements give and are GPU files that a scenario can name.
set -eu
. tests/support.sh

python3 tools/figures/gpu_runs.py "$MESHWRIGHT" >"$temp/table" || fail "$(cat "$temp/table")"
[ "$(grep -c '| cudnn |' "$temp/table")" -eq 10 ] || fail "not ten steps: $(cat "$temp/table")"

for gpu in h100-sxm-80g h200-sxm-141g; do
    cat >"$temp/job.json" <<END
{"schema": 1, "model": "gpt2-124m",
 "cluster": {"gpu": "$PWD/profiler/measured/$gpu-2026-11-23/board.json", "num_gpus": 1,
  "gpus_per_node": 1, "scale_up": {"link": "nvlink4", "domain_gpus": 1},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 5e10}},
 "training": {"seq_len": 1024, "global_batch": 32, "precision": "bf16", "stack": "runtime"}}
END
    answers 0 estimate "$temp/job.json"
    grep -q "on 1 x $gpu-board" "$temp/stdout" || fail "another GPU: $(head -n 1 "$temp/stdout")"
done
