#!/bin/sh
# Scripts of Megatron-DeepSpeed with their ds_config.json: what launch writes comes back as the same
# plan and the same files; what contradicts itself or is not priced is refused by name.
set -eu
. tests/support.sh
cd "$temp"

# back NAME MODEL VOCABULARY TRAINING PARALLEL: launched, imported, launched again.
back() {
    cat >"$1.json" <<END
{"schema": 1, "model": "$2", "cluster": "dgx-h100:2",
 "training": {"seq_len": 2048, "global_batch": 64, "stack": "megatron-2021"$4}, "parallel": {$5}}
END
    # The table of learned positions is no longer than a sequence.
    [ "$2" != gpt2-124m ] || sed -i 's/2048/1024/' "$1.json"
    answers 0 launch "$1.json" --for deepspeed -o "$1 of it" --force
    answers 0 import --from deepspeed "$1 of it/launch.sh" --cluster dgx-h100 --vocab-size "$3" -o "$1-back.json"
    answers 0 launch "$1-back.json" --for deepspeed -o "$1-back" --force
    cmp "$1 of it/ds_config.json" "$1-back/ds_config.json" || fail "$1: another configuration"
    for folder in "$1 of it" "$1-back"; do
        # import writes the default of a norm that is not stated
        sed -n '/^ARGS=/,/^)/p' "$folder/launch.sh" | grep -v 'layernorm-epsilon 1e-05' >"$folder.args"
    done
    diff "$1 of it.args" "$1-back.args" || fail "$1: another command"
    for job in "$1" "$1-back"; do
        run_program estimate "$job.json" --json
        python3 -c 'import json; a = json.load(open("stdout")); print(a["step_time_s"], json.dumps(a["parallel"], sort_keys=True))' >"$job.plan"
    done
    cmp "$1.plan" "$1-back.plan" || fail "$1: another plan: $(cat "$1.plan" "$1-back.plan")"
}
back pipeline llama-3.1-8b 128256 '' '"tp": 2, "pp": 2'
back bubbles llama-3.1-8b 128256 '' '"tp": 2, "pp": 4, "schedule": "zb-h1", "sequence_parallel": false'
back sharded llama-3.1-8b 128256 ', "overlap_grad_reduce": true' '"zero_stage": 2, "recompute": "full"'
back weights llama-3.1-8b 128256 ', "grad_reduce_dtype": "fp32"' '"zero_stage": 3, "micro_batch": 2'
back split llama-3.1-8b 128256 '' '"cp": 4, "cp_method": "ulysses", "zero_stage": 1'
back half gpt2-124m 50257 ', "precision": "fp16", "attention": "unfused"' '"zero_stage": 0, "tp": 2'

# changed FILE SENTENCE SED-SCRIPT: of the first plan's files, one is changed; import refuses.
changed() {
    rm -rf bad
    cp -R "pipeline of it" bad
    sed -i "$3" "bad/$1"
    cmp -s "pipeline of it/$1" "bad/$1" && fail "nothing to change: $3"
    refuses "bad/launch.sh: $2" import --from deepspeed bad/launch.sh --cluster dgx-h100 --vocab-size 128256
}
changed ds_config.json '--zero-stage: 1 is not the 0 of zero_optimization.stage in the configuration' \
    's/"stage": 1/"stage": 0/'
changed ds_config.json '--global-batch-size: 64 is not the 128 of train_batch_size in the configuration' \
    's/"train_batch_size": 64/"train_batch_size": 128/'
changed ds_config.json 'zero_optimization.offload_optimizer of the configuration: an optimizer in host memory: not supported yet' \
    's/"stage": 1/"stage": 1, "offload_optimizer": {"device": "cpu"}/'
changed launch.sh "--num-experts: experts of Megatron-DeepSpeed (GShard's) are not supported yet" \
    's/--swiglu/--swiglu --num-experts 8/'
changed launch.sh '--normalization: "batchnorm" is unknown; expected layernorm or rmsnorm' \
    's/--normalization rmsnorm/--normalization batchnorm/'
changed launch.sh '--deepspeed_config: missing; expected the configuration that DeepSpeed gets' \
    '/--deepspeed_config/d'
changed launch.sh '--layernorm-epsilon: "abc" is not a number from 0 on' 's/--swiglu/--swiglu --layernorm-epsilon abc/'
changed launch.sh '--num-key-value-heads: "x" is not a whole number from 1 to 2000000000' \
    's/--num-key-value-heads 8/--num-key-value-heads x/'
changed launch.sh '--zero-stage: 1.5 is none of 0, 1, 2, 3' 's/--zero-stage 1/--zero-stage 1.5/'
# Flags of Megatron-DeepSpeed alone that a block may or may not add.
for flag in --num-key-value-heads --checkpoint-activations --ds-sequence-parallel-size --optimizer-cpu-offload; do
    changed launch.sh "$flag: added or not as line 3 says, which the file does not decide; give --set NAME=VALUE for \
what that line asks" "2a if [ -f x ]\\nthen ARGS=($flag 1)\\nfi"
done
# The stage is a number with a point there.
cp -R "pipeline of it" point
sed -i 's/--zero-stage 1/--zero-stage=1.0/' point/launch.sh
grep -q 'zero-stage=1.0' point/launch.sh || fail "no --zero-stage 1 in $(cat point/launch.sh)"
answers 0 import --from deepspeed point/launch.sh --cluster dgx-h100 --vocab-size 128256
rm -rf bad
cp -R "pipeline of it" bad
rm bad/ds_config.json
refuses 'bad/launch.sh: --deepspeed_config: bad/ds_config.json: cannot be read: No such file or directory' \
    import --from deepspeed bad/launch.sh --cluster dgx-h100 --vocab-size 128256
grep -v -e --vocab-size "pipeline of it/launch.sh" >"pipeline of it/less.sh"
refuses "pipeline of it/less.sh: --vocab-size: missing, and the file does not say how many tokens HFTokenizer has; give \
--vocab-size N" import --from deepspeed "pipeline of it/less.sh" --cluster dgx-h100

# The configuration that the script writes, as published ones do.
cat >writes.sh <<'END'
#!/bin/bash
set -ex
DIR=$(dirname "$0")
DS_CONFIG=$DIR/deepspeed.json
TP=2 ZERO_STAGE=1 MICRO_BATCH_SIZE=4
GLOBAL_BATCH_SIZE=$((MICRO_BATCH_SIZE * 8))
cat <<EOT > $DS_CONFIG
{
  "train_batch_size" : $GLOBAL_BATCH_SIZE, "train_micro_batch_size_per_gpu": $MICRO_BATCH_SIZE,
  "zero_optimization": { "stage": $ZERO_STAGE }, "bf16": { "enabled": true }
}
EOT
ds_args="--deepspeed --no-pipeline-parallel"
ds_args=" --deepspeed_config=$DS_CONFIG ${ds_args}"
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size $TP --num-layers 24 \
    --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --bf16 \
    --micro-batch-size $MICRO_BATCH_SIZE --global-batch-size $GLOBAL_BATCH_SIZE --zero-stage=$ZERO_STAGE $ds_args
END
answers 0 import --from deepspeed writes.sh --cluster dgx-a100-80g --vocab-size 32000
grep -q '"zero_stage":[[:space:]]*1$' stdout || grep -q '"zero_stage":[[:space:]]*1,' stdout || fail "$(cat stdout)"
# shellcheck disable=SC2016 # a variable of the file
sed 's/: \$ZERO_STAGE }/: 2 }/' writes.sh >bad.sh
run_program import --from deepspeed bad.sh --cluster dgx-a100-80g --vocab-size 32000
[ $rc -eq 2 ] || fail "two stages: exit $rc"
sed 's/^cat/[ -f x ] \&\& cat/' writes.sh >bad.sh
# shellcheck disable=SC2016 # a command of the file
refuses 'bad.sh: --deepspeed_config: the script writes $(dirname "$0")/deepspeed.json with variables that it does not set' \
    import --from deepspeed bad.sh --cluster dgx-a100-80g --vocab-size 32000
# Keys of the configuration: what nobody reads is said, what is not priced refused.
# configured KEYS: bad.sh, whose configuration has them, too.
configured() {
    sed "s/^  \"train_batch_size\"/  $1, &/" writes.sh >bad.sh
    cmp -s writes.sh bad.sh && fail "nothing changed: $1"
    true
}
configured '"autotuning": {"enabled": true}, "tensor_parallel": {"autotp_size": 8}, "wandb": {"enabled": true}'
answers 0 import --from deepspeed bad.sh --cluster dgx-a100-80g --vocab-size 32000
grep -q 'Of the configuration not read, .* change: autotuning, tensor_parallel\.$' stderr || fail "$(cat stderr)"
configured '"activation_checkpointing": {"cpu_checkpointing": true}'
refuses 'bad.sh: activation_checkpointing.cpu_checkpointing of the configuration: activations in host memory: not supported yet' \
    import --from deepspeed bad.sh --cluster dgx-a100-80g --vocab-size 32000
configured '"optimizer": {"type": "OneBitAdam"}'
refuses 'bad.sh: optimizer.type of the configuration: "OneBitAdam" is not supported yet; expected Adam, AdamW or SGD' \
    import --from deepspeed bad.sh --cluster dgx-a100-80g --vocab-size 32000
