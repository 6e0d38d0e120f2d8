#!/bin/sh
# What `profile` says where it cannot measure: bad options end with 2 before anything is loaded, a
# missing plugin, driver or GPU with 3 and one sentence; nothing is left behind.
set -eu
. tests/support.sh
root=$PWD
cd "$temp"

refuses 'meshwright: profile: no -o given; meshwright profile --help shows examples' profile
refuses 'meshwright: --device: "tpu" is unknown; expected cuda or cpu' profile --device tpu -o new
refuses 'meshwright: --timer: "clock" is unknown; expected cupti or events' \
    profile --timer clock -o new
refuses 'meshwright: --kind: "gem" is unknown; expected some of launch, gemm, gemm_backward, gemm_other, attention (context_attention, attention_backward), memory_bound, host_copy, comm (nccl, send_recv), contention, sustained' \
    profile --kind launch,gem -o new
refuses 'meshwright: profile: one argument too many: "job.json"' profile job.json -o new
for option in '-o new' '--kind gemm' --quick '--timer cupti'; do
    # shellcheck disable=SC2086 # two words
    refuses 'meshwright: profile: --check measures nothing and takes no -o, --kind, --quick or --timer' \
        profile --check $option
done
refuses 'meshwright: profile: --wrap needs a value: --wrap CMD ARGUMENT..' profile -o new --wrap
refuses 'meshwright: profile: write --wrap CMD without an equals sign' profile -o new --wrap=true
refuses "meshwright: profile: no -o before --wrap; what stands behind it is the program's" \
    profile --wrap true -o new
for option in --check '--kind gemm' --quick '--timer events'; do
    # shellcheck disable=SC2086 # two words
    refuses 'meshwright: profile: --wrap takes no --check, --kind, --quick or --timer' \
        profile $option -o new --wrap true
done
refuses "meshwright: profile: --wrap: the program's name is empty" profile -o new --wrap ''
mkdir measured
echo '{}' >measured/device.json
refuses 'measured/device.json: the folder holds what profile has measured; choose another for --wrap' \
    profile -o measured --wrap true
: >file
refuses 'file/new: cannot be written: Not a directory' profile -o file/new

# Without the plugin: a copy of the program, which has none beside it.
mkdir bin
cp "$MESHWRIGHT" bin/meshwright
there="$MESHWRIGHT"
MESHWRIGHT=bin/meshwright
unset MESHWRIGHT_GPU_PLUGIN
answers 3 profile -o new
[ "$(cat stderr)" = 'meshwright: there is no libmeshwright-gpu.so beside this program, in ../lib of it or at MESHWRIGHT_GPU_PLUGIN; it is built where the CUDA toolkit is installed' ] ||
    fail "$(cat stderr)"

# A plugin that is none, or of nothing that can be loaded.
echo 'not a library' >other.so
MESHWRIGHT_GPU_PLUGIN=other.so
export MESHWRIGHT_GPU_PLUGIN
answers 3 profile -o new
grep -q '^meshwright: the GPU plugin cannot be loaded: .*other.so' stderr || fail "$(cat stderr)"
[ "$(wc -l <stderr)" -eq 1 ] || fail "more than a sentence: $(cat stderr)"
libc=$(ldd "$there" | awk '$1 ~ /^libm\.so/ { print $3 }')
MESHWRIGHT_GPU_PLUGIN=$libc
answers 3 profile -o new
[ "$(cat stderr)" = "meshwright: $libc is of another version of this program" ] ||
    fail "$(cat stderr)"
unset MESHWRIGHT_GPU_PLUGIN

# With the plugin, where it was built, but no GPU: one sentence.
MESHWRIGHT=$there
if [ -e "${there%/*}/libmeshwright-gpu.so" ]; then
    CUDA_VISIBLE_DEVICES=''
    export CUDA_VISIBLE_DEVICES
    answers 3 profile -o new
    grep -Eq '^meshwright: (no NVIDIA driver|this machine shows no NVIDIA GPU)' stderr ||
        fail "$(cat stderr)"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "more than a sentence: $(cat stderr)"
fi
[ ! -s stdout ] || fail "an answer: $(cat stdout)"
[ ! -e new ] || fail "something was left behind"

# --- With a library that stands in for the plugin (tests/profiler/fake_gpu.c)

MESHWRIGHT_GPU_PLUGIN=${there%/*}/fake/fake_gpu.so
[ -e "$MESHWRIGHT_GPU_PLUGIN" ] || exit 0
export MESHWRIGHT_GPU_PLUGIN
MESHWRIGHT=bin/meshwright
unset FAKE_GPU
MESHWRIGHT_DATA=$root
export MESHWRIGHT_DATA

# rows FILE: how many it holds.
rows() {
    echo $(($(wc -l <"$1") - 1))
}

answers 0 profile --quick -o new
[ "$(head -n 1 stdout)" = 'Fake GPU, 132 SMs' ] || fail "$(cat stdout)"
measured='launch gemm gemm_backward gemm_other context_attention attention_backward memory_bound host_copy contention sustained'
for kind in $measured; do
    grep -Eq "^$kind +$(rows "new/$kind.csv") +0 +$(rows "new/$kind.csv") " stdout ||
        fail "$kind: $(cat stdout)"
done
grep -q '"name":.*"Fake GPU"' new/device.json || fail "$(cat new/device.json)"
grep -q '"command":.*"meshwright profile --quick -o new"' new/device.json ||
    fail "$(cat new/device.json)"
# m 1024, n 4800, k 1600: 3 us, 15.73 GFLOP at 600 TFLOP/s, 18.64 MB at 2.5 TB/s, and calls that
# are 1 in a thousand longer in the median: 36.71 us; 1 us more with the gap.
grep -q '^bfloat16,1024,4800,1600,0.0367[01][0-9]*,0.0377[01][0-9]*,0.00199[0-9]*,[0-9]*,cupti,fake<int; 2>,,,$' \
    new/gemm.csv || fail "$(grep ^bfloat16,1024,4800,1600 new/gemm.csv)"
grep -q '^bfloat16,4800,1600,1024,backward_weight,float32,1,0.0' new/gemm_backward.csv ||
    fail "$(head new/gemm_backward.csv)"
# 62.91 GFLOP at 600 TFLOP/s, fp8 at twice that, 52.4 or 54.7 MB, and 3 us.
for row in float16,4800,1600,4096,backward_weight,float16,0,0.12 \
    tf32,4096,1600,4800,backward_input,float32,0,0.1[23] \
    fp8,4096,1600,4800,backward_input,bfloat16,0,0.077 \
    fp8,4800,1600,4096,backward_weight,float32,1,0.076; do
    grep -q "^$row" new/gemm_backward.csv || fail "$row: $(cat new/gemm_backward.csv)"
done
grep -q '^copy,bfloat16,1024,4096,16777216,0.0087' new/memory_bound.csv ||
    fail "$(head new/memory_bound.csv)"
# 16 MiB at 50 GB/s, and 10 us: 345.5 us.
grep -q '^host_to_device,16777216,0.345[0-9]*,0.346[0-9]*,.*,cupti,' new/host_copy.csv ||
    fail "$(cat new/host_copy.csv)"
grep -q '^bfloat16,8192,8192,8192,zeros,' new/sustained.csv || fail "$(cat new/sustained.csv)"

# 4 sequences of 2048 tokens, 32 heads of 128: 5 us and 137.5 GFLOP of the causal half at 400
# TFLOP/s, 348.7 us; backward 2.5 times the work, 864.2 us.
grep -q '^bfloat16,bfloat16,4,2048,32,8,128,0,0.3490*[0-9]*,0.3500*[0-9]*,.*,cupti,' \
    new/context_attention.csv || fail "$(cat new/context_attention.csv)"
grep -q '^bfloat16,bfloat16,4,2048,32,8,128,0,0.865[0-9]*,0.866[0-9]*,' new/attention_backward.csv ||
    fail "$(cat new/attention_backward.csv)"
# Beside a copy on 16 of 132 SMs a product takes 132 / 116 of its time, 13.8 % more; the copy has
# 640 GB/s by itself and nine tenths of that.
grep -q '^bfloat16,8192,4096,4096,copy,1,16,0,0.50[0-9]*,0.137[0-9]*,6.4e+11,5.76e+11,0.57[0-9]*,.*,events,' \
    new/contention.csv || fail "$(cat new/contention.csv)"
# One GPU is no group: that is said, and no table begun.
for kind in nccl send_recv; do
    grep -q "^$kind: a group is of 2 GPUs or more; this machine shows 1, so that nothing is measured\$" \
        stderr || fail "$kind: $(cat stderr)"
    grep -Eq "^$kind +0 +0 +0 " stdout || fail "$kind: $(cat stdout)"
    [ ! -e new/$kind.csv ] || fail "$kind.csv without a row"
done

# calibrate reads the products; the quick table of attention is too short, which it says.
answers 0 calibrate --kernels new --gpu h100-sxm-80g -o fitted.json
# What was measured, on what, when and with which libraries goes with the fit, which can be used.
python3 - fitted.json new/device.json <<'PY'
import json, sys
fitted, device = (json.load(open(path)) for path in sys.argv[1:])
del device["schema"]
assert fitted["measured"] == device and device["nccl_version"] == 22703, fitted["measured"]
assert "public" not in fitted["sources"], fitted["sources"]
PY
products=$(($(rows new/gemm.csv) + $(grep -c '^bfloat16,.*,bfloat16,0,' new/gemm_backward.csv)))
grep -Eq "^gemm +$products " stdout || fail "$(cat stdout)"
grep -Eq '^left out: new/context_attention.csv: ([0-9]+) rows of \1 different shapes are too few to fit context_attention; expected at least 200 shapes$' \
    stderr || fail "$(cat stderr)"
answers 0 calibrate --kernels new --gpu h100-sxm-80g --kind gemm -o fitted.json # reads it again
mkdir short
cp new/context_attention.csv short
answers 2 calibrate --kernels short --gpu h100-sxm-80g
grep -q '^short/context_attention.csv: .* are too few to fit context_attention; ' stderr ||
    fail "$(cat stderr)"

# A second time nothing is measured, and nothing changes.
cp -r new before
answers 0 profile --quick -o new --json
for file in $measured; do
    cmp "new/$file.csv" "before/$file.csv"
done
[ "$(grep -c '"num_measured":[[:space:]]*0,' stdout)" -eq 12 ] || fail "$(cat stdout)"
[ "$(grep -c '"file":' stdout)" -eq 10 ] || fail "$(cat stdout)"

# Cut off in a row: that row is measured again, the others stay.
cp before/memory_bound.csv whole
head -c -20 whole >new/memory_bound.csv
answers 0 profile --quick -o new --kind memory_bound
grep -q '^new/memory_bound.csv: its last row was cut off; measured again$' stderr ||
    fail "$(cat stderr)"
cmp new/memory_bound.csv whole
grep -Eq "^memory_bound +1 +$(($(rows whole) - 1)) " stdout || fail "$(cat stdout)"

# Another header, or another device: the folder is left as it is.
sed 1s/rows/lines/ whole >new/memory_bound.csv
answers 2 profile --quick -o new --kind memory_bound
grep -q '^new/memory_bound.csv: row 1: the header is "op,dtype,lines,.*": choose another folder$' \
    stderr || fail "$(cat stderr)"
sed 1s/rows/lines/ whole | cmp - new/memory_bound.csv
# Also where it is the table of a later kind: before anything is measured or written.
mkdir other
cp new/memory_bound.csv other
answers 2 profile --quick -o other
grep -q '^other/memory_bound.csv: row 1: the header is ' stderr || fail "$(cat stderr)"
[ "$(ls other)" = memory_bound.csv ] || fail "written into a refused folder: $(ls other)"
rm -r other
mkdir -p other/sustained.csv
answers 3 profile --quick -o other
[ "$(cat stderr)" = 'other/sustained.csv: cannot be written: Is a directory' ] ||
    fail "$(cat stderr)"
[ ! -s stdout ] || fail "an answer without a measurement: $(cat stdout)"
[ "$(ls other)" = sustained.csv ] || fail "written into a refused folder: $(ls other)"
cp whole new/memory_bound.csv
sed 's/"cublaslt_version":.*130000/"cublaslt_version": 120000/' new/device.json >older.json
cp new/device.json kept.json
mv older.json new/device.json
refuses 'new/device.json: cublaslt_version: 120000; cuBLASLt is 130000 now: choose another folder' \
    profile --quick -o new
sed 's/"nccl_version":.*22703/"nccl_version": 21805/' kept.json >new/device.json
refuses 'new/device.json: nccl_version: 21805; NCCL is 22703 now: choose another folder' \
    profile --quick -o new
mv kept.json new/device.json
FAKE_GPU=backend
export FAKE_GPU
refuses 'new/device.json: cudnn_version: 91900; there is no cuDNN now: choose another folder' \
    profile --quick -o new
# A folder of a version of this program that did not name them goes on.
grep -v '"cudnn_version"\|"nccl_version"' new/device.json >older.json
mv older.json new/device.json
answers 0 profile --quick -o new --kind launch
grep -q '"cudnn_version":[[:space:]]*0,' new/device.json || fail "$(cat new/device.json)"
unset FAKE_GPU
mv before/device.json new/device.json
FAKE_GPU='name:Other GPU'
export FAKE_GPU
refused='new/device.json: name: "Fake GPU"; this device is "Other GPU": choose another folder'
answers 2 profile --quick -o new --kind memory_bound
[ "$(tail -n 1 stderr)" = "$refused" ] || fail "$(cat stderr)"

# A GPU that is lost: what was measured before stays, three failures end it, and it goes on later.
FAKE_GPU=fails:12 # the first warms up
answers 3 profile --quick -o lost --kind memory_bound
[ "$(rows lost/memory_bound.csv)" -eq 10 ] || fail "$(cat lost/memory_bound.csv)"
[ "$(grep -c '^memory_bound .*: meshwright: the GPU failed: it fell off the bus$' stderr)" -eq 3 ] ||
    fail "$(cat stderr)"
[ "$(tail -n 1 stderr)" = 'meshwright: the GPU failed: it fell off the bus' ] ||
    fail "$(cat stderr)"
unset FAKE_GPU
answers 0 profile --quick -o lost --kind memory_bound
cmp lost/memory_bound.csv whole

# What is missing is said once, and the rest measured.
FAKE_GPU=fp8
export FAKE_GPU
answers 0 profile --quick -o few --kind gemm,gemm_backward
[ "$(grep -c 'no fp8 product' stderr)" -eq 2 ] || fail "$(cat stderr)"
if grep -q '^fp8' few/gemm.csv few/gemm_backward.csv; then fail "fp8 rows without fp8"; fi
FAKE_GPU=cupti
answers 0 profile --quick -o events --kind gemm_other
grep -q '^gemm_other: CUPTI cannot record, so events time it: it says so$' stderr ||
    fail "$(cat stderr)"
[ "$(grep -c ,events,,,, events/gemm_other.csv)" -eq "$(rows events/gemm_other.csv)" ] ||
    fail "$(cat events/gemm_other.csv)"

# Several GPUs: attention is both tables of it, comm both of groups of 2, 4 and 8, and calibrate
# reads what it knows of them.
FAKE_GPU=gpus:8
answers 0 profile -o node --kind attention,comm
[ "$(cd node && echo *)" = 'attention_backward.csv context_attention.csv device.json nccl.csv send_recv.csv' ] ||
    fail "$(ls node)"
grep -q '"num_gpus":[[:space:]]*8,' node/device.json || fail "$(cat node/device.json)"
for row in all_gather,bfloat16,2,256 all_reduce,bfloat16,4,1048576 alltoall,bfloat16,8,268435456; do
    grep -q "^$row,.*,events,,,,$" node/nccl.csv || fail "$row: $(cat node/nccl.csv)"
done
grep -q '^exchange,bfloat16,8,1024,' node/send_recv.csv || fail "$(cat node/send_recv.csv)"
answers 0 calibrate --kernels node --gpu h100-sxm-80g -o node.json
for kind in context_attention nccl; do
    grep -Eq "^$kind +$(rows node/$kind.csv) " stdout || fail "$kind: $(cat stdout)"
done
[ ! -s stderr ] || fail "$(cat stderr)"
# Stopped between two group sizes, it goes on.
cp node/nccl.csv whole
head -n 100 whole >node/nccl.csv
answers 0 profile -o node --kind nccl
cmp node/nccl.csv whole
answers 0 profile --quick -o beside --kind contention
grep -q '^bfloat16,8192,4096,4096,all_gather,8,0,33554432,0.50[0-9]*,0.137' beside/contention.csv ||
    fail "$(cat beside/contention.csv)"

# Groups alone on one GPU: nothing was to be measured.
unset FAKE_GPU
answers 3 profile -o alone --kind comm
[ "$(tail -n 1 stderr)" = 'meshwright: nothing that was asked for can be measured on this machine' ] ||
    fail "$(cat stderr)"
# Without the backend's library attention is left out, and the rest measured.
FAKE_GPU=backend
export FAKE_GPU
answers 0 profile --quick -o plain --kind launch,attention
[ "$(grep -c '^meshwright: there is no libmeshwright-cuda.so$' stderr)" -eq 2 ] || fail "$(cat stderr)"
[ "$(rows plain/context_attention.csv)" -eq 0 ] || fail "$(cat plain/context_attention.csv)"

# --- Checks

unset FAKE_GPU
answers 0 profile --check
[ "$(grep -c '^\(bfloat16\|float16\|tf32\|fp8\) ' stdout)" -eq 17 ] || fail "$(cat stdout)"
if grep -q WRONG stdout; then fail "$(grep WRONG stdout)"; fi
for op in rmsnorm_backward gradient_norm gemm; do
    FAKE_GPU=wrong:$op
    export FAKE_GPU
    answers 1 profile --check
    wrong=$(grep -c WRONG stdout)
    [ "$wrong" -ge 4 ] || fail "$op: $(cat stdout)"
    [ $op = gemm ] || [ "$wrong" -eq "$(grep -c "^$op .*WRONG" stdout)" ] || fail "$(cat stdout)"
    grep -q "^meshwright: $wrong of [0-9]* kernels give wrong results$" stderr ||
        fail "$(cat stderr)"
done
