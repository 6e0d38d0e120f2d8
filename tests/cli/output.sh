#!/bin/sh
# What is written where: nothing after a refusal, folders made when all is well, and machines that
# fail us.
set -eu
. tests/support.sh
mkdir "$temp/work"
cd "$temp/work"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END

# All files of a plan, in a folder with a space, made with its parents.
answers 0 plan job.json -o "a b/c"
files="plan.json launch.sh launch.sbatch trace.json report.txt .meshwright.json"
if grep -q "report.html is not written" "$temp/stderr"; then
    [ ! -e "a b/c/report.html" ] || fail "a page in a build without it"
else
    files="$files report.html"
fi
for file in $files; do
    [ -s "a b/c/$file" ] || fail "plan -o wrote no $file"
done
# shellcheck disable=SC2086 # a list of words
[ "$(find "a b" -type f | wc -l)" -eq "$(echo $files | wc -w)" ] ||
    fail "plan -o left other files: $(find "a b")"
"$MESHWRIGHT" estimate "a b/c/plan.json" --json >estimate.json
"$MESHWRIGHT" plan job.json -o "a b/c" >/dev/null # an earlier plan's files are replaced

# What the scenario states is planned for even where the stack has no such schedule; it says so.
sed 's/"training"/"parallel": {"schedule": "zb-v", "pp": 2}, "training"/' job.json >zb-v.json
"$MESHWRIGHT" plan zb-v.json >zb-v.txt
grep -q '^ *best of [0-9]* configurations, none of which megatron-core can run;' zb-v.txt || fail "$(cat zb-v.txt)"
"$MESHWRIGHT" plan job.json | grep -q '^ *best of [0-9]* configurations that megatron-core can run;'

# The same input gives the same bytes, but for the time it took.
"$MESHWRIGHT" plan job.json -o again >/dev/null
for file in $files; do
    cmp "a b/c/$file" "again/$file"
done
"$MESHWRIGHT" plan job.json --json | sed '/"timing"/,$d' >one.json
"$MESHWRIGHT" plan job.json --json | sed '/"timing"/,$d' | cmp - one.json
"$MESHWRIGHT" estimate - --json <"a b/c/plan.json" | cmp - estimate.json

# Refusals leave nothing behind: a bad scenario, a folder that cannot be.
sed 's/"seq_len": 4096/"seq_len": -1/' job.json >bad.json
touch occupied
for arguments in "plan bad.json -o new" "plan job.json -o occupied/x" "plan job.json -o /proc/x" \
    "whatif job.json --vary training.seq_len=2048 -o occupied/x" \
    "whatif bad.json --vary training.seq_len=2048 -o new" "launch again/plan.json -o occupied/x" \
    "simulate again/plan.json --trace nofolder/trace.json" "simulate again/plan.json --trace again"; do
    find . | sort >"$temp/before"
    # shellcheck disable=SC2086 # a list of words
    answers 2 $arguments
    [ ! -s "$temp/stdout" ] || fail "$arguments: an answer beside the refusal"
    find . | sort | cmp - "$temp/before" || fail "$arguments: left something behind"
done

# A name like a file's is one where there is no such folder.
refuses 'new.json: reads like a file; -o takes a folder here, for several files' \
    plan job.json -o new.json
[ ! -e new.json ] || fail "plan -o new.json left something"
mkdir old.json
answers 0 plan job.json -o old.json

# Launch files are kept unless --force says otherwise.
mkdir launch
"$MESHWRIGHT" launch again/plan.json -o launch >/dev/null
echo mine >launch/launch.sh
refuses 'launch/launch.sh: is there already; --force overwrites it' \
    launch again/plan.json -o launch
[ "$(cat launch/launch.sh)" = mine ] || fail "launch overwrote a file"
"$MESHWRIGHT" launch again/plan.json -o launch --force >/dev/null
cmp launch/launch.sh again/launch.sh
"$MESHWRIGHT" launch again/plan.json -o launch --dry-run | cmp - again/launch.sh

# A plan that the launcher cannot write is still a plan.
sed 's/"global_batch": 64/"global_batch": 64, "stack": "pytorch-fsdp"/' job.json >fsdp.json
answers 0 plan fsdp.json -o fsdp
grep -q "^meshwright: no launch files: nothing here starts pytorch-fsdp" "$temp/stderr" || fail "$(cat "$temp/stderr")"
if [ -e fsdp/launch.sh ] || [ ! -s fsdp/plan.json ]; then fail "files for another stack"; fi

# No is an answer, in full: exit 1.
cat >large.json <<'END'
{"schema": 1, "model": "llama-3.1-405b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
answers 1 plan large.json -o never
[ -s "$temp/stdout" ] || fail "plan that fits nowhere: no answer"
grep -q "^large.json: nothing fits; the closest plan misses by " "$temp/stderr" || fail "$(cat "$temp/stderr")"
[ ! -e never ] || fail "plan that fits nowhere left files"
answers 1 estimate large.json --json
grep -q '"fits":.*false' "$temp/stdout" || fail "no full answer"

# The machine: exit 3. Nobody makes files in /sys, root neither.
if [ -d /sys ] && ! mkdir /sys/meshwright-test 2>"$temp/refused"; then
    for words in "plan job.json -o /sys/x" "plan job.json -o /sys" \
        "simulate job.json --trace /sys/trace.json"; do
        rc=0
        # shellcheck disable=SC2086 # a list of words
        "$MESHWRIGHT" $words >"$temp/stdout" 2>"$temp/stderr" || rc=$?
        [ $rc -eq 3 ] || fail "$words: exit $rc"
        grep -q "^/sys.*: cannot be written: " "$temp/stderr" || fail "$words: $(cat "$temp/stderr")"
    done
fi
if [ -w /dev/full ]; then
    rc=0
    for words in "estimate again/plan.json" "plan --help" "help simulate" --help --version "models"; do
        rc=0
        # shellcheck disable=SC2086 # a list of words
        "$MESHWRIGHT" $words >/dev/full 2>"$temp/stderr" || rc=$?
        [ $rc -eq 3 ] || fail "$words, full disk: exit $rc"
        [ "$(cat "$temp/stderr")" = "meshwright: standard output cannot be written" ] ||
            fail "$words: $(cat "$temp/stderr")"
    done
fi

refuses 'meshwright: --max-memory: "70" is less than a megabyte; write bytes, as in 70e9 or 70GB' \
    plan job.json --max-memory 70

# Where there is no /proc, as in a root of one's own: files are written all the same. Whoever may
# make such a place hides it. (The sanitizers themselves read /proc.)
if ! grep -q __asan_init "$MESHWRIGHT" && unshare --mount sh -c 'mount -t tmpfs tmpfs /proc' 2>/dev/null; then
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount sh -c 'mount -t tmpfs tmpfs /proc && exec "$@"' sh \
        "$MESHWRIGHT" plan job.json -o unseen >"$temp/stdout" 2>"$temp/stderr" ||
        fail "without /proc: $(cat "$temp/stderr")"
    [ -s unseen/plan.json ] || fail "without /proc: no plan"
    [ -z "$(find unseen -name '*.tmp*')" ] || fail "without /proc: $(ls unseen)"
fi
