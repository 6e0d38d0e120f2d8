#!/bin/sh
# Measured kernels of one's own: calibrate --kernels, a GPU file whose kernels_of names the result,
# estimate and kernel by it. GPUs without kernels of their own are priced by their relative's.
set -eu
. tests/support.sh
root=$PWD
cd "$temp"
mkdir measured profiles

# Products at 250 TFLOP/s, a third of what an H100 reaches, and collectives over its NVLink.
awk 'BEGIN {
    print "gemm_dtype,m,n,k,note,latency_ms"
    for (i = 0; i < 5; i++) for (j = 0; j < 7; j++) for (l = 0; l < 7; l++) {
        m = i < 4 ? 16 ^ i : 16384; n = 256 * 2 ^ j; k = 256 * 2 ^ l
        printf "bfloat16,%d,%d,%d,\"m, n, k\",%.6g\n", m, n, k, \
            0.005 + (n * k + m * (n + k)) / 1e9 + 2 * m * n * k / 250e9
    }
}' >measured/gemm.csv
awk 'BEGIN {
    print "op_name,nccl_dtype,num_gpus,message_size,latency_ms"
    split("all_gather all_reduce alltoall reduce_scatter", ops, " ")
    for (o = 1; o <= 4; o++) for (n = 2; n <= 8; n *= 4) for (l = 0; l < 8; l++)
        printf "%s,half,%d,%d,%.6g\n", ops[o], n, 256 * 8 ^ l, 0.03 + 256 * 8 ^ l * 4 / 1e8
}' >measured/nccl.csv
printf 'gemm_dtype,m,n,k\nbfloat16,4096,8192,8192\n' >shape.csv

# gpu_file FILE SED-SCRIPT: the H100's profile so edited.
gpu_file() {
    sed "$2" "$root/hw-profiles/gpus/h100-sxm-80g.json" >"$1"
    ! cmp -s "$1" "$root/hw-profiles/gpus/h100-sxm-80g.json" || fail "$1: \"$2\" changes nothing"
}

# job GPU: a scenario with that GPU.
job() {
    cat >job.json <<EOF
{"schema": 1, "model": "llama-3.1-8b", "training": {"seq_len": 4096, "global_batch": 16},
 "cluster": {"gpu": "$1", "num_gpus": 8, "gpus_per_node": 8, "scale_up": {"link": "nvlink4"},
             "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 5e10}}, "parallel": {"tp": 8}}
EOF
}

# part NAME: seconds of a part of the step, or step_time_s.
part() {
    sed -n "s/^.*\"$1\":[^0-9]*\([0-9.e+-]*\),*$/\1/p" stdout | head -n 1
}

# predicted: the last cell of the answer.
predicted() {
    tail -n 1 stdout | sed 's/.*,//'
}

job h100-sxm-80g
answers 0 estimate job.json --json
bundled_s=$(part products) bundled_inside_s=$(part inside)

# Under the name of the bundled GPU.
answers 0 calibrate --kernels measured --gpu h100-sxm-80g -o profiles/our-kernels.json
gpu_file profiles/our-h100.json 's|"kernels_of": "[^"]*"|"kernels_of": "our-kernels.json"|'
job profiles/our-h100.json
answers 0 estimate job.json --json
claim "slower products make the step longer" "$(part products) > 2 * $bundled_s"
claim "so do slower collectives" "$(part inside) > 1.2 * $bundled_inside_s"
own_s=$(part step_time_s)
answers 0 kernel --gpu profiles/our-h100.json --kind gemm shape.csv
[ ! -s stderr ] || fail "own kernels are said to be inherited: $(cat stderr)"
# 2 x 4096 x 8192 x 8192 flops at 250 TFLOP/s are 2.2 ms.
claim "the fit prices its own table" "$(predicted) > 2e-3 && $(predicted) < 2.5e-3"
own_kernel_s=$(predicted)
answers 0 kernel --gpu h100-sxm-80g --profile profiles/our-kernels.json --kind gemm shape.csv
claim "kernels_of and --profile agree" "$(predicted) == $own_kernel_s"

# A GPU that is nowhere bundled has kernels of its own too.
gpu_file profiles/ours.json 's|"kernels_of": "[^"]*"|"kernels_of": "./ours-kernels.json"|
    s|"name": "h100-sxm-80g"|"name": "ours"|'
answers 0 calibrate --kernels measured --gpu profiles/ours.json -o profiles/ours-kernels.json
grep -q '"gpu":.*"ours"' profiles/ours-kernels.json || fail "the profile is not of the GPU"
job profiles/ours.json
answers 0 estimate job.json --json
claim "by its own products" "$(part products) > 2 * $bundled_s"
answers 0 kernel --gpu profiles/ours.json --kind gemm shape.csv
[ ! -s stderr ] || fail "$(cat stderr)"
# The other H100's kernels are a relative's for it.
gpu_file profiles/heir.json 's|"kernels_of": "[^"]*"|"kernels_of": "our-kernels.json"|
    s|"name": "h100-sxm-80g"|"name": "heir"|'
job profiles/heir.json
answers 0 estimate job.json --json
claim "an heir has the same step" "$(part step_time_s) == $own_s"
answers 0 kernel --gpu profiles/heir.json --kind gemm shape.csv
[ "$(cat stderr)" = 'heir: inherits the kernels of h100-sxm-80g (kernels_of in profiles/heir.json), scaled by its own peaks, memory, caches and SMs as estimate does it' ] ||
    fail "$(cat stderr)"

names='expected the path of a kernel profile, or one of a100-sxm-80g, b200-sxm-180g, b300-sxm-288g, gb200-186g, gb300-288g, h100-sxm-80g, h200-sxm-141g, l40s-48g, rtx-pro-6000-96g'
gpu_file profiles/bad.json 's|"kernels_of": "[^"]*"|"kernels_of": "no/such.json"|'
job profiles/bad.json
for command in 'estimate job.json' 'plan job.json' 'kernel --gpu profiles/bad.json --kind gemm shape.csv'; do
    # shellcheck disable=SC2086 # words of a command
    refuses "profiles/bad.json: kernels_of: \"no/such.json\" cannot be read: No such file or directory; $names" $command
done
gpu_file profiles/bad.json 's|"kernels_of": "[^"]*"|"kernels_of": "h100"|'
refuses "profiles/bad.json: kernels_of: unknown GPU \"h100\"; $names" estimate job.json
gpu_file profiles/bad.json '/"kernels_of"/d'
refuses "profiles/bad.json: kernels_of: is absent; $names" kernel --gpu profiles/bad.json --kind gemm shape.csv
gpu_file profiles/bad.json 's|"kernels_of": "[^"]*"|"kernels_of": "our-h100.json"|'
answers 2 estimate job.json
grep -q '^profiles/our-h100.json: name: unknown key' stderr || fail "$(cat stderr)"

# --- GPUs that inherit: what estimate does

for gpu in "$root"/hw-profiles/gpus/*.json; do
    name=$(basename "$gpu" .json)
    [ "$name" != cpu ] || continue # has laws of its own
    relative=$(sed -n 's/.*"kernels_of": "\([a-z0-9-]*\)",/\1/p' "$gpu")
    answers 0 kernel --gpu "$name" --kind gemm shape.csv
    if [ "$relative" = "$name" ]; then
        [ ! -s stderr ] || fail "$name: $(cat stderr)"
    else
        grep -q "^$name: inherits the kernels of $relative (kernels_of in .*/$name.json), scaled" stderr ||
            fail "$name: $(cat stderr)"
    fi
    case $name in
    v100*) [ -z "$(predicted)" ] || fail "$name has no bf16 units" ;;
    *) claim "$name has a price" "\"$(predicted)\" > 0" ;;
    esac
done
refuses "$root/hw-profiles/gpus/cpu.json: core: shapes on a CPU's core are legal, but not supported by kernel yet" \
    kernel --gpu cpu --kind gemm shape.csv
# 148 of 989 TFLOP/s: 6.7 times as long at the same share of the peak, of which it reaches more.
answers 0 kernel --gpu h100-sxm-80g --kind gemm shape.csv
h100_s=$(predicted)
answers 0 kernel --gpu h20-96g --kind gemm shape.csv
claim "an H20 is slower by its peak" "$(predicted) > 5.5 * $h100_s && $(predicted) < 7 * $h100_s"

printf 'op_name,nccl_dtype,num_gpus,message_size\nall_reduce,half,8,1048576\n' >nccl.csv
answers 0 kernel --gpu h20-96g --kind nccl nccl.csv
refuses "$root/hw-profiles/gpus/mi300x-192g.json: kernels_of: the collectives of h100-sxm-80g were measured over nvlink4; over xgmi, which joins mi300x-192g, kernel does not support them yet" \
    kernel --gpu mi300x-192g --kind nccl nccl.csv

# --- Quoted cells

printf 'gemm_dtype,"m",n,k,note\n"bfloat16",4096,8192,8192,"hello, ""there"""\n' >quoted.csv
answers 0 kernel --gpu h100-sxm-80g --kind gemm quoted.csv
[ "$(cat stdout)" = "gemm_dtype,\"m\",n,k,note,predicted_s
\"bfloat16\",4096,8192,8192,\"hello, \"\"there\"\"\",$h100_s" ] || fail "$(cat stdout)"
printf 'gemm_dtype,m,n,k\n"bfloat16,4096,8192,8192\n' >quoted.csv
refuses 'quoted.csv: row 2: a quote that opens a cell is not closed' \
    kernel --gpu h100-sxm-80g --kind gemm quoted.csv
