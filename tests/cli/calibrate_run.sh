#!/bin/sh
# calibrate --run: a log narrows the interval and moves the prediction towards it; refusals.
set -eu
. tests/support.sh
root=$PWD
cd "$temp"

# step KEY FILE: a figure of an estimate.
step() {
    sed -n "s/^.*\"$1\":[^0-9]*\([0-9.e+-]*\),*$/\1/p" "$2" | head -n 1
}

cat >job.json <<'EOF'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 4, "pp": 2, "vpp": 2}}
EOF
"$MESHWRIGHT" estimate job.json --json >before.json
# A fifth slower than predicted.
awk -v s="$(step step_time_s before.json)" 'BEGIN {
    for (i = 1; i <= 8; i++)
        printf " iteration %d/ 8 | elapsed time per iteration (ms): %.1f | global batch size: 64 |\n",
               i, 1200 * s * (i < 3 ? 3 : 1)
}' >train.log
"$MESHWRIGHT" calibrate --run train.log job.json -o run.json >answer.txt
grep -q '^train.log: 8 lines of Megatron-LM, the first 2 left out as warm-up$' answer.txt || fail "log"
grep -q '^predicted after ' answer.txt || fail "$(cat answer.txt)"
"$MESHWRIGHT" calibrate --run train.log job.json -o again.json >again.txt
cmp answer.txt again.txt
cmp run.json again.json
"$MESHWRIGHT" calibrate --run train.log job.json --json | grep -q '"after_factor":' || fail "JSON"

mkdir sub
sed 's|"parallel"|"calibration": "../run.json", "parallel"|' job.json >sub/job.json
"$MESHWRIGHT" estimate sub/job.json --json >after.json
awk -v b="$(step step_time_s before.json)" -v a="$(step step_time_s after.json)" \
    -v bh="$(step step_time_high_s before.json)" -v ah="$(step step_time_high_s after.json)" \
    'BEGIN { exit !(b * 1.02 < a && a < b * 1.2 && ah / a < bh / b) }' ||
    fail "before $(cat before.json) after $(cat after.json)"
# A plan.json in another folder still finds it.
"$MESHWRIGHT" plan sub/job.json -o out >/dev/null
grep -q "\"calibration\":[^/]*$temp/run.json\"\|\"calibration\":[^/]*$temp/sub/../run.json\"" \
    out/plan.json || fail "plan.json: $(grep calibration out/plan.json)"
"$MESHWRIGHT" estimate out/plan.json >/dev/null || fail "plan.json is not a scenario"

refuses 'meshwright: calibrate: --run needs the scenario that ran; meshwright calibrate --help shows examples' \
    calibrate --run train.log
refuses 'meshwright: calibrate: --run and --steps exclude each other' \
    calibrate --run train.log --steps x.jsonl job.json
refuses 'meshwright: calibrate: log and scenario are both -; expected one of them' calibrate --run - -
refuses 'nofile.log: cannot be read: No such file or directory' calibrate --run nofile.log job.json
sed 's/batch size: 64/batch size: 32/' train.log >other.log
refuses 'other.log:1: global batch size 32, but training.global_batch of job.json is 64' \
    calibrate --run other.log job.json
head -n 4 train.log >short.log
refuses 'short.log: 4 lines of steps are too few; expected at least 5, of which the first 2 are warm-up' \
    calibrate --run short.log job.json
sed 's/"factor":/"facotr":/' run.json >bad.json
sed 's|run.json|bad.json|' sub/job.json >sub/bad.json
answers 2 estimate sub/bad.json
grep -q 'bad.json: facotr: unknown key; the nearest known one is "factor"' stderr ||
    fail "$(cat stderr)"

# On published steps a run helps to predict another.
"$MESHWRIGHT" validate --pairs >pairs.txt || fail "$(cat pairs.txt)"
rows=$root/../shared/data/training_open.jsonl
cases=$root/../shared/tools/training_cases.py
if [ -f "$rows" ] && [ -f "$cases" ]; then
    python3 "$cases" "$rows" | grep -E '"family": "(internevo|simumax|nemo|mbridge|torchtitan)' \
        >rows.jsonl
    "$MESHWRIGHT" validate --pairs --data rows.jsonl >pairs.txt || fail "$(cat pairs.txt)"
fi
