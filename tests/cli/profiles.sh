#!/bin/sh
# Profiles that contradict themselves, the datasheet or the link are refused where they are loaded:
# exit 2, the file, the key, what was found and what is legal.
set -eu
. tests/support.sh
cp -r hw-profiles models stacks "$temp"
MESHWRIGHT_DATA=$temp
export MESHWRIGHT_DATA
hw=$temp/hw-profiles
cd "$temp"

cat >job.json <<'JOB'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"}, "parallel": {"tp": 8}}
JOB
answers 0 estimate job.json

# refused FILE SED-SCRIPT SENTENCE: estimate, with hw-profiles/FILE so edited.
refused() {
    cp "$hw/$1" kept
    sed -i "$2" "$hw/$1"
    ! cmp -s "$hw/$1" kept || fail "$1: \"$2\" changes nothing"
    refuses "$hw/$1: $3" estimate job.json
    cp kept "$hw/$1"
}

# number KEY VALUE: a sed script that gives a key's first line that value.
number() {
    printf '0,/"%s":/s/"%s":[^,]*/"%s": %s/' "$1" "$1" "$1" "$2"
}

# value KEY FILE: the number of a key's first line.
value() {
    sed -n "0,/\"$1\":/s/.*\"$1\":[[:space:]]*\([^,]*\).*/\1/p" "$hw/$2"
}

gpu=gpus/h100-sxm-80g.json
refused $gpu "$(number memory_frac 1.02)" \
    'efficiency.memory_frac: 1.02 is out of range; expected 0.01 to 1'
refused $gpu '/"gemm_max_frac": {/,/}/s/"bf16":[^,]*/"bf16": 1.1/' \
    'efficiency.gemm_max_frac.bf16: 1.1 is out of range; expected 0.001 to 1'
refused $gpu "$(number attention_forward_frac 1.2)" \
    'efficiency.attention_forward_frac: 1.2 is out of range; expected 0.001 to 1'
refused $gpu "$(number memory_available_bytes 9e10)" \
    'memory_available_bytes: 90000000000 is more than memory_bytes 85520809984'
refused $gpu "$(number residual_p90_frac 0.01)" \
    "efficiency.residual_p90_frac: 0.01 lies below residual_median_frac $(value residual_median_frac $gpu)"
refused $gpu "$(number launch_s -1e-6)" \
    'efficiency.launch_s: -1e-06 is out of range; expected 0 to 0.001'

link=links/nvlink4.json
refused $link "$(number efficiency_frac 1.05)" \
    'efficiency_frac: 1.05 is out of range; expected 0.01 to 1'
refused $link "$(number p2p_efficiency_frac 1.05)" \
    'p2p_efficiency_frac: 1.05 is out of range; expected 0.01 to 1'
refused $link "$(number bandwidth_bytes_per_s 0)" \
    'bandwidth_bytes_per_s: 0 is out of range; expected 1000000 to 100000000000000 bytes per second, as in 50e9 or "400Gb/s"'
sed -i s/dgx-h100/dgx-1-v100/ job.json
link=links/nvlink2.json
refused $link 's/\[2, 0, 0, 0, 0, 1, 1, 2\]/[1, 0, 0, 0, 0, 1, 1, 3]/' \
    'mesh[4][0]: 1 links, but 2 in the other direction'
refused $link 's/\[0, 0, 0, 1, 2, 1, 2, 0\]/[0, 0, 0, 1, 2, 1, 2, 1]/' \
    'mesh[7][7]: 1 links to itself; expected 0'
refused $link 's/\[0, 1, 1, 2, 2, 0, 0, 0\]/[0, 1, 1, 2, 2, 0, 0]/' \
    'mesh[0]: 7 numbers; expected 8, one for each GPU'
two_quads='s/\[0, 1, 1, 2, 2, 0, 0, 0\]/[0, 2, 2, 2, 0, 0, 0, 0]/;
s/\[1, 0, 2, 1, 0, 2, 0, 0\]/[2, 0, 2, 2, 0, 0, 0, 0]/;
s/\[1, 2, 0, 2, 0, 0, 1, 0\]/[2, 2, 0, 2, 0, 0, 0, 0]/;
s/\[2, 1, 2, 0, 0, 0, 0, 1\]/[2, 2, 2, 0, 0, 0, 0, 0]/;
s/\[2, 0, 0, 0, 0, 1, 1, 2\]/[0, 0, 0, 0, 0, 2, 2, 2]/;
s/\[0, 2, 0, 0, 1, 0, 2, 1\]/[0, 0, 0, 0, 2, 0, 2, 2]/;
s/\[0, 0, 1, 0, 1, 2, 0, 2\]/[0, 0, 0, 0, 2, 2, 0, 2]/;
s/\[0, 0, 0, 1, 2, 1, 2, 0\]/[0, 0, 0, 0, 2, 2, 2, 0]/'
refused $link "$two_quads" \
    'mesh[0]: GPUs 0 and 4 are not joined, nor by one GPU before them'
sed -i s/dgx-1-v100/dgx-h100/ job.json

kernels=kernels/h100-sxm-80g.json
refused $kernels "$(number gpu '"h200-sxm-141g"')" \
    'gpu: "h200-sxm-141g"; expected a profile of h100-sxm-80g'
refused $kernels "$(number max_frac 1.02)" \
    'gemm.bfloat16.max_frac: 1.02 is out of range; expected 0.001 to 1'
refused $kernels "$(number tile_64x64_frac 1.9)" \
    "gemm.bfloat16.tile_64x64_frac: 1.9 times max_frac $(value max_frac $kernels) is beyond the peak"
refused $kernels "$(number memory_frac 1.3)" \
    'gemm.bfloat16.memory_frac: 1.3 is out of range; expected 0.001 to 1'
refused $kernels "$(number residual_p90_frac 0.001)" \
    "gemm.bfloat16.residual_p90_frac: 0.001 lies below residual_median_frac $(value residual_median_frac $kernels)"
refused $kernels '0,/"log_ratio_e3":/s/"log_ratio_e3":\t*"[^,]*/"log_ratio_e3": "9000/' \
    'gemm.bfloat16.surface.log_ratio_e3: value 1 is 9000; expected -2500 to 5000'
# All-gather on 2 GPUs sends half the bytes: 268 MB at 450 GB/s.
refused $kernels '0,/\[536870912,[^]]*\]/s//[536870912,1e-05]/' \
    'nccl.curves[0].time_s[20]: 1e-05 s for 536870912 bytes is beyond the 4.5e+11 bytes/s of nvlink4; expected at least 0.0005965 s'
refused $kernels 's/"nvlink4"/"nvlink44"/' \
    'nccl.link: unknown link "nvlink44"; the nearest known one is "nvlink4"'
refused $kernels '0,/"fp8":/s//"nvfp4":/' \
    'gemm: has kernels of nvfp4, and h100-sxm-80g has no such units'
