#!/bin/sh
# Disturbed simulations: the same seed the same bytes, another seed others, no spread no change,
# folded as unfolded; what is said to whom; and that no process outlives a failure.
set -eu
if [ ! -x "$MESHWRIGHT" ] || [ ! -x "$MESHWRIGHT_SIM" ]; then exit 77; fi
. tests/support.sh
unset MESHWRIGHT_SIM

# job FILE DISTURB [NODES PARALLEL BATCH]
job() {
    cat >"$temp/$1.json" <<EOF
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:${3:-2}",
 "training": {"seq_len": 4096, "global_batch": ${5:-64}, "precision": "bf16"},
 "parallel": {${4:-\"tp\": 2, \"pp\": 2}}, "disturb": [$2]}
EOF
}

jitter='{"jitter_frac": 0.05, "seed": 1}'
slow='{"slow_gpu": 3, "factor": 1.5}'
job plain ''
job zero '{"jitter_frac": 0, "seed": 1}'
job jitter "$jitter"
job again "$jitter"
job other '{"jitter_frac": 0.05, "seed": 2}'
job both "$slow, $jitter"
job slow "$slow"

simulate plain
simulate zero
undisturbed=$(figure plain step_time_s)
for key in step_time_s undisturbed_step_time_s mean_step_time_s p95_step_time_s; do
    [ "$(figure zero $key)" = "$undisturbed" ] || fail "without spread $key is $(figure zero $key)"
done

simulate jitter --repetitions 4
simulate again --repetitions 4
cmp "$temp/jitter.out" "$temp/again.out" || fail "the same seed twice"
simulate other --repetitions 4
cmp -s "$temp/jitter.out" "$temp/other.out" && fail "another seed, the same bytes"
claim "p95 is not below the mean" \
    "$(figure jitter p95_step_time_s) >= $(figure jitter mean_step_time_s)"
claim "jitter costs time" "$(figure jitter mean_step_time_s) > $undisturbed"

# Entries that stand before it and are no jitter change none of its draws; a second jitter draws anew.
steps_of() {
    grep '"step_times_s"' "$temp/$1.out"
}
job behind "{\"slow_gpu\": 3, \"factor\": 1}, $jitter"
simulate behind --repetitions 4
[ "$(steps_of behind)" = "$(steps_of jitter)" ] || fail "another entry changes the draws"
job twice "$jitter, $jitter"
simulate twice --repetitions 4
[ "$(steps_of twice)" != "$(steps_of jitter)" ] || fail "two jitters as one"

# tp folded, one of the pair simulated, as long as the slower of the two; unfolded the same.
simulate both --repetitions 3 --fold tp
folded=$(figure both step_time_s)
simulate both --repetitions 3 --fold none
[ "$folded" = "$(figure both step_time_s)" ] || fail "folded $folded, $(figure both step_time_s)"
claim "causes add up to the whole difference" "($(figure both stragglers) + $(figure both jitter) \
    + $(figure both network) + $undisturbed - $folded) ^ 2 < 1e-18"
claim "a GPU half as slow again makes a step longer, at most so much" \
    "$(figure both stragglers) > 0.1 * $undisturbed && $(figure both stragglers) <= 0.5 * $undisturbed"

answers 0 simulate "$temp/both.json" --repetitions 3
grep -q 'in the mean of 3 repetitions, .* at the 95th percentile$' "$temp/stdout"
grep -q '^by cause *stragglers +[0-9.]* %, jitter [-+][0-9.]* %, network +0.00 % of the undisturbed step$' "$temp/stdout"
grep -q 'one of them is simulated, its computations as long as those of the slowest of them;.*break' \
    "$temp/stdout"

# The trace shows the first repetition, however many there are.
simulate slow --trace "$temp/once.json"
simulate slow --trace "$temp/often.json" --repetitions 5
cmp "$temp/once.json" "$temp/often.json" || fail "the trace depends on the repetitions"

# tp 8, dp 2 on two nodes: the ring of GPU 0 and 8 crosses their NICs and nothing else. With half
# of one NIC all its flows take twice as long, with a quarter four times: 1 and 3 times T more.
plan='"tp": 8'
job half '{"link": "nic:0.0", "bandwidth_factor": 0.5}' 2 "$plan"
job quarter '{"link": "nic:0.0", "bandwidth_factor": 0.25}' 2 "$plan"
job whole "$jitter, {\"link\": \"nic:0.0\", \"bandwidth_factor\": 1}" 2 "$plan"
for name in half quarter whole; do
    sed -i 's/"bf16"/"bf16", "overlap_grad_reduce": false, "overlap_param_gather": false/' \
        "$temp/$name.json"
    simulate $name --repetitions 2
done
claim "a quarter of a NIC costs three times what half of it does" \
    "($(figure quarter network) / $(figure half network) / 3 - 1) ^ 2 < 1e-6 \
    && $(figure half network) > 0"
claim "a whole NIC costs nothing" "$(figure whole network) == 0"
grep -q '"folding_reason":.*disturb\[0\].link makes the network' "$temp/half.out"

# What leaves nothing is refused by its path; other commands refuse all of it.
cd "$temp"
job others '{"background": "leaf:0-leaf:1", "bytes_per_s": 1e13}'
refuses 'others.json: disturb[0].background: 1e+13 bytes/s leave nothing of leaf:0 up, which has 1.6e+12' \
    simulate others.json
for command in estimate plan; do
    refuses 'slow.json: disturb: legal, but only simulate and grids of whatif play disturbances yet' $command slow.json
done

# --- Many children, of which none may outlive a failure

[ -r "/proc/$$/task/$$/children" ] || exit 0
# Runs of some time: they are still under way when something happens to them.
job many "$jitter" 128 '"tp": 1, "pp": 8' 8192

# A failure of this test leaves nothing running either.
program=
trap '[ -z "$program" ] || kill -KILL "$program" 2>/dev/null || true
    rm -rf "$temp"; [ $num_refusals_missed -eq 0 ] || exit 1' EXIT

# Starts `simulate many.json` with the options given and waits for its runs: program, simulator
# and runs are the process ids of the program, its child, and that one's children.
start_many() {
    env --default-signal=INT "$MESHWRIGHT" simulate many.json --json --repetitions 100000 \
        --trace "$temp/trace.json" "$@" >out 2>err &
    program=$!
    runs=
    while [ -z "$runs" ] && is_alive $program; do
        simulator=$(children_of $program)
        [ -z "$simulator" ] || runs=$(children_of "${simulator% }")
        sleep 0.05
    done
}

# ends SENTENCE: with 3, no answer, no trace, and nothing left running.
ends() {
    rc=0
    wait $program || rc=$?
    if [ $rc -ne 3 ] || [ -s out ] || ! grep -q "$1" err; then
        fail "expected 3, $1; it was $rc: $(cat err)"
    fi
    program=
    [ -z "$(find . -name 'trace.json*')" ] || fail "$1: a trace is left"
    # shellcheck disable=SC2086 # a list of processes
    ended "$1" $simulator $runs
}

start_many
# shellcheck disable=SC2086 # a list of processes, of which any will do
kill -KILL ${runs%% *}
ends 'the simulator crashed: Killed; in run'
start_many
kill -INT $program
ends 'interrupted: no answer'
start_many
kill -KILL "${simulator% }"
ends 'the simulator crashed: Killed'
start_many --timeout 3
ends 'the simulator was stopped after 3 s (--timeout)'
