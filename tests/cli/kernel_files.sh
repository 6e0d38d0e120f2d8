#!/bin/sh
# Tables of measured kernels that cannot be: exit 2, the file, the row and what is legal; nothing
# is written. Every kind is a made-up table of ROWS good rows, of which one cell or all change; of
# cells that are no number one in four.
set -eu
. tests/support.sh
. tests/sample.sh
cd "$temp"
mkdir measured

# table KIND: header and rows, half as fast as an H100 at most.
table() {
    awk -v kind="$1" '
    function max(a, b) { return a > b ? a : b }
    function row(shape, ms) { printf "%s,%.6g\n", shape, ms }
    BEGIN {
        heads["gemm"] = "gemm_dtype,m,n,k"
        heads["moe"] = "moe_dtype,kernel_source,num_tokens,hidden_size,inter_size,topk," \
            "num_experts,moe_tp_size,moe_ep_size,distribution"
        heads["nccl"] = "op_name,nccl_dtype,num_gpus,message_size"
        attention = "num_heads,num_key_value_heads,head_dim,window_size"
        heads["context_attention"] = "attn_dtype,kv_cache_dtype,batch_size,isl," attention
        heads["generation_attention"] = "attn_dtype,kv_cache_dtype,batch_size,isl,step," attention
        heads["context_mla"] = "kv_cache_dtype,num_heads,batch_size,isl,tp_size"
        heads["generation_mla"] = "kv_cache_dtype,num_heads,batch_size,tp_size,step"
        print heads[kind] ",latency_ms"
        for (i = 0; i < 5; i++) for (j = 0; j < 7; j++) for (l = 0; l < 7; l++) {
            a = 2 ^ (2 * i); b = 128 * 2 ^ j; c = 128 * 2 ^ l # 1 to 256, 128 to 8192 twice
            if (kind == "gemm")
                row("bfloat16," a "," b "," c, 0.004 + (b * c + a * (b + c)) / 1e9)
            if (kind == "moe")
                row("bfloat16,made_up," a "," 1024 * (j + 1) "," 512 * (l + 1) \
                    ",2,8,1,1,balanced", 0.03 + 1024 * 512 * (j + 1) * (l + 1) * 24 / 1e9)
            if (kind == "nccl" && i == 0 && j < 3)
                row("all_reduce,half," 2 ^ (j + 1) "," 256 * 8 ^ l, 0.01 + 256 * 8 ^ l * 4 / 1e8)
            if (kind == "context_attention")
                row("bfloat16,bfloat16," a "," b "," 2 * (l + 1) "," l + 1 ",128,0",
                    0.02 + a * b * (l + 1) * (b + 64) / 4e8)
            if (kind == "generation_attention")
                row("bfloat16,bfloat16," a ",1," b - 1 "," 2 * (l + 1) "," l + 1 ",128,0",
                    0.01 + a * b * (l + 1) / 1e6)
            if (kind == "context_mla" && l < 6)
                row("bfloat16," 2 ^ (l + 1) "," a "," b ",1",
                    0.02 + a * b * 2 ^ l * (b + 64) / 4e8)
            if (kind == "generation_mla" && l < 6)
                row("bfloat16," 2 ^ (l + 1) "," a ",1," b, 0.01 + a * b / 5e5)
        }
    }'
}

# refused SENTENCE: calibrate refuses measured/KIND.csv and writes nothing.
refused() {
    refuses "measured/$kind.csv: $1" calibrate --kernels measured --gpu h100-sxm-80g \
        --kind "$kind" -o new.json
    [ ! -e new.json ] || fail "$kind: wrote a profile; expected: $1"
}

# cell COLUMN VALUE: the good table with that value in row 9.
cell() {
    awk -F, -v OFS=, -v name="$1" -v value="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
        NR == 9 { $column = value }
        { print }' good.csv >"measured/$kind.csv"
}

# timed EXPRESSION: the good table with its times, t, so.
timed() {
    awk -F, -v OFS=, 'NR > 1 { t = $NF; $NF = '"$1"' } { print }' good.csv >"measured/$kind.csv"
}

for kind in gemm moe nccl context_attention generation_attention context_mla generation_mla; do
    table $kind >good.csv
    header=$(head -n 1 good.csv)
    least=200
    [ $kind != nccl ] || least=20
    : >"measured/$kind.csv"
    refused 'empty; expected a CSV text with a header'
    head -n 1 good.csv >"measured/$kind.csv"
    refused "0 rows of 0 different shapes are too few to fit $kind; expected at least $least shapes"
    head -n 11 good.csv >"measured/$kind.csv"
    refused "10 rows of 10 different shapes are too few to fit $kind; expected at least $least shapes"
    awk 'NR <= 2 { print } NR == 2 { for (i = 1; i < 300; i++) print }' good.csv \
        >"measured/$kind.csv"
    refused "300 rows of 1 different shapes are too few to fit $kind; expected at least $least shapes"
    awk -F, '{ for (i = 1; i < NF; i++) printf "%s%s", $i, i + 1 < NF ? "," : "\n" }' good.csv \
        >"measured/$kind.csv"
    refused "row 1: the column \"latency_ms\" is missing; found \"${header%,latency_ms}\""
    cut -d, -f2- good.csv >"measured/$kind.csv"
    refused "row 1: the column \"${header%%,*}\" is missing; found \"${header#*,}\""
    sed "s/\$/,x/; 1s/x\$/latency_ms/" good.csv >"measured/$kind.csv"
    refused 'row 1: the column "latency_ms" stands there twice'
    { cat good.csv && cat good.csv; } >"measured/$kind.csv"
    refused "row $(($(wc -l <good.csv) + 1)): the header stands there again"
    { cat good.csv && echo 1,2; } >"measured/$kind.csv"
    columns=$(head -n 1 good.csv | tr -cd , | wc -c)
    refused "row $(($(wc -l <good.csv) + 1)): 2 cells; the header names $((columns + 1)) columns"
    gzip -c good.csv | head -c 100 >"measured/$kind.csv"
    refused 'cannot be read to its end: the packing is cut off or broken; expected a CSV text, plain or packed by gzip'
    printf 'a\0b\n' >"measured/$kind.csv"
    refused 'holds a NUL byte; expected a CSV text'

    for value in x '' nan inf -1 0; do
        one_of 4 || continue
        cell latency_ms "$value"
        refused "row 9: latency_ms: \"$value\"; expected a time in milliseconds"
    done
    cell latency_ms 2e-05
    refused 'row 9: latency_ms: 2e-05 ms is shorter than any kernel; is it in seconds?'
    cell latency_ms 3.6e6
    refused 'row 9: latency_ms: 3.6e+06 ms is over ten minutes; is it in nanoseconds?'
    for column in $(echo "${header%,latency_ms}" | tr , ' '); do
        most=''
        first=1
        case $column in
        m | n | k) most=1000000000 ;;
        num_tokens | isl | step) most=100000000 ;;
        hidden_size | inter_size | batch_size) most=1000000 ;;
        topk) most=64 ;;
        num_experts | moe_ep_size) most=4096 ;;
        moe_tp_size | num_heads | num_key_value_heads | tp_size) most=100000 ;;
        num_gpus) most=1048576 ;;
        message_size) most=100000000000000 ;;
        head_dim) most=4096 ;;
        window_size) most=16777216 ;;
        esac
        case $column in
        step | num_key_value_heads | window_size) first=0 ;;
        num_gpus) first=2 ;;
        esac
        [ -n "$most" ] || continue
        for value in x '' nan inf -1 1e30 1.5; do
            one_of 4 || continue
            cell "$column" "$value"
            refused "row 9: $column: \"$value\"; expected a whole number from $first to $most"
        done
    done
done

# unknown COLUMN KNOWN
unknown() {
    cell "$1" int5
    refused "row 9: $1: \"int5\"; expected one of $2"
}
# unmodelled COLUMN KNOWN: rows of a format of a later release are counted, named and left out; a table
# of nothing else is refused, and so is a row that names none.
unmodelled() {
    rows=$(($(wc -l <good.csv) - 1))
    cell "$1" int5
    rm -f new.json
    "$MESHWRIGHT" calibrate --kernels measured --gpu h100-sxm-80g --kind "$kind" -o new.json \
        >stdout 2>stderr || fail "$kind: $(cat stderr)"
    said="left out: measured/$kind.csv: 1 of $rows rows in formats that are not modelled: $1 int5 (1); known are $2"
    [ "$(cat stderr)" = "$said" ] || fail "$kind: \"$(cat stderr)\"; expected: $said"
    grep -qE "^$kind +$((rows - 1)) " stdout || fail "$kind: $(cat stdout)"
    rm new.json
    cell "$1" ''
    refused "row 9: $1: \"\"; expected one of $2"
    awk -F, -v OFS=, -v name="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
        NR > 1 { $column = "int5" }
        { print }' good.csv >"measured/$kind.csv"
    refused "row 2: $1: \"int5\"; expected one of $2"
}
kind=gemm
table $kind >good.csv
unmodelled gemm_dtype 'bfloat16, fp8, fp8_block, nvfp4'
cell gemm_dtype nvfp4
refused 'row 9: gemm_dtype: h100-sxm-80g has no nvfp4 units'
# The last row is m 256, n and k 8192: 34.7 us at 989 TFLOP/s.
timed 't < 0.05 ? t : t / 1000'
refused 'row 50: latency_ms: 7.11252e-05 ms is shorter than any kernel; is it in seconds?'
timed 't / 10'
refused "row 246: latency_ms: 0.00753032 ms is 4.61 times faster than the GPU's peak rate or memory bandwidth allows, and 36 of 245 rows are; are all in milliseconds, and of this GPU?"
timed 't * 1000'
refused 'row 2: latency_ms: 4.01664 ms; expected at most 4.001 ms, a hundred times what the work of the row takes; is it in microseconds?'
# The same in some rows only.
timed 'NR % 7 ? t : t * 1000'
refused 'row 7: latency_ms: 4.52851 ms; expected at most 4.032 ms, a hundred times what the work of the row takes; is it in microseconds?'

# Backward products are rows of the same kind, of a file of their own.
cp good.csv measured/gemm.csv
backward=measured/gemm_backward.csv
cut -d, -f1-4 good.csv | awk '{ print $0 (NR == 1 ? ",latency_ms" : ",1") }' >$backward
refuses "$backward: row 1: the columns \"out_dtype\", \"beta\" are missing; found \"gemm_dtype,m,n,k,latency_ms\"" \
    calibrate --kernels measured --gpu h100-sxm-80g --kind gemm -o new.json
awk -F, -v OFS=, '{ print $1, $2, $3, $4, NR == 1 ? "out_dtype,beta,latency_ms" : "bfloat16,0," (NR == 9 ? "long" : $5) }' \
    good.csv >$backward
refuses "$backward: row 9: latency_ms: \"long\"; expected a time in milliseconds" \
    calibrate --kernels measured --gpu h100-sxm-80g --kind gemm -o new.json
sed -i 's/long/0.01/' $backward
# Fits of products take long: one of these two, and of the two below.
if one_of 2; then
    answers 0 calibrate --kernels measured --gpu h100-sxm-80g --kind gemm
    grep -q '^gemm  *490 ' stdout || fail "$(cat stdout)"
fi
sed -i '2,$s/,bfloat16,0,/,float32,1,/' $backward # what adds to what is there is not the product alone
if one_of 2; then
    answers 0 calibrate --kernels measured --gpu h100-sxm-80g --kind gemm
    grep -q '^gemm  *245 ' stdout || fail "$(cat stdout)"
fi
rm $backward

kind=moe
table $kind >good.csv
unmodelled moe_dtype 'bfloat16, fp8, fp8_block, nvfp4'
cell kernel_source ''
refused 'row 9: kernel_source: ""; expected a name'
cell kernel_source other
refused 'row 9: kernel_source: only 1 rows of other in bfloat16; expected at least 60'
cell distribution zipf
refused 'row 9: distribution: "zipf"; expected balanced or power_law_A with an exponent A above 0, at most 10'
cell topk 9
refused 'row 9: topk: 9; expected at most num_experts 8'
cell moe_ep_size 3
refused 'row 9: moe_ep_size: 3 does not divide num_experts 8'

kind=nccl
table $kind >good.csv
unknown op_name 'all_gather, all_reduce, alltoall, reduce_scatter'
unmodelled nccl_dtype 'half, bfloat16, float, int8'
cp good.csv measured/nccl.csv
"$MESHWRIGHT" calibrate --kernels measured --gpu h100-sxm-80g --kind nccl >stdout
# NVLink 4 adds in the switch: 67,108,864 elements of 2 bytes at 450 GB/s take 298 us.
timed 't / 20'
refused 'row 8: latency_ms: 0.134717 ms is 2.21 times faster than the bandwidth of nvlink4 allows, and 9 of 21 rows are; are all in milliseconds, and of this GPU?'
timed 't * 1000'
refused 'row 2: latency_ms: 10.0102 ms; expected at most 4.005 ms, a hundred times what the work of the row takes; is it in microseconds?'

for kind in context_attention generation_attention context_mla generation_mla; do
    table $kind >good.csv
    unmodelled kv_cache_dtype 'bfloat16, fp8'
done
for kind in context_attention generation_attention; do
    table $kind >good.csv
    unmodelled attn_dtype 'bfloat16, fp8'
    cell num_key_value_heads 99
    refused 'row 9: num_key_value_heads: 99; expected at most num_heads 2'
    cell head_dim 96
    refused 'row 9: 1 rows with attn_dtype bfloat16, kv_cache_dtype bfloat16, head_dim 96, window_size 0; expected at least 40'
done

# Shapes to be priced are read alike; a profile is of one GPU.
kind=gemm
printf 'gemm_dtype,m,n,k\nbfloat16,1,2,3\nbfloat16,1,2.5,3\n' >shapes.csv
refuses 'shapes.csv: row 3: n: "2.5"; expected a whole number from 1 to 1000000000' \
    kernel --gpu h100-sxm-80g --kind gemm shapes.csv
echo '{"schema": 1, "gpu": "a100-sxm-80g", "sources": ""}' >profile.json
other='profile.json: gpu: "a100-sxm-80g"; expected a profile of h100-sxm-80g'
refuses "$other" kernel --gpu h100-sxm-80g --kind gemm --profile profile.json shapes.csv
refuses "$other" calibrate --kernels measured --gpu h100-sxm-80g --kind gemm -o profile.json

# A table is no place for the profile.
table gemm >measured/gemm.csv
cp measured/gemm.csv kept
refuses './measured/gemm.csv: is the table measured/gemm.csv; expected another file to write' \
    calibrate --kernels measured --gpu h100-sxm-80g --kind gemm -o ./measured/gemm.csv
cmp measured/gemm.csv kept

# Kinds without a table stay as the file has them. (Products would be the same, and are fitted in 30
# times the time.)
rm measured/*
table context_mla >measured/context_mla.csv
"$MESHWRIGHT" calibrate --kernels measured --gpu h100-sxm-80g -o kept.json >/dev/null
cp kept.json first.json
rm measured/context_mla.csv
table nccl >measured/nccl.csv
answers 0 calibrate --kernels measured --gpu h100-sxm-80g -o kept.json
[ "$(cat stderr)" = "kept: context_mla from kept.json; no tables for them" ] || fail "$(cat stderr)"
table context_mla >measured/context_mla.csv
answers 0 calibrate --kernels measured --gpu h100-sxm-80g -o both.json
[ ! -s stderr ] || fail "$(cat stderr)"
cmp kept.json both.json

# A table that is too short is left out beside another, and what was fitted to it before is kept;
# alone it is refused.
table nccl | head -n 10 >measured/nccl.csv
answers 0 calibrate --kernels measured --gpu h100-sxm-80g -o both.json
few='measured/nccl.csv: 9 rows of 9 different shapes are too few to fit nccl; expected at least 20 shapes'
[ "$(cat stderr)" = "left out: $few
kept: nccl from both.json; no tables for them" ] || fail "$(cat stderr)"
cmp kept.json both.json
rm measured/context_mla.csv
refuses "$few" calibrate --kernels measured --gpu h100-sxm-80g

# What long products keep of short ones: 0.8 and 0.9, together the square root of 0.72; 700 W over its
# cube are 1146. Zeros draw less, and a shape that was not measured short says nothing.
rm measured/*
table gemm >measured/gemm.csv
awk -F, -v OFS=, 'BEGIN { print "gemm_dtype,m,n,k,data,latency_ms_steady" }
    NR == 245 || NR == 246 { print $1, $2, $3, $4, "normal", $5 / (NR == 245 ? 0.8 : 0.9)
                             print $1, $2, $3, $4, "zeros", $5 }
    END { print $1, 1000, 1000, 1000, "normal", 9 }' measured/gemm.csv >long.csv
cp long.csv measured/sustained.csv
said="Long products keep 0.849 of short ones' rate (sustained.csv): full_rate_watts of this board alone is 1146; the file has 1670."
if one_of 2; then
    answers 0 calibrate --kernels measured --gpu h100-sxm-80g
    [ "$(tail -n 1 stdout)" = "$said" ] || fail "$(cat stdout)"
fi
if one_of 2; then
    answers 0 calibrate --kernels measured --gpu h100-sxm-80g --json
    grep -q '"full_rate_watts":[[:space:]]*114[56]' stdout || fail "$(cat stdout)"
fi
sed '2s/[^,]*$/0/' long.csv >measured/sustained.csv
refuses 'measured/sustained.csv: row 2: latency_ms_steady: "0"; expected a number from 0.0001 to 600000' \
    calibrate --kernels measured --gpu h100-sxm-80g

# Rows without a price are counted, and the first is explained.
printf 'gemm_dtype,m,n,k\nbfloat16,1,2,3\nbf16,1,2,3\nnvfp4,1,2,3\n' >shapes.csv
answers 0 kernel --gpu h100-sxm-80g --kind gemm shapes.csv
[ "$(cat stderr)" = 'shapes.csv: 2 of 3 rows not priced: row 3: gemm_dtype "bf16" is unknown; known are bfloat16, fp8, fp8_block, nvfp4' ] ||
    fail "$(cat stderr)"
sed -i 3d shapes.csv
answers 0 kernel --gpu h100-sxm-80g --kind gemm shapes.csv
[ "$(cat stderr)" = 'shapes.csv: 1 of 2 rows not priced: row 3: the GPU or its profile has no such kernel' ] ||
    fail "$(cat stderr)"
printf 'm,gemm_dtype\n1,bfloat16\n' >shapes.csv
refuses 'shapes.csv: row 1: the columns "n", "k" are missing; found "m,gemm_dtype"' \
    kernel --gpu h100-sxm-80g --kind gemm shapes.csv

# An edge is named with the column, the size and the ratio of both times: two sequences with 8
# key-value heads share keys from 385 on (the new one is not in step).
columns=attn_dtype,kv_cache_dtype,batch_size,isl,step,num_heads,num_key_value_heads,head_dim,window_size
printf '%s\nbfloat16,bfloat16,2,1,%s,64,8,128,0\n' $columns 300 >shapes.csv
for step in 383 384; do printf 'bfloat16,bfloat16,2,1,%s,64,8,128,0\n' $step >>shapes.csv; done
answers 0 kernel --gpu h100-sxm-80g --kind generation_attention --json shapes.csv
python3 - stdout <<'END' || fail "$(cat stdout)"
import json, sys
answer = json.load(open(sys.argv[1]))
before, after = answer["predicted_s"][1:]
edge = [e for e in answer["edges"][0] if e["dimension"] == "step"]
assert len(edge) == 1 and edge[0]["at"] == 384 and abs(edge[0]["ratio"] / (after / before) - 1) < 1e-9
assert after < 0.8 * before
END
