#!/bin/sh
# What every rank held at its peak is within 0.5 % of what the Program says of it, with experts and
# without; within 1 % where it is a matter of time how many messages are held.
# Usage: memory.sh RUN
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
dense='"model_type": "llama", "max_position_embeddings": 256'
experts='"model_type": "mixtral", "num_local_experts": 8'
gpt='"model_type": "gpt2", "n_positions": 256'
qwen='"model_type": "qwen3_moe", "head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 512'

narrow=$(echo "$qwen" | sed 's/512$/128/')
layers=2
tokens=256
band=0.005
late=0 # more than counted, as where a receiver is late
tries=1

# One in three: ranks, members of `parallel`, members of the model, whether words are tied.
check() {
    one_of 3 || return 0
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", ${3:-$experts}, "hidden_size": 256,
  "num_hidden_layers": $layers, "num_attention_heads": 8, "num_key_value_heads": 4,
  "intermediate_size": 512, "vocab_size": 512, "tie_word_embeddings": ${4:-false}},
 "cluster": $(cluster "$1"),
 "training": {"seq_len": $tokens, "global_batch": 4, "precision": "fp32", "stack": "runtime"},
 "parallel": {"micro_batch": 1, $2}}
END
    for try in $(seq $tries); do
        measure "$1"
        echo "$1 ranks, $2: the largest $ratio, any off by $off at most"
        if awk -v off="$off" -v ratio="$ratio" -v band="$band" -v late="$late" \
            'BEGIN { exit !(off != "" && off < (ratio > 1 ? band + late : band)) }'; then return; fi
    done
    echo "memory.sh: $2: a rank is off by $off of what the Program says it holds, try $try" >&2
    exit 1
}

# Runs plan.json: the peak of the rank that holds most over the Program's, and how far any is off.
measure() {
    rm -f log
    mpirun --allow-run-as-root --oversubscribe -n "$1" "$run" plan.json --steps 1 \
        --routing balanced --log log >out 2>&1 || {
        cat out >&2
        exit 1
    }
    peaks='s/.*"memory_peak_bytes": \([0-9]*\), "program_peak_bytes": \([0-9]*\).*/\1 \2/p'
    ratio=$(sed -n "$peaks" log | awk '{ printf "%.4f", $1 / $2 }')
    off=$(sed -n 's/.*"memory_off_frac": \([-+.e0-9]*\).*/\1/p' log)
}

check 1 '"recompute": "none"' "$dense"
check 2 '"tp": 2' "$dense"
check 1 '"recompute": "selective"' "$dense"
check 2 '"tp": 2, "sequence_parallel": false' "$dense"
check 2 '"tp": 2, "sequence_parallel": false, "recompute": "full"' "$dense"
for method in ring all-gather ulysses; do
    check 2 '"cp": 2, "cp_method": "'$method'"' "$dense"
    check 4 '"cp": 4, "cp_method": "'$method'"' "$dense"
    check 4 '"tp": 2, "cp": 2, "recompute": "selective", "cp_method": "'$method'"' "$dense"
done
check 4 '"dp": 4, "zero_stage": 1, "zero_group": 2' "$dense"
check 4 '"dp": 4, "zero_stage": 2, "zero_group": 2' "$dense"
check 4 '"dp": 4, "zero_stage": 3, "zero_group": 2' "$dense"
check 1 '"recompute": "none"' "$gpt" true
check 1 '"recompute": "full"' "$gpt" true
check 1 '"recompute": "selective"' "$gpt" true
check 2 '"tp": 2' "$gpt" true
check 2 '"tp": 2, "sequence_parallel": false' "$gpt" true
check 2 '"cp": 2' "$gpt" true
check 2 '"pp": 2' "$gpt" true
check 2 '"dp": 2, "zero_stage": 2' "$gpt" true
check 2 '"dp": 2, "zero_stage": 3' "$gpt" true
check 4 '"cp": 4, "cp_method": "ring"' "$gpt" true
for recompute in none selective full; do
    check 4 '"tp": 2, "pp": 2, "schedule": "zb-h1", "recompute": "'$recompute'"' "$dense"
    check 4 '"tp": 2, "pp": 2, "schedule": "zb-h1", "recompute": "'$recompute'"' "$gpt" true
done
for method in ring all-gather ulysses; do
    check 4 '"cp": 2, "pp": 2, "schedule": "zb-h1", "cp_method": "'$method'"' "$dense"
    check 4 '"cp": 2, "pp": 2, "schedule": "zb-h1", "cp_method": "'$method'"' "$gpt" true
done
check 1 '"recompute": "none"'
check 1 '"recompute": "full"'
check 2 '"tp": 2'
check 2 '"dp": 2, "ep": 2'
check 2 '"dp": 2, "ep": 2, "recompute": "full"'
check 2 '"dp": 2, "etp": 2, "zero_stage": 0'
check 4 '"cp": 2, "dp": 2, "ep": 4'
check 4 '"pp": 2, "dp": 2, "ep": 2, "schedule": "zb-h1"'
check 4 '"tp": 2, "dp": 2, "ep": 4' "$qwen"
check 8 '"tp": 2, "dp": 4, "ep": 2, "etp": 2, "zero_stage": 1'
check 2 '"dp": 2, "etp": 2, "zero_stage": 0' "$narrow"
check 4 '"dp": 4, "ep": 2, "etp": 2, "recompute": "full"' "$narrow"
check 2 '"dp": 2, "zero_stage": 2' "$dense"
check 2 '"dp": 2, "zero_stage": 3' "$dense"
check 4 '"tp": 2, "dp": 2, "zero_stage": 3' "$dense"
check 4 '"dp": 4, "ep": 2, "zero_stage": 2'
check 4 '"dp": 4, "ep": 2, "zero_stage": 3, "recompute": "full"'
check 4 '"pp": 2, "dp": 2, "zero_stage": 3' "$dense"
check 4 '"pp": 2, "dp": 2, "ep": 2, "schedule": "zb-h1", "zero_stage": 3'
check 4 '"pp": 2, "dp": 2, "zero_stage": 2' "$dense" true
# A stage without layers: what it holds most is messages, and what the tied matrix's other end sends.
ends='"stages": [{"layers": 0, "embedding": true}, {"layers": 2, "loss": true}]'
check 2 '"pp": 2, '"$ends" "$gpt" true
check 2 '"pp": 2, '"$ends" "$dense"
check 4 '"pp": 2, "dp": 2, "zero_stage": 2, '"$ends" "$gpt" true
check 4 '"tp": 2, "pp": 2, '"$ends" "$gpt" true
check 2 '"pp": 2, "schedule": "zb-h1", '"$ends" "$gpt" true
# Here a message is 0.3 to 0.8 % of the memory, and each schedule holds as many as are counted, but
# for one more where a receiver is late, as on a computer that does other things: no fewer.
layers=4
tokens=128
band=0.003
late=0.007 # 1 % in all
tries=3
check 2 '"pp": 2, "schedule": "gpipe"' "$dense"
check 2 '"pp": 2, "schedule": "zb-h1"' "$dense"
check 4 '"pp": 4, "schedule": "zb-h1", "recompute": "full"' "$dense"
check 2 '"pp": 2, "vpp": 2, "schedule": "interleaved"' "$dense"
check 2 '"pp": 2, "vpp": 2, "schedule": "breadth-first"' "$dense"
check 2 '"pp": 2, "vpp": 2, "schedule": "v-half"' "$dense"
check 2 '"pp": 2, "vpp": 2, "schedule": "v-min"' "$dense"
check 2 '"pp": 2, "vpp": 2, "schedule": "v-min", "recompute": "full"' "$dense"
check 2 '"pp": 2, "schedule": "dualpipe"' "$dense"
check 2 '"pp": 2, "schedule": "dualpipe", "recompute": "full"' "$dense"
# Whose peak is in a forward, which holds what its products and collectives read.
tokens=256
band=0.005
late=0.005
check 4 '"tp": 2, "pp": 2, "vpp": 2, "schedule": "v-min", "recompute": "full"' "$gpt" true
check 4 '"cp": 2, "pp": 2, "vpp": 2, "schedule": "v-min", "recompute": "full", "cp_method": "ulysses"' "$gpt" true
check 4 '"pp": 2, "dp": 2, "ep": 2, "vpp": 2, "schedule": "v-min"' "$qwen"
check 4 '"tp": 2, "pp": 2, "etp": 2, "vpp": 2, "schedule": "v-min"' "$qwen"
# Whether one more is held, for which the receiver is not ready yet, is always a matter of time in
# these two: here one is 0.4 % of the memory.
band=0.01
late=0
tokens=256
check 4 '"pp": 4, "schedule": "zb-h2"' "$dense"
tokens=64
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "zb-v", "zero_stage": 2' "$dense" true
check 4 '"pp": 2, "dp": 2, "vpp": 2, "schedule": "zb-v", "zero_stage": 3' "$dense" true
layers=2
tokens=256
band=0.005
tries=1
check 2 '"dp": 2, "zero_stage": 2' "$dense" true
check 2 '"dp": 2, "zero_stage": 3' "$dense" true
