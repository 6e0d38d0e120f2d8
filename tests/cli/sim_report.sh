#!/bin/sh
# What simulate says of the difference from the estimate: parts that add up, a critical path from
# the begin to the end of the step, and exit code 1 where the two disagree without a reason.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
command -v python3 >/dev/null || exit 77
. tests/support.sh
real=$MESHWRIGHT_SIM

# job PARALLEL [DISTURB]
job() {
    cat >"$temp/job.json" <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {$1}, "disturb": [${2-}]}
END
}

cat >"$temp/check.py" <<'END'
import json, sys

answer, num_gpus = json.load(open(sys.argv[1])), 16

def near(a, b):
    assert abs(a - b) < 1e-9, (a, b)

difference = answer["difference_s"]
assert set(difference) == {"model", "spare_bandwidth", "contention", "stragglers", "jitter", "network"}
near(sum(difference.values()), answer["step_time_s"] - answer["estimate_step_time_s"])
near(difference["model"], 0)
assert difference["contention"] > -1e-9 and difference["spare_bandwidth"] < 1e-9
if not answer["contended"]:
    assert abs(difference["contention"] + difference["spare_bandwidth"]) < 1e-3 * answer["step_time_s"]

# The path is that of the first repetition.
step_s = answer.get("disturbed", {"step_times_s": [answer["step_time_s"]]})["step_times_s"][0]
path = answer["critical_path"]
simulated_s = sum(total["simulated_s"] for total in path["totals"])
near(simulated_s, step_s)
beyond_s = simulated_s - sum(total["estimated_s"] for total in path["totals"])
near(beyond_s - path["slack_s"], step_s - answer["estimate_step_time_s"])
at_s, host_s = 0, sum(t["simulated_s"] for t in path["totals"] if t["kind"] == "host")
assert path["num_instructions"] == len(path["instructions"]) > 0
for item in path["instructions"]:
    assert item["start_s"] == at_s < item["end_s"], item
    assert 0 <= item["rank"] < num_gpus and item["instruction"], item
    at_s = item["end_s"]
near(at_s, step_s - host_s)
END

unset MESHWRIGHT_SIM
for parallel in '"tp": 2, "pp": 4' '"tp": 1, "pp": 2' '"tp": 8' '"tp": 2, "pp": 4, "vpp": 2' \
    '"tp": 2, "pp": 2, "zero_stage": 0' '"tp": 2, "pp": 4, "schedule": "zb-v"'; do
    for disturb in '' '{"slow_gpu": 3, "factor": 1.5}, {"jitter_frac": 0.05, "seed": 1}'; do
        job "$parallel" "$disturb"
        answers 0 simulate "$temp/job.json" --repetitions "$((${disturb:+1}+1))" --fold none --json
        python3 "$temp/check.py" "$temp/stdout" || fail "$parallel $disturb"
    done
done

job '"tp": 2, "pp": 4'
answers 0 simulate "$temp/job.json"
grep -q '^difference *contention [-+][0-9.]* %, spare bandwidth [-+]0.00 %, latency and overlap +0.00 % of the estimate$' \
    "$temp/stdout" || fail "$(cat "$temp/stdout")"
grep -Eq '^  forward +[0-9]+ +[0-9.]+ m?s +[0-9.]+ % +[0-9.]+ m?s +-$' "$temp/stdout" ||
    fail "$(cat "$temp/stdout")"
grep -Eq '[0-9]+ x forward [0-9.]+ m?s, [0-9]+ x backward [0-9.]+ m?s, [0-9]+ x send' "$temp/stdout" ||
    fail "$(cat "$temp/stdout")"

# --- Disagreement, planted: a simulator whose step is $1 times as long, and that says $2 of
# contention.
plant() {
    cat >"$temp/simulator" <<END
#!/bin/sh
"$real" "\$@" | awk '/^\t"step_time_s":/ { print "\t\"step_time_s\": " s * $1 ","; next }
    /^\t"contended":/ { print "\t\"contended\": $2,"; next }
    { print }' s="$step_s"
END
    chmod +x "$temp/simulator"
}

job '"tp": 8'
answers 0 simulate "$temp/job.json" --json
step_s=$(sed -n 's/^\t"step_time_s":[[:space:]]*\([^,]*\),$/\1/p' "$temp/stdout")
cp "$temp/stdout" "$temp/honest"

# planted CODE FACTOR CONTENDED OPTIONS...
planted() {
    code=$1
    plant "$2" "$3"
    shift 3
    MESHWRIGHT_SIM=$temp/simulator
    export MESHWRIGHT_SIM
    answers "$code" simulate "$temp/job.json" --json "$@"
    unset MESHWRIGHT_SIM
    [ -s "$temp/stdout" ] || fail "no answer with exit code $code"
}
planted 0 1 false
planted 0 1.029 false
planted 1 1.031 false
grep -q "^$temp/job.json: simulation and estimate differ by 3.1 % although no link is contended; tolerance 3.0 %\$" \
    "$temp/stderr" || fail "$(cat "$temp/stderr")"
grep -q '"critical_path"' "$temp/stdout" || fail "an answer that is not whole"
planted 1 0.96 false
planted 0 1.031 true
planted 0 1.031 false --tolerance 0.05
planted 1 1.031 false --tolerance 0.01
job '"tp": 8' '{"slow_gpu": 3, "factor": 1}'
planted 0 1.031 false

job '"tp": 8'
refuses "$temp/job.json: disturb: absent or empty: --repetitions would all be alike" \
    simulate "$temp/job.json" --repetitions 2
