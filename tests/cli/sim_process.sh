#!/bin/sh
# What `meshwright simulate` makes of a simulator that is missing, killed, slow or talks nonsense:
# exit code 3, one sentence, and neither an answer nor a trace.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 2, "pp": 2}}
END

# Simulates with a simulator that consists of the shell command $1; expects exit code 3 and $2.
fails() {
    printf '#!/bin/sh\n%s\n' "$1" >"$temp/simulator"
    chmod +x "$temp/simulator"
    expected=$2
    shift 2
    rc=0
    MESHWRIGHT_SIM=$temp/simulator "$MESHWRIGHT" simulate "$temp/job.json" --json \
        --trace "$temp/trace.json" "$@" >"$temp/out" 2>"$temp/err" || rc=$?
    if [ "$rc" -ne 3 ] || ! grep -q "$expected" "$temp/err" || [ -s "$temp/out" ] ||
        [ -e "$temp/trace.json" ]; then
        echo "expected 3, $expected; it was $rc:"
        cat "$temp/err" "$temp/out"
        exit 1
    fi
}

fails 'kill -KILL $$' 'the simulator crashed: Killed'
fails 'kill -SEGV $$' 'the simulator crashed: Segmentation fault'
fails 'exec sleep 60' 'the simulator was stopped after 0.1 s (--timeout)' --timeout 0.1
fails 'echo nonsense' 'answer of meshwright-sim'
fails 'exit 9' 'the simulator failed with exit code 9'
for status in 1 2 3; do # of a program that knows nothing of ours
    fails "echo boom >&2; exit $status" "^the simulator failed with exit code $status; it said: boom$"
done

# The real one, beside the program: an answer, and a trace on request.
unset MESHWRIGHT_SIM
"$MESHWRIGHT" simulate "$temp/job.json" --json --trace "$temp/trace.json" >"$temp/out"
grep -q '"step_time_s"' "$temp/out"
grep -q '"traceEvents"' "$temp/trace.json"
