#!/bin/sh
# The GPU plugin itself, on a CUDA runtime that stands in for GPUs (tests/profiler/fake_cuda.h): what
# `profile` says of products, attention, groups and contention is what the stand-in's laws say.
set -eu
. tests/support.sh
MESHWRIGHT_DATA=$PWD
MESHWRIGHT_GPU_PLUGIN=${MESHWRIGHT%/*}/fake/fake_cuda.so
if [ ! -e "$MESHWRIGHT_GPU_PLUGIN" ]; then
    echo "skipped: there are no headers of CUDA 13 and cuBLASLt to build $MESHWRIGHT_GPU_PLUGIN with"
    exit 77
fi
export MESHWRIGHT_DATA MESHWRIGHT_GPU_PLUGIN
cd "$temp"

# measures CODE GPUS FOLDER KINDS: of so many GPUs ("4,late=1": with a fault).
measures() {
    FAKE_CUDA=gpus=$2
    export FAKE_CUDA
    answers "$1" profile --timer events -o "$3" --kind "$4"
}

# is TABLE KEY COLUMN VALUE: within two in a thousand, whatever the rest.
is() {
    awk -F, -v key="$2," -v name="$3" -v value="$4" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
        index($0, key) == 1 { num++; found = $column; error = found / value - 1 }
        END { exit !(num == 1 && error < 0.002 && error > -0.002) }' "$1" ||
        fail "$1: $2: $3 is not $4: $(grep "^$2," "$1")"
}

# Pairs of 4 sequences, 32 heads and 2048 tokens: 2.686e8, on heads of 128. At 500 TFLOP/s and 4 us a
# call 279.0 us forward (4 flops), 691.5 us backward (10).
measures 0 1 one attention,comm,contention
is one/context_attention.csv bfloat16,bfloat16,4,2048,32,8,128,0 latency_ms 0.2790
is one/attention_backward.csv bfloat16,bfloat16,4,2048,32,8,128,0 latency_ms 0.6915
grep -q '^nccl: a group is of 2 GPUs or more; this machine shows 1, ' stderr || fail "$(cat stderr)"
[ ! -e one/nccl.csv ] || fail "groups of one GPU"
# A product of 274.9 GFLOP takes 553.8 us, and on 116 of 132 SMs 630.1 us; 16 blocks copy 640 GB/s.
copy=bfloat16,8192,4096,4096,copy,1,16,0
is one/contention.csv $copy alone_latency_ms 0.5538
is one/contention.csv $copy latency_ms 0.6301
is one/contention.csv $copy slowdown_frac 0.1379
is one/contention.csv $copy beside_alone_bytes_per_s 6.4e11
is one/contention.csv $copy beside_bytes_per_s 6.4e11

# Products of all formats and layouts, 62.91 GFLOP: 129.8 us, where fp8 accumulates fast half of
# 125.8 less. cuBLASLt would refuse fp8 that is not TN or is E5M2 twice, and so does the stand-in.
FAKE_CUDA=gpus=1
export FAKE_CUDA
answers 0 profile --timer events --quick -o products --kind gemm,gemm_backward,gemm_other
for dtype in bfloat16 float16; do
    is products/gemm_backward.csv $dtype,4096,1600,4800,backward_input,$dtype,0 latency_ms 0.1298
    is products/gemm_backward.csv $dtype,4800,1600,4096,backward_weight,$dtype,0 latency_ms 0.1298
    is products/gemm_backward.csv $dtype,4800,1600,4096,backward_weight,float32,1 latency_ms 0.1298
done
for beta in 0 1; do
    is products/gemm_backward.csv tf32,4800,1600,4096,backward_weight,float32,$beta latency_ms 0.1298
done
is products/gemm_backward.csv tf32,4096,1600,4800,backward_input,float32,0 latency_ms 0.1298
is products/gemm_backward.csv fp8,4096,1600,4800,backward_input,bfloat16,0 latency_ms 0.1298
is products/gemm_backward.csv fp8,4800,1600,4096,backward_weight,bfloat16,0 latency_ms 0.1298
is products/gemm_backward.csv fp8,4800,1600,4096,backward_weight,float32,1 latency_ms 0.1298
is products/gemm.csv fp8,4096,4800,1600 latency_ms 0.0669
if grep -q 'cuBLASLt has no' stderr; then fail "$(cat stderr)"; fi
# What they give is right: small ones are multiplied as cuBLASLt was told to. The stand-in computes
# nothing else.
answers 1 profile --check
[ "$(grep -c '^\(bfloat16\|float16\|tf32\|fp8\) ' stdout)" -eq 17 ] || fail "$(cat stdout)"
if grep '^\(bfloat16\|float16\|tf32\|fp8\) .*WRONG' stdout; then fail "a product is wrong"; fi
FAKE_CUDA=fp8=0
answers 1 profile --check
[ "$(grep -c '^\(bfloat16\|float16\|tf32\|fp8\) ' stdout)" -eq 13 ] || fail "$(cat stdout)"

# device.json has the versions of what was loaded, 0 of what could not be.
grep -q '"cudnn_version":[[:space:]]*91900,' one/device.json || fail "$(cat one/device.json)"
grep -q '"nccl_version":[[:space:]]*22703,' one/device.json || fail "$(cat one/device.json)"
# From and to pinned memory of the host: 4 us, and 50 and 40 GB/s.
measures 0 1 one host_copy
is one/host_copy.csv host_to_device,65536 latency_ms 0.005311
is one/host_copy.csv host_to_device,268435456 latency_ms 5.373
is one/host_copy.csv device_to_host,65536 latency_ms 0.005638
is one/host_copy.csv device_to_host,268435456 latency_ms 6.715
measures 3 1,pinned=0 unpinned host_copy
grep -q '^host_copy host_to_device,65536: .*cudaHostAlloc.*cudaErrorMemoryAllocation' stderr ||
    fail "$(cat stderr)"

# Among GPUs a call takes 8 us and 100 GB/s of what a rank holds, 2 MiB in 28.97 us, whichever way,
# and the last of n ranks is done 20 (n - 1) us later; the gates open 1 ms after each other. What
# the slowest takes counts, also of a call that is a batch: 512 MiB, 5.377 and 0.02 ms.
measures 0 4 four comm,contention
for op in all_gather all_reduce alltoall reduce_scatter; do
    is four/nccl.csv $op,bfloat16,2,1048576 latency_ms 0.04897
    is four/nccl.csv $op,bfloat16,2,268435456 latency_ms 5.397
    is four/nccl.csv $op,bfloat16,4,1048576 latency_ms 0.08897
done
is four/send_recv.csv send_recv,bfloat16,2,1048576 latency_ms 0.04897
is four/send_recv.csv exchange,bfloat16,4,1048576 latency_ms 0.08897
# A collective takes 12 SMs, 10 % longer; 64 MiB take 739.1 us, 90.80 GB/s. Each product has it
# beside from begin to end: 8192 x 8192 x 8192 is longer than the two calls that are tried first.
for shape in 8192,4096,4096 8192,8192,8192 4096,14336,4096 4096,4096,1024; do
    beside=bfloat16,$shape,all_reduce,4,0,33554432
    is four/contention.csv $beside slowdown_frac 0.1
    is four/contention.csv $beside beside_bytes_per_s 9.080e10
done

# One GPU's launches are late: all GPUs measure again, none waits for another that does not.
measures 0 4,late=2 late comm,contention
cmp late/nccl.csv four/nccl.csv
cmp late/contention.csv four/contention.csv

# One GPU has no room for the largest messages: these fail and are said, the others are measured.
measures 3 2,memory=1 little nccl
grep -q '^nccl alltoall,bfloat16,2,268435456: .*cudaErrorMemoryAllocation' stderr ||
    fail "$(cat stderr)"
[ "$(wc -l <little/nccl.csv)" -eq 84 ] || fail "$(wc -l <little/nccl.csv) rows: $(cat stderr)"

# What is not installed is left out, once said.
measures 0 2,group=1 without nccl,contention
[ "$(grep -c 'NCCL, which cannot be loaded: libnccl.so.2$' stderr)" -eq 2 ] || fail "$(cat stderr)"
[ "$(wc -l <without/nccl.csv)" -eq 1 ] || fail "$(cat without/nccl.csv)"
is without/contention.csv $copy slowdown_frac 0.1379
grep -q '"nccl_version":[[:space:]]*0,' without/device.json || fail "$(cat without/device.json)"
measures 0 1,backend=1 bare attention,contention
[ "$(grep -c 'there is no libmeshwright-cuda.so$' stderr)" -eq 2 ] || fail "$(cat stderr)"
