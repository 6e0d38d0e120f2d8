# tests/support.sh - what script tests share. They source it from the root of the tree, under
# set -eu. $temp is a folder of the test's own; it goes when the test ends.
# shellcheck shell=sh
temp=$(mktemp -d)
unset COLUMNS # or the answers would be of that width
num_refusals_missed=0
trap 'rm -rf "$temp"; [ $num_refusals_missed -eq 0 ] || exit 1' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# run_program ARGUMENTS...: sets rc; the answer is in $temp/stdout, what is said in $temp/stderr.
run_program() {
    rc=0
    "$MESHWRIGHT" "$@" >"$temp/stdout" 2>"$temp/stderr" </dev/null || rc=$?
}

# answers CODE ARGUMENTS...: runs the program, which has to exit with CODE.
answers() {
    code=$1
    shift
    run_program "$@"
    [ $rc -eq "$code" ] || fail "meshwright $*: exit $rc, not $code: $(cat "$temp/stderr")"
}

# refuses SENTENCE ARGUMENTS...: exit 2 with that sentence and no answer. The test goes on after
# one that is missed, and fails at its end.
refuses() {
    sentence=$1
    shift
    run_program "$@"
    # The rule of a refusal and its source have tests of their own (tests/planner/test_rule_tables.c).
    if [ $rc -ne 2 ] || [ -s "$temp/stdout" ] ||
        [ "$(sed 's| (rule [a-z0-9.-]*/[a-z0-9-]*: .*)$||' "$temp/stderr")" != "$sentence" ]; then
        echo "meshwright $*: exit $rc, $(cat "$temp/stdout" "$temp/stderr")"
        echo "    expected: exit 2, $sentence"
        num_refusals_missed=$((num_refusals_missed + 1))
    fi
}

# --- Simulations

# simulate FILE OPTIONS...: of $temp/FILE.json, which has to end with 0 (it agrees with the estimate, or
# something is disturbed): the answer without its timing, which is last, into $temp/FILE.out.
simulate() {
    name=$1
    shift
    answers 0 simulate "$temp/$name.json" --json "$@"
    sed '/"timing"/,$d' "$temp/stdout" >"$temp/$name.out"
}

# figure FILE KEY: the first number of that name.
figure() {
    sed -n "s/^[[:space:]]*\"$2\":[[:space:]]*\([^,]*\).*/\1/p" "$temp/$1.out" | head -n 1
}

# claim SENTENCE EXPRESSION: arithmetic of awk.
claim() {
    awk "BEGIN { exit !($2) }" || fail "$1: $2"
}

# --- Processes (needs /proc/PID/task/PID/children)

children_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null || true
}

# A process that has ended may wait for its parent as a zombie.
is_alive() {
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null
}

# ended CLAIM PROCESS...: within ten seconds none of them runs any more.
ended() {
    claim=$1
    shift
    for pid; do
        num_waits=0
        while is_alive "$pid"; do
            num_waits=$((num_waits + 1))
            [ $num_waits -lt 200 ] || fail "$claim: process $pid still runs: $(cat "/proc/$pid/status")"
            sleep 0.05
        done
    done
}

# --- Runs

# tiny_job FILE RANKS PARALLEL: a model that this computer trains in no time, with that plan.
tiny_job() {
    cat >"$1" <<JOB
{"schema": 1, "cluster": {"gpu": "h100-sxm-80g", "num_gpus": $2, "gpus_per_node": $2,
  "scale_up": {"link": "shm", "domain_gpus": $2},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 1e9}},
 "model": {"model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
  "max_position_embeddings": 64},
 "training": {"seq_len": 32, "global_batch": 4, "precision": "fp32", "stack": "runtime"},
 "parallel": $3}
JOB
}
