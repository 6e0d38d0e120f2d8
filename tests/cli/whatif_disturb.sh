#!/bin/sh
# Grids with disturbances: every point is played as `simulate` plays it, planned anew or not, and an
# interrupted grid goes on.
set -eu
. tests/support.sh
[ -x "${MESHWRIGHT_SIM-}" ] || exit 77
cd "$temp"
cat >slow.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 4, "pp": 2, "vpp": 2}, "disturb": [{"slow_gpu": 3, "factor": 1.3}]}
END
sed 's/, "disturb".*/}/' slow.json >job.json

# Each point is what simulate says of that scenario.
answers 0 whatif slow.json --vary 'disturb[0].factor=1,1.3,2' --json
mv stdout grid.json
for factor in 1 1.3 2; do
    sed "s/1\.3/$factor/" slow.json >"at-$factor.json"
    answers 0 simulate "at-$factor.json" --json
    mv stdout "at-$factor.out"
done
python3 - <<'END'
import json
points = json.load(open("grid.json"))["points"]
steps = []
for factor, point in zip(("1", "1.3", "2"), points):
    alone = json.load(open(f"at-{factor}.out"))
    played = point["answer"]["simulated"]
    assert played["step_time_s"] == alone["step_time_s"], (factor, played, alone["step_time_s"])
    assert point["answer"]["step_time_s"] == alone["estimate_step_time_s"]
    tokens = 64 * 4096 / played["step_time_s"]
    assert abs(played["tokens_per_s"] / tokens - 1) < 1e-9, (played, tokens)
    steps.append(played["step_time_s"])
assert steps == sorted(steps) and steps[2] > 1.3 * steps[0], steps
END

# A list as a whole; chance in repetitions; a plan for each point of another dimension.
answers 0 whatif job.json --vary 'disturb=[],[{"jitter_frac":0.05,"seed":1}]' \
    --vary training.global_batch=64,128 --replan --repetitions 8 --json
mv stdout grid.json
python3 - <<'END'
import json
grid = json.load(open("grid.json"))
quiet, other, shaken, last = (p["answer"] for p in grid["points"])
assert grid["played"] and quiet["parallel"] == shaken["parallel"]
assert abs(quiet["simulated"]["step_time_s"] / quiet["step_time_s"] - 1) < 0.03
jitter = shaken["simulated"]
assert jitter["num_repetitions"] == 8 and jitter["p95_step_time_s"] >= jitter["step_time_s"]
assert jitter["step_time_s"] > jitter["undisturbed_step_time_s"] == quiet["simulated"]["step_time_s"]
END

# For people; the same bytes from a journal and from any number of threads.
answers 0 whatif slow.json --vary 'disturb[0].factor=1,1.3,2' -o out
grep -q 'played in the simulator' out/whatif.txt || fail "$(cat out/whatif.txt)"
grep -q '^ *2 *3\.[0-9]* s ' out/whatif.txt || fail "$(cat out/whatif.txt)"
answers 0 whatif slow.json --vary 'disturb[0].factor=1,1.3,2' --json
sed '/"timing"/,$d' stdout >one
sed '/"timing"/,$d' out/whatif.json | cmp - one

# An illegal disturbance is a point with its reason; of nothing else is there a grid.
answers 0 whatif slow.json --vary 'disturb[0].slow_gpu=3,99' --json
[ "$(grep -c '"error":.*slow_gpu' stdout)" -eq 1 ] || fail "$(cat stdout)"
answers 2 whatif slow.json --vary 'disturb[0].slow_gpu=98,99'
refuses 'slow.json: disturb[0].facter: unknown key; the nearest known one is "factor"' \
    whatif slow.json --vary 'disturb[0].facter=1.2'
refuses 'job.json: disturb: absent or empty: --repetitions would all be alike' \
    whatif job.json --vary training.global_batch=64,128 --repetitions 3
refuses 'slow.json: disturb: legal, but only simulate and grids of whatif play disturbances yet' whatif slow.json --sensitivity
refuses 'meshwright: whatif --repetitions: goes with --vary only' whatif job.json --goodput --repetitions 2
