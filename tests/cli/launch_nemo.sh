#!/bin/sh
# Megatron Bridge: the YAML parses, the script is good shell, and the program runs with stand-ins that
# know the documented keys, their types and values, and no others.
set -eu
. tests/support.sh
python3 -c 'import yaml' 2>/dev/null || exit 77
table=$PWD/docs/launch/nemo.md
runner=$PWD/tests/launch/run_bridge.py
cd "$temp"

# torchrun ends with the program and its arguments.
mkdir bin
cat >bin/torchrun <<END
#!/bin/sh
while [ "\${1##*.}" != py ]; do shift; done
exec python3 "$runner" "\${TABLE:-$table}" "\$@"
END
chmod +x bin/torchrun
export PATH="$temp/bin:$PATH" NODE_RANK=1 MASTER_ADDR=node0

# job NAME MODEL CLUSTER TRAINING PARALLEL
job() {
    cat >"$1.json" <<END
{"schema": 1, "model": "$2", "cluster": "$3",
 "training": {"seq_len": 4096, "global_batch": 512$4}, "parallel": {$5}}
END
}

# started NAME: launched and run; the configuration is NAME.out.
started() {
    answers 0 launch "$1.json" --for nemo -o "a \"folder\" of $1" --force
    if command -v shellcheck >/dev/null; then shellcheck "a \"folder\" of $1/launch.sh"; fi
    "a \"folder\" of $1/launch.sh" >"$1.out" || fail "$1: $(cat "$1.out")"
}

job dense llama-3.1-70b dgx-h100:16 '' '"tp": 4, "pp": 8, "vpp": 5, "cp": 2'
started dense
job latent deepseek-v3 dgx-h100:128 ', "precision": "fp8", "fp8_recipe": "block", "moe_dispatcher": "deepep"' \
    '"tp": 2, "pp": 16, "ep": 64, "recompute": "selective", "recompute_modules": ["mla_up_proj"]'
started latent
job sharded llama-3.1-8b dgx-h100:2 ', "optimizer_dtype": "bf16", "cuda_graphs": "attn"' '"zero_stage": 1, "zero_group": 8'
started sharded
job fsdp qwen3-30b-a3b dgx-h100:4 '' '"zero_stage": 3, "ep": 8, "recompute": "full"'
started fsdp
job half gpt2-124m dgx-h100:1 ', "precision": "fp16", "cuda_graphs": "full"' '"pp": 2, "stages": [{"layers": 5, "embedding": true}, {"layers": 7, "loss": true}]'
sed -i 's/"seq_len": 4096/"seq_len": 1024/' half.json
started half
python3 - <<'END'
import json

def read(name):
    return json.load(open(name + ".out"))

def expect(name, section, **keys):
    part = read(name)[section]
    for key, value in keys.items():
        assert part.get(key) == value, (name, section, key, part.get(key), value)

expect("dense", "model", num_layers=80, num_query_groups=8, tensor_model_parallel_size=4,
       pipeline_model_parallel_size=8, virtual_pipeline_model_parallel_size=5,
       context_parallel_size=2, cp_comm_type="p2p", sequence_parallel=True, overlap_p2p_comm=True,
       batch_p2p_comm=False, attention_backend="flash", layernorm_epsilon=1e-5,
       share_embeddings_and_output_weights=False, add_bias_linear=False, activation_func="silu",
       rotary_base=500000, rope_scaling=True, seq_length=4096, vocab_size=128256)
expect("dense", "ddp", use_distributed_optimizer=True, overlap_grad_reduce=True)
expect("dense", "train", micro_batch_size=1, global_batch_size=512, train_iters=100)
expect("dense", "mixed_precision", bf16=True, params_dtype="bfloat16", grad_reduce_in_fp32=True)
expect("dense", "dataset", seq_length=4096, data_path=None)
expect("dense", "tokenizer", tokenizer_type="NullTokenizer", vocab_size=128255)
assert "transformer_layer_spec" not in read("dense")["model"]

expect("latent", "model", multi_latent_attention=True, kv_lora_rank=512, num_moe_experts=256,
       moe_layer_freq=3 * [0] + 58 * [1], moe_token_dispatcher_type="flex",
       moe_flex_dispatcher_backend="deepep", expert_model_parallel_size=64, mtp_num_layers=1,
       recompute_granularity="selective", recompute_modules=["mla_up_proj"],
       moe_aux_loss_coeff=1e-3, transformer_layer_spec="partial")
layout = read("latent")["model"]["pipeline_model_parallel_layout"].split("|")
assert len(layout) == 16 and "".join(layout).count("t") == 61 and layout[-1].endswith("mL"), layout
expect("latent", "mixed_precision", fp8="e4m3", fp8_recipe="blockwise")

expect("sharded", "ddp", num_distributed_optimizer_instances=2)
expect("sharded", "optimizer", use_precision_aware_optimizer=True, exp_avg_dtype="bfloat16")
expect("sharded", "model", cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"],
       use_te_rng_tracker=True)
expect("sharded", "rng", te_rng_tracker=True)

expect("fsdp", "ddp", use_megatron_fsdp=True, data_parallel_sharding_strategy="optim_grads_params")
expect("fsdp", "dist", use_megatron_fsdp=True)
expect("fsdp", "checkpoint", ckpt_format="fsdp_dtensor")
expect("fsdp", "model", recompute_method="uniform", recompute_num_layers=1,
       gradient_accumulation_fusion=False, init_model_with_meta_device=True)

expect("half", "model", pipeline_model_parallel_layout="Ettttt|tttttttL", activation_func="gelu",
       add_bias_linear=True, position_embedding_type="learned_absolute", normalization="LayerNorm",
       cuda_graph_scope=["full_iteration"], apply_rope_fusion=False)
expect("half", "mixed_precision", fp16=True, params_dtype="float16", grad_reduce_in_fp32=True)
expect("half", "ddp", check_for_nan_in_grad=False)
expect("half", "rerun_state_machine", check_for_nan_in_loss=False)
END

# What the user sets, in words of one.
DATA_PATH="my data" TOKENIZER_MODEL='a "b"' CHECKPOINT_PATH="out put" TRAIN_ITERS=7 LR=1e-4 \
    "a \"folder\" of dense/launch.sh" >own.out
python3 - <<'END'
import json
config = json.load(open("own.out"))
assert config["dataset"]["data_path"] == ["my data"] and config["dataset"]["split"] == "99,1,0"
assert config["tokenizer"]["tokenizer_model"] == 'a "b"' and config["tokenizer"]["vocab_size"] is None
assert config["checkpoint"]["save"] == config["checkpoint"]["load"] == "out put"
assert config["train"]["train_iters"] == 7 and config["optimizer"]["lr"] == 1e-4
END

# A version without one of the keys stops, and names it.
grep -v 'model\.tp_comm_overlap' "$table" >older.md
if TABLE=older.md "a \"folder\" of dense/launch.sh" >words 2>&1; then fail "a key that is not there"; fi
grep -q 'model.tp_comm_overlap: this Megatron Bridge has no such key' words || fail "$(cat words)"

# Slurm and Kubernetes carry all three files.
answers 0 launch dense.json --for nemo --scheduler slurm -o slurm
if command -v shellcheck >/dev/null; then shellcheck slurm/launch.sbatch; fi
for file in yaml py; do
    [ -s slurm/megatron_bridge.$file ] || fail "no megatron_bridge.$file"
done
answers 0 launch dense.json --for nemo --scheduler k8s -o k8s
python3 - <<'END'
import yaml
files = next(yaml.safe_load_all(open("k8s/launch.yaml")))["data"]
assert sorted(files) == ["launch.sh", "megatron_bridge.py", "megatron_bridge.yaml"], sorted(files)
compile(files["megatron_bridge.py"], "megatron_bridge.py", "exec")
assert yaml.safe_load(files["megatron_bridge.yaml"])["model"]["num_layers"] == 80
END
