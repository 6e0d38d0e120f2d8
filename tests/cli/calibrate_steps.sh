#!/bin/sh
# calibrate --steps: both answers, the document it writes, refusals.
set -eu
. tests/support.sh
bundled=$PWD/published/training.jsonl
cd "$temp"

# A few families are enough here; the same rows give the same bytes.
grep -E '"family": "(megatron-sc21|fms-fsdp|llm.c|vtrain-single)"' "$bundled" >rows.jsonl
"$MESHWRIGHT" calibrate --steps rows.jsonl -o steps.json >first
"$MESHWRIGHT" calibrate --steps rows.jsonl >second
cmp first second
grep -q '^full_rate_watts  *ampere  *W ' first || fail "no power: $(cat first)"
grep -q '^host_layer_s  *megatron-2021  *s ' first || fail "no host time: $(cat first)"
grep -q '^mean of families ' first || fail "no mean"
"$MESHWRIGHT" calibrate --steps rows.jsonl --json | grep -q '"left_out_frac":' || fail "JSON"

# The document is a calibration: same prediction, another interval.
cat >job.json <<'EOF'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:8",
 "training": {"seq_len": 8192, "global_batch": 128}, "calibration": "steps.json"}
EOF
sed 's/, "calibration": "steps.json"//' job.json >plain.json
"$MESHWRIGHT" estimate job.json --json | grep '"step_time' >calibrated.txt
"$MESHWRIGHT" estimate plain.json --json | grep '"step_time' >plain.txt
[ "$(head -n 1 calibrated.txt)" = "$(head -n 1 plain.txt)" ] || fail "the prediction moved"
! cmp -s calibrated.txt plain.txt || fail "the interval did not move"

refuses 'nofile.jsonl: cannot be read: No such file or directory' calibrate --steps nofile.jsonl
refuses 'meshwright: calibrate: --steps takes no --kernels, --gpu or --kind' \
    calibrate --steps rows.jsonl --gpu h100-sxm-80g
refuses 'meshwright: calibrate: --steps prints its answer; -o needs a file' calibrate --steps rows.jsonl -o -
refuses './rows.jsonl: is the file of steps rows.jsonl; expected another file to write' \
    calibrate --steps rows.jsonl -o ./rows.jsonl
sed 's/"gate": true/"gate": false/' rows.jsonl >assumed.jsonl
refuses 'assumed.jsonl: none of 40 steps can be predicted' calibrate --steps assumed.jsonl
sed 's/"calibration": "steps.json"/"calibratoin": "x"/' job.json >typo.json
answers 2 estimate typo.json
grep -q 'the nearest known one is "calibration"' stderr || fail "$(cat stderr)"
grep '"family": "llm.c"' rows.jsonl >one.jsonl
answers 0 calibrate --steps one.jsonl
grep -q '^one.jsonl: one family (llm.c): none could be left out' stderr || fail "$(cat stderr)"
refuses 'meshwright: calibrate: none of --kernels, --steps and --run given; meshwright calibrate --help shows examples' \
    calibrate
