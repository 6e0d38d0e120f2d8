#!/bin/sh
# Configurations of Megatron Bridge: what launch writes comes back as the same plan and the same file;
# files as people write them; refusals by the file's own keys.
set -eu
. tests/support.sh
cd "$temp"

# back NAME CLUSTER MODEL TRAINING PARALLEL: launched, imported, launched again.
back() {
    cat >"$1.json" <<END
{"schema": 1, "model": "$3", "cluster": "$2",
 "training": {"seq_len": 4096, "global_batch": 512$4}, "parallel": {$5}}
END
    answers 0 launch "$1.json" --for nemo -o "$1" --force
    answers 0 import --from nemo "$1/megatron_bridge.yaml" --cluster "$2" -o "$1-back.json"
    answers 0 launch "$1-back.json" --for nemo -o "$1-back" --force
    for folder in "$1" "$1-back"; do # import writes the default of a norm that is not stated
        grep -v 'layernorm_epsilon: 1.0e-05' "$folder/megatron_bridge.yaml" >"$folder.yaml"
    done
    diff "$1.yaml" "$1-back.yaml" || fail "$1: another configuration"
    for job in "$1" "$1-back"; do
        run_program estimate "$job.json" --json
        python3 -c 'import json; print(json.dumps(json.load(open("stdout"))["parallel"], sort_keys=True))' >"$job.plan"
    done
    cmp "$1.plan" "$1-back.plan" || fail "$1: another plan"
}
back dense dgx-h100:16 llama-3.1-70b '' '"tp": 4, "pp": 8, "vpp": 5, "cp": 2, "recompute": "full"'
back uneven dgx-h100:16 llama-3.1-70b ', "precision": "fp8", "fp8_recipe": "delayed"' '"tp": 4, "pp": 8, "vpp": 3, "zero_group": 2'
back latent dgx-h100:128 deepseek-v3 ', "moe_dispatcher": "deepep"' \
    '"tp": 2, "pp": 16, "ep": 64, "recompute": "selective", "recompute_modules": ["mla_up_proj"]'
back experts dgx-h100:4 qwen3-30b-a3b ', "optimizer_dtype": "bf16"' '"tp": 2, "ep": 8, "etp": 1, "pp": 2, "cp": 2, "cp_method": "all-gather"'
back fsdp dgx-h100:2 llama-3.1-8b ', "grad_reduce_dtype": "bf16", "cross_entropy_fused": false' '"zero_stage": 3, "recompute": "full"'
back plain dgx-h100:1 gpt2-124m ', "precision": "fp16", "optimizer": "sgd", "overlap_grad_reduce": false, "overlap_param_gather": false, "cuda_graphs": "attn"' '"zero_stage": 0, "tp": 2, "sequence_parallel": false'

# As people write them: comments, a recipe for the precision, lists of lists, texts for members.
cat >own.yaml <<'END'
# overrides
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama3ModelProvider
  num_layers: 8
  hidden_size: 1024
  ffn_hidden_size: 4096
  num_attention_heads: 16
  num_query_groups: 8
  kv_channels: null
  seq_length: 2048
  vocab_size: 32000
  normalization: RMSNorm
  layernorm_epsilon: 1e-5
  activation_func: silu
  gated_linear_unit: true
  add_bias_linear: False
  position_embedding_type: rope
  rotary_base: 10000
  hidden_dropout: 0
  attention_dropout: 0.0
  attention_backend: AttnBackend.flash
  pipeline_model_parallel_size: 2
  tensor_model_parallel_size: 2
  pipeline_model_parallel_layout: [[embedding, decoder, decoder, decoder], [decoder, decoder, decoder, decoder, decoder, loss]]
  sequence_parallel: true
  deterministic_mode: true
train: {micro_batch_size: 2, global_batch_size: 64, train_iters: 10}
ddp:
  use_distributed_optimizer: true
comm_overlap:
  tp_comm_overlap: true
mixed_precision: bf16-with-fp8-current-scaling-mixed
END
answers 0 import --from nemo own.yaml --cluster dgx-h100:1
python3 - <<'END'
import json
scenario = json.load(open("stdout"))
model, training, parallel = (scenario[key] for key in ("model", "training", "parallel"))
assert [model[k] for k in ("num_hidden_layers", "num_key_value_heads", "head_dim", "norm")] == [8, 8, 64, "rmsnorm"]
assert [s["layers"] for s in parallel["stages"]] == [3, 5], parallel
assert [parallel[k] for k in ("tp", "pp", "dp", "micro_batch", "zero_stage")] == [2, 2, 2, 2, 1]
assert training["precision"] == "fp8" and training["fp8_recipe"] == "tensorwise", training
assert training["tp_comm_overlap"] and training["overlap_grad_reduce"] and training["cross_entropy_fused"]
END
grep -q 'keeps the first and the last layer in bf16' stderr || fail "$(cat stderr)"
grep -q 'does not know what they change: model.deterministic_mode\.' stderr || fail "$(cat stderr)"

# As Bridge itself writes run_config.yaml: all keys, functions, types and members as tables.
cat >run_config.yaml <<'END'
comm_overlap: null
ddp:
  _target_: megatron.bridge.training.config.DistributedDataParallelConfig
  overlap_grad_reduce: true
  use_distributed_optimizer: true
dist: {_target_: megatron.bridge.training.config.DistributedInitConfig, use_tp_pp_dp_mapping: false}
mixed_precision:
  _target_: megatron.bridge.training.mixed_precision.MixedPrecisionConfig
  bf16: true
  first_last_layers_bf16: false
  fp8: null
  fp8_recipe: tensorwise
  fp8_wgrad: true
  grad_reduce_in_fp32: true
  params_dtype: {_call_: false, _target_: torch.bfloat16}
  pipeline_dtype:
    _call_: false
    _target_: torch.bfloat16
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
  activation_func:
    _call_: false
    _target_: torch.nn.functional.silu
  add_bias_linear: false
  attention_backend:
    _args_:
    - 3
    _call_: true
    _target_: megatron.core.transformer.enums.AttnBackend
  attention_dropout: 0.0
  cross_entropy_loss_fusion: true
  cuda_graph_scope: full
  expert_model_parallel_size: 1
  ffn_hidden_size: 8192
  gated_linear_unit: true
  generation_config:
    _call_: true
    _target_: transformers.generation.configuration_utils.GenerationConfig.from_dict
    config_dict: {temperature: 0.6}
  hidden_dropout: 0.0
  hidden_size: 2048
  init_method:
    _args_: []
    _partial_: true
    _target_: torch.nn.init.normal_
    mean: 0.0
    std: 0.02
  kv_channels: 64
  masked_softmax_fusion: true
  moe_grouped_gemm: false
  moe_router_topk: 2
  moe_token_dispatcher_type: allgather
  normalization: RMSNorm
  num_attention_heads: 32
  num_layers: 16
  num_moe_experts: null
  num_query_groups: 8
  params_dtype: {_call_: false, _target_: torch.bfloat16}
  position_embedding_type: rope
  rotary_base: 500000.0
  rotary_percent: 1.0
  seq_length: 4096
  share_embeddings_and_output_weights: true
  softmax_type: vanilla
  tensor_model_parallel_size: 2
  timers: {_call_: true, _target_: megatron.core.timers.Timers}
  vocab_size: 128256
optimizer:
  _target_: megatron.bridge.training.config.OptimizerConfig
  adam_beta1: 0.9
  exp_avg_dtype: {_call_: false, _target_: torch.bfloat16}
  exp_avg_sq_dtype: {_call_: false, _target_: torch.bfloat16}
  lr: 0.0003
  main_grads_dtype: {_call_: false, _target_: torch.float32}
  optimizer: adam
  use_distributed_optimizer: true
  use_precision_aware_optimizer: true
train: {_target_: megatron.bridge.training.config.TrainingConfig, global_batch_size: 64, micro_batch_size: 1}
END
# run_config KEY VALUE SED-SCRIPT: run_config.yaml, changed, is priced so.
run_config() {
    sed "$3" run_config.yaml >run.yaml
    answers 0 import --from nemo run.yaml --cluster dgx-h100:1
    got=$(python3 -c 'import json, sys; s = json.load(open("stdout")); print({**s["model"], **s["training"]}.get(sys.argv[1]))' "$1")
    [ "$got" = "$2" ] || fail "run_config.yaml, $3: $1 is $got, not $2"
}
run_config hidden_act silu ''
if grep 'does not know what they change' stderr; then fail "not all keys of run_config.yaml are known"; fi
run_config attention unfused ''
run_config attention flash 's/^    - 3/    - 1/'
run_config attention unfused 's/^    - 3/    - 9/; s/^    _target_: megatron.core.*/&\n    _name_: local/'
run_config optimizer_dtype bf16 ''
run_config optimizer_dtype None 's/\(exp_avg.*\)bfloat16/\1float32/'
run_config precision bf16 ''
run_config precision fp8 's/fp8: null/fp8: hybrid/; s/first_last_layers_bf16: false/first_last_layers_bf16: true/'
grep -q 'first_last_layers_bf16 keeps the first and the last layer in bf16; they are priced as the others' stderr ||
    fail "$(cat stderr)"
run_config precision bf16 's/main_grads_dtype.*/main_grads_dtype: bfloat16/; s/fp8_wgrad: true/fp8_dot_product_attention: true/'
grep -q 'they change: optimizer.main_grads_dtype, mixed_precision.fp8_dot_product_attention\.' stderr || fail "$(cat stderr)"
sed 's/exp_avg_sq_dtype.*/exp_avg_sq_dtype: {_call_: false, _target_: torch.float16}/' run_config.yaml >bad.yaml
refuses 'bad.yaml: optimizer.exp_avg_sq_dtype: is not priced; expected float32 or bfloat16' \
    import --from nemo bad.yaml --cluster dgx-h100:1
sed 's/softmax_type: vanilla/softmax_type: off-by-one/' run_config.yaml >bad.yaml
refuses 'bad.yaml: model.softmax_type: "off-by-one" is not supported yet; expected vanilla or learnable' \
    import --from nemo bad.yaml --cluster dgx-h100:1
sed 's/^    - 3/    - 9/' run_config.yaml >bad.yaml
refuses 'bad.yaml: model.attention_backend: is no value of this key' import --from nemo bad.yaml --cluster dgx-h100:1
# Another job, and keys that say nothing.
printf 'peft: {_target_: megatron.bridge.peft.lora.LoRA, dim: 32}\n' | cat run_config.yaml - >bad.yaml
refuses 'bad.yaml: peft: adapters are not supported yet; expected null' import --from nemo bad.yaml --cluster dgx-h100:1
printf 'dataset: {sequence_length: 8192}\n' | cat run_config.yaml - >bad.yaml
refuses 'bad.yaml: dataset.sequence_length: is 8192, and model.seq_length 4096' \
    import --from nemo bad.yaml --cluster dgx-h100:1
sed 's/^  num_layers: 16/&\n  hierarchical_context_parallel_sizes: [2, 4]/' run_config.yaml >bad.yaml
refuses 'bad.yaml: model.hierarchical_context_parallel_sizes: hierarchical context parallelism: not supported yet' \
    import --from nemo bad.yaml --cluster dgx-h100:1
run_config recompute None 's/^  num_layers: 16/&\n  recompute_modules: [core_attn]/'
if grep 'does not know what they change' stderr; then fail "recompute_modules says nothing alone"; fi
run_config seq_len 4096 's/global_batch_size: 64/&, rampup_batch_size: [32, 32, 1000]/'
grep -q 'train.rampup_batch_size: the whole batch of 64 is priced' stderr || fail "$(cat stderr)"
printf 'peft: null\ndataset: {seq_length: 4096, packed_sequence_specs: {packed_sequence_size: 4096}}\n' |
    cat run_config.yaml - >packed.yaml
answers 0 import --from nemo packed.yaml --cluster dgx-h100:1
grep -q 'packed_sequence_specs: a packed sequence is priced as one' stderr || fail "$(cat stderr)"

refuses 'own.yaml: --set TP: is for scripts (megatron, deepspeed)' \
    import --from nemo own.yaml --cluster dgx-h100:1 --set TP=2

# changed SENTENCE SED-SCRIPT: own.yaml, changed, is refused.
changed() {
    sed "$2" own.yaml >bad.yaml
    cmp -s own.yaml bad.yaml && fail "nothing to change: $2"
    refuses "bad.yaml: $1" import --from nemo bad.yaml --cluster dgx-h100:1
}
changed 'mixed_precision: "bf16-with-fp8-mixed" is not known; expected a recipe such as bf16_mixed, or its keys' \
    's/^mixed_precision:.*/mixed_precision: bf16-with-fp8-mixed/'
changed 'mixed_precision: missing; expected a recipe such as bf16_mixed, or its keys' '/^mixed_precision/d'
changed 'model.num_layers: "eight" is not a whole number from 1 to 2000000000' 's/num_layers: 8/num_layers: eight/'
changed 'model.sequence_parallel: is neither true nor false' 's/sequence_parallel: true/sequence_parallel: 1/'
changed 'model.activation_func: is not priced; expected silu in a gated MLP, gelu or squared_relu in one that is not' \
    's/activation_func: silu/activation_func: gelu/'
changed 'model.tensor_model_parallel_size: tp 16 x pp 2 x cp 1 does not divide the 8 GPUs of --cluster' \
    's/tensor_model_parallel_size: 2/tensor_model_parallel_size: 16/'
changed 'model.pipeline_model_parallel_layout: is no value of this key' 's/, loss\]/, lost]/'
changed 'model.cpu_offloading: activations in host memory: not supported yet' 's/deterministic_mode/cpu_offloading/'
changed 'model: missing; expected keys of Megatron Bridge'"'"'s ConfigContainer' 's/^model:/models:/'
changed 'line 4, column 15: no anchor &a stands before this alias' 's/num_layers: 8/num_layers: *a/'
changed 'line 5, column 3: the key num_layers stands here twice' 's/  hidden_size: 1024/  num_layers: 9/'
changed 'line 3, column 3: a key that is no scalar' 's/  _target_.*/  [a]: 1/'
printf 'model: [1, 2\n' >bad.yaml
run_program import --from nemo bad.yaml --cluster dgx-h100:1
[ $rc -eq 2 ] || fail "bad.yaml: exit $rc"
grep -q '^bad.yaml: line 2, column 1: ' stderr || fail "$(cat stderr)"
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "["; }' >bad.yaml
run_program import --from nemo bad.yaml --cluster dgx-h100:1
[ $rc -eq 2 ] || fail "deep bad.yaml: exit $rc"
