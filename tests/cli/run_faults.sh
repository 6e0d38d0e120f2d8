#!/bin/sh
# What goes wrong in the middle of a run: a disk that is full while a checkpoint is saved, a process
# that dies. The run ends at once and says so; the checkpoint before stays.
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

# A process that dies takes all others with it, in less than 10 s.
tiny_job two.json 2 '{"dp": 2, "micro_batch": 1}'
timeout 60 "$MESHWRIGHT" run two.json --steps 100000000 --log steps.jsonl >stdout 2>stderr &
run=$!
for _ in $(seq 100); do
    [ ! -s steps.jsonl ] || break
    sleep 0.2
done
[ -s steps.jsonl ] || fail "the run did not begin: $(cat stderr)"
victim=$(pgrep -f "^$runtime two.json" | tail -n 1)
start=$(date +%s)
kill -KILL "$victim"
code=0
wait "$run" || code=$?
took=$(($(date +%s) - start))
[ "$code" -eq 3 ] || fail "a process that died: exit $code"
[ "$took" -lt 10 ] || fail "a process that died: the others went on for $took s"
grep -q 'process rank [01] .* exited on signal 9' stderr || fail "not named: $(cat stderr)"
grep -q '^two.json: a process of the run was ended by signal 9, as the system does where memory ran out$' stderr || fail "$(cat stderr)"
! pgrep -f "^$runtime two.json" >/dev/null || fail "a process is still there"

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
