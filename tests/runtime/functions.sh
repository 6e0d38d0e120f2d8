#!/bin/sh
# What a model file says of its activation, epsilon and rotary frequencies is what is trained: each
# changes the loss, and saying what is the default changes nothing.
# Usage: functions.sh RUN
set -eu
run=$1
export OPENBLAS_NUM_THREADS=1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"

# Members of the model: the loss of the second step.
loss() {
    cat >plan.json <<END
{"schema": 1, "model": {"name": "small", $1, "hidden_size": 32, "intermediate_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 260},
 "cluster": {"gpu": "h100-sxm-80g", "num_gpus": 1, "gpus_per_node": 1,
  "scale_up": {"link": "nvlink4", "domain_gpus": 1},
  "scale_out": {"nics_per_node": 1, "nic_bytes_per_s": 50e9}},
 "training": {"seq_len": 32, "global_batch": 2, "precision": "fp32", "stack": "runtime"},
 "parallel": {"micro_batch": 1}}
END
    rm -f log
    "$run" plan.json --steps 2 --dtype fp64 --log log >out 2>&1 || {
        cat out >&2
        exit 1
    }
    sed -n 's/.*"step": 2.*"loss": \([0-9.e-]*\).*/\1/p' log
}

same() {
    [ "$1" = "$2" ] || {
        echo "functions.sh: $3: $1 and $2" >&2
        exit 1
    }
}

differs() {
    if [ -z "$1" ] || [ "$1" = "$2" ]; then
        echo "functions.sh: $3: $1 and $2" >&2
        exit 1
    fi
}

llama='"model_type": "llama"'
plain=$(loss "$llama")
same "$plain" "$(loss "$llama, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-5, \"rope_theta\": 10000,
  \"rope_scaling\": null")" "what is the default"
differs "$plain" "$(loss "$llama, \"hidden_act\": \"gelu\"")" hidden_act
differs "$plain" "$(loss "$llama, \"rms_norm_eps\": 0.01")" rms_norm_eps
differs "$plain" "$(loss "$llama, \"rope_theta\": 100")" rope_theta
linear=$(loss "$llama, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}")
differs "$plain" "$linear" "linear rope_scaling"
# Of waves that are all long or all short it is all or nothing.
scaled='"rope_type": "llama3", "factor": 8'
same "$linear" "$(loss "$llama, \"rope_scaling\": {$scaled, \"original_max_position_embeddings\": 1}")" \
    "llama3, waves longer than what was trained on"
same "$plain" "$(loss "$llama, \"rope_scaling\": {$scaled, \"original_max_position_embeddings\": 1000000}")" \
    "llama3, waves shorter than it"
differs "$plain" "$(loss "$llama, \"rope_scaling\": {$scaled, \"original_max_position_embeddings\": 64}")" \
    "llama3, waves of all kinds"
opt='"model_type": "opt", "word_embed_proj_dim": 32, "ffn_dim": 64'
differs "$(loss "$opt, \"activation_function\": \"relu\"")" "$(loss "$opt, \"activation_function\": \"gelu\"")" \
    activation_function
