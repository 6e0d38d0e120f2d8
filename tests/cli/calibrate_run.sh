#!/bin/sh
# calibrate --run: a log narrows the interval and moves the prediction towards it; refusals.
set -eu
. tests/support.sh
. tests/sample.sh
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
"$MESHWRIGHT" calibrate --run train.log job.json -o run.json >answer.txt 2>said.txt
grep -q '^plan  *tp 4 pp 2 vpp 2 dp 2 ' answer.txt || fail "no plan: $(cat answer.txt)"
grep -q '^train.log: measured .* lies outside the 80 % interval before (.* - .*): is job.json the scenario that ran?$' \
    said.txt || fail "$(cat said.txt)"
grep -q '^train.log: 8 lines of Megatron-LM, the first 2 left out as warm-up$' answer.txt || fail "log"
grep -q '^predicted after ' answer.txt || fail "$(cat answer.txt)"
"$MESHWRIGHT" calibrate --run train.log job.json -o again.json >again.txt
cmp answer.txt again.txt
cmp run.json again.json
"$MESHWRIGHT" calibrate --run train.log job.json --json | grep -q '"after_factor":' || fail "JSON"

# Five times as long is not that run.
awk '{ for (i = 1; i <= NF; i++) if ($(i - 1) == "(ms):") $i = 5 * $i; print }' train.log >slow.log
! "$MESHWRIGHT" calibrate --run slow.log job.json -o slow.json 2>said.txt || fail "a step 5 times as long"
grep -q '^slow.log:3: a step of .* is not one of job.json, which is predicted to take ' said.txt || fail "$(cat said.txt)"
[ ! -e slow.json ] || fail "slow.json is written"

mkdir sub
sed 's|"parallel"|"calibration": "../run.json", "parallel"|' job.json >sub/job.json
"$MESHWRIGHT" estimate sub/job.json --json >after.json
awk -v b="$(step step_time_s before.json)" -v a="$(step step_time_s after.json)" \
    -v bh="$(step step_time_high_s before.json)" -v ah="$(step step_time_high_s after.json)" \
    'BEGIN { exit !(b * 1.02 < a && a < b * 1.2 && ah / a < bh / b) }' ||
    fail "before $(cat before.json) after $(cat after.json)"
# Who applies it says so; the bundled one goes without saying.
"$MESHWRIGHT" estimate sub/job.json | grep -q '^calibration  *after the run of train.log (sub/../run.json)$' ||
    fail "estimate is silent about the calibration"
"$MESHWRIGHT" plan sub/job.json | grep -q '^calibration: after the run of train.log (sub/../run.json)$' ||
    fail "plan is silent about the calibration"
"$MESHWRIGHT" plan sub/job.json --json | grep -A 2 '^	"calibration":' | grep -q '"path":.*"sub/../run.json"' ||
    fail "plan --json"
grep -A 2 '^	"calibration":' after.json | grep -q '"title":.*"after the run of train.log"' || fail "estimate --json"
! "$MESHWRIGHT" estimate job.json | grep calibration || fail "the bundled calibration is named"

# It holds for the GPU, stack and release of its run, and says so.
for key in '"gpu":.*"h100-sxm-80g"' '"stack":.*"megatron-core"'; do
    grep -q "$key" run.json || fail "run.json: no $key"
done
! grep -q '"stack_version"' run.json || fail "a version that was not stated"
of='was measured on h100-sxm-80g with megatron-core of no stated version, but this scenario has'
legal='expected a run of the same GPU and stack'
sed 's/dgx-h100/dgx-a100-80g/' sub/job.json >sub/other.json
for command in estimate plan; do
    refuses "sub/other.json: calibration: sub/../run.json $of a100-sxm-80g with megatron-core of no stated version; $legal" \
        $command sub/other.json
done
sed 's/"precision"/"stack": "torchtitan", "precision"/' sub/job.json >sub/other.json
refuses "sub/other.json: calibration: sub/../run.json $of h100-sxm-80g with torchtitan of no stated version; $legal" \
    estimate sub/other.json
sed 's/"precision"/"stack_version": "26.02", "precision"/' sub/job.json >sub/other.json
refuses "sub/other.json: calibration: sub/../run.json $of h100-sxm-80g with megatron-core 26.02; $legal" \
    calibrate --run train.log sub/other.json
sed 's/"precision"/"stack_version": "26.02", "precision"/' job.json >released.json
"$MESHWRIGHT" calibrate --run train.log released.json -o released-run.json >/dev/null 2>&1
grep -q '"stack_version":.*"26.02"' released-run.json || fail "no release in the document"
sed 's|"parallel"|"calibration": "released-run.json", "parallel"|' released.json >released-job.json
answers 0 estimate released-job.json
grep -v '"gpu":' run.json >bare.json
sed 's|run.json|bare.json|' sub/job.json >sub/bare.json
refuses 'sub/../bare.json: gpu: missing; expected the name of the GPU that was measured' estimate sub/bare.json

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

# What cannot be the run: units, plans, sizes, memory.
awk -v s="$(step step_time_s before.json)" '{ sub(/\(ms\): [0-9.]*/, "(ms): " s); print }' train.log >seconds.log
run_program calibrate --run seconds.log job.json -o new.json
grep -q '^seconds.log:3: a step of .* ms needs [0-9.]* % of the GPUs. peak rate in bf16; is it in seconds?$' \
    stderr || fail "exit $rc: $(cat stderr)"
[ $rc -eq 2 ] || fail "seconds: exit $rc"
"$MESHWRIGHT" calibrate --run - job.json <seconds.log 2>stderr && fail "seconds from standard input"
grep -q '^standard input:3: a step of ' stderr || fail "$(cat stderr)"
for i in 1 2 3 4 5; do
    echo "step: $i  loss: 8.1  memory: 50.20GiB(63.41%)  tps: 250,000  tflops: 300.12  mfu: 30.35%"
done >all.log
answers 2 calibrate --run all.log job.json -o new.json
grep -q '^all.log:3: a step of .* needs .* is tps that of all GPUs?$' stderr || fail "$(cat stderr)"
sed 's/(ms)/(s)/' train.log >unit.log
refuses 'unit.log:1: time unit is (s); expected (ms)' calibrate --run unit.log job.json -o new.json
{ echo 'using world size: 16, tensor-model-parallel size: 8' && cat train.log; } >sizes.log
refuses 'sizes.log:1: tensor-model-parallel size 8, but parallel.tp of job.json is 4' \
    calibrate --run sizes.log job.json -o new.json
sed 's/,$/,/; s/"parallel".*/"calibration": null}/' job.json >free.json
refuses 'free.json: parallel: is absent; state the one that ran, or give the plan.json of the run' \
    calibrate --run train.log free.json -o new.json
sed 's/llama-3.1-8b/llama-3.1-70b/; s/"tp": 4.*/"tp": 1}}/' job.json >big.json
answers 1 calibrate --run train.log big.json -o new.json
grep -q '^big.json: does not fit: ' stderr || fail "$(cat stderr)"
[ ! -s stdout ] || fail "an answer for what cannot run"
[ ! -e new.json ] || fail "a refused run wrote new.json"

# -o is none of the inputs, by whatever name.
for file in job.json train.log run.json; do cp $file $file.kept; done
ln -s job.json link.json
refuses 'link.json: is the scenario job.json; expected another file to write' \
    calibrate --run train.log job.json -o link.json
refuses 'train.log: is the log train.log; expected another file to write' \
    calibrate --run train.log job.json -o train.log
refuses 'run.json: is the calibration sub/../run.json; expected another file to write' \
    calibrate --run train.log sub/job.json -o run.json
for file in job.json train.log run.json; do cmp $file $file.kept; done

# Of all pairs of published steps a run helps to predict another, though not of each family, where
# nothing is wrong; on the few of the bundled set it does little harm.
# Where both are at hand they take turns.
rows=$root/../shared/data/training_open.jsonl
cases=$root/../shared/tools/training_cases.py
[ -f "$rows" ] && [ -f "$cases" ] || rows=
if one_of 2 || [ -z "$rows" ]; then
    status=0
    "$MESHWRIGHT" validate --pairs --json >pairs.json || status=$?
    [ $status -le 1 ] || fail "validate --pairs ends with $status"
    python3 - pairs.json <<'EOF' || fail "$(cat pairs.json)"
import json
import sys

sys.exit(json.load(open(sys.argv[1]))["median_change_of_families_frac"] > 0.003)
EOF
fi
if one_of 2 && [ -n "$rows" ]; then
    python3 "$cases" "$rows" | grep -E '"family": "(internevo|simumax|nemo|mbridge|torchtitan)' \
        >rows.jsonl
    status=0
    "$MESHWRIGHT" validate --pairs --data rows.jsonl >pairs.txt || status=$?
    [ $status -le 1 ] || fail "validate --pairs ends with $status"
    # Of all pairs: the means before and after.
    awk '$1 == "ALL" { found = 1; exit !($9 <= $7) } END { if (!found) exit 1 }' pairs.txt ||
        fail "$(cat pairs.txt)"
fi
