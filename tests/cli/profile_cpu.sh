#!/bin/sh
# `profile --device cpu`: bad usage ends with 2 and nothing left behind, a missing mpirun or probe
# with 3; a quick profile is fitted, goes on where it was, and is a cluster for scenarios.
set -eu
. tests/support.sh
root=$PWD
cd "$temp"
MESHWRIGHT_DATA=$root
ASAN_OPTIONS=detect_leaks=0 # MPI's own
export MESHWRIGHT_DATA ASAN_OPTIONS

refuses 'meshwright: profile: no -o given; meshwright profile --help shows examples' \
    profile --device cpu --quick
for option in --check '--timer cupti'; do
    # shellcheck disable=SC2086 # two words
    refuses 'meshwright: profile: --device cpu takes no --check, --timer or --wrap' \
        profile --device cpu $option -o new
done
refuses 'meshwright: --kind: "gemm" is unknown; expected with --device cpu some of launch, gemm_other, gemm_backward, attention, memory_bound, comm, sharing' \
    profile --device cpu --kind launch,gemm -o new
: >file
refuses 'file/new: cannot be written: Not a directory' profile --device cpu -o file/new

# Without the probe, or without mpirun.
MESHWRIGHT_MPI_PROBE=$temp/none
export MESHWRIGHT_MPI_PROBE
answers 3 profile --device cpu -o new
[ "$(cat stderr)" = 'meshwright: there is no meshwright-mpi-probe beside this program or at MESHWRIGHT_MPI_PROBE' ] ||
    fail "$(cat stderr)"
unset MESHWRIGHT_MPI_PROBE
mkdir empty
there=$PATH
# shellcheck disable=SC2123 # a path without mpirun is the test
PATH=$temp/empty
run_program profile --device cpu -o new
PATH=$there
[ $rc -eq 3 ] || fail "without mpirun: exit $rc"
grep -q '^meshwright: there is no mpirun on the PATH; ' stderr || fail "$(cat stderr)"
[ ! -e new ] || fail "something was left behind"
command -v mpirun >/dev/null || exit 77

# --- A quick profile: under 40 s, where no other program takes the cores

busy=$(awk '{ print ($1 > 0.5) }' /proc/loadavg)
# Times that scatter, as other programs take the cores, are refused: then all over again.
for _ in 1 2 3; do
    begin=$(date +%s)
    run_program profile --device cpu --quick -o new
    span=$(($(date +%s) - begin))
    scattered=$(grep 'other programs took the cores' stderr || true)
    [ -n "$scattered" ] || break
    rm -r new
done
if [ -n "$scattered" ]; then
    echo "skipped: $scattered"
    exit 77
fi
[ $rc -eq 0 ] || fail "profile: exit $rc: $(cat stderr)"
[ "$busy" -eq 1 ] || claim "a quick profile takes under 40 s" "$span < 40"
for kind in launch gemm_other gemm_backward attention memory_bound comm sharing; do
    num=$(($(wc -l <new/$kind.csv) - 1))
    grep -Eq "^$kind +[1-9][0-9]* +0 +$num " stdout || fail "$kind, $num rows: $(cat stdout)"
done
for of in 'products, forward' 'products, backward' attention 'other operators' collectives messages; do
    grep -Eq "^$of +[0-9]+ +[0-9.]+ % +[0-9.]+ %" stdout || fail "$of: $(cat stdout)"
done
grep -q '"device":.*"cpu"' new/device.json || fail "$(cat new/device.json)"

# A second time nothing is measured; a row that was cut off is measured again.
cp -r new before
head -c -20 before/attention.csv >new/attention.csv
answers 0 profile --device cpu --quick -o new --json
for kind in launch gemm_other gemm_backward memory_bound comm sharing; do
    cmp new/$kind.csv before/$kind.csv
done
[ "$(wc -l <new/attention.csv)" -eq "$(wc -l <before/attention.csv)" ] || fail "a row is missing"
[ "$(grep -c '"num_measured":[[:space:]]*0,' stdout)" -eq 6 ] || fail "$(cat stdout)"
grep -q '"residual_median_frac"' stdout || fail "$(cat stdout)"

# Some kinds alone: no cluster yet.
answers 0 profile --device cpu --quick --kind launch -o some
grep -q '^cpu.json, link.json and cluster.json are written once all kinds are measured.$' stdout ||
    fail "$(cat stdout)"
[ ! -e some/cpu.json ] || fail "a cluster of one kind"

# Another computer's folder stays as it is.
sed 's/"name":.*/"name": "Other CPU",/' before/device.json >some/device.json
answers 2 profile --device cpu --quick -o some
grep -q '^some/device.json: name: "Other CPU"; now it is ".*": choose another folder$' stderr ||
    fail "$(cat stderr)"

# --- As a cluster, from a scenario in another folder

mkdir jobs
# Two of the cores, where there are more.
sed -E 's/"(num_gpus|gpus_per_node)":.*/"\1": 2,/; s/"domain_gpus":.*/"domain_gpus": 2/' \
    new/cluster.json >new/two.json
job() {
    cat >jobs/job.json <<END
{"schema": 1, "cluster": $1, "parallel": $2,
 "model": {"model_type": "generic", "name": "tiny", "num_hidden_layers": 4, "hidden_size": 256,
           "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 704,
           "vocab_size": 256},
 "training": {"seq_len": 128, "global_batch": 8, "precision": "$3", "stack": "runtime"}}
END
}
for precision in fp32 fp64; do
    for parallel in '{"dp": 2}' '{"tp": 2}' '{"pp": 2}' '{"cp": 2}'; do
        job '"../new/two.json"' "$parallel" $precision
        answers 0 estimate jobs/job.json
        grep -q '^tiny .* on [0-9]* x cpu; ' stdout || fail "$(cat stdout)"
    done
done
# What a plan says leads to the same files from any folder.
job '"../new/two.json"' '{"dp": 2}' fp32
answers 0 estimate jobs/job.json --json
figure_of() {
    sed -n 's/^[[:space:]]*"step_time_s":[[:space:]]*\([^,]*\).*/\1/p' "$1" | head -n 1
}
step=$(figure_of stdout)
job "{\"gpu\": \"../new/cpu.json\", \"num_gpus\": 2, \"gpus_per_node\": 2, \"price_usd_per_gpu_hour\": 0,
  \"scale_up\": {\"link\": \"../new/link.json\"},
  \"scale_out\": {\"nics_per_node\": 1, \"nic_bytes_per_s\": 1e9}}" '{"dp": 2}' fp32
answers 0 estimate jobs/job.json --json
[ "$(figure_of stdout)" = "$step" ] || fail "as an object $(figure_of stdout) s, as a file $step s"
job '"../new/two.json"' null fp32
sed 's/ "parallel": null,//' jobs/job.json >jobs/open.json
answers 0 plan jobs/open.json -o planned
mkdir -p far/away
cp planned/plan.json far/away
answers 0 estimate far/away/plan.json

# bf16 is nothing that it computes in.
job '"../new/two.json"' '{"dp": 2}' bf16
answers 2 estimate jobs/job.json
grep -q '^jobs/job.json: training.precision: ' stderr || fail "$(cat stderr)"

# Laws that are no laws: an unknown key, also among the curves of the link.
cp -r new edited
job '"../edited/two.json"' '{"dp": 2}' fp32
sed 's/"half_tokens"/"half_token"/' new/cpu.json >edited/cpu.json
answers 2 estimate jobs/job.json
grep -q 'cpu.json: core.fp64.attention.forward.half_token: unknown key' stderr || fail "$(cat stderr)"
sed 's/"op":/"operator":/' new/link.json >edited/link.json
cp new/cpu.json edited
answers 2 estimate jobs/job.json
grep -q 'link.json: nccl.curves\[0\].op' stderr || fail "$(cat stderr)"

# While it measures no other program does so into the same folder; one that is stopped has stopped
# its processes before it ends, so that it can be gone on with at once.
mkdir stopped
"$MESHWRIGHT" profile --device cpu --quick -o stopped >first.out 2>first.err &
first=$!
for _ in $(seq 100); do
    [ ! -s stopped/gemm_other.csv ] || break
    sleep 0.1
done
answers 3 profile --device cpu --quick -o stopped
[ "$(cat stderr)" = 'stopped: another program measures into it; wait for its end, or choose another folder' ] ||
    fail "$(cat stderr)"
kill -TERM "$first"
code=0
wait "$first" || code=$?
[ "$code" -eq 3 ] || fail "stopped: exit $code"
grep -q '^meshwright: interrupted; the same command goes on where it was' first.err || fail "$(cat first.err)"
! pgrep -f 'meshwright-mpi-probe stopped ' >/dev/null || fail "a process of what was stopped is still there"
