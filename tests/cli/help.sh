#!/bin/sh
# Every command explains itself with examples, and the examples work as they stand: one in three of
# them is tried, and all in the full set.
set -eu
. tests/support.sh
. tests/sample.sh
bundled=$PWD/published/training.jsonl
gpus=$PWD/hw-profiles/gpus
models=$PWD/models

mkdir "$temp/bin" "$temp/work"
ln -s "$MESHWRIGHT" "$temp/bin/meshwright"
[ ! -x "${MESHWRIGHT_SIM-}" ] || ln -s "$MESHWRIGHT_SIM" "$temp/bin/meshwright-sim"
# What an example starts beside meshwright.
printf '#!/bin/sh\ncat job.json\n' >"$temp/bin/generate-job"
# shellcheck disable=SC2016 # the stand-in's own argument
printf '#!/bin/sh\ntest -f "$1"\n' >"$temp/bin/sbatch"
chmod +x "$temp/bin/generate-job" "$temp/bin/sbatch"
PATH="$temp/bin:$PATH"
export PATH

meshwright --version | grep -q '^meshwright [0-9]*\.[0-9]*\.[0-9]*$' || fail "--version"
meshwright --help >"$temp/help" || fail "--help"
meshwright -h | cmp - "$temp/help"
meshwright help | cmp - "$temp/help"
meshwright plan --help | tr -s '\n ' '  ' | grep -q 'ZeRO stage or group, context-parallel method or order of ranks' ||
    fail "plan --help does not say what variants differ in"

cd "$temp/work"
cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 4096, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 4, "pp": 2, "vpp": 2}}
END
cp "$models/llama-3.1-8b.json" config.json
sed 's/"model"/"disturb": [{"jitter_frac": 0.02}], "model"/' job.json >slow.json
# shellcheck disable=SC2016 # a variable of the file
echo 'torchrun pretrain_gpt.py --tensor-model-parallel-size ${TP:-1} --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 \
    --max-position-embeddings 1024 --micro-batch-size 1 --bf16' >train.sh
printf '[model]\nname = "llama3"\nflavor = "8B"\n' >llama3_8b.toml
meshwright launch job.json --for nemo -o nemo >/dev/null
mv nemo/megatron_bridge.yaml run_config.yaml
# Measured products for calibrate: made up, at half the peak rates of an H100 and a launch.
mkdir measured
awk 'BEGIN {
    print "gemm_dtype,m,n,k,latency_ms"
    for (m = 1; m <= 16384; m *= 4) for (n = 256; n <= 8192; n *= 2) for (k = 256; k <= 8192; k *= 2)
        printf "bfloat16,%d,%d,%d,%.6g\n", m, n, k, \
            0.004 + 2 * m * n * k / 5e11 + 2 * n * k / 2e9
}' >measured/gemm.csv
printf 'gemm_dtype,m,n,k\nbfloat16,16,4096,4096\n' >shapes.csv
sed 's/"name": "h100-sxm-80g",/"name": "our-h100",/' "$gpus/h100-sxm-80g.json" >our-h100.json
grep -E '"family": "(megatron-sc21|llm.c)"' "$bundled" >steps.jsonl
for i in 1 2 3 4 5 6; do
    echo " iteration $i/ 6 | elapsed time per iteration (ms): 900.$i | global batch size: 64 |"
done >train.log
for command in plan estimate simulate whatif compare report launch import models clusters calibrate kernel validate profile; do
    grep -q "^  $command " "$temp/help" || fail "--help does not list $command"
    meshwright "$command" --help >"$temp/command-help" || fail "$command --help"
    meshwright "$command" -h | cmp - "$temp/command-help"
    [ "$(grep -c '^  .*meshwright '"$command" "$temp/command-help")" -ge 2 ] ||
        fail "$command --help: fewer than 2 examples"
    grep -q "^Examples:" "$temp/command-help" || fail "$command --help: no examples"
    [ "$command" != simulate ] || [ -x "$temp/bin/meshwright-sim" ] || continue
    [ "$command" != report ] || # a build without node and npm has no page to make
        ! meshwright report job.json --no-simulation 2>&1 >/dev/null | grep -q "no HTML reports" || continue
    [ "$command" != profile ] || continue # they need a GPU, and minutes
    [ -e out/plan.json ] || meshwright plan job.json -o out >/dev/null
    # Lines ending in a backslash go on in the next one.
    sed -n '/^Examples:/,/^$/s/^  //p' "$temp/command-help" |
        sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' >"$temp/examples"
    while read -r example; do
        one_of 3 || continue
        rm -f launch.sh launch.sbatch
        sh -c "$example" >"$temp/stdout" 2>"$temp/stderr" </dev/null ||
            fail "$command --help: this example fails: $example: $(cat "$temp/stderr")"
        [ -s "$temp/stdout" ] || fail "$command --help: this example says nothing: $example"
    done <"$temp/examples"
    rm -f out/launch.sh out/launch.sbatch
done
