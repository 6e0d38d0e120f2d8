#!/bin/sh
# What people write: YAML, comments, units, other software's names, a model without a scenario;
# what is most likely a slip is said on standard error and in the answer, and changes nothing else.
set -eu
. tests/support.sh
cd "$temp"

cat >job.json <<'END'
{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2",
 "training": {"seq_len": 8192, "global_batch": 64, "precision": "bf16", "optimizer": "adam"},
 "parallel": {"tp": 4, "cp": 2, "cp_method": "ulysses", "schedule": "1f1b"}}
END
answers 0 estimate job.json --json
cp stdout plain.out

# --- The same job, in other words: the same answer to the byte.
same() {
    answers 0 estimate "$@" --json
    cmp -s stdout plain.out || fail "$*: another answer"
}
cat >commented.json <<'END'
// Our job
{"schema": 1, /* the only one */ "model": "Llama-3.1-8B", "cluster": "DGX-H100:2",
 "training": {"seq_len": "8Ki", "global_batch": "64", "precision": "torch.bfloat16",
              "optimizer": "AdamW", "stack": "mcore", "attention": "flash_attention_2",},
 "parallel": {"tp": 4, "cp": 2, "cp_method": "a2a", "schedule": "1F1B", "vpp": null},}
END
same commented.json
cat >job.yaml <<'END'
# Our job
schema: 1
model: llama-3.1-8b
cluster: dgx-h100:2
training: &t
  seq_len: 8Ki
  global_batch: 64
  precision: bfloat16
  optimizer: adamw
parallel: {tp: 4, cp: 2, cp_method: a2a, schedule: 1f1b}
END
same job.yaml
cp job.yaml job.yml
same job.yml
# Standard input has no name: it is YAML where it begins so.
for file in job.json job.yaml commented.json; do
    "$MESHWRIGHT" estimate - --json <$file | cmp -s - plain.out || fail "$file on standard input"
done
answers 0 plan job.yaml --top 1 -o out
answers 0 estimate out/plan.json

# --- A cluster with units is the same as one in SI units.
cluster='{"schema": 1, "model": "llama-3.1-8b", "training": {"seq_len": 4096, "global_batch": 64},
 "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 16, "gpus_per_node": 8,
  "scale_up": {"link": "nvlink4"}, "scale_out": {"nics_per_node": 8, "nic_bytes_per_s": RATE},
  "price_usd_per_gpu_hour": PRICE}}'
echo "$cluster" | sed 's/RATE/50e9/; s/PRICE/2.5/' >si.json
# shellcheck disable=SC2016 # a price in dollars
echo "$cluster" | sed 's|RATE|"400Gb/s"|; s/PRICE/"$2.5"/' >units.json
answers 0 estimate si.json --json
cp stdout si.out
answers 0 estimate units.json --json
cmp -s stdout si.out || fail "units change the answer"
refuses 'meshwright: --max-memory: "70Gb": bytes, or bits? write 70GB for bytes, 8.75GB for bits' \
    plan job.json --max-memory 70Gb
refuses 'meshwright: --max-memory: "70G": 70GB (powers of 1000) or 70GiB (powers of 1024)? write which' \
    plan job.json --max-memory 70G
refuses 'meshwright: --days: "60dd": unknown unit "dd"; expected ns, us, ms, s, min, h, d or weeks' \
    whatif job.json --tokens 15T --days 60dd
answers 0 plan job.json --max-memory 70GB --json
sed '/"timing"/,$d' stdout >units.out
answers 0 plan job.json --max-memory 70e9 --json
sed '/"timing"/,$d' stdout | cmp -s - units.out || fail "70GB is not 70e9"

# --- A model instead of a scenario.
mkdir -p hub/model
printf '%s' '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
 "intermediate_size": 14336, "vocab_size": 128256, "time_step_limit": [0.0, Infinity],
 "max_position_embeddings": 131072}' >hub/model/config.json
for model in hub/model/config.json hub/model llama-3.1-8b; do
    answers 0 estimate $model --cluster dgx-h100:2 --seq-len 4Ki --batch 64 --json
    mv stdout "$(basename $model).out"
done
cmp config.json.out model.out
cmp config.json.out llama-3.1-8b.out
refuses 'hub/model/config.json: this is a Hugging Face config.json, no scenario: add --seq-len TOKENS and --batch SEQUENCES, or name it under "model" of a scenario' \
    plan hub/model/config.json --cluster dgx-h100:2
refuses "llama-3.1-8b: this is a model's name, no scenario: add --cluster PRESET:NODES, --seq-len TOKENS and --batch SEQUENCES, or name it under \"model\" of a scenario" \
    plan llama-3.1-8b
refuses 'job.json: this is a scenario, which says all of its job: --batch goes with a model (whatif --vary changes a scenario)' \
    plan job.json --batch 8
refuses 'hub/model/config.json: this is a Hugging Face config.json, no scenario: put its path under "model" of a scenario' \
    launch hub/model/config.json
refuses 'meshwright: --batch: "1M": 1000000 or 1048576? write the number, or 1Mi for the latter' \
    plan llama-3.1-8b --batch 1M
answers 0 plan hub/model --cluster dgx-h100:1 --seq-len 4096 --batch 8 --precision bfloat16 \
    --stack megatron --top 1 -o from-model
grep -q '"hidden_size"' from-model/plan.json || fail "the plan does not hold its model"
! grep -q Infinity from-model/plan.json || fail "the plan holds a word that is no JSON"
answers 0 estimate from-model/plan.json
answers 0 whatif hub/model --cluster dgx-h100:1 --seq-len 4096 --batch 8 --vary training.global_batch=8,16 --replan

# --- Slips that are legal: said, priced, and in the answer.
warns() {
    file=$1
    sentence=$2
    answers 0 estimate "$file" --json
    [ "$(cat stderr)" = "$sentence" ] || fail "$file: $(cat stderr)"
    python3 - "$sentence" stdout <<'END' || fail "$file: no warning in the answer"
import json, sys
sys.exit(json.load(open(sys.argv[2]))["warnings"] != [sys.argv[1]])
END
}
sed 's/"global_batch": 64/"global_batch": 4194304/; s/"parallel"/"disturb": [], "parallel"/' job.json >batch.json
warns batch.json 'batch.json: training.global_batch: 4194304 counts sequences, of 8192 tokens each: 3.44e+10 tokens a step, more than any published run. Is this tokens? Then write 512'
sed 's/num_key_value_heads/num_key_value_head/' hub/model/config.json >typo.json
sed 's/"llama-3.1-8b"/"typo.json"/; s/"tp": 4/"tp": 8/; s/"cp": 2, //; s/"cp_method": "ulysses", //' job.json >typed.json
warns typed.json 'typo.json: num_key_value_head: not read, and "num_key_value_heads" is missing; is that meant?'
answers 0 estimate job.json --json
[ ! -s stderr ] || fail "a job without slips: $(cat stderr)"
! grep -q warnings stdout || fail "warnings without a slip"

# --- help COMMAND
answers 0 plan --help
cp stdout help.out
answers 0 help plan
cmp -s stdout help.out || fail "help plan is not plan --help"
refuses 'meshwright: unknown command "plon"; the nearest is plan' help plon

# --- At 80 columns: every line fits, and what has no column stands below its plan.
COLUMNS=80 "$MESHWRIGHT" plan job.json >narrow
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' narrow || fail "wider than 80 columns"
for what in '80 % interval' 'tokens/s' 'MFU' 'memory' 'USD/1e9'; do
    [ "$(grep -c "$what [0-9]" narrow)" -ge 1 ] || grep -q "^#.*$what" narrow || fail "no $what at 80 columns"
done

# --- The job's name is that of the job, its log and its report; odd characters do no harm.
sed 's/"schema": 1/"schema": 1, "name": "our run;\\u001b[2J"/' job.json >named.json
answers 0 launch named.json --scheduler slurm -o named
grep -qxF '#SBATCH --job-name=our_run___2J' named/launch.sbatch || fail "$(grep job-name named/launch.sbatch)"
answers 0 estimate named.json
head -n 1 stdout | grep -qF 'our run;\u001b[2J: llama-3.1-8b (' || fail "$(head -n 1 stdout)"

# --- Keys by the names that other software has for them: told what they are called here, and where.
b='{"schema": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100:2", "training": {"seq_len": 4096, "global_batch": 64'
key() { # TEXT SENTENCE
    echo "$b$1" >key.json
    refuses "key.json: $2" estimate key.json
}
key ', "batch_size": 64}}' 'training.batch_size: unknown key; here it is called "global_batch"'
key ', "micro_batch_size": 1}}' 'training.micro_batch_size: unknown key; it stands at "parallel.micro_batch"'
key '}, "parallel": {"TP": 2}}' 'parallel.TP: unknown key; here it is called "tp"'
key '}, "tp": 2}' 'tp: unknown key; it stands at "parallel.tp"'
key '}, "prices": {"H100": 2}}' 'prices.H100: unknown GPU; the nearest known one is "h100-pcie-80g"; expected names as in meshwright clusters, or "source"'
