#!/bin/sh
# What goes wrong in the middle of a run: a file that grows too large while a checkpoint is saved
# (tests/runtime/full_disk.sh has disks that are full), a process that dies, a loss that is no number.
# The run ends at once and says so; the checkpoint before stays.
set -eu
. tests/support.sh
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
runtime=$(dirname "$MESHWRIGHT")/meshwright-run
export MESHWRIGHT_RUN="$runtime"
cd "$temp"

# A disk that is full: no file may grow beyond 50 KiB (ulimit counts 512 or 1,024 bytes).
tiny_job one.json 1 '{"dp": 1, "micro_batch": 1}'
"$runtime" one.json --steps 1 --save saved >stdout
cp -r saved before
code=0
(
    trap '' XFSZ
    ulimit -f 50
    exec "$runtime" one.json --steps 1 --resume saved --save saved >stdout 2>stderr
) || code=$?
[ "$code" -eq 3 ] || fail "a full disk: exit $code: $(cat stderr)"
grep -q '^saved.new/masters.f64: File too large' stderr || fail "$(cat stderr)"
diff -r before saved || fail "a full disk: the checkpoint before is another now"
[ ! -e saved.new ] || fail "a full disk: what was written aside is still there"

# A process that dies takes all others with it, in less than 10 s, and is the one that is named.
tiny_job two.json 2 '{"dp": 2, "micro_batch": 1}'
rank_of() {
    tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'
}
for rank in 0 1; do
    rm -f steps.jsonl
    timeout 60 "$MESHWRIGHT" run two.json --steps 100000000 --log steps.jsonl >stdout 2>stderr &
    run=$!
    for _ in $(seq 100); do
        [ ! -s steps.jsonl ] || break
        sleep 0.2
    done
    [ -s steps.jsonl ] || fail "the run did not begin: $(cat stderr)"
    victim=''
    for pid in $(pgrep -f "^$runtime two.json"); do
        [ "$(rank_of "$pid")" != $rank ] || victim=$pid
    done
    [ -n "$victim" ] || fail "there is no process of rank $rank"
    start=$(date +%s)
    kill -KILL "$victim"
    code=0
    wait "$run" || code=$?
    took=$(($(date +%s) - start))
    [ "$code" -eq 3 ] || fail "a process that died: exit $code"
    [ "$took" -lt 10 ] || fail "a process that died: the others went on for $took s"
    grep -q "process rank $rank with PID .* exited on signal 9" stderr || # Open MPI 4.1: PID 0
        fail "rank $rank is not named: $(cat stderr)"
    [ "$(grep -c 'exited on signal' stderr)" -eq 1 ] || fail "another is named too: $(cat stderr)"
    grep -q '^two.json: a process of the run was ended by signal 9, as the system does where memory ran out$' stderr || fail "$(cat stderr)"
    ! pgrep -f "^$runtime two.json" >/dev/null || fail "a process is still there"
done

# A loss that is no number: the weights of step 3 are too large for one, which step 4 finds before it
# is saved. What was saved before is what it was, and goes on as if nothing had been.
two() {
    code=0
    mpirun --allow-run-as-root --oversubscribe -n 2 "$runtime" two.json "$@" >stdout 2>stderr ||
        code=$?
}
two --steps 2 --save trained
[ "$code" -eq 0 ] || fail "$(cat stderr)"
cp -r trained trained-before
two --steps 6 --resume trained --save trained --save-every 2 --learning-rate 1e30 --log nan.jsonl
[ "$code" -eq 1 ] || fail "a loss that is no number: exit $code: $(cat stderr)"
said='^step 4: loss [-0-9.a-z]*, gradient norm -\{0,1\}\(nan\|inf\): the training has diverged$'
grep -q "$said" stderr || fail "a loss that is no number: $(cat stderr)"
grep -q '^step 3:' stdout || fail "step 3 is not there: $(cat stdout)"
! grep -q '^step 4:' stdout || fail "step 4 counts as one: $(cat stdout)"
[ "$(wc -l <nan.jsonl)" -eq 1 ] || fail "the log: $(cat nan.jsonl)"
diff -r trained-before trained || fail "a loss that is no number: the checkpoint before is another now"
[ ! -e trained.new ] || fail "a loss that is no number: there is something beside the checkpoint"
# Asked by run, which tells it from what mpirun ends with itself.
MESHWRIGHT_RUN_ANSWER_NO=10
export MESHWRIGHT_RUN_ANSWER_NO
two --steps 2 --resume trained --learning-rate 1e30
[ "$code" -eq 10 ] || fail "a loss that is no number, as run asks: exit $code: $(cat stderr)"
unset MESHWRIGHT_RUN_ANSWER_NO
two --steps 2 --resume trained --save went-on
[ "$code" -eq 0 ] || fail "it cannot be gone on with: $(cat stderr)"
two --steps 4 --save at-once
diff -r at-once went-on || fail "it goes on otherwise"

# A plan that this machine's memory does not hold is refused by one process, before it takes any.
tiny_job large.json 2 '{"dp": 2, "micro_batch": 1, "zero_stage": 0}'
sed -i 's/"hidden_size": 64/"hidden_size": 1048576/' large.json
code=0
timeout 60 "$MESHWRIGHT" run large.json --steps 1 >stdout 2>stderr || code=$?
[ "$code" -eq 3 ] || fail "a machine that is too small: exit $code: $(cat stderr)"
said="^large.json: the plan's processes on this machine are to need [0-9.]* GiB of memory, and it has"
[ "$(grep -c "$said" stderr)" -eq 1 ] || fail "$(cat stderr)"

# A checkpoint of another model is not replaced, nor one with files that are no part of it.
tiny_job other.json 1 '{"dp": 1, "micro_batch": 1}'
sed -i 's/"hidden_size": 64/"hidden_size": 32/' other.json
code=0
"$runtime" other.json --steps 1 --save saved >stdout 2>stderr || code=$?
[ "$code" -eq 2 ] || fail "another model's checkpoint: exit $code"
grep -q '^saved/checkpoint.json: architecture.hidden_size: 64; ' stderr || fail "$(cat stderr)"
diff -r before saved || fail "another model's checkpoint was replaced"
for foreign in saved/notes saved.new/notes; do
    mkdir -p "${foreign%/*}"
    echo mine >"$foreign"
    code=0
    "$runtime" one.json --steps 1 --save saved >stdout 2>stderr || code=$?
    [ "$code" -eq 2 ] || fail "$foreign: exit $code"
    grep -q "^${foreign%/*}: holds notes, which is no part" stderr || fail "$(cat stderr)"
    rm "$foreign"
done
code=0
"$runtime" one.json --steps 1 >/dev/full 2>stderr || code=$?
[ "$code" -eq 3 ] || fail "/dev/full: exit $code"
grep -q '^standard output cannot be written' stderr || fail "/dev/full: $(cat stderr)"
