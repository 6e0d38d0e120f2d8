#!/bin/sh
# What NVML says while something is measured: on libraries that stand in for it and for the GPU
# plugin (tests/profiler/fake_nvml.c, fake_gpu.c). Clocks that are held back are in the rows, said,
# and counted.
set -eu
. tests/support.sh
build=${MESHWRIGHT%/*}
MESHWRIGHT_DATA=$PWD
MESHWRIGHT_GPU_PLUGIN=$build/fake/fake_gpu.so
FAKE_NVML='1 held/gemm_other.csv' # held back from the beginning of gemm_other on
export MESHWRIGHT_DATA MESHWRIGHT_GPU_PLUGIN FAKE_NVML
for library in "$MESHWRIGHT_GPU_PLUGIN" "$build/fake/nvml/libnvidia-ml.so.1"; do
    [ -e "$library" ] || fail "$library was not built"
done
LD_LIBRARY_PATH=$build/fake/nvml${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
unset FAKE_GPU
cd "$temp"

# ends TABLE CELLS: in every row.
ends() {
    num_rows=$(($(wc -l <"$1") - 1))
    [ "$num_rows" -gt 0 ] || fail "$1 is empty"
    [ "$(grep -c ",$2\$" "$1")" -eq "$num_rows" ] || fail "$1: not all end in $2: $(cat "$1")"
}

answers 0 profile --quick -o held --kind launch,gemm_other
ends held/launch.csv 1.98e+09,48,application_clocks
ends held/gemm_other.csv 1.2e+09,61,application_clocks+power_cap
[ "$(cat stderr)" = "gemm_other: the clocks were held back in $num_rows of $num_rows measurements (column throttle_reasons)" ] ||
    fail "$(cat stderr)"
grep -Eq '^launch +8 +0 +8 +0 .* 1980 - 1980 MHz, 48 - 48 C' stdout || fail "$(cat stdout)"
grep -Eq "^gemm_other +$num_rows +0 +$num_rows +$num_rows .* 1980 - 1200 MHz, 48 - 61 C" stdout ||
    fail "$(cat stdout)"
for key in '"driver":[[:space:]]*"made up"' '"power_limit_watts":[[:space:]]*700,' \
    '"nvml_max_sm_clock_hz":[[:space:]]*1980000000,'; do
    grep -q "$key" held/device.json || fail "$key: $(cat held/device.json)"
done

# What is there already was not held back now.
answers 0 profile --quick -o held --kind launch,gemm_other --json
[ "$(grep -c '"num_throttled":[[:space:]]*0,' stdout)" -eq 2 ] || fail "$(cat stdout)"
[ ! -s stderr ] || fail "$(cat stderr)"

# In the middle of a kind: when the row of the first of two products is there.
FAKE_NVML='2 later/sustained.csv'
answers 0 profile --quick -o later --kind sustained
[ "$(cat stderr)" = 'sustained: the clocks were held back in 1 of 2 measurements (column throttle_reasons)' ] ||
    fail "$(cat stderr)"
grep -q '^bfloat16,8192,8192,8192,normal,[0-9.]*,1.98e+09,500,48,application_clocks,' \
    later/sustained.csv || fail "$(cat later/sustained.csv)"
grep -q '^bfloat16,8192,8192,8192,zeros,[0-9.]*,1.2e+09,700,61,application_clocks+power_cap,' \
    later/sustained.csv || fail "$(cat later/sustained.csv)"
grep -Eq '^sustained +2 +0 +2 +1 ' stdout || fail "$(cat stdout)"
