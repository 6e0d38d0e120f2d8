#!/bin/sh
# Grids of `whatif`: an interrupted one goes on where it was, several processes share one, and what
# cannot be is refused before any work.
set -eu
. tests/support.sh

cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
cd "$temp"
axes='--vary training.global_batch=32..256:+16 --vary cluster.scale_out.nic_bytes_per_s=10e9..60e9:+10e9 --replan'

# answer FILE: without the time it took.
answer() {
    sed '/"timing"/,$d' "$1"
}

# whatif OPTION...: the grid, with an answer in $temp/stdout.
# shellcheck disable=SC2086 # lists of words
whatif() {
    answers 0 whatif job.json $axes "$@"
}
whatif --json
answer stdout >expected

# --- Refused, with nothing left behind
refuses 'the grid has 1000000000 points; expected at most 1000000' whatif job.json \
    --vary training.seq_len=1..1000 --vary training.global_batch=1..1000 \
    --vary cluster.num_gpus=1..1000 -o new
refuses '--vary training.seq_len=1..1e9: 1000000000 values are more than 1000000; expected PATH=v1,v2,..., as in cluster.num_gpus=64,128 or training.seq_len=4096..32768:x2' \
    whatif job.json --vary training.seq_len=1..1e9 -o new
refuses 'job.json: training.seqlen: unknown key; the nearest known one is "seq_len"' \
    whatif job.json --vary training.seqlen=1024 -o new
# Contradictory points all over: bad input.
answers 2 whatif job.json --vary parallel.tp=3,5 -o new/deeper
[ ! -e new ] || fail "a refused grid left something behind: $(find new)"
touch occupied
refuses 'occupied/x: cannot be written: Not a directory' \
    whatif job.json --vary training.seq_len=1024 -o occupied/x
# One contradictory point is an entry, and stops nothing.
answers 0 whatif job.json --vary cluster.num_gpus=8,12,16 --replan --json
[ "$(grep -c '"error":' stdout)" -eq 0 ] || fail "6 of each of 2 nodes: $(cat stdout)"
answers 0 whatif job.json --vary cluster.num_gpus=8,0,16 --replan --json
[ "$(grep -c '"error":.*num_gpus' stdout)" -eq 1 ] || fail "$(cat stdout)"
[ "$(grep -c '"answer"' stdout)" -eq 2 ] || fail "$(cat stdout)"

# --- The files, and no journal once they are there
whatif -o out
rm -f out/report.html # there where the build has its page
[ "$(ls out)" = 'whatif.json
whatif.txt' ] || fail "whatif -o left: $(ls -a out)"
answer out/whatif.json | cmp - expected

# --- Interrupted: the points that are done are not done again
# interrupt FOLDER SIGNAL: starts the grid and ends it once some points are on disk.
interrupt() {
    # shellcheck disable=SC2086 # a list of words
    "$MESHWRIGHT" whatif job.json $axes -o "$1" >started 2>&1 </dev/null &
    pid=$!
    num_waits=0
    until [ "$(cat "$1"/whatif.journal.* 2>/dev/null | wc -l)" -ge 5 ] || ! is_alive $pid; do
        num_waits=$((num_waits + 1))
        [ $num_waits -lt 1200 ] || fail "no point is done"
        sleep 0.05
    done
    kill -s "$2" $pid 2>/dev/null || true
    wait $pid || true
}
interrupt cut KILL
if [ ! -e cut/whatif.json ]; then
    [ ! -s started ] || fail "an interrupted grid answered: $(cat started)"
    printf '{"point": 3, "co' >>cut/whatif.journal.0 # as a machine that stops may leave it
    cp -r cut other
    whatif -o cut --json
    grep -q '^meshwright: [0-9]* of 90 points were done already (cut/whatif.journal)$' stderr ||
        fail "$(cat stderr)"
    answer stdout | cmp - expected
    rm -f cut/report.html
    [ "$(ls cut)" = 'whatif.json
whatif.txt' ] || fail "a finished grid left: $(ls -a cut)"
    # Another question is not answered with these points.
    run_program whatif job.json --vary training.seq_len=1024,2048 -o other
    if [ $rc -ne 2 ] || ! grep -q '^other/whatif.journal: keeps the points of another grid' stderr; then
        fail "exit $rc: $(cat stderr)"
    fi
fi

# --- Two processes beside each other, of which one dies
interrupt shared KILL &
first=$!
until [ -e shared/whatif.journal ] || [ -e shared/whatif.json ]; do sleep 0.02; done
whatif -o shared --json
wait $first || true
answer stdout | cmp - expected
answer shared/whatif.json | cmp - expected

