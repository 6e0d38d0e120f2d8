#!/bin/sh
# Replicas that no rotation turns into one another, but nothing tells apart, fold as exactly as those
# that one does (sim_folds.sh). Where too many differ the fold is approximate: it says so, and its times
# are near those of every GPU. Jobs of 100,000 GPUs are simulated.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
. tests/folds.sh

# Stages of 5 nodes, or of half of 3, on leaf switches of 4 and on rails.
for network in '"nics_per_node": 8, "topology": "fat-tree"' \
    '"nics_per_node": 2, "topology": "fat-tree"' '"nics_per_node": 4, "topology": "rail-only"' \
    '"nics_per_node": 8, "topology": "dragonfly"'; do
    machine 10 "$network"
    model=llama-3.1-8b
    global_batch=80
    for parallel in '"tp": 8, "pp": 2' '"tp": 4, "pp": 2' '"tp": 1, "pp": 2, "vpp": 2' \
        '"tp": 4, "cp": 2, "pp": 2' '"tp": 2, "pp": 2, "zero_stage": 3' \
        '"tp": 4, "pp": 2, "schedule": "zb-h1"' '"tp": 4, "pp": 2, "vocab_parallel": true' \
        '"tp": 2, "pp": 2, "zero_group": 4'; do
        same "$parallel"
    done
    same '"tp": 4, "pp": 2' ', "overlap_grad_reduce": false, "overlap_param_gather": false'
    model=mixtral-8x7b
    same '"tp": 2, "ep": 4, "pp": 2'
    machine 3 "$network"
    model=llama-3.1-8b
    global_batch=48
    same '"tp": 2, "pp": 2'
done

# Uplinks that are short tell replicas of a leaf apart, those behind the same uplinks excepted.
for oversubscription in 2 4; do
    machine 10 '"nics_per_node": 8, "topology": "fat-tree", "oversubscription": '$oversubscription
    global_batch=80
    for parallel in '"tp": 4, "pp": 2' '"tp": 1, "pp": 2' '"tp": 4, "cp": 2, "pp": 2' \
        '"tp": 2, "pp": 2, "zero_stage": 3'; do
        same "$parallel"
    done
done

# Groups inside layers that cross nodes, in stages of 6.
machine 12 '"nics_per_node": 8, "topology": "fat-tree"'
global_batch=96
for parallel in '"tp": 4, "cp": 4, "pp": 2' '"tp": 16, "pp": 2' '"tp": 8, "pp": 2, "zero_stage": 3'; do
    same "$parallel"
done
model=mixtral-8x7b
same '"tp": 4, "etp": 2, "ep": 8, "pp": 2'

num_sorted=$(grep -c ' sorted ' "$temp/jobs")
num_contended=$(grep -c '^True sorted ' "$temp/jobs")
if [ "$num_sorted" -lt "$(sampled 20)" ] || [ "$num_contended" -lt "$(sampled 15)" ]; then
    fail "only $num_sorted jobs folded by likeness, of which $num_contended contended: $(cat "$temp/jobs")"
fi

# near PARALLEL FRACTION: the approximate fold, of fewer lanes; by how much its step may be off.
near() {
    job "$1"
    for fold in approximate none; do
        "$simulator" --fold $fold <"$temp/job.json" >"$temp/$fold.json" || fail "$1 on $cluster"
    done
    python3 - "$temp/approximate.json" "$temp/none.json" "$2" <<'END_PY' || fail "$1 on $cluster"
import json
import sys

rough, whole = (json.load(open(path)) for path in sys.argv[1:3])
assert rough["folding"] == "approximate", rough["folding"]
assert rough["folding_reason"].find("so the answer is approximate") > 0, rough["folding_reason"]
assert 2 * rough["num_lanes"] * rough["num_folded"] <= whole["num_lanes"]
assert whole["contended"] and rough["contended"]
error = rough["step_time_s"] / whole["step_time_s"] - 1
assert abs(error) < float(sys.argv[3]), f"{100 * error} % off"
END_PY
}

# tools/figures/fold_errors.py measures more of them.
model=llama-3.1-8b
for network in '"topology": "rail-fat-tree"' '"topology": "fat-tree"'; do
    for oversubscription in 2 4; do
        machine 50 '"nics_per_node": 8, '"$network"', "oversubscription": '$oversubscription
        global_batch=100
        near '"tp": 8, "pp": 2, "micro_batch": 1' 1e-3
        machine 60 '"nics_per_node": 8, '"$network"', "oversubscription": '$oversubscription
        global_batch=120
        near '"tp": 8, "cp": 2, "pp": 2, "micro_batch": 1' 1e-2
    done
done

# folded FOLDING REASON: 100,000 GPUs, whose stages of 10,000 fill no leaves.
folded() {
    job '"tp": 8, "cp": 2, "pp": 10, "vpp": 4, "micro_batch": 1, "zero_stage": 1'
    answers 0 simulate "$temp/job.json" --json --timeout 300
    grep -q "\"folding\":[[:space:]]*\"$1\"" "$temp/stdout" || fail "not folded $1: $(grep folding "$temp/stdout")"
    grep -qF "$2" "$temp/stdout" || fail "not the reason: $2; $(grep folding "$temp/stdout")"
}

model=llama-3.1-405b
global_batch=12500
machine 12500 '"nics_per_node": 8'
folded full 'the 10000 GPUs of a stage run in lockstep and are of 1 sort by what shares links with what they send: '
machine 12500 '"nics_per_node": 8, "oversubscription": 2'
folded approximate 'the 10000 GPUs of a stage run in lockstep but differ in what shares links with what they send'
