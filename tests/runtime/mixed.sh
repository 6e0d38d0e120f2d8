#!/bin/sh
# Activations in one format and sums in a wider one, as on a GPU: every kind of split trains as one
# process does. On the CPU act is fp32 and wide fp64 here (backend/cpu_backend.h), so that an array
# taken for one of the other format is of the wrong size.
# Usage: mixed.sh RUN
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
run=$1
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1 MESHWRIGHT_CPU_WIDE=fp64
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

kind='"model_type": "llama"' options=--routing=learned

# Ranks, members of `parallel`, log.
train() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", $kind, "hidden_size": 32,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "intermediate_size": 48, "vocab_size": 260, "max_position_embeddings": 16},
 "cluster": $(cluster "$1"),
 "training": {"seq_len": 16, "global_batch": 16, "precision": "fp32", "stack": "runtime"},
 "parallel": {$2, "micro_batch": 1}}
END
    mpirun --allow-run-as-root --oversubscribe -n "$1" "$run" plan.json --dtype fp32 --steps 5 \
        --learning-rate 0.01 "$options" --log "$3" >out 2>&1 || {
        echo "mixed.sh: $2: $(tail -n 3 out)" >&2
        exit 1
    }
}

# Loss and gradient norm of all steps; a weight of another step or a sum of half the ranks moves
# them by more than a hundred times the tolerance.
check() {
    train "$1" "$2" split.jsonl
    python3 - "$2" <<'END'
import json, sys
one, split = ([json.loads(line) for line in open(name)] for name in ("one.jsonl", "split.jsonl"))
assert len(one) == len(split) == 5
worst = max(abs(a[k] / b[k] - 1) for a, b in zip(one, split) for k in ("loss", "gradient_norm"))
print("%-80s %.1e" % (sys.argv[1], worst))
sys.exit(worst > 1e-5)
END
}

train 1 '"tp": 1' one.jsonl
check 1 '"recompute": "full"'
check 4 '"tp": 4'
check 2 '"tp": 2, "sequence_parallel": false'
check 2 '"dp": 2, "zero_stage": 0'
check 4 '"dp": 4, "zero_stage": 1, "zero_group": 2'
check 2 '"dp": 2, "zero_stage": 2'
check 2 '"dp": 2, "zero_stage": 3'
check 4 '"cp": 4'
check 2 '"cp": 2, "cp_method": "all-gather"'
check 2 '"cp": 2, "cp_method": "ulysses"'
check 4 '"pp": 4'
check 2 '"pp": 2, "schedule": "zb-v", "vpp": 2'
check 8 '"tp": 2, "pp": 2, "dp": 2, "vpp": 2, "schedule": "interleaved", "recompute": "selective"'
check 8 '"tp": 2, "cp": 2, "dp": 2, "zero_stage": 3'

# Experts; what rounds otherwise must not give a token others.
kind='"model_type": "qwen3_moe", "head_dim": 4, "num_experts": 4, "num_experts_per_tok": 2,
  "moe_intermediate_size": 24, "tie_word_embeddings": false'
options=--routing=balanced
train 1 '"tp": 1' one.jsonl
check 1 '"recompute": "full"'
check 2 '"tp": 2'
check 4 '"dp": 4, "ep": 2, "zero_stage": 1'
check 4 '"dp": 4, "ep": 2, "zero_stage": 3'
check 4 '"dp": 4, "ep": 2, "etp": 2'
check 4 '"pp": 2, "dp": 2, "etp": 2, "schedule": "zb-h1"'
