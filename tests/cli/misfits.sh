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

# Between a half and 90 %: estimate says that it may not fit, and it is no misfit; plan does not count
# it as fitting, but lists it, and plans with it where that is asked for.
cat >risky.json <<'END'
{"schema": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100:16",
 "training": {"seq_len": 8192, "global_batch": 1024, "precision": "bf16"},
 "parallel": {"tp": 4, "pp": 4, "cp": 1, "vpp": 1, "micro_batch": 1, "recompute": "none", "zero_stage": 1,
              "stages": [{"layers": 20, "embedding": true}, {"layers": 20}, {"layers": 20}, {"layers": 20, "loss": true}]}}
END
answers 0 estimate risky.json
grep -q 'may not fit ([5-8][0-9] %)$' stdout || fail "$(cat stdout)"
! grep -q 'to spare' stdout || fail "to spare: $(cat stdout)"
answers 0 estimate risky.json --json
python3 - stdout <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
assert 0.5 <= answer["fits_probability_frac"] < 0.9 and answer["fits"], answer["fits_probability_frac"]
assert answer["memory_high_bytes"] > answer["memory_available_bytes"]
END
answers 1 plan risky.json --json -o risky
python3 - stdout <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["plans"] == [] and answer["fit_probability_frac"] == 0.9
assert answer["riskier"][0]["parallel"]["tp"] == 4 and 0.5 <= answer["riskier"][0]["fits_probability_frac"] < 0.9
END
grep -q 'nothing fits with 90 %; the best that may fits with [5-8][0-9] %: --fit-probability 0.5 plans with it$' \
    stderr || fail "$(cat stderr)"
[ ! -e risky/plan.json ] || fail "a plan that may not fit was written"
answers 0 plan risky.json --fit-probability 0.5 --json
refuses 'meshwright: --fit-probability: "0.3" is not between 0.5 (as likely as not) and 0.999' \
    plan risky.json --fit-probability 0.3
refuses 'meshwright: --fit-probability: "1" is not between 0.5 (as likely as not) and 0.999' \
    plan risky.json --fit-probability 1
refuses 'meshwright: whatif --fit-probability: goes with --replan or --days only' \
    whatif risky.json --vary training.global_batch=1024 --fit-probability 0.5
