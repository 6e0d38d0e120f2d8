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

# The answer without the schedule's name and the time it took.
answer() {
    answers 0 "$@" --json
    sed '/"schedule":/d; /"timing"/,$d' "$temp/stdout"
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

# Passes over a spread vocabulary are put into a schedule by name only.
job file:orders/pairs.txt | sed 's/"vpp": 2/"vpp": 2, "vocab_parallel": true/' >"$temp/jobs/filed.json"
refuses "$temp/jobs/filed.json: parallel.vocab_parallel: true with schedule file:orders/pairs.txt \
is legal, but not supported yet; expected gpipe, 1f1b, zb-h1, zb-h2, zb-v, v-half, v-min or \
breadth-first" estimate "$temp/jobs/filed.json"
job zb-v | sed 's/"vpp": 2/"vpp": 2, "vocab_parallel": true/' >"$temp/jobs/spread.json"
refuses "$temp/jobs/spread.json: parallel.vocab_parallel: true, and schedule files hold no passes \
over a vocabulary; expected false with --write-schedule" \
    estimate "$temp/jobs/spread.json" --write-schedule "$temp/jobs/orders/spread.txt"

# The scenario itself is never written over.
refuses "$temp/jobs/named.json: is the scenario $temp/jobs/named.json; expected another file to write" \
    estimate "$temp/jobs/named.json" --write-schedule "$temp/jobs/named.json"
