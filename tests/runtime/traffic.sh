#!/bin/sh
# What each rank sends in a step, by group and collective, is to the byte what the Program says.
# Usage: traffic.sh RUN
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
# shellcheck source=tests/sample.sh
. "${0%/*}/../sample.sh"
run=$1
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

dense='"model_type": "llama", "intermediate_size": 128, "max_position_embeddings": 16'
biased='"model_type": "generic", "intermediate_size": 128, "max_position_embeddings": 16'
gpt='"model_type": "gpt2", "n_positions": 16'
experts='"model_type": "mixtral", "intermediate_size": 64, "num_local_experts": 8'
shared='"model_type": "generic", "linear_bias": false, "gated_mlp": true, "norm": "rmsnorm",
  "position": "rope", "intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 32, "n_shared_experts": 2, "first_k_dense_replace": 1'
qwen='"model_type": "qwen3_moe", "head_dim": 8, "intermediate_size": 128, "num_experts": 8,
  "num_experts_per_tok": 2, "moe_intermediate_size": 32'

vocab=512

# One in three: ranks, members of `parallel`, members of the model, options of the run, whether
# words are tied.
check() {
    one_of 3 || return 0
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", ${3:-$dense}, "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "vocab_size": $vocab, "tie_word_embeddings": ${5:-false}},
 "cluster": $(cluster "$1"),
 "training": {"seq_len": 16, "global_batch": 16, "precision": "fp32", "stack": "runtime"},
 "parallel": {$2, "micro_batch": 1}}
END
    mpirun --allow-run-as-root --oversubscribe -n "$1" "$run" plan.json --steps 2 ${4:+"$4"} >out 2>&1 || {
        cat out >&2
        exit 1
    }
    sed -n 's/^sent in a step: //p' out | tr ',' '\n' |
        awk '{ n++; sub(/\)$/, "", $7); if ($3 != $7) bad = 1 } END { exit bad || n == 0 }' || {
        echo "traffic.sh: $2: $(tail -n 2 out)" >&2
        exit 1
    }
    grep -qx 'the most that a collective of any process is off: 0 bytes' out || {
        echo "traffic.sh: $2: $(tail -n 1 out)" >&2
        exit 1
    }
}

check 2 '"tp": 2'
check 2 '"tp": 2, "sequence_parallel": false'
check 2 '"tp": 2, "recompute": "full"'
check 2 '"pp": 2'
check 2 '"pp": 2, "schedule": "zb-h1"'
check 2 '"pp": 2, "schedule": "gpipe"'
check 2 '"pp": 2, "vpp": 2, "schedule": "breadth-first"'
check 2 '"pp": 2, "vpp": 2, "schedule": "v-half"'
check 2 '"pp": 2, "vpp": 2, "schedule": "v-min"'
check 4 '"pp": 4, "schedule": "zb-h2"'
check 4 '"tp": 2, "pp": 2, "vpp": 2, "schedule": "v-min", "recompute": "full"'
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "breadth-first", "zero_stage": 3' "$dense" "" true
check 4 '"pp": 2, "dp": 2, "schedule": "gpipe", "zero_stage": 2' "$dense" "" true
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "v-half", "zero_stage": 3' "$gpt" "" true
check 2 '"dp": 2, "zero_stage": 0'
check 2 '"dp": 2, "zero_stage": 1'
check 4 '"dp": 4, "zero_stage": 1, "zero_group": 2'
check 2 '"dp": 2, "zero_stage": 2'
check 2 '"dp": 2, "zero_stage": 3'
check 2 '"cp": 2, "cp_method": "ring"'
check 4 '"cp": 4, "cp_method": "ring"'
check 2 '"cp": 2, "cp_method": "all-gather"'
check 2 '"cp": 2, "cp_method": "ulysses"'
for method in ring all-gather ulysses; do
    check 2 '"cp": 2, "recompute": "selective", "cp_method": "'$method'"'
done
check 8 '"tp": 2, "pp": 2, "dp": 2, "vpp": 2, "schedule": "interleaved", "zero_stage": 1'
check 8 '"tp": 2, "cp": 2, "dp": 2, "zero_stage": 3'
check 4 '"tp": 2, "dp": 2, "zero_stage": 3' "$dense" "" true
check 2 '"dp": 2, "zero_stage": 2' "$dense" "" true
check 2 '"pp": 2' "$dense" "" true
check 4 '"pp": 2, "dp": 2, "schedule": "zb-h1", "zero_stage": 3' "$gpt" "" true
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "zb-v", "zero_stage": 2' "$gpt" "" true
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "dualpipe", "zero_stage": 3' "$gpt" "" true
check 2 '"dp": 2, "zero_stage": 3' "$gpt" "" true
check 2 '"dp": 2, "schedule": "zb-h1", "zero_stage": 3' "$gpt" "" true

# What tp ranks hold whole: norms, biases, positions; over both chunks of a rank, beside tied words
# and copies, before gradients are scattered and behind them.
check 2 '"tp": 2' "$biased"
check 2 '"tp": 2, "sequence_parallel": false' "$biased"
check 4 '"tp": 4, "recompute": "full"' "$biased"
check 4 '"tp": 2, "pp": 2, "vpp": 2, "schedule": "interleaved"' "$biased" "" true
check 4 '"tp": 2, "pp": 2, "vpp": 2, "schedule": "dualpipe"' "$biased"
check 4 '"tp": 2, "pp": 2, "schedule": "zb-h1"' "$biased" "" true
for zero_stage in 0 1 2 3; do
    check 4 '"tp": 2, "dp": 2, "zero_stage": '$zero_stage "$biased"
done
check 8 '"tp": 2, "dp": 4, "zero_stage": 2, "zero_group": 2' "$biased"
check 8 '"tp": 2, "pp": 2, "dp": 2, "schedule": "zb-h1", "zero_stage": 3' "$biased"
check 2 '"tp": 2, "zero_stage": 3' "$biased"

# With experts: each as many tokens, as the Program has it; or those that the router chose, which
# the Program is told.
check_experts() {
    check "$1" "$2" "$experts" --routing=balanced
    check "$1" "$2" "$experts"
}
check_experts 2 '"dp": 2, "zero_stage": 1'
check_experts 2 '"tp": 2'
check_experts 2 '"dp": 2, "ep": 2'
check_experts 2 '"dp": 2, "ep": 2, "recompute": "full"'
check_experts 4 '"dp": 4, "ep": 2, "zero_stage": 0'
check_experts 4 '"dp": 4, "ep": 2, "zero_stage": 2'
check_experts 4 '"dp": 4, "ep": 2, "zero_stage": 3'
check_experts 4 '"dp": 4, "etp": 2'
check 4 '"pp": 2, "dp": 2, "ep": 2, "vpp": 2, "schedule": "dualpipe"' "$experts"
check 8 '"tp": 2, "cp": 2, "dp": 2, "ep": 2, "etp": 2' "$experts"
check 8 '"tp": 2, "pp": 2, "dp": 2, "ep": 4, "schedule": "zb-h1"' "$shared"
check 8 '"tp": 2, "dp": 4, "ep": 2, "etp": 2, "zero_stage": 3' "$shared"
check 4 '"tp": 2, "dp": 2, "ep": 4' "$qwen"
check 8 '"dp": 8, "ep": 2, "zero_stage": 1, "zero_group": 2' "$shared"

# A vocabulary that nothing divides, and shards that are no whole packs: what pads them is apart.
vocab=261
check 4 '"dp": 4, "zero_stage": 1, "zero_group": 2'
check 4 '"tp": 2, "dp": 2, "zero_stage": 1'
check 4 '"dp": 4, "zero_stage": 2' "$dense" "" true
check 4 '"tp": 2, "pp": 2' "$dense" "" true
check 8 '"pp": 2, "dp": 4, "zero_stage": 2' "$dense" "" true
check 8 '"pp": 2, "dp": 4, "vpp": 2, "schedule": "dualpipe", "zero_stage": 1' "$dense" "" true
check 4 '"tp": 2, "dp": 2, "zero_stage": 3'
check 4 '"dp": 4, "ep": 2, "zero_stage": 3' "$experts"
check 16 '"dp": 16, "zero_stage": 1'
check 16 '"dp": 16, "zero_stage": 3'
