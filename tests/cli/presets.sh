#!/bin/sh
# What models and clusters show can be pasted into a scenario and means the same as the name.
set -eu
. tests/support.sh
cd "$temp"

# job MODEL CLUSTER, both as JSON
job() {
    cat <<END
{"schema": 1, "model": $1, "cluster": $2,
 "training": {"seq_len": 4096, "global_batch": 144, "precision": "bf16"}, "parallel": {"tp": 4}}
END
}

model=$("$MESHWRIGHT" models llama-3.1-8b --json)
for name in dgx-h100 gb200-nvl72 rtx4090-node hgx-mi300x; do
    cluster=$("$MESHWRIGHT" clusters "$name" --json)
    job '"llama-3.1-8b"' "\"$name:1\"" | "$MESHWRIGHT" estimate - --json >named.json || [ $? -eq 1 ]
    job "$model" "$cluster" | "$MESHWRIGHT" estimate - --json >pasted.json || [ $? -eq 1 ]
    grep -q step_time_s named.json || fail "$name: no estimate"
    cmp named.json pasted.json || fail "$name: the pasted object means something else"
done
"$MESHWRIGHT" clusters dgx-h100 | grep -q '"num_gpus"' || fail "no object after the table"
"$MESHWRIGHT" clusters --help | grep -q 'clusters dgx-h100 --json' || fail "not in the help"

# What the default software cannot train is planned for another, which is said first; where no
# launch file can be written, none is claimed.
cat >job.json <<END
{"schema": 1, "model": "gemma-2-2b", "cluster": "dgx-h100:1",
 "training": {"seq_len": 4096, "global_batch": 16, "precision": "bf16"}}
END
"$MESHWRIGHT" plan job.json -o out >stdout 2>stderr
head -n 1 stdout | grep -q "^megatron-core cannot run gemma-2-2b: Megatron-LM's GPT lacks norms after .* (rule megatron-core/norms-after: NVIDIA/Megatron-LM@.*). Planned for pytorch-fsdp, which can; no launch files for this model; training.stack chooses another.$" ||
    fail "$(head -n 1 stdout)"
grep -q "no launch files: nothing here starts pytorch-fsdp" stderr || fail "$(cat stderr)"
grep -q 'out/plan.json; its trace and this report are beside it' stdout || fail "$(tail -n 1 stdout)"
[ ! -e out/launch.sh ] || fail "a launch file"
[ -e out/plan.json ] || fail "no plan.json"

# Nothing of a tensor-parallel plan crosses the simulated network.
[ -x "$MESHWRIGHT_SIM" ] || exit 0
job '"llama-3.1-8b"' '"dgx-h100:1"' | sed 's/"tp": 4/"tp": 8/' >tp.json
"$MESHWRIGHT" simulate tp.json | tr -s ' \n' ' ' |
    grep -q "none: nothing of this plan's traffic crosses the simulated network" ||
    fail "$("$MESHWRIGHT" simulate tp.json)"
"$MESHWRIGHT" simulate tp.json --json | grep -q '"network_used":.*false' || fail "JSON of simulate"
