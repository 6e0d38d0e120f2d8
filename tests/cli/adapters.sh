#!/bin/sh
# Adapters from the command line: planned, estimated, simulated, varied, and refused where nothing
# writes or runs them.
set -eu
[ -x "$MESHWRIGHT_SIM" ] || exit 77
. tests/support.sh

example=docs/examples/llama-3-8b-qlora-2xrtx4090.json

# An 8B model with a base of 4 bits fits two cards of 24 GB, and a token takes longer than 6.98e9
# products forward and back at 165 TFLOP/s.
answers 0 plan $example
tr -s '\n ' '  ' <"$temp/stdout" >"$temp/text"
grep -q '41.9 M trained: lora of rank 16 beside a base in nf4' "$temp/text" || fail "$(head -n 3 "$temp/text")"
grep -q 'limited by memory\|fits' "$temp/text" || fail "$(cat "$temp/text")"
answers 0 plan $example --json
cp "$temp/stdout" "$temp/plan.json"
python3 - "$temp/plan.json" <<'END' || fail "$(head -c 600 "$temp/plan.json")"
import json, sys
best = json.load(open(sys.argv[1]))["plans"][0]
assert best["fits"] and best["trained_parameters"] == 41943040
assert 3000 < best["tokens_per_s"] < 2 * 165e12 / (4 * 7.5e9)
assert best["memory_bytes"]["gradients"] < 4 * 41943040 + 1
END

# job STACK ADAPTERS PARALLEL
job() {
    cat >"$temp/job.json" <<END
{"schema": 1, "model": "llama-3-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "stack": "$1",
  "adapters": {"rank": 16, "targets": "all-linear", $2}}, "parallel": {$3}}
END
}

agrees() {
    job "$@"
    simulate job
    claim "simulated over estimated with $1, $2, $3" \
        "($(figure job step_time_s) / $(figure job estimate_step_time_s) - 1) ^ 2 < 0.01 ^ 2"
}

agrees hf-fsdp2 '"kind": "lora", "base_dtype": "nf4"' '"recompute": "full"'
agrees hf-fsdp2 '"kind": "dora"' '"zero_stage": 0'
agrees torchtitan '"kind": "lora"' '"tp": 2'
agrees megatron-core '"kind": "lora"' '"tp": 2, "pp": 2'
agrees megatron-core '"kind": "dora", "dropout": 0' '"tp": 4, "pp": 4, "vpp": 2, "recompute": "full"'
agrees megatron-core '"kind": "lora", "dropout": 0.1' '"pp": 4, "schedule": "zb-v"'

# Frozen parts, of a model with stages.
job megatron-core '"kind": "lora"' '"tp": 2, "pp": 4'
sed -i 's/"adapters": {.*}}, /"frozen": ["embedding", "mixer"]}, /' "$temp/job.json"
simulate job
claim "frozen parts" "($(figure job step_time_s) / $(figure job estimate_step_time_s) - 1) ^ 2 < 0.01 ^ 2"
answers 0 estimate "$temp/job.json" --json
grep -q '"trained_parameters":' "$temp/stdout" || fail "$(head -c 300 "$temp/stdout")"

# More of rank is never less memory.
job hf-fsdp2 '"kind": "lora"' '"zero_stage": 0'
answers 0 whatif "$temp/job.json" --vary training.adapters.rank=16,64,256 --json
python3 - "$temp/stdout" <<'END' || fail "$(head -c 600 "$temp/stdout")"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
memory = [p["answer"]["memory_peak_bytes"] for p in points]
assert len(memory) == 3 and memory == sorted(memory) and memory[0] < memory[2], memory
END

# Published runs are all priced, on average within 25 %.
answers 0 validate --data published/fine-tuning.jsonl --all --json
python3 - "$temp/stdout" <<'END' || fail "$(head -c 600 "$temp/stdout")"
import json, sys
total = json.load(open(sys.argv[1]))["assumed"]["all"]
assert total["num_cases"] == 8 and total["num_refused"] == 0 and total["mape_frac"] < 0.25, total
END

answers 2 launch "$temp/job.json" --dry-run
grep -q 'training.adapters: legal, but launch writes no adapters yet' "$temp/stderr" || fail "$(cat "$temp/stderr")"
job runtime '"kind": "lora"' ''
answers 2 run "$temp/job.json"
grep -q 'the stack runtime trains no adapters; those that do: hf-fsdp2, megatron-core, torchtitan' "$temp/stderr" ||
    fail "$(cat "$temp/stderr")"
