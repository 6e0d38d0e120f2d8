#!/bin/sh
# What the runtime does not run, of experts above all, is refused in words before anything starts.
# Usage: refused.sh RUN
set -eu
# shellcheck source=tests/runtime/cluster.sh
. "${0%/*}/cluster.sh"
run=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"
mixtral='"model_type": "mixtral", "num_local_experts": 4, "intermediate_size": 24'
ranks=2
split='"dp": 2, "ep": 2'

# Expected sentence, members of the model, of `parallel`, of `training`, an option; of a plan for
# $ranks.
refused() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", $2, "hidden_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 260},
 "cluster": $(cluster "$ranks"),
 "training": {"seq_len": 16, "global_batch": 2, "precision": "fp32", "stack": "runtime"${4:-}},
 "parallel": {$3, "micro_batch": 1}}
END
    code=0
    "$run" plan.json --steps 1 ${5:+"$5"} >out 2>err || code=$?
    if [ "$code" -ne 2 ] || ! sed 's| (rule [a-z/-]*: .*)$||' err | grep -qxF -e "$1"; then
        echo "refused.sh: expected exit 2 and \"$1\", got $code and: $(cat err)" >&2
        exit 1
    fi
}

dense='"model_type": "llama", "intermediate_size": 24'
refused 'plan.json: model: a rope_scaling but linear and llama3 is not run yet' \
    "$dense"', "rope_scaling": {"type": "yarn", "factor": 4}' '"dp": 2'
refused 'plan.json: model: rotation of a part of each head is not run yet' \
    "$dense"', "partial_rotary_factor": 0.5' '"dp": 2'
refused 'plan.json: model: a gate with ReLU is not run yet' \
    "$dense"', "hidden_act": "relu"' '"dp": 2'
refused 'plan.json: model: an activation but SiLU, GELU and ReLU is not run yet' \
    "$dense"', "hidden_act": "quick_gelu"' '"dp": 2'

refused 'plan.json: model: a gate of the shared experts is not run yet' \
    '"model_type": "qwen2_moe", "num_experts": 4, "num_experts_per_tok": 2,
     "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24,
     "intermediate_size": 24' "$split"
refused 'plan.json: model: a bias of the router is not run yet' \
    '"model_type": "generic", "num_experts": 4, "num_experts_per_tok": 2,
     "moe_intermediate_size": 24' "$split"
refused 'plan.json: training.capacity_factor: a capacity_factor (no token is dropped or padded) is not run yet; expected none' \
    "$mixtral" "$split" ', "capacity_factor": 1.25'
refused 'plan.json: training.moe_dispatcher: another moe_dispatcher than alltoall is not run yet; expected alltoall' \
    "$mixtral" "$split" ', "moe_dispatcher": "allgather"'
refused 'plan.json: parallel.sequence_parallel: experts with tp and without sequence_parallel are not run yet; expected true' \
    "$mixtral" '"tp": 2, "sequence_parallel": false'
refused 'plan.json: the plan is for 2 processes, 1 was started; mpirun -n 2 meshwright-run plan.json starts as many' \
    "$mixtral" "$split"
ranks=1
sentence='--routing balanced: the 16 tokens of a rank, 2 experts each, are not as many for each of'
refused "$sentence 3 experts; expected a multiple" \
    '"model_type": "mixtral", "num_local_experts": 3, "intermediate_size": 24' '"tp": 1' '' \
    --routing=balanced

mkdir texts
refused 'texts: a folder; expected a text file' "$dense" '"tp": 1' '' --data=texts
