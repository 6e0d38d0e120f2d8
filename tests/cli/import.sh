#!/bin/sh
# import: real public configurations come back from launch flag for flag; what cannot be priced is
# refused by name; what the script hides is said.
set -eu
. tests/support.sh
configs=tests/launch/configs
same=tests/launch/same_flags.py
num_same=0

# round_trip FILE STACK LAUNCHED: imports, launches, and compares the flags.
round_trip() {
    options=$(sed -n 's/^# import: //p' "$1")
    [ -n "$options" ] || fail "$1: no options"
    # shellcheck disable=SC2086 # a list of words
    "$MESHWRIGHT" import --from "$2" "$1" $options -o "$temp/mine.json" >/dev/null \
        2>"$temp/notes" || fail "$1: $(cat "$temp/notes")"
    "$MESHWRIGHT" launch "$temp/mine.json" --for "$2" --force -o "$temp/out" >/dev/null \
        2>"$temp/stderr" || fail "$1: $(cat "$temp/stderr")"
    announced=$(python3 $same "$2" "$1" "$temp/out/$3" "$temp/notes") || fail "$1 is not given back"
    [ -n "$announced" ] || num_same=$((num_same + 1))
}

for file in "$configs"/*.txt; do round_trip "$file" megatron launch.sh; done
for file in "$configs"/titan-*.toml; do
    [ "$file" != "$configs/titan-deepseek-671b.toml" ] || continue
    round_trip "$file" torchtitan torchtitan.toml
done
echo "$num_same configurations come back flag for flag"
[ $num_same -ge 20 ] || fail "only $num_same configurations come back as they were"

# The comparison itself fails where a flag is another, is missing or is more.
round_trip "$configs/qwen3-235b-tp4.txt" megatron launch.sh
for change in 's/-parallel-size 4$/-parallel-size 2/' '/--qk-layernorm/d' \
    's/--swiglu/--swiglu --multi-latent-attention/' 's/--rotary-base 1000000/--rotary-base 10000/' \
    's/--num-virtual-stages-per-pipeline-rank 4/--num-virtual-stages-per-pipeline-rank 2/'; do
    sed "$change" "$temp/out/launch.sh" >"$temp/changed.sh"
    cmp -s "$temp/out/launch.sh" "$temp/changed.sh" && fail "nothing to change: $change"
    if python3 $same megatron "$configs/qwen3-235b-tp4.txt" "$temp/changed.sh" "$temp/notes" 2>/dev/null; then
        fail "no difference seen: $change"
    fi
done

# A loss that is compiled alone is newer than the version that launch writes.
answers 0 import --from torchtitan "$configs/titan-deepseek-671b.toml" --cluster dgx-h100:64 \
    -o "$temp/mine.json"
refuses "$temp/mine.json: training.cross_entropy_fused: a fused loss is a compiled one: torchtitan \
cannot run this plan as priced; nearest: compile true" launch "$temp/mine.json" --for torchtitan

cd "$temp"
# What a script may look like: variables, arrays, sums, comments, bash -c, conditions.
cat >script.sh <<'END'
#!/bin/bash
#SBATCH --nodes=2
export GPUS=8 NODES=${SLURM_NNODES:-2}
TP=4; PP=$((GPUS * NODES / (TP * 2)))
if [ -n "$DEBUG" ]; then
    TP=1
fi
cat <<NOTHING >config
--tensor-model-parallel-size 1
NOTHING
MODEL="--num-layers 8 --hidden-size 1024 \
       --num-attention-heads 8" # width 1024
ARGS=(
    $MODEL
    --seq-length 2048 # tokens
    --max-position-embeddings 2048 --position-embedding-type 'rope'
    --data-path "my data" --lr 1e-4 --no-such-flag 3
)
ARGS+=(--tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP})
DIST="--nproc_per_node $GPUS --nnodes $NODES"
srun bash -c "torchrun $DIST pretrain_gpt.py ${ARGS[*]} --micro-batch-size=2 \
    --bf16 --global-batch-size 64 --attention-dropout 0 --hidden-dropout 0 2>&1" | tee log
END
refuses "script.sh: --tensor-model-parallel-size: \$TP depends on line 5, which the file does not decide; give \
--set NAME=VALUE for what that line asks" import --from megatron script.sh --cluster dgx-h100
answers 0 import --from megatron script.sh --cluster dgx-h100 --set DEBUG=
python3 - stdout <<'END'
import json, sys
scenario = json.load(open(sys.argv[1]))
assert scenario["cluster"] == "dgx-h100:2", scenario
parallel, model = scenario["parallel"], scenario["model"]
assert [parallel[k] for k in ("tp", "pp", "dp", "micro_batch", "zero_stage")] == [4, 2, 2, 2, 0], parallel
assert [model[k] for k in ("num_hidden_layers", "hidden_size", "head_dim", "position")] == [8, 1024, 128, "rope"]
assert scenario["training"]["global_batch"] == 64 and scenario["training"]["seq_len"] == 2048
END
if grep -q 'not followed' stderr; then fail "$(cat stderr)"; fi
grep -q 'does not know what they change: --no-such-flag\.' stderr || fail "$(cat stderr)"
[ ! -e config ] || fail "the script was executed"
if grep -q 'starts 2 nodes' stderr; then fail "$(cat stderr)"; fi
answers 0 import --from megatron script.sh --cluster dgx-h100:4 --set DEBUG=
grep -q 'It starts 2 nodes, --cluster dgx-h100:4 has 4: taken as 32 GPUs\.' stderr || fail "$(cat stderr)"

# A block that sets nothing of the plan is said, and followed where it is decided.
sed 's/    TP=1/    LOG=1/' script.sh >harmless.sh
answers 0 import --from megatron harmless.sh --cluster dgx-h100
grep -q 'harmless.sh: 1 block of if, for, while or case, the first at line 5, was not followed' stderr ||
    fail "$(cat stderr)"
answers 0 import --from megatron script.sh --cluster dgx-h100 --set DEBUG=1
grep -q '"tp":[[:space:]]*1,' stdout || fail "$(cat stdout)"
cat >hidden.sh <<'END'
if [ -z "$SLURM_JOB_ID" ]; then
    exit 1
else
    torchrun pretrain_gpt.py --bf16
fi
END
refuses "hidden.sh: line 4 runs pretrain_gpt.py under a condition that the file does not decide; give --set \
NAME=VALUE for what it asks" import --from megatron hidden.sh --cluster dgx-h100:1
refuses 'meshwright: --set: "=4" is not NAME=VALUE' import --from megatron script.sh --set =4

# Flags that a script may or may not add: of the user's own they are left out, others are refused.
# shellcheck disable=SC2016 # a variable of the file
sed 's/    TP=1/    ARGS+=(--data-path x --wandb-project=y)/; s/^if/[ -f z ] \&\& ARGS="$ARGS --log-interval 9"\nif/' script.sh >own.sh
grep -q 'ARGS+=(--data-path' own.sh || fail "nothing changed"
answers 0 import --from megatron own.sh --cluster dgx-h100
grep -q '"tp":[[:space:]]*4,' stdout || fail "$(cat stdout)"
sed 's/    TP=1/    ARGS+=(--fp8-format hybrid)/' script.sh >maybe.sh
refuses "maybe.sh: --fp8-format: added or not as line 5 says, which the file does not decide; give --set NAME=VALUE for \
what that line asks" import --from megatron maybe.sh --cluster dgx-h100
answers 0 import --from megatron maybe.sh --cluster dgx-h100 --set DEBUG=

sed 's/    TP=1/    ARGS+=(--optimizer-cpu-offload)/' script.sh >maybe.sh
refuses "maybe.sh: --optimizer-cpu-offload: added or not as line 5 says, which the file does not decide; give --set \
NAME=VALUE for what that line asks" import --from megatron maybe.sh --cluster dgx-h100
# shellcheck disable=SC2016 # a variable of the file
sed 's/    TP=1/    DIST="$DIST --rdzv_id 1"/' script.sh >own.sh
answers 0 import --from megatron own.sh --cluster dgx-h100

# What a command says that may fail is not known; what a script sorts as texts is.
# shellcheck disable=SC2016 # a variable of the file
for line in 'grep -q H100 gpus.txt \&\& TP=8' '[ -f y ] || { TP=8; }'; do
    sed "s/^if .*/$line; &/; s/    TP=1/    LOG=1/" script.sh >guarded.sh
    grep -q 'TP=8' guarded.sh || fail "nothing changed: $line"
    refuses "guarded.sh: --tensor-model-parallel-size: \$TP depends on line 5, which the file does not decide; give \
--set NAME=VALUE for what that line asks" import --from megatron guarded.sh --cluster dgx-h100 --set DEBUG=
done
# shellcheck disable=SC2016 # a variable of the file
sed 's/^if .*/N=3; if [[ $N > 4 ]]; then/' script.sh >sorted.sh
answers 0 import --from megatron sorted.sh --cluster dgx-h100
grep -q '"tp":[[:space:]]*4,' stdout || fail "$(cat stdout)"
sed 's/    TP=1/    TP=1; exit 1/; /^fi/a TP=2' script.sh >ends.sh
answers 0 import --from megatron ends.sh --cluster dgx-h100
grep -q '"tp":[[:space:]]*2,' stdout || fail "$(cat stdout)"
sed '1a log() ( echo hi )' script.sh >log.sh
answers 0 import --from megatron log.sh --cluster dgx-h100 --set DEBUG=

# A setting that changes nothing is refused.
refuses "script.sh: --set DEBUGG: the file reads no variable of this name" \
    import --from megatron script.sh --cluster dgx-h100 --set DEBUG= --set DEBUGG=1
refuses "script.sh: line 4 sets TP whatever --set TP says; change that line" \
    import --from megatron script.sh --cluster dgx-h100 --set DEBUG= --set TP=8

# A script that is more than can be followed.
awk 'BEGIN { for (i = 0; i < 45; i++) print "if true; then"; print "pretrain.py"; for (i = 0; i < 45; i++) print "fi" }' >deep.sh
refuses "deep.sh: line 41: blocks or calls are nested too deep, or there are too many variables or functions, to follow \
them" import --from megatron deep.sh --cluster dgx-h100:1

# A script of many models, as they are written: functions, cases, defaults, arguments.
cat >models.sh <<'END'
#!/bin/bash
MODEL=${MODEL:-8b} FP8=${FP8:-0}
small() { LAYERS=8; HIDDEN=1024; HEADS=8; }
case "$MODEL" in
    8b) small; TP=2 ;;
    70b)
        LAYERS=16 HIDDEN=2048 HEADS=16
        TP=${TP:-4} ;;
    *) echo "unknown model $MODEL" >&2; exit 1 ;;
esac
while [ $# -gt 0 ]; do TP=$2; shift; done
ARGS=(--num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS --bf16)
if [[ $FP8 == 1 && $HIDDEN -gt 1024 ]]; then
    ARGS+=(--fp8-format hybrid --fp8-recipe tensorwise)
else
    [ "$FP8" = 1 ] && echo "too small for fp8"
fi
((TP > 1)) && ARGS+=(--sequence-parallel)
torchrun --nnodes 1 pretrain_gpt.py "${ARGS[@]}" --tensor-model-parallel-size $TP --vocab-size 32000 \
    --seq-length 2048 --max-position-embeddings 2048 --position-embedding-type rope \
    --micro-batch-size 1 --global-batch-size 64
END
# model_of TP LAYERS PRECISION SEQUENCE_PARALLEL SETTINGS...
model_of() {
    expected="$1 $2 $3 $4"
    shift 4
    answers 0 import --from megatron models.sh --cluster dgx-h100 "$@"
    got=$(python3 -c 'import json; s = json.load(open("stdout")); p = s["parallel"]
print(p["tp"], s["model"]["num_hidden_layers"], s["training"]["precision"], p["sequence_parallel"])')
    [ "$got" = "$expected" ] || fail "models.sh $*: $got, not $expected"
}
model_of 2 8 bf16 True
model_of 2 8 bf16 True --set FP8=1
model_of 4 16 fp8 True --set MODEL=70b --set FP8=1
model_of 1 16 bf16 False --set MODEL=70b --set TP=1

# What is wrong with my configuration? The search is free, and mine stands beside the best.
answers 0 import --from megatron script.sh --cluster dgx-h100 --set DEBUG= --search -o job.json
grep -q '^meshwright plan job.json --compare tp=4,pp=2,' stdout || fail "$(cat stdout)"
compare=$(sed 's/.*--compare //' stdout)
answers 0 plan job.json --top 1 --compare "$compare"
grep -q 'slower\|within the noise' stdout || fail "$(cat stdout)"

# Refusals.
small='--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 2048 --micro-batch-size 1 --bf16'
# said SENTENCE FLAGS...
said() {
    sentence=$1
    shift
    echo "$small $*" >line.txt
    refuses "line.txt: $sentence" import --from megatron line.txt --cluster dgx-h100:1
}
# shellcheck disable=SC2016 # a variable of the file
said '--num-layers: $N is not set in the file; expected a value, or a line that sets it' --num-layers '$N'
said '--pipeline-model-parallel-size: "two" is not a whole number from 1 to 2000000000' \
    --pipeline-model-parallel-size two
said '--tensor-model-parallel-size: tp 16 x pp 1 x cp 1 does not divide the 8 GPUs of --cluster' \
    --tensor-model-parallel-size 16
said '--optimizer-cpu-offload: an optimizer in host memory: not supported yet' --optimizer-cpu-offload
said "--vocab-size: missing, and the file does not say how many tokens HuggingFaceTokenizer has; give \
--vocab-size N" --tokenizer-type HuggingFaceTokenizer
said '--pipeline-model-parallel-layout: "Ettx|L" is not a layout of E, t, m, L and |' \
    --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '"Ettx|L"'
said '--num-layers: 8 do not divide over pp 1 x vpp 3' --num-virtual-stages-per-pipeline-rank 3
said '--num-virtual-stages-per-pipeline-rank: 2000000000 is more than the model'"'"'s 8 layers' \
    --pipeline-model-parallel-size 8 --num-virtual-stages-per-pipeline-rank 2000000000
echo "$small" >line.txt
refuses "line.txt: does not say on which machines it runs; give --cluster NAME:NODES (meshwright \
clusters lists names)" import --from megatron line.txt
refuses "line.txt: does not say on how many nodes it runs; give --cluster dgx-h100:NODES" \
    import --from megatron line.txt --cluster dgx-h100
refuses "meshwright: import: no --from given; expected megatron, nemo, deepspeed or torchtitan" import line.txt
echo 'echo nothing' >line.txt
refuses "line.txt: has no command of pretrain_gpt.py, nor one of flags alone" \
    import --from megatron line.txt --cluster dgx-h100:1
printf '[model]\nname = "llama3"\nflavor = ' >bad.toml
run_program import --from torchtitan bad.toml --cluster dgx-h100:1
[ $rc -eq 2 ] || fail "bad.toml: exit $rc"
grep -q '^bad.toml: line 3, column 10: ' stderr || fail "$(cat stderr)"
printf '[model]\nname = "llama3"\nflavor = "9B"\n' >bad.toml
refuses "bad.toml: model.flavor: llama3 9B is not known; expected one of llama3 8B, llama3 70B, llama3 405B, \
deepseek_v3 16B, deepseek_v3 236B, deepseek_v3 671B" import --from torchtitan bad.toml --cluster dgx-h100:1
# Graphs by the names of releases and of main.
graphs() { # FLAGS VALUE
    echo "pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 \
        --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16 $1" >graphs.sh
    answers 0 import --from megatron graphs.sh --cluster dgx-h100:1 -o graphs.json
    grep -q "\"cuda_graphs\":[^,]*\"$2\"" graphs.json || fail "$1: $(cat graphs.json)"
}
graphs "--cuda-graph-impl transformer_engine" layer
graphs "--cuda-graph-impl transformer_engine --cuda-graph-scope attn" attn
graphs "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router" attn,moe_router
graphs "--cuda-graph-impl transformer_engine --cuda-graph-modules attn,moe_router" attn,moe_router
graphs "--cuda-graph-impl local --cuda-graph-scope full_iteration" full
graphs "--cuda-graph-impl full_iteration" full
echo "$(cat graphs.sh) --cuda-graph-impl transformer_engine --cuda-graph-modules mlp" >mlp.sh
refuses "mlp.sh: --cuda-graph-modules: mlp of transformer_engine is not supported yet; expected full_iteration of local, \
or full, attn, moe_router or moe_preprocess of transformer_engine" import --from megatron mlp.sh --cluster dgx-h100:1
# Keys that nobody reads are said, and degrees among them refused.
cat >titan.toml <<'END'
model = {name = "llama3", flavor = "8B"}
training = {local_batch_size = 1, seq_len = 8192, steps = 10}
job = {dump_folder = "x"}
lora = {rank = 8, alpha = 0.0}
experimental = {enable_async_tensor_parallel = true, unset = ""}
END
answers 0 import --from torchtitan titan.toml --cluster dgx-h100:1
grep -q 'know what they change: experimental.enable_async_tensor_parallel, lora.alpha, lora.rank\.$' stderr ||
    fail "$(cat stderr)"
sed 's/, steps/, tensor_parallel_degree = 8, steps/' titan.toml >bad.toml
refuses 'bad.toml: training.tensor_parallel_degree: is not known; expected parallelism.tensor_parallel_degree' \
    import --from torchtitan bad.toml --cluster dgx-h100:1
echo 'parallelism = {tensor_paralel_degree = 8}' | cat titan.toml - >bad.toml
refuses 'bad.toml: parallelism.tensor_paralel_degree: is not known; expected a key of job_config.py' \
    import --from torchtitan bad.toml --cluster dgx-h100:1
# Files of very many names and words are read in seconds (they took a minute and 6 GB, or never ended).
soon() { # ARGUMENTS...: of import
    rc=0
    timeout 20 "$MESHWRIGHT" import "$@" --cluster dgx-h100:1 >stdout 2>stderr || rc=$?
    [ $rc -le 2 ] || fail "import $*: exit $rc"
}
many() { # NUMBER FORMAT: with numbers from 1 on
    seq "$1" | sed "s/.*/$2/"
}
{ cat titan.toml; echo '[x]'; many 60000 'k&=1'; } >many.toml
soon --from torchtitan many.toml
grep -q 'know what they change: .*, x.k10, .* and [0-9]* more\.$' stderr || fail "$(head -c 2000 stderr)"
flags="pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 \
--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16"
echo "$flags $(many 50000 '--x& 1' | tr '\n' ' ')" >many.sh
soon --from megatron many.sh
grep -q 'know what they change: --x1, --x2, .* and [0-9]* more\.$' stderr || fail "$(head -c 2000 stderr)"
echo "$flags --tensor-model-parallel-size 1 $(many 50000 "\$V&" | tr '\n' ' ')" >many.sh
soon --from megatron many.sh
echo "$flags --cuda-graph-impl transformer_engine --cuda-graph-modules $(many 90000 attn | tr '\n' ',')" >many.sh
soon --from megatron many.sh
{ printf '{"zero_optimization": {"stage": 1}'; many 50000 ', "k&": 1'; echo '}'; } >many.json
echo "$flags --deepspeed --deepspeed_config many.json --zero-stage 1" >many.sh
soon --from deepspeed many.sh
grep -q 'know what they change: k1, k2, .* and [0-9]* more\.$' stderr || fail "$(head -c 2000 stderr)"
nemo() { # LINE...: of model
    printf '%s\n' 'train: {global_batch_size: 8, micro_batch_size: 1}' 'mixed_precision: bf16_mixed' \
        'model:' '  num_layers: 2' '  hidden_size: 1024' '  num_attention_heads: 8' \
        '  ffn_hidden_size: 4096' '  seq_length: 1024' '  vocab_size: 32000' >many.yaml
    printf '  %s\n' "$@" >>many.yaml
    soon --from nemo many.yaml
}
nemo '_a: 1' "$(many 1900 '  k&: 1' | sed '1s/^ *//')"
grep -q 'know what they change: model.k1, model.k2, .* and [0-9]* more\.$' stderr || fail "$(head -c 2000 stderr)"
nemo 'recompute_granularity: selective' "recompute_modules: [$(many 60000 core_attn, | tr -d '\n')]"
nemo 'cuda_graph_impl: transformer_engine' "cuda_graph_scope: [$(many 60000 attn, | tr -d '\n')]"
nemo "pipeline_model_parallel_layout: [[$(many 60000 decoder, | tr -d '\n')]]"
# The input is not written over.
cp script.sh kept.sh
refuses "script.sh: is the file script.sh; expected another file to write" \
    import --from megatron script.sh --cluster dgx-h100 --set DEBUG= -o script.sh
cmp script.sh kept.sh
# A kept flag that somebody changed.
answers 0 import --from megatron script.sh --cluster dgx-h100 --set DEBUG= -o mine.json
sed 's/"--attention-dropout":[^,]*"0"/"--attention-dropout": "1; rm"/' mine.json >changed.json
cmp -s mine.json changed.json && fail "no dropout in $(cat mine.json)"
refuses "changed.json: provenance.imported.megatron.--attention-dropout: expected a number from 0 \
to less than 1" launch changed.json
