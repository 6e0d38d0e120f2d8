#!/bin/sh
# run: a small model trained on this computer, alone and by two processes, set beside what is
# predicted for the cores; its log calibrates predictions; mistakes are refused before anything runs.
set -eu
. tests/support.sh
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
cd "$temp"

# job FILE RANKS PARALLEL
job() {
    cat >"$1" <<JOB
{"schema": 1, "cluster": {"gpu": "h100-sxm-80g", "num_gpus": $2, "gpus_per_node": $2,
  "scale_up": {"link": "shm", "domain_gpus": $2},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 1e9}},
 "model": {"model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
  "max_position_embeddings": 64},
 "training": {"seq_len": 32, "global_batch": 4, "precision": "fp32", "stack": "runtime"},
 "parallel": $3}
JOB
}

# loss: that of the last step of the answer.
loss() {
    sed -n 's/^step 6: loss \([0-9.]*\),.*/\1/p' "$temp/stdout"
}

job one.json 1 '{"micro_batch": 2}'
answers 0 run one.json --steps 6 --log one.jsonl
one=$(loss)
[ -n "$one" ] || fail "no loss in: $(cat "$temp/stdout")"
[ "$(wc -l <one.jsonl)" -eq 6 ] || fail "one.jsonl: not a line a step"

job two.json 2 '{"dp": 2, "micro_batch": 2}'
answers 0 run two.json --steps 6 --compare
[ "$(loss)" = "$one" ] || fail "two processes end at $(loss), one at $one"
grep -q '^step .* measured over predicted\|^memory ' "$temp/stdout" || fail "nothing is compared"
answers 0 run two.json --steps 6 --compare --json
python3 - "$temp/stdout" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["parallel"]["dp"] == 2 and answer["measured"]["num_steps"] == 6, answer
ratio = answer["measured"]["memory_peak_bytes"] / answer["predicted"]["memory_peak_bytes"]
assert 0.95 < ratio < 1.05, ratio
PY

refuses 'meshwright: --compare: needs --steps of 5 or more, of which 2 are warm-up' \
    run two.json --compare --steps 4
refuses 'meshwright: --json: goes with --compare; --log writes each step as JSON' run two.json --json
refuses 'meshwright: --steps: "0" is not a whole number from 1 to 1000000000' run two.json --steps 0
refuses 'meshwright: --device: "tpu" is unknown; expected cpu or cuda' run two.json --device tpu
refuses 'two.json: is the scenario two.json; expected another file to write' \
    run two.json --log two.json
MESHWRIGHT_RUN=$temp/none
export MESHWRIGHT_RUN
answers 3 run one.json
grep -q "MESHWRIGHT_RUN: $temp/none is not a program" "$temp/stderr" || fail "$(cat "$temp/stderr")"
