#!/bin/sh
# A training that is saved and gone on with is the same to the last bit, and with another plan to
# rounding; a checkpoint that is damaged, truncated or of another model is refused, of other data it
# is gone on with in so many words, and the one before stays when saving fails.
# Usage: checkpoint.sh RUN
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
run=$1
mpirun --version >/dev/null 2>&1 || exit 77
export OPENBLAS_NUM_THREADS=1
page=$PWD/docs/simulation.md
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

kind='"model_type": "llama"' tied=false optimizer=adam

# Writes plan.json: members of `parallel`, ranks, hidden size.
plan() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", $kind, "hidden_size": ${3:-32},
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
  "intermediate_size": 48, "vocab_size": 260, "max_position_embeddings": 16,
  "tie_word_embeddings": $tied},
 "cluster": $(cluster "$2"),
 "training": {"seq_len": 16, "global_batch": 8, "precision": "fp64", "optimizer": "$optimizer",
  "stack": "runtime"},
 "parallel": {$1}}
END
}

fail() {
    echo "checkpoint.sh: $*" >&2
    exit 1
}

# Loss and norm of each line, with as many digits as the second argument says.
values() {
    sed 's/.*"loss": \([^,]*\), "gradient_norm": \([^,]*\),.*/\1 \2/' "$1" |
        awk -v digits="$2" '{ printf "%.*e %.*e\n", digits, $1, digits, $2 }'
}

refused() {
    code=0
    sentence=$1
    shift
    "$run" plan.json --steps 1 --resume saved "$@" >out 2>err || code=$?
    [ "$code" -eq 2 ] || fail "$sentence: exit $code, expected 2"
    grep -q "$sentence" err || fail "expected \"$sentence\", got: $(cat err)"
}

plan '"micro_batch": 1' 1
"$run" plan.json --steps 6 --log whole >/dev/null
"$run" plan.json --steps 3 --save saved >/dev/null
"$run" plan.json --steps 3 --resume saved --log rest >/dev/null
tail -n 3 whole >expected
[ "$(values expected 16)" = "$(values rest 16)" ] || fail "what is gone on with differs"

[ "$(wc -l <rest)" -eq 3 ] || fail "not a line a step"
rm rest
plan '"tp": 2, "pp": 2, "micro_batch": 1' 4
mpirun --allow-run-as-root --oversubscribe -n 4 "$run" plan.json --steps 3 --resume saved \
    --log rest >/dev/null
[ "$(values expected 10)" = "$(values rest 10)" ] || fail "with tp 2 and pp 2 it differs"

plan '"dp": 2, "zero_stage": 3, "micro_batch": 1' 2
mpirun --allow-run-as-root --oversubscribe -n 2 "$run" plan.json --steps 3 --save sharded \
    >/dev/null
rm rest
plan '"micro_batch": 1' 1
"$run" plan.json --steps 3 --resume sharded --log rest >/dev/null
[ "$(values expected 10)" = "$(values rest 10)" ] || fail "from ZeRO-3 it differs"

"$run" plan.json --steps 1 --resume sharded --save sharded/ --log rest >/dev/null
[ "$(wc -l <rest)" -eq 4 ] || fail "a log does not go on behind what is there"
if [ -e sharded.new ] || [ -e sharded.replaced ]; then fail "saving over a checkpoint leaves folders"; fi
mkdir notes
if "$run" plan.json --steps 1 --save notes >/dev/null 2>err; then fail "saved over a folder"; fi
grep -q 'notes: is there already and no checkpoint' err || fail "$(cat err)"

mkdir saved.new saved.new/in-the-way
if "$run" plan.json --steps 1 --save saved >/dev/null 2>&1; then fail "saved over a folder"; fi
rm -r saved.new
"$run" plan.json --steps 1 --resume saved >/dev/null || fail "the one before is lost"

# Experts from the ranks of one split to those of others.
kind='"model_type": "mixtral", "num_local_experts": 4'
rm -f whole
plan '"micro_batch": 1' 1
"$run" plan.json --steps 4 --log whole >/dev/null
tail -n 2 whole >expected
plan '"tp": 2, "dp": 2, "ep": 2, "etp": 2, "zero_stage": 1, "micro_batch": 1' 4
mpirun --allow-run-as-root --oversubscribe -n 4 "$run" plan.json --steps 2 --save experts >/dev/null
for split in '"pp": 2, "dp": 2, "ep": 2, "zero_stage": 0' '"dp": 4, "ep": 2, "zero_stage": 3'; do
    rm -f rest
    plan "$split, \"micro_batch\": 1" 4
    mpirun --allow-run-as-root --oversubscribe -n 4 "$run" plan.json --steps 2 --resume experts \
        --log rest >/dev/null
    [ "$(values expected 10)" = "$(values rest 10)" ] || fail "experts with $split differ"
done

# SGD has its momentum to save, and nothing else; of a tied matrix one holder's is saved.
kind='"model_type": "llama"' tied=true optimizer=sgd
rm -f whole rest
plan '"micro_batch": 1' 1
"$run" plan.json --steps 6 --learning-rate 0.1 --log whole >/dev/null
tail -n 3 whole >expected
"$run" plan.json --steps 3 --learning-rate 0.1 --save sgd >/dev/null
[ ! -e sgd/variance.f64 ] || fail "SGD saves a variance"
"$run" plan.json --steps 3 --learning-rate 0.1 --resume sgd --log rest >/dev/null
[ "$(values expected 16)" = "$(values rest 16)" ] || fail "SGD that is gone on with differs"
rm rest
plan '"pp": 2, "dp": 2, "zero_stage": 3, "schedule": "zb-h1", "micro_batch": 1' 4
mpirun --allow-run-as-root --oversubscribe -n 4 "$run" plan.json --steps 1 --learning-rate 0.1 \
    --resume sgd --save sgd-sharded --log rest >/dev/null
plan '"micro_batch": 1' 1
"$run" plan.json --steps 2 --learning-rate 0.1 --resume sgd-sharded --log rest >/dev/null
[ "$(values expected 10)" = "$(values rest 10)" ] || fail "SGD over a pipeline with ZeRO-3 differs"
optimizer=adam
plan '"micro_batch": 1' 1
code=0
"$run" plan.json --steps 1 --resume sgd >out 2>err || code=$?
[ "$code" -eq 2 ] || fail "SGD's momentum for AdamW: exit $code, expected 2"
grep -q '2 files, expected 3: it is of another optimizer' err || fail "$(cat err)"
tied=false
plan '"micro_batch": 1' 1

# The same plan over four processes is the same run, to the last bit of each gradient, weight and moment.
four() {
    mpirun --allow-run-as-root --oversubscribe -n 4 "$run" plan.json "$@" >out 2>err ||
        fail "$*: $(cat err)"
}
goes_on() {
    claim="$*"
    rm -rf at-once in-two first
    mkdir at-once in-two
    four --steps 5 "$@" --dump at-once --save at-once/saved
    four --steps 3 "$@" --save first
    four --steps 2 "$@" --resume first --dump in-two --save in-two/saved
    for file in gradients-4 gradients-5 weights-4 weights-5; do
        cmp at-once/$file.f64 in-two/$file.f64 || fail "$claim: $file differs"
    done
    diff -r at-once/saved in-two/saved || fail "$claim: what is saved differs"
}
plan '"dp": 2, "pp": 2, "zero_stage": 1, "micro_batch": 1' 4
goes_on --dtype fp64
plan '"dp": 2, "tp": 2, "zero_stage": 3, "micro_batch": 1' 4
goes_on --dtype fp32 --data "$page"
plan '"micro_batch": 1' 1

# Damage: of each file a bit in the middle, a half that is missing, a byte that is, all of it.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # an octal escape
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
refused_with() {
    refused "$@"
    grep -qx "$1" err || fail "expected no more than \"$1\", got: $(cat err)"
}
head_ends='saved/checkpoint.json: does not end with its checksum: the checkpoint is truncated or damaged, or of an older meshwright-run, which wrote none'
number=0
for file in masters.f64 moment.f64 variance.f64 checkpoint.json; do
    number=$((number + 1))
    sum=$(grep -o '"[0-9a-f]\{16\}"' saved/checkpoint.json | sed -n "${number}s/\"//gp")
    size=$(wc -c <saved/$file)
    cp saved/$file kept
    flip saved/$file $((size / 2))
    refused_with "saved/$file: its checksum is [0-9a-f]\{16\}, expected $sum: the checkpoint is damaged"
    for left in $((size / 2)) $((size - 1)) 0; do
        head -c $left kept >saved/$file
        sentence="saved/$file: $left bytes, expected $size: the checkpoint is truncated or of another model"
        [ $file != checkpoint.json ] || sentence=$head_ends
        refused_with "$sentence"
    done
    rm saved/$file
    sentence="saved/$file: No such file or directory"
    [ $file != checkpoint.json ] ||
        sentence="saved/checkpoint.json: cannot be read: No such file or directory"
    refused_with "$sentence"
    cp kept saved/$file
done
# Blanks count; a checkpoint from before there was the checksum is refused as one that has lost it.
sed 's/^\t"step":\t/\t"step": /' kept >saved/checkpoint.json
refused_with "saved/checkpoint.json: its checksum is [0-9a-f]\{16\}, expected $sum: the checkpoint is damaged"
sed '/"checksum":/d; /"checksums":/s/,$//' kept >saved/checkpoint.json
refused_with "$head_ends"
# Two processes refuse it in one voice; it is not replaced by another either.
flip saved/checkpoint.json 100
plan '"dp": 2, "micro_batch": 1' 2
code=0
mpirun --allow-run-as-root --oversubscribe -n 2 "$run" plan.json --steps 1 --resume saved >out 2>err ||
    code=$?
[ "$code" -eq 2 ] || fail "two processes: exit $code, expected 2"
[ "$(grep -cx "$head_ends" err)" -eq 1 ] || fail "two processes: $(cat err)"
plan '"micro_batch": 1' 1
code=0
"$run" plan.json --steps 1 --save saved >out 2>err || code=$?
[ "$code" -eq 2 ] || fail "a damaged checkpoint is replaced: exit $code"
grep -qx "$head_ends" err || fail "$(cat err)"
cp kept saved/checkpoint.json
"$run" plan.json --steps 1 --resume saved >out 2>err || fail "whole again: $(cat err)"

# Other data is said, in one line, and no reason to stop; a text of another name is the same text.
said() {
    sentence=$1
    shift
    "$run" plan.json --steps 1 "$@" >out 2>err || fail "other data: $(cat err)"
    [ "$(cat err)" = "$sentence" ] || fail "expected \"$sentence\", got: $(cat err)"
}
head -c 1000 "$page" >text
head -c 999 "$page" >other
cp text copy
said '' --data text --save read
said '' --data text --resume read
said '' --data copy --resume read
sum() {
    sed -n "/$1/,/\"checksum\"/s/.*\"checksum\":.*\"\(.*\)\".*/\1/p" "$2" | head -n 1
}
said '' --data other --save read-other
a="text (1000 bytes, checksum $(sum '"data"' read/checkpoint.json))"
b="other (999 bytes, checksum $(sum '"data"' read-other/checkpoint.json))"
said "read: was trained on $a; goes on with $b" --data other --resume read
said "read: was trained on $a; goes on with made-up tokens" --resume read
said "saved: was trained on made-up tokens; goes on with $a" --data text --resume saved
# So is a step of other sequences.
cp plan.json same.json
sed 's/"global_batch": [0-9]*/"global_batch": 2/' same.json >plan.json
before=$(sed -n 's/.*"global_batch": \([0-9]*\).*/\1/p' same.json)
length=$(sed -n 's/.*"seq_len": \([0-9]*\).*/\1/p' same.json)
said "read: was trained with $before sequences of $length a step; goes on with 2 of $length" \
    --data text --resume read
mv same.json plan.json

plan '"micro_batch": 1' 1 64
refused 'architecture.hidden_size: 32; a checkpoint of small, the plan.s small has 64'
# As many weights, which compute something else.
kind='"model_type": "llama", "rope_theta": 500000'
plan '"micro_batch": 1' 1
refused 'architecture.rope_theta: 10000; a checkpoint of small, the plan.s small has 500000'
kind='"model_type": "llama", "hidden_act": "gelu"'
plan '"micro_batch": 1' 1
refused 'architecture.activation: .*; a checkpoint of small'
kind='"model_type": "llama"'
plan '"micro_batch": 1' 1
sed -i 's/"seq_len"/"causal": false, "seq_len"/' plan.json
refused 'architecture.causal: 1; a checkpoint of small, the plan.s small has 0'
plan '"micro_batch": 1' 1
refused 'seed: 1; this run has 7, and would read other data' --seed 7
plan '"micro_batch": 1' 1
code=0
"$run" plan.json --steps 9 --learning-rate 1e300 >out 2>err || code=$?
[ "$code" -eq 1 ] || fail "a training that diverges: exit $code"
grep -q '^step 2: loss [0-9.]*, gradient norm nan: the training has diverged$' err || fail "a training that diverges: $(cat err)"
