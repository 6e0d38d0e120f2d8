#!/bin/sh
# A small model on real text: 16 processes, split four ways, learn it as one process does. Their log
# is the same in every run to the last bit, and that of one process to 1e-12. A pipeline adds
# everything up in one process's order but the norm: without clipping its losses are the same bits.
# Usage: text.sh RUN
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
run=$1
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
text=$PWD/docs/simulation.md
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

fail() {
    echo "text.sh: $*" >&2
    exit 1
}

# Log, ranks, members of `parallel`, an option.
train() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", "model_type": "llama", "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 64},
 "cluster": $(cluster "$2"),
 "training": {"seq_len": 64, "global_batch": 16, "precision": "fp64", "stack": "runtime"},
 "parallel": {$3, "micro_batch": 1}}
END
    mpirun --allow-run-as-root --oversubscribe -n "$2" "$run" plan.json --steps 20 --data "$text" \
        --learning-rate 0.01 ${4:+"$4"} --log "$1" >out 2>&1 || fail "$1: $(cat out)"
    sed 's/.*"loss": \([^,]*\), "gradient_norm": \([^,]*\),.*/\1 \2/' "$1" >"$1.values"
}

# Logs, how many losses from the first are the same.
is_near() {
    paste -d ' ' "$1.values" "$2.values" | awk -v name="$2" -v same="$3" '
        function error(a, b) { return a > b ? (a - b) / a : (b - a) / a }
        error($1, $3) > 1e-12 || error($2, $4) > 1e-12 || NR <= same && $1 "" != $3 "" {
            print name ": step " NR ": " $0; bad = 1
        }
        END { exit bad || NR != 20 }' >&2 || fail "$2 is not $1"
}

train one 1 '"tp": 1'
# 5.55 is the logarithm of 256.
awk 'NR == 1 && ($1 < 5.5 || $1 > 5.6) || NR == 20 && $1 > 4 { exit 1 }' one.values ||
    fail "it does not learn: $(cat one.values)"
train sixteen 16 '"tp": 2, "cp": 2, "pp": 2, "dp": 2'
is_near one sixteen 0
train again 16 '"tp": 2, "cp": 2, "pp": 2, "dp": 2'
cmp sixteen.values again.values || fail "two runs differ"
train unclipped 1 '"tp": 1' --clip-norm=0
train pipeline 4 '"pp": 4' --clip-norm=0
is_near unclipped pipeline 20
