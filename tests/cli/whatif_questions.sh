#!/bin/sh
# What `whatif` answers about one job, and `compare` about two: limits, failures, sizes, differences.
set -eu
command -v python3 >/dev/null || exit 77
. tests/support.sh

cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
sed 's/"training"/"parallel": {"tp": 4, "pp": 2}, "training"/' "$temp/job.json" >"$temp/kept.json"
sed 's/llama-3.1-8b/llama-3.1-405b/' "$temp/job.json" >"$temp/large.json"
cd "$temp"

# json CODE EXPRESSION ARGUMENTS...: the document of that answer, in which the Python expression of
# d is true.
json() {
    code=$1
    expression=$2
    shift 2
    answers "$code" "$@" --json
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert eval("(" + sys.argv[2] + ")"), json.dumps(d, indent=1)[:3000]' stdout "$expression" ||
        fail "meshwright $*: $expression"
}

# text PATTERN: a line of the last answer.
text() {
    grep -qE -e "$1" stdout || fail "no line with $1: $(cat stdout)"
}

# --- Sensitivity
json 0 "[r['saves_frac'] for r in d['sensitivity']['rows']] ==
    sorted((r['saves_frac'] for r in d['sensitivity']['rows']), reverse=True) and
    d['sensitivity']['limited_by'] == d['sensitivity']['rows'][0]['resource'] == 'compute' and
    len(d['sensitivity']['rows']) == 6 and d['sensitivity']['change_frac'] == 0.1" \
    whatif kept.json --sensitivity
answers 0 whatif kept.json --sensitivity --percent 25 -o limits
text '^compute +-[0-9.]+ % +\+[0-9.]+ % +-+\|\++$'
text '^Limited by compute: 25 % more saves [0-9.]+ % of the step\.$'
cmp stdout limits/whatif.txt
json 0 "all(r['saves_frac'] >= 0 for r in d['sensitivity']['rows'])" \
    whatif job.json --sensitivity --replan
json 1 "d['sensitivity']['rows'] == [] and not d['sensitivity']['base']['fits']" \
    whatif large.json --sensitivity --replan

# --- Goodput
json 0 "abs(d['goodput']['mean_time_between_failures_s'] / 3600 - 54 * 24 * 16384 / 419 / 16) < 1e-6 and
    0.5 < d['goodput']['goodput_frac'] < 1 and d['goodput']['intervals'] and
    d['goodput']['inputs']['restart_s'] == 600" whatif kept.json --goodput
json 0 "d['goodput']['goodput_frac'] < 0.95 and d['goodput']['spares']['num_nodes'] == 1 and
    d['goodput']['inputs']['seed'] == 5 and d['goodput']['inputs']['num_runs'] == 40" \
    whatif kept.json --goodput --failures-per-gpu-hour 1e-2 --storage 1e10 --restart 900 \
    --repair 3600 --spares 1 --runs 40 --seed 5 --tokens 1e11
mv stdout first
json 0 "d['goodput']['num_steps'] == -(-10**11 // (4096 * 64))" \
    whatif kept.json --goodput --failures-per-gpu-hour 1e-2 --storage 1e10 --restart 900 \
    --repair 3600 --spares 1 --runs 40 --seed 5 --tokens 1e11
cmp stdout first # the same seed, the same bytes
answers 0 whatif job.json --goodput --replan
text '^checkpoint +every [0-9]+ steps, .*\(Young .*, Daly .*\): [0-9.]+ % of the time is progress'
text '^Goodput [0-9.]+ %, [0-9.]+ \+- [0-9.]+ % over [0-9]+ runs played: '

# --- Sizing
json 0 "[c['cluster'] for c in d['fleet']['clusters']] == ['dgx-h100', 'dgx-a100-80g'] and all(
    c['sizing']['proven'] and c['smallest']['run_s'] <= 20 * 86400 and
    c['smallest']['num_gpus'] == c['sizing']['num_gpus'] and c['smallest']['cost_usd'] > 0 and
    c['smallest']['energy_joules'] > 0 for c in d['fleet']['clusters'])" \
    whatif job.json --tokens 1e11 --days 20 --on dgx-h100,dgx-a100-80g
python3 - stdout <<'END' || fail "the frontier"
import json, sys
d = json.load(open(sys.argv[1]))
sizes = [s for c in d['fleet']['clusters'] for s in c['sizes']]
for s in sizes:
    beaten = any(o['run_s'] <= s['run_s'] and o['cost_usd'] <= s['cost_usd'] and
                 (o['run_s'], o['cost_usd']) != (s['run_s'], s['cost_usd']) for o in sizes)
    assert s['on_frontier'] == (not beaten), s
END
[ "$(grep -cE '^dgx-(h|a)100.*: [0-9]+ GPUs, [0-9.]+ days, .* USD \([0-9.]+ s\)$' stderr)" -eq 2 ] ||
    fail "$(cat stderr)"
# The same as plan says of that cluster.
"$MESHWRIGHT" plan job.json --deadline 1e11,1728000 --json >plan.json
python3 -c '
import json
a, b = json.load(open("stdout")), json.load(open("plan.json"))
assert a["fleet"]["clusters"][0]["sizing"]["num_gpus"] == b["sizing"]["num_gpus"]
assert a["fleet"]["clusters"][0]["smallest"]["cost_usd"] == b["sizing"]["run"]["cost_usd"]' ||
    fail "plan --deadline says otherwise"
answers 0 whatif job.json --tokens 1e11 --days 20 --on dgx-h100,dgx-1-v100
text '^dgx-h100 +[0-9]+ +[0-9.]+ '
text 'training.precision: bf16' # a V100 has none: told, and the others are answered
answers 1 whatif job.json --tokens 1e15 --days 1 --on dgx-a100-80g
[ "$(tail -n 1 stderr)" = "job.json: no cluster looked at is fast enough" ] || fail "$(cat stderr)"
# Each row is told as soon as it is known.
grep -q '^dgx-a100-80g: not fast enough (' stderr || fail "$(cat stderr)"

# --- Two plans
"$MESHWRIGHT" plan job.json -o out >plan.txt
json 0 "d['same_job'] and d['tokens_per_s_ratio'] < 1 and
    abs(sum(t['difference'] for t in d['terms'][:9]) - d['terms'][9]['difference']) < 1e-9 and
    'parallel.tp' in [c['path'] for c in d['changes']]" compare out/plan.json kept.json
answers 0 compare out/plan.json kept.json -o both
text '^B trains [0-9.]+ % fewer tokens a second than A, for [0-9.]+ % more a token\.$'
cmp stdout both/compare.txt
json 0 "d['within_noise'] and d['changes'] == []" compare out/plan.json job.json --replan
# The plan of a plan.json is an answer, not a constraint, where it is planned anew.
sed 's/"num_gpus": *16/"num_gpus": 8/; s/dgx-h100:2/dgx-h100:1/' out/plan.json >moved.json
sed 's/dgx-h100:2/dgx-h100:1/' job.json >one.json
json 0 "d['tokens_per_s_ratio'] == 1" compare moved.json one.json --replan
json 0 "d['sensitivity']['base']['plan']" whatif moved.json --sensitivity --replan
answers 1 compare kept.json large.json
text 'does not fit'
json 1 "'error' in d['b'] and 'terms' not in d" compare job.json large.json --replan

# --- Refused
refuses 'meshwright: compare: expected two plans or scenarios, as in compare out/plan.json job.json' \
    compare job.json
refuses 'meshwright: compare: one argument too many: "kept.json"' \
    compare job.json job.json kept.json
refuses 'meshwright: compare: both are standard input; expected a file for one of them' \
    compare - -
refuses 'meshwright: whatif: --vary, --sensitivity, --goodput and --days are different questions; ask one at a time' \
    whatif job.json --sensitivity --goodput
refuses 'meshwright: whatif --days: needs --tokens, as in --tokens 15T --days 60' \
    whatif job.json --days 60
refuses 'meshwright: whatif --tokens: goes with --days or --goodput' \
    whatif job.json --tokens 1e12 --sensitivity
refuses 'meshwright: whatif --storage: goes with --goodput only' \
    whatif job.json --sensitivity --storage 1e9
refuses 'meshwright: --hardware-frac: "2" is more than 1' \
    whatif job.json --goodput --hardware-frac 2
refuses 'meshwright: --percent: "100" is more than 90' \
    whatif job.json --sensitivity --percent 100
refuses 'meshwright: --on: unknown cluster "dgx-h10"; the nearest is dgx-h100' \
    whatif job.json --tokens 1e12 --days 60 --on dgx-h10
refuses 'meshwright: --on: dgx-h100 stands there twice' \
    whatif job.json --tokens 1e12 --days 60 --on dgx-h100,dgx-h200,dgx-h100
refuses 'meshwright: --tokens: "1e30" is more than 1e+17' whatif job.json --goodput --tokens 1e30
