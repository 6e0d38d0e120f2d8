// Which key of Megatron Bridge each flag of Megatron-LM is, both ways: launch/ writes keys of
// flags, import/ reads flags of keys. Source: training/mlm_compat/arguments.py of Megatron Bridge,
// which makes its own configuration of Megatron-LM's arguments.
#include "launch/bridge.h"

#include <stdlib.h>
#include <string.h>

#define MODEL "model"

// A flag whose key is its name with another spelling.
#define SAME(flag, key)                                                                            \
    { flag, MODEL, key, FLAG_SAME, NULL }
#define YES(flag, key)                                                                             \
    { flag, MODEL, key, FLAG_TRUE, NULL }
#define NO(flag, key)                                                                              \
    { flag, MODEL, key, FLAG_FALSE, NULL }
#define OWN(flag)                                                                                  \
    { flag, NULL, NULL, FLAG_OWN, NULL }

const BridgeFlag BRIDGE_FLAGS[] = {
    SAME("--num-layers", "num_layers"),
    SAME("--hidden-size", "hidden_size"),
    SAME("--ffn-hidden-size", "ffn_hidden_size"),
    SAME("--num-attention-heads", "num_attention_heads"),
    OWN("--group-query-attention"), // num_query_groups says it
    SAME("--num-query-groups", "num_query_groups"),
    SAME("--kv-channels", "kv_channels"),
    SAME("--seq-length", "seq_length"),
    OWN("--max-position-embeddings"), // the provider takes seq_length
    SAME("--position-embedding-type", "position_embedding_type"),
    SAME("--rotary-base", "rotary_base"),
    SAME("--rotary-percent", "rotary_percent"),
    YES("--use-rope-scaling", "rope_scaling"),
    SAME("--rope-scaling-factor", "rope_scaling_factor"),
    SAME("--rotary-seq-len-interpolation-factor", "seq_len_interpolation_factor"),
    SAME("--rope-type", "rope_type"),
    SAME("--rotary-scaling-factor", "rotary_scaling_factor"),
    SAME("--mscale", "mscale"),
    SAME("--mscale-all-dim", "mscale_all_dim"),
    SAME("--normalization", "normalization"),
    SAME("--norm-epsilon", "layernorm_epsilon"),
    YES("--apply-layernorm-1p", "layernorm_zero_centered_gamma"),
    {"--swiglu", MODEL, "activation_func", FLAG_TEXT, "silu"},
    YES("--swiglu", "gated_linear_unit"),
    {"--squared-relu", MODEL, "activation_func", FLAG_TEXT, "squared_relu"},
    NO("--disable-bias-linear", "add_bias_linear"),
    YES("--add-qkv-bias", "add_qkv_bias"),
    YES("--qk-layernorm", "qk_layernorm"),
    NO("--untie-embeddings-and-output-weights", "share_embeddings_and_output_weights"),
    {"--window-size", MODEL, "window_size", FLAG_PAIR, NULL},
    {"--window-attn-skip-freq", MODEL, "window_attn_skip_freq", FLAG_RUNS, NULL},
    SAME("--softmax-type", "softmax_type"),
    YES("--multi-latent-attention", "multi_latent_attention"),
    SAME("--q-lora-rank", "q_lora_rank"),
    SAME("--kv-lora-rank", "kv_lora_rank"),
    SAME("--qk-head-dim", "qk_head_dim"),
    SAME("--qk-pos-emb-head-dim", "qk_pos_emb_head_dim"),
    SAME("--v-head-dim", "v_head_dim"),
    SAME("--mtp-num-layers", "mtp_num_layers"),
    SAME("--attention-dropout", "attention_dropout"),
    SAME("--hidden-dropout", "hidden_dropout"),

    SAME("--num-experts", "num_moe_experts"),
    {"--moe-layer-freq", MODEL, "moe_layer_freq", FLAG_RUNS, NULL},
    SAME("--moe-ffn-hidden-size", "moe_ffn_hidden_size"),
    SAME("--moe-shared-expert-intermediate-size", "moe_shared_expert_intermediate_size"),
    SAME("--moe-router-topk", "moe_router_topk"),
    SAME("--moe-router-score-function", "moe_router_score_function"),
    YES("--moe-router-enable-expert-bias", "moe_router_enable_expert_bias"),
    SAME("--moe-router-num-groups", "moe_router_num_groups"),
    SAME("--moe-router-group-topk", "moe_router_group_topk"),
    SAME("--moe-router-topk-scaling-factor", "moe_router_topk_scaling_factor"),
    YES("--moe-router-pre-softmax", "moe_router_pre_softmax"),
    SAME("--moe-router-load-balancing-type", "moe_router_load_balancing_type"),
    OWN("--moe-aux-loss-coeff"),
    YES("--moe-grouped-gemm", "moe_grouped_gemm"),
    NO("--no-bias-dropout-fusion", "bias_dropout_fusion"),
    YES("--moe-permute-fusion", "moe_permute_fusion"),
    SAME("--moe-token-dispatcher-type", "moe_token_dispatcher_type"),
    {"--moe-enable-deepep", MODEL, "moe_flex_dispatcher_backend", FLAG_TEXT, "deepep"},
    SAME("--moe-expert-capacity-factor", "moe_expert_capacity_factor"),
    YES("--moe-pad-expert-input-to-capacity", "moe_pad_expert_input_to_capacity"),
    YES("--overlap-moe-expert-parallel-comm", "overlap_moe_expert_parallel_comm"),

    SAME("--tensor-model-parallel-size", "tensor_model_parallel_size"),
    SAME("--context-parallel-size", "context_parallel_size"),
    SAME("--cp-comm-type", "cp_comm_type"),
    SAME("--expert-model-parallel-size", "expert_model_parallel_size"),
    SAME("--expert-tensor-parallel-size", "expert_tensor_parallel_size"),
    YES("--sequence-parallel", "sequence_parallel"),
    {"--use-distributed-optimizer", "ddp", "use_distributed_optimizer", FLAG_TRUE, NULL},
    {"--use-distributed-optimizer", "optimizer", "use_distributed_optimizer", FLAG_TRUE, NULL},
    {"--num-distributed-optimizer-instances", "ddp", "num_distributed_optimizer_instances",
     FLAG_SAME, NULL},
    {"--use-megatron-fsdp", "ddp", "use_megatron_fsdp", FLAG_TRUE, NULL},
    {"--use-megatron-fsdp", "dist", "use_megatron_fsdp", FLAG_TRUE, NULL},
    {"--data-parallel-sharding-strategy", "ddp", "data_parallel_sharding_strategy", FLAG_SAME,
     NULL},
    YES("--init-model-with-meta-device", "init_model_with_meta_device"),
    NO("--no-gradient-accumulation-fusion", "gradient_accumulation_fusion"),
    {"--ckpt-format", "checkpoint", "ckpt_format", FLAG_SAME, NULL},
    {"--use-tp-pp-dp-mapping", "dist", "use_tp_pp_dp_mapping", FLAG_TRUE, NULL},
    {"--overlap-grad-reduce", "ddp", "overlap_grad_reduce", FLAG_TRUE, NULL},
    {"--overlap-param-gather", "ddp", "overlap_param_gather", FLAG_TRUE, NULL},
    {"--overlap-param-gather", "optimizer", "overlap_param_gather", FLAG_TRUE, NULL},
    YES("--tp-comm-overlap", "tp_comm_overlap"),

    SAME("--pipeline-model-parallel-size", "pipeline_model_parallel_size"),
    SAME("--num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size"),
    SAME("--pipeline-model-parallel-layout", "pipeline_model_parallel_layout"),
    YES("--account-for-embedding-in-pipeline-split", "account_for_embedding_in_pipeline_split"),
    YES("--account-for-loss-in-pipeline-split", "account_for_loss_in_pipeline_split"),
    SAME("--decoder-first-pipeline-num-layers", "num_layers_in_first_pipeline_stage"),
    SAME("--decoder-last-pipeline-num-layers", "num_layers_in_last_pipeline_stage"),

    SAME("--recompute-granularity", "recompute_granularity"),
    SAME("--recompute-method", "recompute_method"),
    SAME("--recompute-num-layers", "recompute_num_layers"),
    {"--recompute-modules", MODEL, "recompute_modules", FLAG_WORDS, NULL},

    {"--micro-batch-size", "train", "micro_batch_size", FLAG_SAME, NULL},
    {"--global-batch-size", "train", "global_batch_size", FLAG_SAME, NULL},
    OWN("--train-iters"),
    OWN("--lr"),
    {"--optimizer", "optimizer", "optimizer", FLAG_SAME, NULL},
    {"--log-interval", "logger", "log_interval", FLAG_SAME, NULL},
    {"--log-throughput", "logger", "log_throughput", FLAG_TRUE, NULL},
    OWN("--eval-interval"),
    OWN("--eval-iters"),

    {"--bf16", "mixed_precision", "bf16", FLAG_TRUE, NULL},
    {"--fp16", "mixed_precision", "fp16", FLAG_TRUE, NULL},
    {"--fp8-format", "mixed_precision", "fp8", FLAG_SAME, NULL},
    {"--fp8-recipe", "mixed_precision", "fp8_recipe", FLAG_SAME, NULL},
    {"--fp8-param-gather", "mixed_precision", "fp8_param_gather", FLAG_TRUE, NULL},
    {"--fp4-format", "mixed_precision", "fp4", FLAG_SAME, NULL},
    {"--fp4-recipe", "mixed_precision", "fp4_recipe", FLAG_SAME, NULL},
    {"--accumulate-allreduce-grads-in-fp32", "mixed_precision", "grad_reduce_in_fp32", FLAG_TRUE,
     NULL},
    {"--grad-reduce-in-bf16", "mixed_precision", "grad_reduce_in_fp32", FLAG_FALSE, NULL},
    {"--use-precision-aware-optimizer", "optimizer", "use_precision_aware_optimizer", FLAG_TRUE,
     NULL},
    {"--exp-avg-dtype", "optimizer", "exp_avg_dtype", FLAG_TEXT, "bfloat16"},
    {"--exp-avg-sq-dtype", "optimizer", "exp_avg_sq_dtype", FLAG_TEXT, "bfloat16"},
    SAME("--attention-backend", "attention_backend"),
    YES("--cross-entropy-loss-fusion", "cross_entropy_loss_fusion"),
    SAME("--cross-entropy-fusion-impl", "cross_entropy_fusion_impl"),
    SAME("--cuda-graph-impl", "cuda_graph_impl"),
    {"--cuda-graph-scope", MODEL, "cuda_graph_scope", FLAG_WORDS, NULL},
    YES("--te-rng-tracker", "use_te_rng_tracker"),
    {"--te-rng-tracker", "rng", "te_rng_tracker", FLAG_TRUE, NULL},
    {"--no-check-for-nan-in-loss-and-grad", "ddp", "check_for_nan_in_grad", FLAG_FALSE, NULL},
    {"--no-check-for-nan-in-loss-and-grad", "rerun_state_machine", "check_for_nan_in_loss",
     FLAG_FALSE, NULL},
    {0},
};

// "a b" as ["a", "b"].
static const char *words_list(const char *text, Arena *arena) {
    const char *list = "";
    char *words = arena_strdup(arena, text), *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        list = arena_printf(arena, "%s%s%s", list, list[0] ? ", " : "", key_quote(word, arena));
    return arena_printf(arena, "[%s]", list);
}

// "([0]*3+[1]*2)" and "[0,0,0,1,1]" as [0, 0, 0, 1, 1].
static const char *runs_list(const char *text, Arena *arena) {
    Script list = {.arena = arena};
    script_add(&list, "[");
    const char *comma = "";
    for (const char *at = text; *at;) {
        if (*at != '0' && *at != '1') {
            at++;
            continue;
        }
        char value = *at++;
        long times = 1;
        if (strncmp(at, "]*", 2) == 0) times = strtol(at + 2, (char **)&at, 10);
        for (; times > 0; times--) {
            script_add(&list, "%s%c", comma, value);
            comma = ", ";
        }
    }
    script_add(&list, "]");
    return list.text;
}

static void key_same(KeyList *keys, const BridgeFlag *row, const char *plain) {
    switch (key_row_find(BRIDGE_KEYS, row->section, row->key)->kind) {
    case KEY_INT:
        key_int(keys, row->section, row->key, strtoll(plain, NULL, 10));
        break;
    case KEY_FLOAT:
        key_float(keys, row->section, row->key, strtod(plain, NULL));
        break;
    default:
        key_text(keys, row->section, row->key, plain);
    }
}

static void key_of_flag(KeyList *keys, const BridgeFlag *row, const char *plain) {
    Arena *arena = keys->arena;
    switch (row->as) {
    case FLAG_SAME:
        key_same(keys, row, plain);
        break;
    case FLAG_TRUE:
    case FLAG_FALSE:
        key_bool(keys, row->section, row->key, row->as == FLAG_TRUE);
        break;
    case FLAG_TEXT:
        key_text(keys, row->section, row->key, row->text);
        break;
    case FLAG_WORDS:
        key_list(keys, row->section, row->key, words_list(plain, arena));
        break;
    case FLAG_PAIR:
        key_list(keys, row->section, row->key, arena_printf(arena, "[%s]", plain));
        break;
    case FLAG_RUNS:
        key_list(keys, row->section, row->key, runs_list(plain, arena));
        break;
    case FLAG_OWN:
        break;
    }
}

Status bridge_flag_keys(const FlagList *flags, KeyList *keys) {
    for (int i = 0; i < flags->num_flags; i++) {
        const Flag *flag = &flags->flags[i];
        bool known = false;
        for (const BridgeFlag *row = BRIDGE_FLAGS; row->flag; row++) {
            if (strcmp(row->flag, flag->row->flag) != 0) continue;
            known = true;
            // A value that the shell makes is the user's own: the program takes it.
            if (!flag->row->value || flag->plain) key_of_flag(keys, row, flag->plain);
        }
        if (!known)
            return status_error(STATUS_INVALID,
                                "meshwright: launch --for nemo: %s of Megatron-LM has no key in "
                                "Megatron Bridge",
                                flag->row->flag);
    }
    return status_ok();
}
