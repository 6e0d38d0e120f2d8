#!/bin/sh
# Adds a second example of what a user of this tree may want to add - a GPU of a datasheet, a
# stack, a pipeline schedule and a technique of a paper, a family of models, a launch target - to a
# copy of it, as docs/architecture.md says ("Where to add"), and sees that the commands find it.
# Counts the files that this takes.
#
# Usage: second_examples.sh PROGRAM [BUILD]: with a second argument also what is code, for which the
# copy is built (some minutes).
set -eu
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../..")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

fail() {
    echo "second_examples.sh: $*" >&2
    exit 1
}

# found WORDS FILE: the answer has them.
found() {
    grep -qF -- "$1" "$2" || fail "no \"$1\" in: $(cat "$2")"
}

# touched COUNT WHAT: so many files of the copy are not as they were.
touched() {
    num=$(diff -rq "$copy/before" "$copy/tree" | wc -l)
    echo "$2: $num files touched"
    [ "$num" -le "$1" ] || fail "more than $1"
}

mkdir "$copy/tree"
(cd "$root" && tar --exclude=./.git --exclude='./build*' -cf - .) | (cd "$copy/tree" && tar -xf -)
cd "$copy"
cp -r tree before
export MESHWRIGHT_DATA="$copy/tree"

# --- A GPU: one file
cp "$here/gpu.json" tree/hw-profiles/gpus/l4-24g.json
touched 1 "a GPU of a datasheet"

# --- A stack: what it is, and the rules of what it can run
sed 's/"name": "megatron-core"/"name": "house"/' tree/stacks/megatron-core.json >tree/stacks/house.json
cat >tree/stacks/rules/house.json <<'EOF'
{
    "schema": 1,
    "name": "house",
    "software": "the house's own",
    "launch": [],
    "sources": {"house": "house@1.0"},
    "rules": [
        {
            "id": "no-context-parallelism",
            "key": "parallel.cp",
            "holds": "cp == 1",
            "says": "{cp} ranks of context parallelism; it has none",
            "source": ["house", "split.py", "asserts cp == 1"],
            "breaks": {"parallel": {"cp": 2}},
            "obeys": {"parallel": {"cp": 1}}
        }
    ]
}
EOF
touched 3 "with a stack and its rules"

"$program" plan "$here/job.json" >answer 2>said || fail "plan: $(cat said)"
found "tinyllama-1.1b" answer
found "x l4-24g" answer
found "house" answer
sed 's/"stack": "house"}/"stack": "house"}, "parallel": {"cp": 2}/' "$here/job.json" >cp.json
"$program" plan cp.json >answer 2>said || fail "plan: $(cat said)"
found "none of which house can run" answer
"$program" plan --explain-rule cp=2 cp.json >answer 2>said && fail "its rule forbids cp 2"
found "rule house/no-context-parallelism" answer
"$program" estimate "$here/job.json" >answer 2>said || [ $? -eq 1 ] || fail "estimate: $(cat said)"
found "l4-24g" answer
[ $# -gt 1 ] || exit 0

# --- A schedule: one file, and one row
cp "$here/schedule_eager_1f1b.c.example" tree/plan/schedule/schedule_eager_1f1b.c
echo 'X(EAGER_1F1B, "eager-1f1b")' >>tree/config/job/schedules.def
# shellcheck disable=SC2016 # the page's own
sed -i 's/`breadth-first`; or `file:PATH`/`breadth-first`, `eager-1f1b`; or `file:PATH`/' \
    tree/docs/scenario.md
touched 6 "with a schedule, and its name in docs/scenario.md"

# --- A launch target: one file, one row, and its name in the rules of the stack that it starts
cp "$here/llmc_task.c.example" tree/launch/llmc_task.c
echo 'X(LLMC, "llm.c")' >>tree/launch/targets.def
sed -i 's/"launch": \[\]/"launch": ["llm.c"]/' tree/stacks/rules/llm.c.json
touched 9 "with a launch target, and its name in the stack's rules"

# --- A family of models: one file, and one row
cp "$here/stablelm.c.example" tree/config/model/family/stablelm.c
echo 'X(STABLELM)' >>tree/config/model/families.def
touched 11 "with a family of models"

# --- A technique: one file, and one row; here also a rule of a stack that lacks it
cp "$here/technique_domino.c.example" tree/workload/technique/technique_domino.c
sed -i 's/^TECHNIQUE(CAPACITY_FACTOR/TECHNIQUE_SWITCH(DOMINO, domino, OFF, KEPT, PLAYED)\n&/' \
    tree/config/software/techniques.def
# shellcheck disable=SC2016 # the page's own
sed -i 's/^| `compile`, `cross_entropy_fused`/| `domino` | bool | false | two halves of a micro-batch |\n&/' \
    tree/docs/scenario.md
sed -i 's/"rules": \[/&\n        {"id": "no-domino", "key": "training.domino", "holds": "not domino",\n        "says": "it has none", "source": ["house", "split.py", "says nothing of it"],\n        "breaks": {"training": {"domino": true}}, "obeys": {}},/' \
    tree/stacks/rules/house.json
touched 13 "with a technique, and its name in docs/scenario.md"
(
    cd tree
    sh tests/check_scenario_doc.sh || exit 1
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DWERROR=ON >/dev/null
    cmake --build build -- --quiet meshwright meshwright-sim
) || fail "the copy does not build"
built=$copy/tree/build/meshwright
sed 's/"stack": "house"/"stack": "house"}, "parallel": {"tp": 2, "pp": 4, "zero_stage": 0, "recompute": "full", "schedule": "eager-1f1b"/' \
    "$here/job.json" >eager.json
"$built" plan eager.json >answer 2>said || fail "plan: $(cat said)"
found "eager-1f1b" answer
"$built" estimate eager.json >answer 2>said || fail "estimate: $(cat said)"
found "eager-1f1b" answer
"$built" simulate eager.json >answer 2>said || fail "simulate: $(cat said)"
found "simulated" answer
sed 's/eager-1f1b/eager-1f1c/' eager.json >wrong.json
"$built" estimate wrong.json >answer 2>said && fail "a schedule of no row was taken"
found "eager-1f1b" said

# StableLM 2 1.6B: 1,644,515,328 weights.
printf '%s' '{"schema": 1, "model": {"model_type": "stablelm", "hidden_size": 2048, "num_hidden_layers": 24,
 "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 5632, "vocab_size": 100352,
 "use_qkv_bias": true, "partial_rotary_factor": 0.25}, "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 64}}' >stablelm.json
"$built" estimate stablelm.json >answer 2>said || [ $? -eq 1 ] || fail "estimate: $(cat said)"
found "stablelm (1.64 G parameters)" answer

# Sums over tp ranks of one half are hidden behind the other. All commands read the key, and a
# stack's rules may speak of it.
for domino in false true; do
    sed 's/"stack": "house"/"domino": '$domino', "stack": "house"}, "parallel": {"tp": 4, "micro_batch": 2, "zero_stage": 0, "schedule": "1f1b"/' \
        "$here/job.json" >domino.json
    "$built" estimate domino.json --json >$domino.estimate 2>said || fail "estimate: $(cat said)"
    [ $domino = false ] || found "training.domino: it has none" said
    "$built" simulate domino.json >answer 2>said || fail "simulate: $(cat said)"
    found "simulated" answer
done
tp_exposed() {
    sed -n 's/.*"tp_exposed"[^0-9]*\([0-9.e+-]*\).*/\1/p' "$1" | head -1
}
[ "$(tp_exposed true.estimate | cut -c1-1)" != "" ] || fail "no tp_exposed in: $(cat true.estimate)"
awk -v one="$(tp_exposed false.estimate)" -v two="$(tp_exposed true.estimate)" \
    'BEGIN { exit !(two > 0 && two < one) }' || fail "no collective is hidden"


"$built" launch --help >answer
found "runtime llm.c" answer
printf '%s' '{"schema": 1, "model": "gpt2-124m", "cluster": "dgx-a100-80g:1", "training": {"seq_len": 1024,
 "global_batch": 512, "stack": "llm.c"}}' >gpt2.json
"$built" plan gpt2.json -o gpt2 >answer 2>said || fail "plan of a new target's stack: $(cat said)"
found 'LLMC_PATH/train_gpt2cu' gpt2/launch-mpirun.sh
found '-e d12' gpt2/launch-mpirun.sh
bash -n gpt2/launch-mpirun.sh || fail "the script is none"
"$built" launch gpt2/plan.json --for llm.c --dry-run >answer 2>said && fail "torchrun starts no MPI"
found "the processes of karpathy/llm.c are MPI's own" said
