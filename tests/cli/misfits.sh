#!/bin/sh
# A plan that does not fit is not started, only with --force; a plan.json that no longer says what
# is predicted is pointed out.
set -eu
. tests/support.sh
cd "$temp"

cat >big.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 8, "precision": "bf16"}, "parallel": {"tp": 8}}
END
answers 1 launch big.json -o out
grep -q '^big.json: does not fit: needs .* on one GPU, available .* more$' stderr ||
    fail "$(cat stderr)"
[ ! -e out ] || fail "launch wrote something"
[ ! -s stdout ] || fail "launch printed something"
answers 1 launch big.json --dry-run
"$MESHWRIGHT" launch big.json -o out --force >/dev/null 2>stderr
grep -q 'does not fit' stderr || fail "--force does not warn"
[ -s out/launch.sh ] || fail "--force wrote nothing"
answers 0 simulate big.json
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
# The launch files beside plan.json are those of launch; a file of other bytes is not overwritten.
answers 0 launch plan/plan.json --scheduler slurm -o plan
[ "$(cat stdout)" = "plan/launch.sbatch unchanged" ] || fail "$(cat stdout)"
echo "# mine" >>plan/launch.sbatch
refuses 'plan/launch.sbatch: is there already; --force overwrites it' \
    launch plan/plan.json --scheduler slurm -o plan
answers 0 launch plan/plan.json --scheduler slurm -o plan --force
[ "$(cat stdout)" = "plan/launch.sbatch written" ] || fail "$(cat stdout)"
sed 's/"global_batch":[[:space:]]*16/"global_batch": 32/' plan/plan.json >edited.json
for command in "launch --dry-run" estimate simulate; do
    # shellcheck disable=SC2086
    "$MESHWRIGHT" $command edited.json >/dev/null 2>stderr
    grep -q '^edited.json: provenance: predicted a step of .*s, now it is .*s: ' stderr ||
        fail "$command: $(cat stderr)"
done
