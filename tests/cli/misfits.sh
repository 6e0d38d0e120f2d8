#!/bin/sh
# A plan that does not fit is not started, only with --force; a plan.json that no longer says what
# is predicted is pointed out.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"
fail() {
    echo "$*" >&2
    exit 1
}

cat >big.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 8, "precision": "bf16"}, "parallel": {"tp": 8}}
END
code=0
"$MESHWRIGHT" launch big.json -o out >stdout 2>stderr || code=$?
[ "$code" -eq 1 ] || fail "launch of what does not fit: exit $code"
grep -q '^big.json: does not fit: needs .* on one GPU, available .* more$' stderr ||
    fail "$(cat stderr)"
[ ! -e out ] || fail "launch wrote something"
[ ! -s stdout ] || fail "launch printed something"
code=0
"$MESHWRIGHT" launch big.json --dry-run >stdout 2>stderr || code=$?
[ "$code" -eq 1 ] || fail "dry run of what does not fit: exit $code"
"$MESHWRIGHT" launch big.json -o out --force >/dev/null 2>stderr
grep -q 'does not fit' stderr || fail "--force does not warn"
[ -s out/launch.sh ] || fail "--force wrote nothing"
code=0
"$MESHWRIGHT" simulate big.json >/dev/null 2>stderr || code=$?
[ "$code" -eq 0 ] || fail "simulate: exit $code"
grep -q '^big.json: does not fit' stderr || fail "simulate is silent about memory"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 16, "precision": "bf16"}, "parallel": {"tp": 4}}
END
"$MESHWRIGHT" plan job.json -o plan >/dev/null 2>&1
for command in "launch --dry-run" estimate simulate; do
    # shellcheck disable=SC2086 # a command and its option
    "$MESHWRIGHT" $command plan/plan.json >/dev/null 2>stderr
    [ ! -s stderr ] || fail "$command: $(cat stderr)"
done
sed 's/"global_batch":[[:space:]]*16/"global_batch": 32/' plan/plan.json >edited.json
for command in "launch --dry-run" estimate simulate; do
    # shellcheck disable=SC2086
    "$MESHWRIGHT" $command edited.json >/dev/null 2>stderr
    grep -q '^edited.json: provenance: predicted a step of .*s, now it is .*s: ' stderr ||
        fail "$command: $(cat stderr)"
done
