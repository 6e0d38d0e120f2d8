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

# Groups of 15 rows and more, across families; the others stay as they are.
"$MESHWRIGHT" calibrate --steps rows.jsonl --by kind,gpu,tp >groups
sed -n '/^Bias and mean error of groups/,/^$/p' groups >table
sed 1,2d table >shown
[ "$(sed -E 's/ {2,}/|/g' shown | cut -d'|' -f1-3 | head -n 2)" = "dense|40|4
a100-sxm-80g|35|4" ] || fail "groups: $(cat table)"
grep -q '^tp 1  *[0-9]* ' shown || fail "no degree: $(cat table)"
! grep -q h100 shown || fail "fewer than 15 rows: $(cat table)"
sed '/^Bias and mean error of groups/,/^$/d' groups | cmp - first
"$MESHWRIGHT" calibrate --steps rows.jsonl --by kind --json >groups.json
grep -q '"group":.*"dense"' groups.json || fail "no group in JSON"
! grep -q '"by":.*"gpu"' groups.json || fail "groups that were not asked for"
refuses 'meshwright: calibrate: --by "size" is unknown; expected kind, gpu, tp, joined by commas' \
    calibrate --steps rows.jsonl --by kind,size
refuses 'meshwright: calibrate: --by goes with --steps' calibrate --by kind

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
