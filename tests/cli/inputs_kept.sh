#!/bin/sh
# No command writes over the files that its scenario is made of, over folders, devices and pipes, or
# in place of a symbolic link.
set -eu
. tests/support.sh
bundled=$PWD
mkdir "$temp/work" "$temp/work/sub"
cd "$temp/work"

# A scenario of files: a model, a profile, a matrix, a schedule and a calibration.
cat >sub/config.json <<'END'
{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
 "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000}
END
cp "$bundled/hw-profiles/gpus/h100-sxm-80g.json" sub/gpu.json
cp "$bundled/hw-profiles/steps.json" sub/calibration.json
printf '0, 4e11\n4e11, 0\n' >sub/matrix.csv
# job KEYS CLUSTER_KEYS
job() {
    cat <<END
{"schema": 1, "model": "./config.json", "calibration": "calibration.json", $1
 "cluster": {"gpu": "./gpu.json", "num_gpus": 16, "gpus_per_node": 8, $2
             "scale_up": {"link": "nvlink4", "domain_gpus": 8},
             "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 50e9}},
 "training": {"seq_len": 2048, "global_batch": 32, "precision": "bf16"}}
END
}
matrix='"bandwidth_matrix": "matrix.csv",'
job '"parallel": {"tp": 2, "pp": 4},' "$matrix" >sub/named.json
job '"parallel": {"tp": 2},' '' >sub/free.json
job '"parallel": {"tp": 2, "pp": 4, "schedule": "file:order.txt"},' "$matrix" >sub/job.json
answers 0 estimate sub/named.json --write-schedule sub/order.txt
answers 0 estimate sub/job.json
ln -s sub/matrix.csv link.csv
ln sub/config.json hard.json

# over OUTPUT INPUT WHAT ARGUMENTS...: the arguments write OUTPUT, which is the input INPUT.
over() {
    output=$1 input=$2 what=$3
    shift 3
    cp "$input" "$temp/before"
    refuses "$output: is the $what $input; expected another file to write" "$@"
    cmp -s "$input" "$temp/before" || fail "$*: $input is another file now"
}

# every COMMAND OPTION...: none of the files of sub/job.json is written by that option.
every() {
    over sub/job.json sub/job.json scenario "$@" sub/job.json
    over ./sub/gpu.json sub/./gpu.json 'GPU profile' "$@" ./sub/gpu.json
    over hard.json sub/./config.json model "$@" hard.json
    over link.csv sub/matrix.csv bandwidth_matrix "$@" link.csv
    over sub/order.txt sub/order.txt schedule "$@" sub/order.txt
    over sub/calibration.json sub/calibration.json calibration "$@" sub/calibration.json
}
every estimate sub/job.json --write-schedule
[ ! -x "${MESHWRIGHT_SIM-}" ] || every simulate sub/job.json --trace
for i in 1 2 3 4 5 6; do
    echo " iteration $i/ 6 | elapsed time per iteration (ms): 90.$i | global batch size: 32 |"
done >train.log
every calibrate --run train.log sub/job.json -o

# Groups name files, too.
cat >groups.json <<'END'
{"schema": 1, "model": "llama-3.1-8b",
 "cluster": {"groups": [
    {"gpu": "h100-sxm-80g", "num_gpus": 8, "gpus_per_node": 8,
     "scale_up": {"link": "nvlink4", "domain_gpus": 8},
     "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 50e9}},
    {"gpu": "sub/gpu.json", "num_gpus": 8, "gpus_per_node": 8,
     "scale_up": {"link": "nvlink4", "domain_gpus": 8},
     "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": 50e9}}],
  "between": {"bytes_per_s": 1e10, "latency_s": 2e-5}},
 "training": {"seq_len": 2048, "global_batch": 32, "precision": "bf16"},
 "parallel": {"tp": 4, "pp": 4}}
END
over sub/gpu.json sub/gpu.json 'GPU profile' estimate groups.json --write-schedule sub/gpu.json

# Folders into which a command writes files of its own names.
cp sub/free.json sub/plan.json
over sub/plan.json sub/plan.json scenario plan sub/plan.json -o sub
cp sub/config.json sub/whatif.json
sed 's/config.json/whatif.json/' sub/named.json >sub/grid.json
over sub/whatif.json sub/./whatif.json model \
    whatif sub/grid.json --vary training.seq_len=1024,2048 -o sub
over sub/whatif.json sub/./whatif.json model \
    whatif sub/named.json --vary model=./config.json,./whatif.json -o sub
cp sub/free.json sub/whatif.json
over sub/whatif.json sub/whatif.json scenario whatif sub/whatif.json --goodput -o sub
cp sub/free.json sub/compare.json
over sub/compare.json sub/compare.json scenario compare sub/compare.json sub/named.json -o sub
over sub/compare.json sub/compare.json scenario compare sub/named.json sub/compare.json -o sub
cp sub/free.json sub/launch.sh
over sub/launch.sh sub/launch.sh scenario launch sub/launch.sh -o sub --force

# What is no regular file stays what it is.
mkdir odd
mkfifo odd/pipe odd/trace.json odd/whatif.txt odd/launch.sbatch
not='cannot be written: it is not a regular file'
refuses "odd/pipe: $not" estimate sub/job.json --write-schedule odd/pipe
refuses "/dev/null: $not" estimate sub/job.json --write-schedule /dev/null
refuses "odd/pipe: $not" calibrate --run train.log sub/job.json -o odd/pipe
refuses "odd/launch.sbatch: $not" plan sub/free.json -o odd
refuses "odd/whatif.txt: $not" whatif sub/job.json --vary training.seq_len=1024 -o odd
refuses "odd/launch.sbatch: $not" launch sub/free.json --scheduler slurm -o odd --force
[ -z "$(find odd -type f)" ] || fail "files beside pipes: $(find odd)"
[ -c /dev/null ] || fail "/dev/null is no device any more"

# Standard output has the answer.
refuses 'meshwright: --write-schedule: expected a file; standard output has the answer' \
    estimate sub/job.json --write-schedule -
refuses 'meshwright: --trace: expected a file; standard output has the answer' \
    simulate sub/job.json --trace -
refuses 'meshwright: --trace: the name is empty' simulate sub/job.json --trace ''

# A symbolic link stays; what it leads to is written, also where that is in another folder.
ln -s sub/target.txt target.txt
answers 0 estimate sub/named.json --write-schedule target.txt
[ -L target.txt ] || fail "the link is gone"
cmp target.txt sub/order.txt
ln -s ../nowhere/target.txt sub/lost.txt
refuses "sub/lost.txt: cannot be written: there is no folder sub/../nowhere" \
    estimate sub/named.json --write-schedule sub/lost.txt

[ -x "${MESHWRIGHT_SIM-}" ] || exit 0
refuses "odd/trace.json: $not" simulate sub/job.json --trace odd/trace.json
ln -s sub/trace.json trace.json
answers 0 simulate sub/job.json --trace trace.json
[ -L trace.json ] || fail "the link is gone"
grep -q traceEvents sub/trace.json || fail "no trace behind the link"
