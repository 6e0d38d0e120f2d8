#!/bin/sh
# Every kind of split and schedule on a GPU that checks what is queued on it (tests/checked_gpu):
# nothing is found, and what is trained is to the last bit what CPUs train in fp32.
# Usage: checked.sh RUN DIRECTORY [sampled]   (of the checked libmeshwright-cuda.so, libnccl.so.2;
#        sampled: fewer plans)
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
# shellcheck source=tests/sample.sh
. "${0%/*}/../sample.sh"
run=$1
libraries=$2
[ -e "$libraries/libnccl.so.2" ] || {
    echo "skipped: the headers of CUDA or NCCL are not installed"
    exit 77
}
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

llama='"model_type": "llama", "intermediate_size": 128'
gpt2='"model_type": "gpt2", "n_inner": 128, "n_positions": 16'
experts='"model_type": "mixtral", "intermediate_size": 64, "num_local_experts": 8'
num=0
layers=4

# Device, log, ranks.
train() {
    LD_LIBRARY_PATH="$libraries:${LD_LIBRARY_PATH-}" \
        MESHWRIGHT_CUDA_BACKEND="$libraries/libmeshwright-cuda.so" CHECKED_GPU="${CHECKED_GPU-seed=$3}" \
        mpirun --allow-run-as-root --oversubscribe -n "$3" \
        "$run" plan.json --steps 3 --dtype fp32 --device "$1" --log "$2" >out 2>&1
}

# Ranks, members of `parallel`, members of the model.
plan_write() {
    ranks=$1 parallel=$2 model=${3:-$llama}
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", $model, "hidden_size": 64,
  "num_hidden_layers": $layers, "num_attention_heads": 8, "num_key_value_heads": 4,
  "vocab_size": 508},
 "cluster": $(cluster "$ranks"),
 "training": {"seq_len": 16, "global_batch": 16, "precision": "fp32", "stack": "runtime"},
 "parallel": {$parallel, "micro_batch": 1}}
END
}

# The same: it is trained.
same() {
    plan_write "$@"
    rm -f cpu.log cuda.log
    for device in cpu cuda; do
        train "$device" "$device.log" "$ranks" || {
            echo "checked.sh: $parallel, $model on $device:" >&2
            cat out >&2
            exit 1
        }
        sed 's/, "step_time_s.*//' "$device.log" >"$device.losses"
    done
    if [ "$(wc -l <cpu.losses)" -ne 3 ] || ! cmp -s cpu.losses cuda.losses; then
        echo "checked.sh: $parallel, $model: CPUs train otherwise" >&2
        paste cpu.losses cuda.losses >&2
        exit 1
    fi
    num=$((num + 1))
}

# One in six of those that every run need not have.
some() {
    if one_of 6; then same "$@"; fi
}

same 1 '"tp": 1, "recompute": "selective"' "$gpt2"
same 2 '"tp": 2' "$gpt2"
same 2 '"pp": 2, "vpp": 2, "schedule": "interleaved"'
same 2 '"dp": 2, "zero_stage": 3'
same 2 '"cp": 2, "cp_method": "ring"'
same 2 '"dp": 2, "ep": 2' "$experts"
layers=8
same 4 '"pp": 4, "vpp": 2, "schedule": "zb-v"'
layers=4
if [ "${3-}" != sampled ]; then
    some 1 '"tp": 1'
    some 2 '"tp": 2, "sequence_parallel": false'
    some 2 '"tp": 2, "recompute": "full"'
    for schedule in gpipe 1f1b; do some 2 "\"pp\": 2, \"schedule\": \"$schedule\""; done
    for stage in 0 1 2; do some 2 "\"dp\": 2, \"zero_stage\": $stage"; done
    for method in all-gather ulysses; do some 2 "\"cp\": 2, \"cp_method\": \"$method\""; done
    some 2 '"dp": 2' "$experts"
    some 2 '"tp": 2' "$experts"
    layers=8
    some 4 '"pp": 4, "vpp": 2, "schedule": "dualpipe"'
    layers=4
    some 4 '"dp": 4, "zero_stage": 1, "zero_group": 2'
    some 4 '"pp": 2, "dp": 2, "schedule": "zb-h1", "zero_stage": 3'
    some 4 '"cp": 4, "cp_method": "ring"'
    some 4 '"dp": 4, "ep": 2, "zero_stage": 2' "$experts"
    some 8 '"tp": 2, "pp": 2, "dp": 2, "vpp": 2, "schedule": "interleaved"' "$gpt2"
    some 8 '"tp": 2, "cp": 2, "dp": 2, "zero_stage": 3'
    some 8 '"tp": 2, "pp": 2, "dp": 2, "ep": 2, "etp": 2' "$experts"
fi

# --- What goes wrong on a GPU

# Members of CHECKED_GPU, what is said, exit status; the plan that was written last, of 2 processes.
fails() {
    rc=0
    CHECKED_GPU=$1 train cuda fail.log 2 || rc=$?
    if [ $rc -ne "${3:-3}" ] || ! grep -Eq "$2" out; then
        echo "checked.sh: $1: exit $rc without '$2':" >&2
        cat out >&2
        exit 1
    fi
}

plan_write 2 '"tp": 2' # trained above
process='\(process [12] of 2; it had [0-9.]* GiB, and was to need [0-9.]* GiB\)'
fails memory=1 "out of GPU memory: [0-9.]* GiB were asked for on a checked GPU; .* $process"
fails fault=300 "the GPU failed: .*: cudaErrorIllegalAddress: .* $process"
MESHWRIGHT_CUDA_SYNC=1 fails fault=100 "the GPU failed: (norm_forward|rope|product): cudaErrorIllegalAddress"
fails nccl=0 "NCCL failed: ncclAllReduce: internal error: it was asked to fail $process"
fails gpus=1 "there is no GPU 1; this machine has 1"
same 2 '"pp": 2, "schedule": "zb-h1"'
for after in 0 1 3; do # as the ways open, and in the middle of a step
    fails nccl=5,after=$after "NCCL failed: (ncclSend|a message): internal error: it was asked to fail $process"
done
CUDA_MODULE_LOADING=LAZY fails seed=1 "CUDA_MODULE_LOADING is LAZY: this schedule's messages" 2
CUDA_DEVICE_MAX_CONNECTIONS=2 fails seed=1 "CUDA_DEVICE_MAX_CONNECTIONS is 2: .* need 9 queues" 2
# Where a message is under way that the other rank cannot send before this one has computed.
same 2 '"pp": 2, "vpp": 2, "schedule": "v-min"'
fails memory=33 "out of GPU memory: 0.031 GiB were asked for on a checked GPU; .* $process"
echo "$num plans train as on CPUs"
