#!/bin/sh
# import: what a training script does besides naming flags: words that are not known where flags may
# stand, headers of a queue, other programs.
set -eu
. tests/support.sh
cd "$temp"

flags='--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --swiglu
--max-position-embeddings 4096 --position-embedding-type rope --tokenizer-type Llama2Tokenizer
--micro-batch-size 1 --global-batch-size 128 --attention-dropout 0 --hidden-dropout 0
--attention-backend flash --bf16'
flags=$(printf '%s' "$flags" | tr '\n' ' ')
import="import --from megatron run.sh --cluster dgx-h100"

# script LINE...: the file run.sh.
script() {
    printf '%s\n' "$@" >run.sh
}
# is KEY VALUE: in the scenario that it gives.
is() {
    # shellcheck disable=SC2086 # a list of words
    answers 0 $import
    has "$@"
}
has() {
    grep -q "\"$1\":[[:space:]]*$2,\$" stdout || fail "not $1 $2: $(cat run.sh stdout stderr)"
}
says() {
    grep -qF -- "$1" stderr || fail "not said: $1: $(cat stderr)"
}
no() {
    # shellcheck disable=SC2086 # a list of words
    refuses "run.sh: $1" $import
}

# Words that may be flags.
# shellcheck disable=SC2016 # variables of the script
{
    script "torchrun --nnodes 2 pretrain_gpt.py \$(cat more) $flags"
    no '$(cat more) stands where flags may, and is not known before it runs; write out what it stands for'
    script "torchrun --nnodes 2 pretrain_gpt.py $flags --use-mcore-models \`cat more\`"
    no '`cat more` stands where flags may, and is not known before it runs; write out what it stands for'
    script '[ -f x ] && MORE=$(cat x)' "torchrun --nnodes 2 pretrain_gpt.py $flags \$MORE"
    no "\$MORE, which may hold flags, depends on line 1, which the file does not decide; give --set \
NAME=VALUE for what that line asks"
    script "torchrun --nnodes 2 pretrain_gpt.py \$MOE $flags --log-progress \${MORE[@]} --save \$X --data-path 1 \$Y"
    is tp 1
    says '$MOE, ${MORE[@]}: set nowhere in the file, and taken as empty; --set NAME=VALUE says otherwise.'
    script 'torchrun --nnodes 2 pretrain_gpt.py $FLAGS $@'
    answers 0 import --from megatron run.sh --cluster dgx-h100 --set "FLAGS=$flags --tensor-model-parallel-size 2"
    has tp 2
}

# How many nodes: the queue's header, the launcher, both.
# shellcheck disable=SC2016 # variables of the script
{
    script '#!/bin/bash' '#SBATCH --nodes=4' "srun python pretrain_gpt.py $flags"
    is dp 32
    script '#!/bin/bash' '#SBATCH -N 4' 'N=${SLURM_NNODES:-1}' "torchrun --nnodes \$N pretrain_gpt.py $flags"
    is dp 32
}
script "torchrun --nproc-per-node 4 --nnodes 2 pretrain_gpt.py $flags"
is dp 16
says 'It starts 8 processes, one a GPU; --cluster dgx-h100 has 16 GPUs: taken as 16.'

# Other programs, scripts that end, files that are not read.
script "torchrun pretrain_t5.py $flags"
no 'pretrain_t5.py is not supported yet; expected pretrain_gpt.py'
# shellcheck disable=SC2016 # variables of the script
script 'if [ $# -lt 2 ]; then' '  echo usage; exit 1' 'fi' "torchrun pretrain_gpt.py $flags"
no 'line 2 ends the script before any command of pretrain_gpt.py; --set 1=VALUE gives its first argument'
answers 0 import --from megatron run.sh --cluster dgx-h100:2 --set 2=x
# shellcheck disable=SC2016 # variables of the script
script 'TP=$2' "torchrun pretrain_gpt.py $flags --tensor-model-parallel-size \$TP \${@:3}"
answers 0 import --from megatron run.sh --cluster dgx-h100:2 --set 2=4 --set 1=x --set 3=--sequence-parallel
has tp 4
has sequence_parallel true
script 'source env.sh' "torchrun --nnodes 2 pretrain_gpt.py $flags"
is dp 16
says 'Line 1 reads the commands of env.sh, which is not followed.'

# A script of the kind that people have.
cat >run.sh <<'END'
#!/bin/bash
#SBATCH --job-name=llama
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
: "${MODEL_SIZE:=llama-70b}"
GPUS_PER_NODE=${SLURM_GPUS_PER_NODE:-8}
declare -A LAYERS=([7b]=32 [70b]=80) HIDDEN=([7b]=4096 [70b]=8192)
size=${MODEL_SIZE##*-}
case $size in
    7b) TP=1 PP=1 HEADS=32 FFN=11008 ;;
    13b | 70b)
        TP=8
        PP=4; HEADS=64; FFN=28672
        ;;
    *)
        echo "unknown size ${size}" >&2
        exit 1
        ;;
esac
[[ -n "${DEBUG:-}" ]] && set -x
log() { local PP=$1; echo "[$(date)] ${PP}"; }
log "pretrain_gpt.py starts"
add() { ARGS+=("$@"); }
ARGS=(
    --num-layers ${LAYERS[$size]} # of $size
    --hidden-size "${HIDDEN[$size]}"
    --num-attention-heads $HEADS --ffn-hidden-size $FFN
)
add --group-query-attention --num-query-groups 8 --swiglu
WORLD=$((SLURM_NNODES * GPUS_PER_NODE)) MBS=1
((GBS = WORLD / (TP * PP) * 16 * MBS))
add --micro-batch-size $MBS --global-batch-size $GBS
if [ "$TP" -gt 1 ] && [[ "${SEQUENCE_PARALLEL:-yes}" =~ ^yes ]]; then
    add --sequence-parallel
fi
DISTRIBUTED="--nproc_per_node $GPUS_PER_NODE --nnodes ${SLURM_NNODES} --rdzv_backend c10d"
srun --label bash -c "
    cd /work && torchrun $DISTRIBUTED pretrain_gpt.py ${ARGS[*]} \
        --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size=$PP \
        --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope \
        --tokenizer-type Llama2Tokenizer --attention-dropout 0 --hidden-dropout 0 --bf16 ${FP8:+--fp8-format hybrid}
" 2>&1 | tee "run-$(date +%F).log"
pkill -f pretrain_gpt.py || true
END
answers 0 import --from megatron run.sh --cluster dgx-h100 --set FP8=
python3 - stdout <<'END'
import json, sys
scenario = json.load(open(sys.argv[1]))
model, parallel, training = scenario["model"], scenario["parallel"], scenario["training"]
assert scenario["cluster"] == "dgx-h100:8", scenario
assert [parallel[k] for k in ("tp", "pp", "dp", "sequence_parallel")] == [8, 4, 2, True], parallel
assert [model[k] for k in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_key_value_heads")] == [
    80, 8192, 28672, 8], model
assert training["global_batch"] == 32 and training["precision"] == "bf16", training
END
answers 0 import --from megatron run.sh --cluster dgx-h100 --set FP8=1 --set MODEL_SIZE=llama-7b --set SEQUENCE_PARALLEL=no
grep -q '"precision":[[:space:]]*"fp8"' stdout || fail "$(cat stdout)"
has global_batch 1024
