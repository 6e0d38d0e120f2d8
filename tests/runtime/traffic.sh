#!/bin/sh
# What ranks send in a step, group by group, is to the byte what the Program says.
# Usage: traffic.sh RUN
set -eu
run=$1
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

# Ranks, members of `parallel`.
check() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", "model_type": "llama", "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 16,
  "tie_word_embeddings": false},
 "cluster": {"gpu": "h100-sxm-80g", "num_gpus": $1, "gpus_per_node": 8,
  "scale_up": {"link": "nvlink4", "domain_gpus": 8},
  "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 50e9, "topology": "fat-tree",
   "oversubscription": 1.0}},
 "training": {"seq_len": 16, "global_batch": 8, "precision": "fp32", "stack": "runtime"},
 "parallel": {$2, "micro_batch": 1}}
END
    mpirun --allow-run-as-root --oversubscribe -n "$1" "$run" plan.json --steps 2 >out 2>&1 || {
        cat out >&2
        exit 1
    }
    sed -n 's/^sent in a step: //p' out | tr ',' '\n' |
        awk '{ n++; sub(/\)$/, "", $6); if ($2 != $6) bad = 1 } END { exit bad || n == 0 }' || {
        echo "traffic.sh: $2: $(tail -n 1 out)" >&2
        exit 1
    }
}

check 2 '"tp": 2'
check 2 '"tp": 2, "sequence_parallel": false'
check 2 '"tp": 2, "recompute": "full"'
check 2 '"pp": 2'
check 2 '"pp": 2, "schedule": "zb-h1"'
check 2 '"dp": 2, "zero_stage": 0'
check 2 '"dp": 2, "zero_stage": 1'
check 4 '"dp": 4, "zero_stage": 1, "zero_group": 2'
check 2 '"dp": 2, "zero_stage": 2'
check 2 '"dp": 2, "zero_stage": 3'
check 2 '"cp": 2, "cp_method": "ring"'
check 4 '"cp": 4, "cp_method": "ring"'
check 2 '"cp": 2, "cp_method": "all-gather"'
check 2 '"cp": 2, "cp_method": "ulysses"'
check 8 '"tp": 2, "pp": 2, "dp": 2, "vpp": 2, "schedule": "interleaved", "zero_stage": 1'
check 8 '"tp": 2, "cp": 2, "dp": 2, "zero_stage": 3'
