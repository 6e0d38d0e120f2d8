#!/bin/sh
# Over a grid of small jobs, of which a run takes a third: the simulation agrees with the estimate
# within 1 % where nothing contends (and 10 % where something does), folded GPUs with unfolded, single
# steps with flows, and the same input gives the same bytes.
set -eu
[ -x "$MESHWRIGHT_SIM" ] || exit 77
. tests/support.sh
. tests/sample.sh

# Simulates parallel $1 with the options that follow into $temp/out.json; sets step_s, estimate_s,
# contended and folding.
simulate() {
    cat >"$temp/job.json" <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:$nodes",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}, "parallel": {$1}}
END
    shift
    "$MESHWRIGHT_SIM" "$@" <"$temp/job.json" >"$temp/out.json"
    step_s=$(value step_time_s)
    estimate_s=$(value estimate_step_time_s)
    contended=$(value contended)
    folding=$(value folding)
}

value() {
    sed -n "s/^[[:space:]]*\"$1\":[[:space:]]*\"*\([^\",]*\).*/\1/p" "$temp/out.json" | head -n 1
}

# Fails unless $2 and $3 are within a fraction $4 of each other; $1 says what they are.
near() {
    awk -v a="$2" -v b="$3" -v frac="$4" 'BEGIN { exit !(a > 0 && (a / b - 1) ^ 2 <= frac ^ 2) }' || {
        echo "$1: $2 and $3 on $nodes nodes with $parallel"
        exit 1
    }
}

num_uncontended=0
num_folded=0
for nodes in 2 4; do
    for parallel in \
        '"tp": 1' '"tp": 2' '"tp": 8' '"tp": 2, "zero_stage": 3' '"tp": 4, "zero_stage": 0' \
        '"tp": 1, "pp": 2' '"tp": 2, "pp": 2' '"tp": 4, "pp": 4' '"tp": 2, "pp": 8' \
        '"tp": 8, "pp": 2, "schedule": "gpipe"' '"tp": 2, "pp": 4, "vpp": 2' \
        '"tp": 4, "pp": 2, "vpp": 2, "schedule": "breadth-first"' \
        '"tp": 4, "pp": 4, "schedule": "zb-h1"' '"tp": 2, "pp": 2, "schedule": "zb-h2"' \
        '"tp": 2, "pp": 4, "schedule": "zb-v"' '"tp": 4, "pp": 4, "schedule": "v-half"' \
        '"tp": 2, "pp": 2, "schedule": "v-min"' '"tp": 4, "pp": 4, "schedule": "dualpipe"' \
        '"tp": 2, "pp": 4, "vocab_parallel": true' \
        '"tp": 1, "pp": 2, "vocab_parallel": true, "vocab_barriers": 2' \
        '"tp": 4, "pp": 4, "schedule": "v-half", "vocab_parallel": true' \
        '"tp": 2, "pp": 4, "vpp": 2, "vocab_parallel": true' \
        '"tp": 4, "pp": 4, "schedule": "dualpipe", "vocab_parallel": true' \
        '"tp": 2, "pp": 2, "schedule": "dualpipe", "vocab_parallel": true, "vocab_barriers": 2' \
        '"tp": 2, "pp": 2, "layers": [{"from": 3, "to": 9, "tp": 8, "recompute": "full"}]' \
        '"tp": 2, "pp": 2, "vpp": 2, "layers": [{"from": 8, "to": 20, "cp": 2, "zero_stage": 3}]' \
        '"tp": 4, "layers": [{"from": 0, "to": 7, "tp": 2, "cp": 2, "zero_stage": 0}]' \
        '"tp": 4, "pp": 2, "vpp": 4' '"tp": 2, "pp": 2, "cp": 2' '"tp": 2, "zero_group": 4'; do
        one_of 3 || continue
        simulate "$parallel" --fold none
        unfolded_s=$step_s
        if [ "$contended" = false ]; then
            num_uncontended=$((num_uncontended + 1))
            near "simulation and estimate" "$step_s" "$estimate_s" 0.01
        else
            near "contended simulation and estimate" "$step_s" "$estimate_s" 0.1
        fi
        simulate "$parallel"
        cp "$temp/out.json" "$temp/first.json"
        [ "$folding" = none ] || num_folded=$((num_folded + 1))
        near "folded and unfolded" "$step_s" "$unfolded_s" 0.0001
        simulate "$parallel"
        cmp "$temp/out.json" "$temp/first.json"
    done
    parallel='"tp": 2, "pp": 2'
    simulate "$parallel"
    flows_s=$step_s
    simulate "$parallel" --stepwise
    near "flows and single steps" "$flows_s" "$step_s" 0.001
done
# The grid must keep testing what it is for.
if [ "$num_uncontended" -lt "$(sampled 8)" ] || [ "$num_folded" -lt "$(sampled 16)" ]; then
    echo "only $num_uncontended jobs uncontended, $num_folded folded"
    exit 1
fi
