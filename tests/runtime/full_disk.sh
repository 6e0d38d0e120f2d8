#!/bin/sh
# A disk that is full or broken while two processes save a checkpoint, at each place where it may be:
# the run ends with 3 and says what failed, and the checkpoint before is whole and gone on with.
# Usage: full_disk.sh RUN DISK_FAULTS
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
run=$1 faults=$2
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"
cat >plan.json <<END
{"schema": 1, "model": {"name": "small", "model_type": "llama", "hidden_size": 32,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
  "intermediate_size": 48, "vocab_size": 260, "max_position_embeddings": 16},
 "cluster": $(cluster 2),
 "training": {"seq_len": 16, "global_batch": 4, "precision": "fp64", "stack": "runtime"},
 "parallel": {"dp": 2, "zero_stage": 1, "micro_batch": 1}}
END

fail() {
    echo "full_disk.sh: $*" >&2
    exit 1
}

# two OPTIONS...: the run of two processes; sets code. $broken is what disk_faults.c reads; $of is the
# process that it is for, of both if empty.
two() {
    code=0
    mpirun --allow-run-as-root --oversubscribe -n 2 \
        env ${broken:+"LD_PRELOAD=$faults"} "DISK_FAULTS=$broken" ${of:+"DISK_FAULTS_RANK=$of"} \
        "$run" plan.json "$@" >out 2>err || code=$?
}

# breaks CLAIM SENTENCE: saving fails, with that line.
breaks() {
    two --steps 1 --resume saved --save saved
    [ "$code" -eq 3 ] || fail "$1: exit $code, expected 3: $(cat err)"
    grep -qxF "$2" err || fail "$1: expected \"$2\", got: $(cat err)"
    [ ! -e saved.new ] || fail "$1: what was written aside is still there"
}

# stays CLAIM: the checkpoint before is what it was, and the run goes on from it.
stays() {
    diff -r before saved || fail "$1: the checkpoint before is another now"
    broken=''
    two --steps 1 --resume saved --save again
    [ "$code" -eq 0 ] || fail "$1: cannot be gone on with: $(cat err)"
    diff -r expected again || fail "$1: goes on otherwise"
}

broken='' of=''
two --steps 2 --save saved
[ "$code" -eq 0 ] || fail "$(cat err)"
two --steps 1 --resume saved --save expected
cp -r saved before

# The disk is full for one process or both, from the first byte, in the middle, in the last file.
for of in '' 0 1; do
    for broken in 'pwrite saved.new/masters.f64 0 ENOSPC' 'pwrite saved.new/masters.f64 50000 ENOSPC' \
        'pwrite saved.new/variance.f64 50001 ENOSPC'; do
        file=${broken#* }
        file=${file%% *}
        breaks "$broken, process ${of:-0 and 1}" "$file: No space left on device"
        [ "$(grep -cF "$file" err)" -eq "$([ -n "$of" ] && echo 1 || echo 2)" ] ||
            fail "each that failed speaks once: $(cat err)"
    done
done
stays 'a full disk'

# What is written is not on the disk; the head does not fit; names cannot be changed.
of=1
broken='fsync saved.new/moment.f64 0 EIO'
breaks "$broken" 'saved.new/moment.f64: Input/output error'
of=0
broken='write saved.new/ 100 ENOSPC'
breaks "$broken" 'saved.new/checkpoint.json: cannot be written: No space left on device'
broken='fsync saved.new/checkpoint.json 0 EIO'
breaks "$broken" 'saved.new/checkpoint.json: Input/output error'
broken='renameat2 saved.new 0 EIO'
breaks "$broken" 'saved: saved.new cannot take its place: Input/output error'
exchange='renameat2 saved.new 0 EINVAL'
broken="$exchange; rename saved"'$ 0 EIO'
breaks "$broken" 'saved: saved.new cannot take its place: Input/output error'
broken="$exchange; rename saved.new"'$ 0 EIO'
breaks "$broken" 'saved: saved.new cannot take its place: Input/output error'
stays 'names that cannot be changed'

# Where names cannot be exchanged there is a moment without a checkpoint of the name: the one before
# is found in it, also where its name cannot be given back.
for broken in "$exchange; rename saved.new"'$ 0 KILL' \
    "$exchange; rename saved.new"'$ 0 EIO; rename saved.replaced$ 0 EIO'; do
    claim=$broken
    two --steps 1 --resume saved --save saved
    if [ "$code" -eq 0 ] || [ -e saved ]; then fail "$claim: did not happen"; fi
    case $claim in
    *KILL) ;;
    *)
        grep -qxF 'saved: saved.new cannot take its place: Input/output error; the checkpoint before is saved.replaced' err ||
            fail "$claim: $(cat err)"
        ;;
    esac
    diff -r before saved.replaced || fail "$claim: the checkpoint before is another now"
    broken=''
    two --steps 1 --resume saved/ --save again
    [ "$code" -eq 0 ] || fail "$claim: cannot be gone on with: $(cat err)"
    grep -qxF 'saved: is not there; goes on with saved.replaced, which was about to be replaced' err ||
        fail "$claim: $(cat err)"
    diff -r expected again || fail "$claim: goes on otherwise"
    [ -e saved.replaced ] || fail "$claim: reading it removes it"
    # The next one that is saved there takes the name, and nothing is left beside it.
    broken=$exchange
    two --steps 1 --resume saved --save saved
    [ "$code" -eq 0 ] || fail "$claim: cannot be saved: $(cat err)"
    diff -r expected saved || fail "$claim: saves otherwise"
    if [ -e saved.new ] || [ -e saved.replaced ]; then fail "$claim: folders are left"; fi
    rm -r saved
    cp -r before saved
done

# Without exchanges, and nothing else that fails.
broken=$exchange
two --steps 1 --resume saved --save saved
[ "$code" -eq 0 ] || fail "$broken: exit $code: $(cat err)"
diff -r expected saved || fail "$broken: another checkpoint"
if [ -e saved.new ] || [ -e saved.replaced ]; then fail "$broken: folders are left"; fi

# It is saved, but whether for good is not known: both stay.
rm -r saved
cp -r before saved
broken="fsync $temp"'$ 0 EIO'
two --steps 1 --resume saved --save saved
[ "$code" -eq 3 ] || fail "$broken: exit $code: $(cat err)"
grep -qxF 'saved: is saved, but may lose its name if the computer fails; the checkpoint before stays beside it: .: Input/output error' err ||
    fail "$broken: $(cat err)"
diff -r expected saved || fail "$broken: another checkpoint"
diff -r before saved.new || fail "$broken: the checkpoint before is another now"
