#!/bin/sh
# torchtitan, DeepSpeed, the bundled runtime and Kubernetes: what is written parses, is good shell, keeps names
# with spaces and quotes, and starts a stand-in for the training program.
set -eu
. tests/support.sh
schema=$PWD/tests/launch/check_pytorchjob.py
cd "$temp"

cat >titan.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 8192, "global_batch": 64, "stack": "torchtitan"},
 "parallel": {"tp": 2, "pp": 2, "recompute": "selective"}}
END
for scheduler in torchrun slurm mpirun; do
    answers 0 launch titan.json --for torchtitan --scheduler $scheduler -o "out \"put\"" --force
done
if command -v shellcheck >/dev/null; then
    shellcheck "out \"put\""/launch.sh "out \"put\""/launch.sbatch "out \"put\""/launch-mpirun.sh
fi
python3 - <<'END'
import tomllib
config = tomllib.load(open('out "put"/torchtitan.toml', "rb"))
parts = config["parallelism"].pop("module_fqns_per_model_part")
assert parts[0][0] == "tok_embeddings" and parts[-1][-2:] == ["norm", "output"], parts
layers = [name for part in parts for name in part if name.startswith("layers.")]
assert layers == ["layers.%d" % i for i in range(32)], layers
assert config["parallelism"] == {
    "data_parallel_replicate_degree": 1, "data_parallel_shard_degree": 4,
    "fsdp_reshard_after_forward": "always", "tensor_parallel_degree": 2,
    "disable_loss_parallel": False, "enable_async_tensor_parallel": False,
    "pipeline_parallel_degree": 2, "pipeline_parallel_schedule": "1F1B",
    "pipeline_parallel_microbatch_size": 1, "context_parallel_degree": 1}, config["parallelism"]
assert config["training"]["local_batch_size"] == 16, config["training"]
END

# Stand-ins that print what they are given, one word a line.
mkdir bin
cat >bin/torchrun <<'END'
#!/bin/sh
printf '%s\n' "$@"
END
chmod +x bin/torchrun
export PATH="$temp/bin:$PATH" NODE_RANK=1 MASTER_ADDR=node0
OUTPUT_DIR="my out" DATASET_PATH='a "b"' "out \"put\"/launch.sh" >words
for word in -m torchtitan.train "my out" 'a "b"' "$temp/out \"put\"/torchtitan.toml"; do
    grep -qxF -- "$word" words || fail "not in the command: $word: $(cat words)"
done
cp "out \"put\"/launch.sh" alone.sh
if ./alone.sh >words 2>&1; then fail "a script without its configuration"; fi
grep -q "there is no torchtitan.toml in .*: set LAUNCH_DIR to its folder" words || fail "$(cat words)"

# Nothing is overwritten without --force, and then nothing at all is written.
sed 's/"tp": 2/"tp": 4/' titan.json >other.json
rm "out \"put\"/launch.sh"
refuses "out \"put\"/torchtitan.toml: is there already; --force overwrites it" \
    launch other.json --for torchtitan -o "out \"put\""
[ ! -e "out \"put\"/launch.sh" ] || fail "half of the files were written"
answers 0 launch titan.json --for torchtitan -o "out \"put\""
grep -q 'torchtitan.toml unchanged$' stdout || fail "$(cat stdout)"
answers 0 launch titan.json --for torchtitan --dry-run
grep -q '^# --- torchtitan.toml ---$' stdout || fail "--dry-run leaves out a file"

# DeepSpeed: its configuration is JSON and agrees with the command.
sed 's/"torchtitan"/"megatron-2021"/; s/, "recompute": "selective"//' titan.json >deepspeed.json
answers 0 launch deepspeed.json --for deepspeed -o "deep speed" --force
if command -v shellcheck >/dev/null; then shellcheck "deep speed/launch.sh"; fi
if "deep speed/launch.sh" >words 2>&1; then fail "Megatron-DeepSpeed without its folder"; fi
grep -q 'MEGATRON_DEEPSPEED_PATH: set it' words || fail "$(cat words)"
MEGATRON_DEEPSPEED_PATH=/opt/ds DATA_PATH="my data" TOKENIZER_MODEL=t "deep speed/launch.sh" >words
for word in --deepspeed_config "$temp/deep speed/ds_config.json" "my data" /opt/ds/pretrain_gpt.py; do
    grep -qxF -- "$word" words || fail "not in the command: $word: $(cat words)"
done
python3 - <<'END'
import json
config = json.load(open("deep speed/ds_config.json"))
assert config["train_batch_size"] == (4 * config["train_micro_batch_size_per_gpu"]
                                      * config["gradient_accumulation_steps"]) == 64, config
assert config["zero_optimization"]["stage"] == 1 and config["bf16"] == {"enabled": True}, config
END

# Kubernetes, also with a name that is none there.
cat >model.json <<'END'
{"name": "My model's \"v2\" $(touch hacked)\n---", "model_type": "llama",
 "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096,
 "tie_word_embeddings": false, "rope_theta": 500000.0}
END
cat >job.json <<'END'
{"schema": 1, "model": "./model.json", "cluster": "dgx-h100:2",
 "training": {"seq_len": 2048, "global_batch": 64, "precision": "bf16"}, "parallel": {"tp": 2}}
END
if python3 -c 'import yaml' 2>/dev/null; then
    answers 0 launch titan.json --for torchtitan --scheduler k8s -o k8s
    python3 "$schema" k8s/launch.yaml 2 8 nvidia.com/gpu launch.sh torchtitan.toml
    answers 0 launch job.json --scheduler k8s -o named
    python3 "$schema" named/launch.yaml 2 8 nvidia.com/gpu launch.sh
    sed 's/dgx-h100:2/hgx-mi300x:1/' job.json >amd.json
    answers 0 launch amd.json --scheduler k8s -o amd
    python3 "$schema" amd/launch.yaml 1 8 amd.com/gpu launch.sh
fi
sed 's/"tp": 2/"tp": 2, "placement": [1, 0]/' job.json >placed.json
refuses "placed.json: parallel.placement: a PyTorchJob does not say which node runs which pod: \
Kubernetes cannot place this plan as priced; nearest: no placement, or --scheduler slurm" \
    launch placed.json --scheduler k8s --dry-run

# What a scheduler cannot start.
sed 's/"torchtitan"/"runtime"/; s/, "recompute": "selective"//' titan.json >runtime.json
refuses "meshwright: launch --scheduler torchrun: starts Python under torchrun; the processes of \
the bundled runtime are MPI's own; nearest: --scheduler mpirun or slurm" \
    launch runtime.json --for runtime --dry-run
if [ -e hacked ]; then fail "a name was executed"; fi
