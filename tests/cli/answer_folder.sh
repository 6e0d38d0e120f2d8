#!/bin/sh
# A folder of -o holds one answer: what an earlier one left goes, what is a user's stays, and
# nothing is half written (tests/base/test_answer_folder.c kills at every system call).
set -eu
. tests/support.sh
mkdir "$temp/work"
cd "$temp/work"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
cat >other.json <<'END'
{"schema": 1, "model": "gpt2-124m", "cluster": "dgx-h100:1",
 "training": {"seq_len": 1024, "global_batch": 512, "stack": "llm.c"}}
END
sed 's/"global_batch": 64/"global_batch": 128/' job.json >larger.json

# listed DIR: the names in its manifest, whose sizes and hashes are right, and those of its files.
listed() {
    python3 - "$1" <<'END'
import json, os, sys
folder = sys.argv[1]
rows = json.load(open(folder + "/.meshwright.json"))["files"]
print(" ".join(row["name"] for row in rows))
for row in rows:
    data = open(os.path.join(folder, row["name"]), "rb").read()
    assert row["file_bytes"] == len(data), row
    value = 14695981039346656037
    for byte in data if len(data) < 100000 else b"":
        value = (value ^ byte) * 1099511628211 % 2**64
    assert len(data) >= 100000 or row["fnv1a64"] == "%016x" % value, row
print(" ".join(sorted(name for name in os.listdir(folder) if not name.startswith("."))))
END
}

# holds DIR NAMES: these files, all of them listed, and nothing of the bookkeeping but the list.
holds() {
    listed "$1" >"$temp/seen"
    [ "$(cat "$temp/seen")" = "$2
$2" ] || fail "$1: not $2: $(cat "$temp/seen")"
    [ "$(find "$1" -name '.meshwright*')" = "$1/.meshwright.json" ] || fail "left: $(ls -A "$1")"
}

# --- Stale launch files of another plan
answers 0 plan job.json -o out
[ -x out/launch.sh ] || fail "launch.sh is no program"
answers 0 launch out/plan.json --scheduler k8s -o out
listed out >"$temp/seen"
[ "$(sed -n 1p "$temp/seen")" = "$(sed -n 2p "$temp/seen")" ] || fail "$(cat "$temp/seen")"
echo mine >out/notes.txt
answers 0 plan other.json -o out
[ "$(grep -c '^out/launch.*: was of an earlier answer, and is removed$' "$temp/stderr")" -eq 3 ] ||
    fail "what is removed is not told: $(cat "$temp/stderr")"
[ -z "$(find out -name 'launch*')" ] || fail "launch files of the other model: $(ls out)"
[ "$(cat out/notes.txt)" = mine ] || fail "a user's file is gone"

# --- The files of an answer name it
answers 0 plan job.json -o out
id=$(sed -n 's/.*"answer":[[:space:]]*"\([0-9a-f]\{16\}\)".*/\1/p' out/plan.json)
[ ${#id} -eq 16 ] || fail "plan.json does not name its answer"
for file in launch.sh launch.sbatch trace.json report.txt .meshwright.json; do
    grep -q "$id" "out/$file" || fail "$file does not name the answer $id"
done
answers 0 plan job.json --top 2 -o again
grep -q "$id" again/report.txt || fail "another name for the same plan"

# --- Flows of one folder: launch, whatif and compare of its plan, a trace of its simulation
answers 0 launch out/plan.json --scheduler slurm -o out
[ "$(cat "$temp/stdout")" = "out/launch.sbatch unchanged" ] || fail "$(cat "$temp/stdout")"
answers 0 launch out/plan.json --scheduler mpirun -o out
answers 0 whatif out/plan.json --sensitivity -o out
answers 0 compare out/plan.json job.json -o out
for file in launch.sh launch-mpirun.sh whatif.json compare.txt plan.json; do
    [ -s "out/$file" ] || fail "out/$file is gone: $(ls out)"
done
if [ -x "${MESHWRIGHT_SIM-}" ]; then
    answers 0 simulate out/plan.json --trace out/trace.json
fi
answers 0 plan job.json -o out # the same plan: what is of it stays
[ -s out/whatif.json ] || fail "what is of the same plan is gone"
answers 0 plan larger.json -o out
for file in whatif.json compare.txt launch-mpirun.sh; do
    [ ! -e "out/$file" ] || fail "out/$file is of the plan before"
done

# --- Other questions do not mix with it
of_another='is of another answer (launch); expected another folder, or --force, which removes it'
refuses "out/launch.sbatch: $of_another" whatif job.json --sensitivity -o out
refuses "out/launch.sbatch: $of_another" compare job.json larger.json -o out
rm out/notes.txt
run_program compare job.json larger.json -o out --force
holds out 'compare.json compare.txt'

# --- What is a user's: refused before any work, and nothing is written
not_ours='is there already, and is of no answer that is listed here; expected another folder, or --force, which overwrites it'
mkdir mine
for name in plan.json launch.sh report.txt; do
    echo mine >"mine/$name"
    find mine | sort >"$temp/before"
    refuses "mine/$name: $not_ours" plan job.json -o mine
    find mine | sort | cmp - "$temp/before" || fail "a refusal left something"
    [ "$(cat "mine/$name")" = mine ] || fail "mine/$name is another now"
    [ $name = report.txt ] || rm "mine/$name"
done
answers 0 plan job.json -o mine --force
echo '# mine' >>mine/launch.sh
changed='was changed since it was written; expected another folder, or --force, which'
refuses "mine/launch.sh: $changed overwrites it" plan job.json -o mine
refuses "mine/launch.sh: $changed removes it" plan other.json -o mine
answers 0 plan other.json -o mine --force
[ ! -e mine/launch.sh ] || fail "--force left a launch file of another plan"

# A plan.json that was edited is launched with --force, and stays.
answers 0 plan job.json -o edited
sed 's/"global_batch":[[:space:]]*64/"global_batch": 128/' edited/plan.json >plan.new
cp plan.new edited/plan.json
run_program launch edited/plan.json --scheduler k8s -o edited
[ $rc -eq 2 ] || fail "launch files of an edited plan beside those of the plan before: exit $rc"
answers 0 launch edited/plan.json --scheduler k8s -o edited --force
cmp plan.new edited/plan.json || fail "the plan that was launched is another now"
[ "$(ls edited)" = 'launch.yaml
plan.json' ] || fail "$(ls edited)"

# --- A journal of another grid, and a user's file of that name
mkdir grid
echo mine >grid/whatif.journal.0
refuses "grid/whatif.journal.0: holds no points of a grid; expected another folder, or --force, which overwrites it" \
    whatif job.json --vary training.seq_len=1024,2048 --replan -o grid
[ "$(cat grid/whatif.journal.0)" = mine ] || fail "a user's file is another now"
rm -r grid
mkdir grid
echo "meshwright whatif 2 question 0000000000000001" >grid/whatif.journal
printf 'meshwright whatif 2 points of 0000000000000001\n{"point": 0}\n' >grid/whatif.journal.0
run_program whatif job.json --vary training.seq_len=1024,2048 --replan -o grid
if [ $rc -ne 2 ] || ! grep -q 'keeps the points of another grid' "$temp/stderr"; then
    fail "exit $rc: $(cat "$temp/stderr")"
fi
answers 0 whatif job.json --vary training.seq_len=1024,2048 --replan -o grid --force
[ -z "$(find grid -name 'whatif.journal*')" ] || fail "left: $(ls grid)"

# --- A full disk and a read-only one: 3, and the answer before stays
answers 0 plan job.json -o kept
cp -r kept kept.before
rc=0
(
    trap '' XFSZ
    ulimit -f 4 # blocks of 512 or 1,024 bytes
    exec "$MESHWRIGHT" plan larger.json -o kept >"$temp/stdout" 2>"$temp/stderr"
) || rc=$?
[ $rc -eq 3 ] || fail "a full disk: exit $rc: $(cat "$temp/stderr")"
grep -q '^kept/[a-z.]*: cannot be written: File too large$' "$temp/stderr" || fail "$(cat "$temp/stderr")"
diff -r kept kept.before || fail "a full disk: the answer before is another now"
mkdir small
if unshare --mount mount -t tmpfs tmpfs small 2>/dev/null; then
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount sh -c '
        mount -t tmpfs -o size=40k tmpfs small
        cp job.json small/mine
        "$MESHWRIGHT" plan job.json -o small/out >stdout 2>stderr
        [ $? -eq 3 ] || { echo "a full tmpfs: $(cat stderr)"; exit 1; }
        [ "$(ls -A small)" = mine ] || { echo "a full tmpfs: left $(ls -A small)"; exit 1; }
        mount -o remount,ro small
        "$MESHWRIGHT" plan job.json -o small >stdout 2>stderr
        [ $? -eq 3 ] || { echo "read-only: $(cat stderr)"; exit 1; }
        grep -q "^small: cannot be written: Read-only file system$" stderr || { cat stderr; exit 1; }' ||
        fail "see above"
fi

# --- Two writers at once, many times: each leaves the folder to one of them, whole
answers 0 plan larger.json -o two --force
for _ in 1 2 3 4; do
    "$MESHWRIGHT" compare kept/plan.json two/plan.json -o both >/dev/null &
    first=$!
    "$MESHWRIGHT" compare two/plan.json kept/plan.json -o both >/dev/null &
    second=$!
    wait $first || fail "the first of two writers: exit $?"
    wait $second || fail "the second of two writers: exit $?"
    holds both 'compare.json compare.txt'
done

# --- Killed at some moment: the next command leaves one answer
for delay in 0.01 0.03 0.05 0.07 0.1 0.15; do
    "$MESHWRIGHT" compare kept/plan.json two/plan.json -o both >/dev/null 2>&1 &
    pid=$!
    sleep $delay
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
answers 0 compare kept/plan.json two/plan.json -o both
holds both 'compare.json compare.txt'
