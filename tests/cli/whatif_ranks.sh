#!/bin/sh
# One grid on several ranks of mpirun: one answer, also where a rank dies.
set -eu
command -v mpirun >/dev/null || exit 77
. tests/support.sh

cat >"$temp/job.json" <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}}
END
cd "$temp"
axes='--vary training.global_batch=32..256:+16 --vary cluster.scale_out.nic_bytes_per_s=10e9..60e9:+10e9 --replan'

# A prefix of the folder's path that is not too long for the sockets of Open MPI.
export TMPDIR=/tmp
# ranks OPTION...: the grid on three ranks; rc is their exit code.
ranks() {
    rc=0
    # shellcheck disable=SC2086 # a list of words
    timeout 300 mpirun --allow-run-as-root --oversubscribe -np 3 -x ASAN_OPTIONS=detect_leaks=0 \
        --enable-recovery "$MESHWRIGHT" whatif job.json $axes "$@" >stdout 2>stderr </dev/null || rc=$?
}

# shellcheck disable=SC2086 # a list of words
answers 0 whatif job.json $axes --json
sed '/"timing"/,$d' stdout >expected
ranks -o warm
[ $rc -eq 0 ] || { echo "mpirun does not run here: $(cat stderr)"; exit 77; }

# One writes, and one prints.
ranks -o all --json
[ $rc -eq 0 ] || fail "exit $rc: $(cat stderr)"
sed '/"timing"/,$d' stdout | cmp - expected
sed '/"timing"/,$d' all/whatif.json | cmp - expected
[ "$(find all -name 'whatif.journal.*' | wc -l)" -eq 0 ] || fail "left: $(ls all)"

# Without a folder they cannot share.
ranks --json
grep -q 'meshwright: whatif: started as 3 processes, which share the points in a folder; expected -o DIR' stderr ||
    fail "exit $rc: $(cat stderr)"
[ ! -s stdout ] || fail "an answer beside the refusal"

# A rank that dies: the others take its points over.
ranks -o cut --json &
job=$!
# ranks_below PROCESS: the ranks that it started, or what it started.
ranks_below() {
    for child in $(children_of "$1"); do
        if [ "$(readlink "/proc/$child/exe" || true)" = "$(readlink -f "$MESHWRIGHT")" ]; then
            echo "$child"
        else
            ranks_below "$child"
        fi
    done
}
num_waits=0
until [ "$(cat cut/whatif.journal.* 2>/dev/null | wc -l)" -ge 1 ] || ! is_alive $job; do
    num_waits=$((num_waits + 1))
    [ $num_waits -lt 1200 ] || fail "no point is done"
    sleep 0.02
done
victim=$(ranks_below $job | head -n 1)
[ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null || victim=
wait $job || true
sed '/"timing"/,$d' cut/whatif.json | cmp - expected
sed '/"timing"/,$d' stdout | cmp - expected
[ "$(find cut -name 'whatif.journal.*' | wc -l)" -eq 0 ] || fail "left: $(ls cut)"
[ -n "$victim" ] || echo "all was done before a rank could be killed"
