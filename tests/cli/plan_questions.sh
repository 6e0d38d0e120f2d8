#!/bin/sh
# What `plan` answers beyond the best plans: the frontier, a named plan, how many GPUs, and what it
# says when it is interrupted.
set -eu
command -v python3 >/dev/null || exit 77
. tests/support.sh

cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
sed '1,/^{/s/dgx-h100:2/dgx-h100:1/' "$temp/job.json" >"$temp/one.json"

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
assert eval("(" + sys.argv[2] + ")"), json.dumps(d, indent=1)[:3000]' "$temp/stdout" "$expression" ||
        fail "meshwright $*: $expression"
}

# text PATTERN: a line of the last answer.
text() {
    grep -qE "$1" "$temp/stdout" || fail "no line with $1: $(cat "$temp/stdout")"
}

job=$temp/job.json

# --- What holds each plan back
answers 0 plan "$job"
text 'limited by [a-z]'
json 0 "all(p['advice']['limited_by'] in list(p['breakdown_s']) + ['memory'] for p in d['plans'])" \
    plan "$job"

# --- The frontier
json 0 "d['pareto'] == ['step_time_s', 'memory_device_bytes', 'joules_per_token'] and
    d['search']['optimal'] and len(d['plans']) > 20 and all(
        any(a[k] < b[k] for k in d['pareto'])
        for a in d['plans'] for b in d['plans'] if a is not b)" plan "$job" --pareto
answers 0 plan "$job" --pareto
text '^ *# +plan +step time .*memory'
text 'is no better than one of these on every axis'
json 0 "d['pareto'][0] == 'step_time_high_s' and d['robust']" plan "$job" --pareto --robust
json 1 "d['plans'] == [] and d['closest_miss']['missing_bytes'] > 0" \
    plan "$job" --pareto --max-memory 5e9

# --- By the upper end
json 0 "d['robust'] and [p['step_time_high_s'] for p in d['plans']] ==
    sorted(p['step_time_high_s'] for p in d['plans'])" plan "$job" --robust

# --- Switches that the scenario leaves open
answers 0 plan "$job"
text '^Switches that the scenario leaves open'
text '^  grad_reduce_dtype bf16 instead of fp32: [0-9.]+ % faster'
json 0 "0 < len(d['switches']) <= 3 and all(s['gain_frac'] >= 0.01 for s in d['switches']) and
    [s['step_time_s'] for s in d['switches']] ==
    sorted((s['step_time_s'] for s in d['switches']), reverse=True)" plan "$job"
untuned=$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["switches"][-1]["step_time_s"])' "$temp/stdout")
json 0 "d['tuned']['optimal'] and d['tuned']['combinations'] >= 32 and 'switches' not in d and
    d['plans'][0]['step_time_s'] <= $untuned * (1 + 1e-9)" plan "$job" --tune
# What was chosen stands in the plan's file, and is priced so.
answers 0 plan "$job" --tune -o "$temp/tuned"
text '^Tuned: .*grad_reduce_dtype bf16'
json 0 "d['step_time_s'] <= $untuned * (1 + 1e-9)" estimate "$temp/tuned/plan.json"
python3 -c '
import json, sys
assert json.load(open(sys.argv[1]))["training"]["grad_reduce_dtype"] == "bf16"' \
    "$temp/tuned/plan.json" || fail "plan.json does not state what was chosen"
# What is stated stays.
sed 's/"precision"/"grad_reduce_dtype": "fp32", "precision"/' "$job" >"$temp/stated.json"
json 0 "'grad_reduce_dtype' not in d['tuned']['training']" plan "$temp/stated.json" --tune
answers 2 plan "$job" --tune --pareto
answers 2 plan "$job" --tune --objective memory

# --- A named plan
json 0 "d['compare']['plan']['parallel']['tp'] == 4 and d['compare']['plan']['parallel']['pp'] == 2
    and d['compare']['loses_frac'] > 0 and abs(sum(d['compare']['difference_s'].values()) -
    (d['compare']['plan']['step_time_s'] - d['plans'][0]['step_time_s'])) < 1e-9" \
    plan "$job" --compare tp=4,pp=2
answers 0 plan "$job" --compare tp=4,pp=2,recompute=full,schedule=1f1b
text '^tp=4,pp=2,recompute=full,schedule=1f1b, against the best$'
text '^compute .*\+'
json 1 "not d['compare']['legal'] and 'tp 8 or pp 8' in d['compare']['why'] and d['plans']" \
    plan "$job" --compare tp=8,pp=8
json 1 "d['compare']['legal'] and not d['compare']['fits'] and
    d['compare']['closest_miss']['missing_bytes'] > 0" plan "$temp/one.json" \
    --compare tp=1,pp=1,dp=8,zero_stage=0,recompute=none,micro_batch=8
# What is named takes the place of what the scenario states; dp follows.
sed '1,/^{/s/"schema": 1,/"schema": 1, "parallel": {"tp": 8, "dp": 2},/' "$job" >"$temp/tp8.json"
json 0 "d['plans'][0]['parallel']['tp'] == 8 and d['compare']['plan']['parallel']['tp'] == 1 and
    d['compare']['loses_frac'] < 0 and 'within the scenario' in d['compare']['why']" \
    plan "$temp/tp8.json" --compare tp=1

# --- How many GPUs
json 0 "d['sizing']['proven'] and d['sizing']['num_gpus'] % 8 == 0 and
    d['plans'][0]['tokens_per_s'] >= 5e5 and
    d['sizing']['num_gpus'] / 8 - 1 == sum(d['sizing']['smaller_numbers_of_nodes'].values())" \
    plan "$job" --min-gpus-for 5e5
# 1e12 tokens are 3,814,698 steps of 262,144, the last one filled up.
json 0 "d['sizing']['run']['num_steps'] == 3814698 and d['sizing']['run']['run_s'] <= 2.5e6 and
    d['sizing']['run']['cost_usd'] > 0 and d['sizing']['run']['energy_joules'] > 0 and
    abs(d['sizing']['run']['run_s'] - 3814698 * d['plans'][0]['step_time_s']) < 1e-3" \
    plan "$job" --deadline 1e12,2.5e6 -o "$temp/out"
gpus=$(sed -n 's/.*"num_gpus":[[:space:]]*\([0-9]*\).*/\1/p' "$temp/stdout" | head -n 1)
grep -q "\"num_gpus\":[[:space:]]*$gpus" "$temp/out/plan.json" || fail "plan.json is not on $gpus GPUs"
answers 0 estimate "$temp/out/plan.json"
answers 0 plan "$job" --deadline 1e12,2.5e6
text '^[0-9]+ GPUs are the fewest with which a step takes no more than '
text '^1 T tokens are 3814698 steps: .* days, .* GPU hours, .* USD, .* MWh'
json 1 "d['plans'] == [] and d['sizing']['num_gpus'] is None and not d['sizing']['proven']" \
    plan "$temp/tp8.json" --min-gpus-for 1e12

# --- Ctrl-C: the best so far with its gap, and no error. A shell's background jobs ignore SIGINT.
cat >"$temp/long.json" <<'END'
{"schema": 1, "model": "deepseek-v3", "cluster": "dgx-h100:256",
 "training": {"seq_len": 4096, "global_batch": 15360, "precision": "bf16"}}
END
python3 - "$MESHWRIGHT" "$temp/long.json" <<'END' || fail "an interrupted search"
import json, signal, subprocess, sys, time
for delay_s in 1, 2, 4, 8: # a busy machine has no plan yet after the first: 130
    run = subprocess.Popen([sys.argv[1], "plan", sys.argv[2], "--exhaustive", "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    time.sleep(delay_s)
    run.send_signal(signal.SIGINT)
    out, said = run.communicate()
    if run.returncode != 130: break
assert run.returncode == 0, (run.returncode, said)
assert "interrupted" in said, said
answer = json.loads(out)
assert answer["plans"] and answer["search"]["stopped_early"], answer["search"]
assert not answer["search"]["optimal"] and answer["search"]["gap_frac"] > 0
END
