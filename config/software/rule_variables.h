// config/software/rule_variables.h - what rules of a software (config/software/rules.h) may speak
// of: facts of a scenario and of a plan, all whole numbers. A switch is 0 or 1; a choice is an
// index into a list of names.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// X(NAME, "name", list of names or NULL): of the scenario first, then of the plan. Techniques that
// are on or off are of the scenario, too (config/software/techniques.def).
#define RULE_SCENARIO_VARIABLES(X)                                                                 \
    X(NUM_GPUS, "num_gpus", NULL)                                                                  \
    X(UNLIKE_GROUPS, "unlike_groups", RULE_SWITCH_NAMES)                                           \
    X(AMD, "amd", RULE_SWITCH_NAMES)                                                               \
    X(ARCHITECTURE, "architecture", RULE_ARCHITECTURE_NAMES)                                       \
    X(SEQ_LEN, "seq_len", NULL)                                                                    \
    X(GLOBAL_BATCH, "global_batch", NULL)                                                          \
    X(PRECISION, "precision", PRECISION_NAMES)                                                     \
    X(FP8_RECIPE, "fp8_recipe", FP8_RECIPE_NAMES)                                                  \
    X(OPTIMIZER, "optimizer", OPTIMIZER_NAMES)                                                     \
    X(OPTIMIZER_DTYPE, "optimizer_dtype", PRECISION_NAMES)                                         \
    X(GRAD_REDUCE_DTYPE, "grad_reduce_dtype", PRECISION_NAMES)                                     \
    X(GRAD_REDUCE, "grad_reduce", STACK_GRAD_REDUCE_NAMES)                                         \
    X(ATTENTION, "attention", ATTENTION_NAMES)                                                     \
    X(COMPILE, "compile", RULE_SWITCH_NAMES)                                                       \
    X(CROSS_ENTROPY_FUSED, "cross_entropy_fused", RULE_SWITCH_NAMES)                               \
    X(GRAPH_FULL, "graph_full", RULE_SWITCH_NAMES)                                                 \
    X(GRAPH_LAYER, "graph_layer", RULE_SWITCH_NAMES)                                               \
    X(GRAPH_ATTN, "graph_attn", RULE_SWITCH_NAMES)                                                 \
    X(GRAPH_MOE, "graph_moe", RULE_SWITCH_NAMES)                                                   \
    X(CAUSAL, "causal", RULE_SWITCH_NAMES)                                                         \
    X(MOE_DISPATCHER, "moe_dispatcher", MOE_DISPATCHER_NAMES)                                      \
    X(CAPACITY, "capacity", RULE_SWITCH_NAMES)                                                     \
    X(SEVERAL_LENGTHS, "several_lengths", RULE_SWITCH_NAMES)                                       \
    X(LAYERS, "layers", NULL)                                                                      \
    X(HIDDEN, "hidden", NULL)                                                                      \
    X(HEADS, "heads", NULL)                                                                        \
    X(KV_HEADS, "kv_heads", NULL)                                                                  \
    X(HEAD_DIM, "head_dim", NULL)                                                                  \
    X(MLA, "mla", RULE_SWITCH_NAMES)                                                               \
    X(Q_LORA_RANK, "q_lora_rank", NULL)                                                            \
    X(KV_LORA_RANK, "kv_lora_rank", NULL)                                                          \
    X(QK_NOPE_HEAD_DIM, "qk_nope_head_dim", NULL)                                                  \
    X(QK_ROPE_HEAD_DIM, "qk_rope_head_dim", NULL)                                                  \
    X(V_HEAD_DIM, "v_head_dim", NULL)                                                              \
    X(FFN, "ffn", NULL)                                                                            \
    X(GATED_MLP, "gated_mlp", RULE_SWITCH_NAMES)                                                   \
    X(ACTIVATION, "activation", RULE_ACTIVATION_NAMES)                                             \
    X(DENSE_MLP, "dense_mlp", RULE_SWITCH_NAMES)                                                   \
    X(EXPERTS, "experts", NULL)                                                                    \
    X(TOPK, "topk", NULL)                                                                          \
    X(EXPERT_FFN, "expert_ffn", NULL)                                                              \
    X(SHARED_FFN, "shared_ffn", NULL)                                                              \
    X(EXPERT_GROUPS, "expert_groups", NULL)                                                        \
    X(SHARED_EXPERT_GATE, "shared_expert_gate", RULE_SWITCH_NAMES)                                 \
    X(ROUTER_BIAS, "router_bias", RULE_SWITCH_NAMES)                                               \
    X(EXPERT_BIAS, "expert_bias", RULE_SWITCH_NAMES)                                               \
    X(MTP, "mtp", NULL)                                                                            \
    X(POSITION, "position", RULE_POSITION_NAMES)                                                   \
    X(MAX_POSITIONS, "max_positions", NULL)                                                        \
    X(ROPE_KIND, "rope_kind", RULE_ROPE_NAMES)                                                     \
    X(PARTIAL_ROTARY, "partial_rotary", RULE_SWITCH_NAMES)                                         \
    X(NORM, "norm", RULE_NORM_NAMES)                                                               \
    X(NORM_BIAS, "norm_bias", RULE_SWITCH_NAMES)                                                   \
    X(NORMS_PER_LAYER, "norms_per_layer", NULL)                                                    \
    X(FINAL_NORM, "final_norm", RULE_SWITCH_NAMES)                                                 \
    X(EMBEDDING_NORM, "embedding_norm", RULE_SWITCH_NAMES)                                         \
    X(PARALLEL_RESIDUAL, "parallel_residual", RULE_SWITCH_NAMES)                                   \
    X(QK_NORM, "qk_norm", RULE_SWITCH_NAMES)                                                       \
    X(QK_NORM_WHOLE, "qk_norm_whole", RULE_SWITCH_NAMES)                                           \
    X(QKV_BIAS, "qkv_bias", RULE_SWITCH_NAMES)                                                     \
    X(ATTENTION_OUT_BIAS, "attention_out_bias", RULE_SWITCH_NAMES)                                 \
    X(MLP_BIAS, "mlp_bias", RULE_SWITCH_NAMES)                                                     \
    X(LM_HEAD_BIAS, "lm_head_bias", RULE_SWITCH_NAMES)                                             \
    X(ATTENTION_SINKS, "attention_sinks", RULE_SWITCH_NAMES)                                       \
    X(OUTPUT_GATE, "output_gate", RULE_SWITCH_NAMES)                                               \
    X(CHUNKED_ATTENTION, "chunked_attention", RULE_SWITCH_NAMES)                                   \
    X(SPARSE_ATTENTION, "sparse_attention", RULE_SWITCH_NAMES)                                     \
    X(GATED_DELTA, "gated_delta", RULE_SWITCH_NAMES)                                               \
    X(STATE_SPACE, "state_space", RULE_SWITCH_NAMES)                                               \
    X(WINDOWS, "windows", NULL)                                                                    \
    X(TIED, "tied", RULE_SWITCH_NAMES)                                                             \
    X(FRONT, "front", RULE_FRONT_NAMES)                                                            \
    X(GPT_OSS, "gpt_oss", RULE_SWITCH_NAMES)

#define RULE_PLAN_VARIABLES(X)                                                                     \
    X(TP, "tp", NULL)                                                                              \
    X(PP, "pp", NULL)                                                                              \
    X(CP, "cp", NULL)                                                                              \
    X(DP, "dp", NULL)                                                                              \
    X(EP, "ep", NULL)                                                                              \
    X(ETP, "etp", NULL)                                                                            \
    X(EXPERT_DP, "expert_dp", NULL)                                                                \
    X(ORDER, "order", PLAN_ORDER_NAMES)                                                            \
    X(SEQUENCE_PARALLEL, "sequence_parallel", RULE_SWITCH_NAMES)                                   \
    X(RESHARD_AFTER_FORWARD, "reshard_after_forward", RULE_SWITCH_NAMES)                           \
    X(VOCAB_PARALLEL, "vocab_parallel", RULE_SWITCH_NAMES)                                         \
    X(MICRO_BATCH, "micro_batch", NULL)                                                            \
    X(NUM_MICROBATCHES, "num_microbatches", NULL)                                                  \
    X(CP_METHOD, "cp_method", CP_METHOD_NAMES)                                                     \
    X(VPP, "vpp", NULL)                                                                            \
    X(ENDS_APART, "ends_apart", RULE_SWITCH_NAMES)                                                 \
    X(MTP_CHUNKS, "mtp_chunks", NULL)                                                              \
    X(MTP_APART, "mtp_apart", RULE_SWITCH_NAMES)                                                   \
    X(EMPTY_CHUNKS, "empty_chunks", NULL)                                                          \
    X(EVEN_CHUNKS, "even_chunks", RULE_SWITCH_NAMES)                                               \
    X(RECOMPUTE, "recompute", RECOMPUTE_NAMES)                                                     \
    X(MODULE_CORE_ATTN, "module_core_attn", RULE_SWITCH_NAMES)                                     \
    X(MODULE_MLA_UP_PROJ, "module_mla_up_proj", RULE_SWITCH_NAMES)                                 \
    X(MODULE_LAYERNORM, "module_layernorm", RULE_SWITCH_NAMES)                                     \
    X(MODULE_MLP, "module_mlp", RULE_SWITCH_NAMES)                                                 \
    X(MODULE_MOE, "module_moe", RULE_SWITCH_NAMES)                                                 \
    X(MODULE_MOE_ACT, "module_moe_act", RULE_SWITCH_NAMES)                                         \
    X(MODULE_SHARED_EXPERTS, "module_shared_experts", RULE_SWITCH_NAMES)                           \
    X(SOME_LAYERS, "some_layers", RULE_SWITCH_NAMES)                                               \
    X(LAYERS_DIFFER, "layers_differ", RULE_SWITCH_NAMES)                                           \
    X(ZERO_STAGE, "zero_stage", NULL)                                                              \
    X(ZERO_GROUP, "zero_group", NULL)                                                              \
    X(SCHEDULE, "schedule", RULE_SCHEDULE_NAMES)

#define RULE_VARIABLE_ENUM(id, name, names) RULE_##id,
typedef enum {
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) RULE_##kind,
#include "config/software/techniques.def"
    RULE_SCENARIO_VARIABLES(RULE_VARIABLE_ENUM) RULE_PLAN_VARIABLES(RULE_VARIABLE_ENUM)
        NUM_RULE_VARIABLES
} RuleVariable;
enum { NUM_RULE_SCENARIO_VARIABLES = RULE_TP };

// A set of variables.
typedef struct {
    uint64_t bits[2];
} RuleSet;

static inline RuleSet rule_set_with(RuleSet set, RuleVariable variable) {
    set.bits[variable >> 6] |= 1ULL << (variable & 63);
    return set;
}
static inline bool rule_set_has(RuleSet set, int variable) {
    return set.bits[variable >> 6] >> (variable & 63) & 1;
}
static inline bool rule_sets_meet(RuleSet a, RuleSet b) {
    return ((a.bits[0] & b.bits[0]) | (a.bits[1] & b.bits[1])) != 0;
}
static inline RuleSet rule_set_union(RuleSet a, RuleSet b) {
    return (RuleSet){{a.bits[0] | b.bits[0], a.bits[1] | b.bits[1]}};
}
static inline RuleSet rule_set_without(RuleSet a, RuleSet b) {
    return (RuleSet){{a.bits[0] & ~b.bits[0], a.bits[1] & ~b.bits[1]}};
}
static inline bool rule_set_holds(RuleSet all, RuleSet part) {
    return !(part.bits[0] & ~all.bits[0]) && !(part.bits[1] & ~all.bits[1]);
}

// What is known of a configuration: the others are not decided yet.
typedef struct {
    int64_t value[NUM_RULE_VARIABLES];
    RuleSet known;
} RuleValues;

static inline void rule_set_value(RuleValues *values, RuleVariable variable, int64_t value) {
    values->value[variable] = value;
    values->known = rule_set_with(values->known, variable);
}

typedef struct {
    const char *name;
    const char *const *names; // of the values of a choice, ends with NULL; NULL: a number
} RuleVariableKind;

extern const RuleVariableKind RULE_VARIABLES[NUM_RULE_VARIABLES];
extern const char *const RULE_SWITCH_NAMES[];       // false, true
extern const char *const RULE_ARCHITECTURE_NAMES[]; // those of hw-profiles/gpus, then other
extern const char *const RULE_POSITION_NAMES[];     // PositionKind
extern const char *const RULE_NORM_NAMES[];         // NormKind
extern const char *const RULE_ACTIVATION_NAMES[];   // FunctionKind
extern const char *const RULE_ROPE_NAMES[];         // RopeKind
extern const char *const RULE_FRONT_NAMES[];        // none, encoder, vision
extern const char *const RULE_SCHEDULE_NAMES[];     // ScheduleKind, file

// By its name; -1 where there is none.
int rule_variable_find(const char *name);
