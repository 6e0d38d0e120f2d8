#!/bin/sh
# Orders from files: what estimate writes, every command that takes a plan reads, with the same
# answers; refusals name file, line, rank and item; plan refuses to search with one.
set -eu
. tests/support.sh
mkdir "$temp/jobs"

# job SCHEDULE [STACK]: a scenario in $temp/jobs.
job() {
    cat <<END
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 2048, "global_batch": 16, "stack": "${2-megatron-core}"},
 "parallel": {"tp": 2, "pp": 4, "vpp": 2, "schedule": "$1"}}
END
}

# The answer without the schedule's name, which the sentences of broken rules have too, and the
# time it took.
answer() {
    answers 0 "$@" --json
    sed '/"schedule":/d; /"broken_rules"/,/\]/d; s/},$/}/; /"timing"/,$d' "$temp/stdout"
}

for schedule in interleaved breadth-first zb-v dualpipe; do
    job $schedule >"$temp/jobs/named.json"
    job "file:orders/$schedule.txt" >"$temp/jobs/filed.json"
    mkdir -p "$temp/jobs/orders"
    answers 0 estimate "$temp/jobs/named.json" --write-schedule "$temp/jobs/orders/$schedule.txt"
    answer estimate "$temp/jobs/named.json" >"$temp/named"
    answer estimate "$temp/jobs/filed.json" >"$temp/filed"
    cmp "$temp/named" "$temp/filed"
    grep -q "\"schedule\":.*\"file:orders/$schedule.txt\"" "$temp/stdout" ||
        fail "the answer does not name the file as the scenario does"
    [ -x "${MESHWRIGHT_SIM-}" ] || continue
    answer simulate "$temp/jobs/named.json" >"$temp/named"
    answer simulate "$temp/jobs/filed.json" >"$temp/filed"
    cmp "$temp/named" "$temp/filed"
done

# A grid of changes keeps the order of each point.
answers 0 whatif "$temp/jobs/filed.json" --vary training.seq_len=4096,8192
[ "$(grep -c 'file:orders/dualpipe.txt' "$temp/stdout")" = 2 ] || fail "$(cat "$temp/stdout")"

# A changed order: rank 3 of the V runs a backward before its forward.
order=$temp/jobs/orders/zb-v.txt
job file:orders/zb-v.txt >"$temp/jobs/filed.json"
sed -i "6s|^F0.0 F0.1 F1.0 F1.1 F2.0 F2.1 F3.0 F3.1 B0.1|B0.1 F0.0 F0.1 F1.0 F1.1 F2.0 F2.1 F3.0 F3.1|" "$order"
refuses "$order: line 6: rank 3, item 1: B0.1 needs F0.1, which is item 3" \
    estimate "$temp/jobs/filed.json"
job file:none.txt >"$temp/jobs/filed.json"
refuses "$temp/jobs/none.txt: cannot be read: No such file or directory" \
    estimate "$temp/jobs/filed.json"
refuses "$temp/jobs/filed.json: parallel.schedule: file:none.txt is an order for one \
number of ranks and micro-batches, which a search has to vary; expected a schedule by name, or \
estimate or simulate" plan "$temp/jobs/filed.json"

# Without its pairs the interleaved order waits in a circle where messages block.
job interleaved megatron-2021 >"$temp/jobs/named.json"
answers 0 estimate "$temp/jobs/named.json" --write-schedule "$temp/jobs/orders/pairs.txt"
sed 's/+//g' "$temp/jobs/orders/pairs.txt" >"$temp/jobs/orders/alone.txt"
job file:orders/alone.txt megatron-2021 >"$temp/jobs/filed.json"
run_program estimate "$temp/jobs/filed.json"
[ $rc -eq 2 ] || fail "a circle of messages: exit $rc"
grep -q "^$temp/jobs/orders/alone.txt: line [1-4]: rank [0-3], item [0-9]*: the message of " \
    "$temp/stderr" || fail "a circle of messages: $(cat "$temp/stderr")"

# A placement of two chunks a rank, and of two pipelines with as many micro-batches each.
job file:orders/dualpipe.txt | sed 's/"vpp": 2/"vpp": 1/' >"$temp/jobs/filed.json"
refuses "$temp/jobs/filed.json: parallel.vpp: 1, but the placement in \
$temp/jobs/orders/dualpipe.txt holds 2 chunks a rank; expected 2 or absent" \
    estimate "$temp/jobs/filed.json"
job file:orders/dualpipe.txt | sed 's/"global_batch": 16/"global_batch": 15/' >"$temp/jobs/filed.json"
refuses "$temp/jobs/filed.json: training.global_batch: 15 micro-batches a replica; schedule \
file:orders/dualpipe.txt takes an even number from 2 on" estimate "$temp/jobs/filed.json"
printf 'F0\0 B0\n' >"$temp/jobs/orders/nul.txt"
job file:orders/nul.txt >"$temp/jobs/filed.json"
refuses "$temp/jobs/orders/nul.txt: line 1: a NUL byte; expected text" \
    estimate "$temp/jobs/filed.json"

# Passes over a spread vocabulary are put into an order that is read as into the schedule that it was
# written from. Barriers change the order, which is the file's: without them it is another.
for schedule in 1f1b interleaved dualpipe v-half; do
    spread='"vpp": 2, "vocab_parallel": true'
    [ $schedule = 1f1b ] && spread='"vpp": 1, "vocab_parallel": true'
    job $schedule | sed "s/\"vpp\": 2/$spread/" >"$temp/jobs/named.json"
    job "file:orders/spread.txt" | sed "s/\"vpp\": 2/$spread/" >"$temp/jobs/filed.json"
    answers 0 estimate "$temp/jobs/named.json" --write-schedule "$temp/jobs/orders/spread.txt"
    answer estimate "$temp/jobs/named.json" >"$temp/named"
    answer estimate "$temp/jobs/filed.json" >"$temp/filed"
    cmp "$temp/named" "$temp/filed"
    sed 's/, "vocab_parallel": true//' "$temp/jobs/named.json" >"$temp/jobs/alone.json"
    cp "$temp/jobs/orders/spread.txt" "$temp/spread.txt"
    answers 0 estimate "$temp/jobs/alone.json" --write-schedule "$temp/jobs/orders/spread.txt"
    if cmp -s "$temp/jobs/orders/spread.txt" "$temp/spread.txt"; then
        fail "$schedule: barriers change nothing"
    fi
    answer estimate "$temp/jobs/filed.json" >"$temp/filed"
    if cmp -s "$temp/named" "$temp/filed"; then fail "$schedule: the file's order is not used"; fi
    [ -x "${MESHWRIGHT_SIM-}" ] || continue
    mv "$temp/spread.txt" "$temp/jobs/orders/spread.txt"
    answer simulate "$temp/jobs/named.json" >"$temp/named"
    answer simulate "$temp/jobs/filed.json" >"$temp/filed"
    cmp "$temp/named" "$temp/filed"
done

# Whatever the order: the last micro-batch first, and one of two pipelines after the other.
printf 'F3 F0 B3 F1 B0 F2 B1 B2\nF3 B3 F0 B0 F1 B1 F2 B2\n' >"$temp/jobs/orders/last.txt"
printf 'placement dual\nF0.0 F1.0 B0.0 B1.0 F2.1 B2.1 F3.1 B3.1\nF0.0 B0.0 F1.0 B1.0 F2.1 F3.1 B2.1 B3.1\n' \
    >"$temp/jobs/orders/after.txt"
for order in last after; do
    for barriers in 1 2; do
        job file:orders/$order.txt | sed "s/\"tp\".*\"schedule\"/\"dp\": 4, \"pp\": 2, \
\"vocab_parallel\": true, \"vocab_barriers\": $barriers, \"schedule\"/" >"$temp/jobs/filed.json"
        answers 0 estimate "$temp/jobs/filed.json"
        [ ! -x "${MESHWRIGHT_SIM-}" ] || answers 0 simulate "$temp/jobs/filed.json"
    done
done

# The scenario itself is never written over.
refuses "$temp/jobs/named.json: is the scenario $temp/jobs/named.json; expected another file to write" \
    estimate "$temp/jobs/named.json" --write-schedule "$temp/jobs/named.json"
