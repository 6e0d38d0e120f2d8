#!/bin/sh
# calibrate --steps: both answers, the document it writes, refusals.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
bundled=$PWD/published/training.jsonl
cd "$temp"
fail() {
    echo "$*" >&2
    exit 1
}
refuses() {
    sentence=$1
    shift
    rc=0
    "$MESHWRIGHT" calibrate "$@" >stdout 2>stderr </dev/null || rc=$?
    [ $rc -eq 2 ] || fail "calibrate $*: exit $rc: $(cat stderr)"
    [ "$(cat stderr)" = "$sentence" ] || fail "calibrate $*: $(cat stderr); expected: $sentence"
    [ ! -s stdout ] || fail "calibrate $*: an answer beside the refusal"
}

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

refuses 'nofile.jsonl: cannot be read: No such file or directory' --steps nofile.jsonl
refuses 'meshwright: calibrate: --steps takes no --kernels, --gpu or --kind' \
    --steps rows.jsonl --gpu h100-sxm-80g
refuses 'meshwright: calibrate: --steps prints its answer; -o needs a file' --steps rows.jsonl -o -
sed 's/"gate": true/"gate": false/' rows.jsonl >assumed.jsonl
refuses 'assumed.jsonl: none of 40 steps can be predicted' --steps assumed.jsonl
sed 's/"calibration": "steps.json"/"calibratoin": "x"/' job.json >typo.json
rc=0
"$MESHWRIGHT" estimate typo.json 2>stderr || rc=$?
[ $rc -eq 2 ] || fail "typo: exit $rc"
grep -q 'the nearest known one is "calibration"' stderr || fail "$(cat stderr)"
