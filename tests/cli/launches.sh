#!/bin/sh
# Launch files are good shell, hand pretrain_gpt.py exactly the flags of the plan, and survive
# names with spaces and quotes.
set -eu
. tests/support.sh
cd "$temp"

cat >model.json <<'END'
{"name": "my model's \"v2\" $(touch hacked) `touch hacked`\n#SBATCH --nodes=999", "model_type": "llama",
 "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096,
 "tie_word_embeddings": false, "rope_theta": 500000.0}
END
cat >job.json <<'END'
{"schema": 1, "model": "./model.json", "cluster": "dgx-h100:2",
 "training": {"seq_len": 2048, "global_batch": 64, "precision": "bf16"},
 "parallel": {"tp": 2, "pp": 2, "vpp": 2, "recompute": "full"}}
END
"$MESHWRIGHT" launch job.json -o "out put" >/dev/null
"$MESHWRIGHT" launch job.json -o "out put" --scheduler slurm >/dev/null
bash -n "out put/launch.sh"
bash -n "out put/launch.sbatch"
if command -v shellcheck >/dev/null; then
    shellcheck "out put/launch.sh" "out put/launch.sbatch"
fi
[ -x "out put/launch.sh" ] || fail "launch.sh cannot be run"

# Stand-ins that print what they are given, one word a line.
mkdir bin
cat >bin/torchrun <<'END'
#!/bin/sh
printf '%s\n' "$@"
END
# Names one by one, and more than a pipe holds: who reads the first alone must not end it.
cat >bin/scontrol <<'END'
#!/bin/sh
i=0
while [ $i -lt 10000 ]; do
    echo node$i
    i=$((i + 1))
done
END
cat >bin/srun <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_NODEID=1 exec "$@"
END
chmod +x bin/*
export PATH="$temp/bin:$PATH" MEGATRON_PATH="/opt/my megatron"

if "out put/launch.sh" >words 2>&1; then fail "launch.sh without NODE_RANK"; fi
grep -q "NODE_RANK: set it to the number of this node" words || fail "$(cat words)"
export NODE_RANK=0 MASTER_ADDR=node0
"out put/launch.sh" >words

# expect WORD...: the words stand there in this order.
expect() {
    joined=$(tr '\n' '|' <words)
    wanted=$(printf '%s|' "$@")
    case "|$joined" in
    *"|$wanted"*) ;;
    *) fail "not in the command: $*: $joined" ;;
    esac
}
expect --nnodes 2 --nproc-per-node 8 --node-rank 0 --master-addr node0
expect "/opt/my megatron/pretrain_gpt.py" --num-layers 8
expect --rotary-base 500000
expect --tensor-model-parallel-size 2
expect --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2
expect --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
expect --micro-batch-size 1 --global-batch-size 64
expect --mock-data --tokenizer-type NullTokenizer --vocab-size 31999

# With data and checkpoints of the user's.
if DATA_PATH="my data" "out put/launch.sh" >words 2>&1; then fail "data without a tokenizer"; fi
DATA_PATH="my data" TOKENIZER_MODEL="a b" CHECKPOINT_PATH="c d" "out put/launch.sh" >words
expect --data-path "my data" --split 99,1,0 --tokenizer-type HuggingFaceTokenizer \
    --tokenizer-model "a b"
expect --save "c d" --load "c d" --save-interval 500
! grep -q -- --mock-data words || fail "mock data beside data"

# Stages that alternate.
sed 's/"vpp": 2/"order": "tp-cp-ep-pp-dp"/' job.json >alternate.json
"$MESHWRIGHT" launch alternate.json -o alternate >/dev/null
alternate/launch.sh >words
expect --pipeline-model-parallel-size 2
expect --use-tp-pp-dp-mapping

# Slurm: what sbatch reads, and the same command.
grep -q '^#SBATCH --nodes=2$' "out put/launch.sbatch" || fail "nodes"
grep -q '^srun .*--cpu-bind=none' "out put/launch.sbatch" || fail "all ranks on one core"
grep -q '^#SBATCH --gpus-per-node=8$' "out put/launch.sbatch" || fail "gpus per node"
[ "$(grep -c '^#SBATCH' "out put/launch.sbatch")" -eq 6 ] || fail "a name became a line of sbatch"
export SLURM_JOB_NODELIST="node[0-1]" SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2
unset NODE_RANK MASTER_ADDR
bash "out put/launch.sbatch" >words
expect --nnodes 2 --nproc-per-node 8 --node-rank 1 --master-addr node0 --master-port 20007
expect "/opt/my megatron/pretrain_gpt.py" --num-layers 8
if SLURM_JOB_NUM_NODES=3 bash "out put/launch.sbatch" >words 2>&1; then fail "3 nodes for 2"; fi
if [ -e hacked ] || [ -e "out put/hacked" ]; then fail "a name was executed"; fi

# A preset and its Hugging Face file give the same script.
cat >config.json <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
 "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "vocab_size": 128256, "max_position_embeddings": 131072,
 "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192, "rope_type": "llama3"},
 "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false, "tie_word_embeddings": false}
END
for model in ./config.json llama-3.1-8b; do
    cat >job.json <<END
{"schema": 1, "model": "$model", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 16, "precision": "bf16"}, "parallel": {"tp": 8}}
END
    "$MESHWRIGHT" launch job.json --dry-run | sed -e '1,/^# For NVIDIA/d' -e '/^# Answer /d' >"script of $(basename $model)"
done
diff "script of config.json" "script of llama-3.1-8b" || fail "preset and config.json differ"

# AMD GPUs need another Megatron-LM.
sed 's/dgx-h100:1/hgx-mi300x:1/' job.json >amd.json
"$MESHWRIGHT" launch amd.json --dry-run | grep -q 'ROCm' || fail "nothing about ROCm"

# Sliding windows and attention sinks.
sed 's/"llama-3.1-8b"/"gpt-oss-20b"/; s/"tp": 8/"ep": 8/' job.json >window.json
"$MESHWRIGHT" launch window.json --dry-run >window.sh
bash -n window.sh
if command -v shellcheck >/dev/null; then shellcheck window.sh; fi
grep -q -- "--window-size '127,0'" window.sh || fail "no window"
