#!/bin/sh
# What a rule of the software forbids, and what is done where it forbids the model or the plan.
set -eu
. tests/support.sh
cd "$temp"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:8",
 "training": {"seq_len": 131072, "global_batch": 32, "precision": "bf16"}}
END

# The rule, what is legal, and the place in the source; 1 where the answer is no.
answers 0 plan job.json --explain-rule cp=16
grep -q '^No rule of megatron-core forbids cp=16 here: .* cp 16 ' stdout || fail "$(cat stdout)"
answers 1 plan job.json --explain-rule cp=16,cp_method=ulysses
grep -q '^rule megatron-core/ulysses-heads$' stdout || fail "$(cat stdout)"
grep -q '^legal here: parallel.cp 1, 2, 4, 8$' stdout || fail "$(cat stdout)"
grep -q '^legal here: parallel.cp_method ring, all-gather$' stdout || fail "$(cat stdout)"
grep -q 'source: NVIDIA/TransformerEngine@.*AttnFuncWithCPAndQKVOA2A' stdout || fail "$(cat stdout)"
answers 1 plan job.json --explain-rule cp=16,cp_method=ulysses --json
grep -q '"rule":.*"megatron-core/ulysses-heads"' stdout || fail "$(cat stdout)"
# What is stated lifts a rule in a search, but the rule forbids it all the same.
answers 1 plan job.json --explain-rule pp=2,schedule=zb-h1
grep -q '^rule megatron-core/schedules$' stdout || fail "$(cat stdout)"
answers 1 plan job.json --explain-rule precision=fp8,fp8_recipe=rowwise
grep -q '^rule megatron-core/fp8-recipes$' stdout || fail "$(cat stdout)"
# What no plan can be is no rule.
answers 1 plan job.json --explain-rule tp=5
grep -q '^No rule of megatron-core forbids tp=5: .*tp 5 does not divide num_gpus 64' stdout ||
    fail "$(cat stdout)"
refuses 'meshwright: --explain-rule: "cp": no KEY=VALUE; expected KEY=VALUE,... with keys of parallel or training, as in cp=16,cp_method=ulysses' \
    plan job.json --explain-rule cp

# No search proposes it, and what states it is refused with the rule.
answers 0 plan job.json --top 50 --variants
if grep -q 'cp 16 ulysses' stdout; then fail "a plan that dies: $(cat stdout)"; fi
sed 's/}}/}, "parallel": {"cp": 16, "cp_method": "ulysses"}}/' job.json >dies.json
refuses 'dies.json: parallel.cp: 16 does not divide the 32 query and 8 key and value heads of a tensor-parallel rank (ulysses); expected 1, 2, 4 or 8' \
    estimate dies.json
refuses 'dies.json: parallel.cp: 16 does not divide the 32 query and 8 key and value heads of a tensor-parallel rank (ulysses); expected 1, 2, 4 or 8' \
    plan dies.json

# What the software merely lacks is priced where it is stated, which is said.
sed 's/}}/}, "parallel": {"cp": 8, "pp": 2, "tp": 4, "schedule": "zb-h1", "recompute": "full"}}/' job.json >lacks.json
answers 0 estimate lacks.json --json
grep -q 'lacks.json: parallel.schedule: zb-h1 is none of its schedules; priced all the same (rule megatron-core/schedules: ' stderr ||
    fail "$(cat stderr)"
grep -q '"broken_rules"' stdout || fail "$(cat stdout)"
refuses 'lacks.json: parallel.schedule: zb-h1 is none of its schedules: Megatron-LM cannot run this plan as priced; nearest: 1f1b, or interleaved with vpp' \
    launch lacks.json --dry-run

# A plan for another stack says how to go on; without a plan one is searched first.
refuses 'lacks.json: training.stack: the plan is priced for megatron-core, and torchtitan would run it otherwise: plan again with training.stack torchtitan, or start it --for megatron' \
    launch lacks.json --for torchtitan
answers 0 launch job.json -o files
grep -q 'job.json: parallel: absent, so planned first: tp ' stderr || fail "$(cat stderr)"
[ -x files/launch.sh ] || fail "no launch file"

# A stack that is stated stays; another is named where one can.
cat >gemma.json <<'END'
{"schema": 1, "model": "gemma-2-2b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 16, "precision": "bf16", "stack": "megatron-core"}}
END
answers 0 plan gemma.json --top 1
head -n 1 stdout | grep -q 'Planned for megatron-core all the same, as training.stack states; no launch files for this model; training.stack pytorch-fsdp can run it\.$' ||
    fail "$(head -n 1 stdout)"
answers 0 plan gemma.json --top 1 --json
grep -q '"cannot_run_model":.*"megatron-core"' stdout || fail "no stack in the answer"

# import asks the same tables: a file that would stop the software is refused, with the rule; what the
# software lacks is read, and said with the rule and its source.
flags='--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention
--num-query-groups 8 --ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear
--position-embedding-type rope --untie-embeddings-and-output-weights --seq-length 8192
--max-position-embeddings 8192 --micro-batch-size 1 --vocab-size 128256 --bf16
--use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0'
flags=$(printf '%s' "$flags" | tr '\n' ' ')
echo "torchrun pretrain_gpt.py $flags --global-batch-size 16 --context-parallel-size 16 --cp-comm-type a2a" >dies.sh
refuses 'dies.sh: parallel.cp: 16 does not divide the 32 query and 8 key and value heads of a tensor-parallel rank (ulysses); expected 1, 2, 4 or 8' \
    import --from megatron dies.sh --cluster dgx-h100:2
grep -q '(rule megatron-core/ulysses-heads: NVIDIA/TransformerEngine@' stderr || fail "$(cat stderr)"
echo "torchrun pretrain_gpt.py $flags --global-batch-size 12 --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2" >odd.sh
answers 0 import --from megatron odd.sh --cluster dgx-h100:1 -o odd.json
grep -q '^meshwright: odd.sh: parallel.schedule: interleaving 6 micro-batches over pp 4 is not possible; expected .*; read and priced all the same (rule megatron-core/interleaved-groups: NVIDIA/Megatron-LM@' stderr ||
    fail "$(cat stderr)"
answers 0 estimate odd.json
# A stack's launcher has rules of its own.
cat >quick.yaml <<'END'
model: {num_layers: 8, hidden_size: 1024, num_attention_heads: 8, ffn_hidden_size: 4096, seq_length: 1024, vocab_size: 50304, position_embedding_type: none}
train: {global_batch_size: 8, micro_batch_size: 1}
mixed_precision: bf16_mixed
END
answers 0 import --from nemo quick.yaml --cluster dgx-h100:1
grep -q '(rule for-nemo/positions: ' stderr || fail "$(cat stdout stderr)"
# What the software can run is said nothing about.
sed -i 's/batch-size 12 /batch-size 16 /' odd.sh
answers 0 import --from megatron odd.sh --cluster dgx-h100:1
if grep -q '(rule ' stderr; then fail "$(cat stderr)"; fi
