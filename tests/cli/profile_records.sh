#!/bin/sh
# What CUPTI records of each call, as the GPU plugin reads it (batch_records of
# profiler/gpu/timing.c): on a CUDA runtime and a CUPTI that stand in for them
# (tests/profiler/fake_records.c). Records are dropped, foreign, and too many.
set -eu
. tests/support.sh
build=${MESHWRIGHT%/*}
MESHWRIGHT_DATA=$PWD
MESHWRIGHT_GPU_PLUGIN=$build/fake/fake_cuda_cupti.so
MESHWRIGHT_CUPTI=$build/fake/libcupti.so.13
export MESHWRIGHT_DATA MESHWRIGHT_GPU_PLUGIN MESHWRIGHT_CUPTI
export ASAN_OPTIONS=detect_leaks=0 # its tracer crashes on the threads of plugins that are loaded late
if [ ! -e "$MESHWRIGHT_GPU_PLUGIN" ]; then
    echo "skipped: there are no headers of CUDA 13, cuBLASLt and CUPTI to build $MESHWRIGHT_GPU_PLUGIN with"
    exit 77
fi
cd "$temp"

# records FAULTS FOLDER OPTIONS..: products in float16 and tf32, 24 each with m 512, 2048 and 8192.
records() {
    FAKE_CUDA=$1
    export FAKE_CUDA
    folder=$2
    table=$2/gemm_other.csv
    shift 2
    answers 0 profile -o "$folder" --kind gemm_other "$@"
    [ "$(wc -l <"$table")" -eq 73 ] || fail "$(cat "$table")"
}

# by TIMER M NUMBER: so many rows with that m ("" any) were timed so.
by() {
    found=$(grep -c "^[a-z0-9]*,$2[0-9,.e-]*,$1,fake" "$table" || true)
    [ "$found" -eq "$3" ] || fail "$table: $found rows of m $2 by $1, not $3: $(cat "$table")"
}

# is COLUMN VALUE: of the product of 512 x 4800 x 1600, within two in a thousand.
is() {
    awk -F, -v name="$1" -v value="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
        /^float16,512,4800,1600,/ { num++; error = $column / value - 1 }
        END { exit !(num == 1 && error < 0.002 && error > -0.002) }' "$table" ||
        fail "$table: $1 is not $2: $(grep ^float16,512,4800,1600, "$table")"
}

# said SENTENCE: by the last run, which said nothing else of records.
said() {
    grep -v NVML stderr >said || true
    [ "$(cat said)" = "$1" ] || fail "$(cat stderr)"
}

# 7.864 GFLOP at 500 TFLOP/s and 4 us: 19.73 us from call to call, of which 1 us is before the
# kernel begins.
records kernels=1 one
by cupti '' 72
is latency_ms 0.01873
is batch_latency_ms 0.01973
said ''
# Of several kernels a call lasts from the first's begin to the last's end; the longest names it.
records kernels=3 three
by cupti '' 72
is latency_ms 0.01873
is batch_latency_ms 0.01973
[ "$(grep -c ',cupti,fake_product<8>,' "$table")" -eq 72 ] || fail "$(cat "$table")"
said ''

# Records of another's tag, also longer ones, are none of the call's.
records kernels=2,foreign=1 foreign
by cupti '' 72
is latency_ms 0.01873
[ "$(grep -c ',cupti,fake_product<8>,' "$table")" -eq 72 ] || fail "$(cat "$table")"
said ''

# Where CUPTI dropped records, events tell: with the gaps, and that is said.
records kernels=2,dropped=512 dropped
by events 512, 0 # no kernel's name
[ "$(grep -c '^[a-z0-9]*,512,.*,events,,' "$table")" -eq 24 ] || fail "$(cat "$table")"
by cupti '' 48
is latency_ms 0.01973
sed 's/dropped [1-9][0-9]* records/dropped N records/' stderr >stderr.n
mv stderr.n stderr
said 'gemm_other: CUPTI dropped N records, so that events time 24 of 72 measurements, gaps included (column timer)'

# Kernels that some calls have and others have not cannot be told apart.
records kernels=2,odd=512 odd --json
[ "$(grep -c '^[a-z0-9]*,512,.*,events,,' "$table")" -eq 24 ] || fail "$(cat "$table")"
by cupti '' 48
is latency_ms 0.01973
said "gemm_other: CUPTI's records of 24 of 72 measurements do not divide among their calls, so that events time them, gaps included (column timer)"
grep -q '"num_by_events":[[:space:]]*24,' stdout || fail "$(cat stdout)"
grep -q '"num_records_dropped":[[:space:]]*0,' stdout || fail "$(cat stdout)"

# Asked for events, nothing is missing.
records dropped=512 events --timer events
[ "$(grep -c ',events,,' "$table")" -eq 72 ] || fail "$(cat "$table")"
said ''

# Without CUPTI events time all, which is said.
MESHWRIGHT_CUPTI=$PWD/nowhere.so
records kernels=1 without
[ "$(grep -c ',events,,' "$table")" -eq 72 ] || fail "$(cat "$table")"
grep -q '^gemm_other: CUPTI cannot record, so events time it: CUPTI cannot be loaded: .*nowhere.so' \
    stderr || fail "$(cat stderr)"
