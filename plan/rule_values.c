#include "plan/rule_values.h"

#include "config/model/model_front.h"
#include "plan/layer_plans.h"

#include <string.h>

#define SET(id, number) rule_set_value(values, RULE_##id, (int64_t)(number))

// --- The scenario

static int architecture_of(const char *name) {
    int i = 0;
    while (RULE_ARCHITECTURE_NAMES[i + 1] && strcmp(RULE_ARCHITECTURE_NAMES[i], name) != 0) i++;
    return i;
}

static int activation_of(const Model *model) {
    enum { UNSTATED, SILU, GELU, RELU, RELU2, OTHER };
    const char *name = model->functions.activation_name;
    if (name && strcmp(name, "relu2") == 0) return RELU2;
    if (name && strcmp(name, "swiglu") == 0) return SILU;
    if (name && strncmp(name, "gelu", 4) == 0) return GELU;
    switch (model->functions.activation) {
    case FUNCTION_UNSTATED:
        return UNSTATED;
    case FUNCTION_SILU:
        return SILU;
    case FUNCTION_GELU:
        return GELU;
    case FUNCTION_RELU:
        return RELU;
    case FUNCTION_OTHER:
        break;
    }
    return OTHER;
}

// Kinds of windows of the text's layers: 0 where each layer sees all.
static int num_windows(const Model *model) {
    int windows[MODEL_MAX_LAYER_KINDS], num = 0;
    for (int k = 0; k < model->num_kinds; k++) {
        bool known = model->kinds[k].front || model->kinds[k].mixer.window == 0;
        for (int i = 0; i < num && !known; i++) known = windows[i] == model->kinds[k].mixer.window;
        if (!known) windows[num++] = model->kinds[k].mixer.window;
    }
    return num;
}

static bool has_mixer(const Model *model, MixerKind mixer) {
    for (int k = 0; k < model->num_kinds; k++)
        if (model->kinds[k].mixer.kind == mixer) return true;
    return false;
}

static bool has_chunks(const Model *model) {
    for (int k = 0; k < model->num_kinds; k++)
        if (model->kinds[k].mixer.chunk > 0) return true;
    return false;
}

static bool has_dense_mlp(const Model *model) {
    for (int k = 0; k < model->num_kinds; k++)
        if (!kind_is_moe(&model->kinds[k]) && !model->kinds[k].front && !model->kinds[k].ffn.none)
            return true;
    return false;
}

static void execution_add(const Execution *e, RuleValues *values) {
    SET(PRECISION, e->precision);
    SET(FP8_RECIPE, e->fp8_recipe);
    SET(OPTIMIZER_DTYPE, e->optimizer_precision);
    SET(GRAD_REDUCE_DTYPE, e->grad_reduce_precision);
    SET(GRAD_REDUCE, e->grad_reduce);
    SET(ATTENTION, e->attention);
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) SET(kind, e->key);
#include "config/software/techniques.def"
    SET(COMPILE, e->compile);
    SET(CROSS_ENTROPY_FUSED, e->cross_entropy_fused);
    SET(GRAPH_FULL, (e->cuda_graphs & GRAPH_FULL) != 0);
    SET(GRAPH_LAYER, (e->cuda_graphs & GRAPH_LAYER) != 0);
    SET(GRAPH_ATTN, (e->cuda_graphs & GRAPH_ATTN) != 0);
    SET(GRAPH_MOE, (e->cuda_graphs & (GRAPH_MOE_ROUTER | GRAPH_MOE_PREPROCESS)) != 0);
    SET(MOE_DISPATCHER, e->moe_dispatcher);
}

static void job_add(const TrainingJob *t, RuleValues *values) {
    SET(SEQ_LEN, t->seq_len);
    SET(GLOBAL_BATCH, t->global_batch);
    SET(OPTIMIZER, t->optimizer);
    SET(CAUSAL, t->causal);
    SET(CAPACITY, t->capacity_factor > 0);
    SET(SEVERAL_LENGTHS, t->num_sequence_lengths > 0);
}

static void attention_add(const Model *m, RuleValues *values) {
    const Mixer *mixer = model_mixer(m);
    SET(HEADS, mixer->num_heads);
    SET(KV_HEADS, mixer->num_kv_heads);
    SET(HEAD_DIM, mixer->head_dim);
    SET(MLA, mixer_is_latent(mixer));
    SET(Q_LORA_RANK, mixer->q_lora_rank);
    SET(KV_LORA_RANK, mixer->kv_lora_rank);
    SET(QK_NOPE_HEAD_DIM, mixer->qk_nope_head_dim);
    SET(QK_ROPE_HEAD_DIM, mixer->qk_rope_head_dim);
    SET(V_HEAD_DIM, mixer->v_head_dim);
    SET(QK_NORM, mixer->qk_norm);
    SET(QK_NORM_WHOLE, mixer->qk_norm_whole);
    SET(QKV_BIAS, mixer->qkv_bias);
    SET(ATTENTION_OUT_BIAS, mixer->out_bias);
    SET(ATTENTION_SINKS, mixer->sinks);
    SET(OUTPUT_GATE, mixer->output_gate != GATE_NONE);
    SET(CHUNKED_ATTENTION, has_chunks(m));
    SET(SPARSE_ATTENTION, has_mixer(m, MIXER_SPARSE_LATENT_ATTENTION));
    SET(GATED_DELTA, has_mixer(m, MIXER_GATED_DELTA));
    SET(STATE_SPACE, has_mixer(m, MIXER_MAMBA2));
    SET(WINDOWS, num_windows(m));
    SET(POSITION, m->position);
    SET(MAX_POSITIONS, m->max_position_embeddings);
    SET(ROPE_KIND, m->functions.rope);
    SET(PARTIAL_ROTARY, m->functions.rotary_frac < 1);
}

static void mlp_add(const Model *m, RuleValues *values) {
    const FeedForward *ffn = model_ffn(m);
    SET(FFN, ffn->intermediate_size);
    SET(GATED_MLP, ffn->gated);
    SET(ACTIVATION, activation_of(m));
    SET(DENSE_MLP, has_dense_mlp(m));
    SET(MLP_BIAS, ffn->bias);
    SET(EXPERTS, ffn->num_experts);
    SET(TOPK, ffn->num_experts_per_tok);
    SET(EXPERT_FFN, ffn->moe_intermediate_size);
    SET(SHARED_FFN, ffn->shared_intermediate_size);
    SET(EXPERT_GROUPS, ffn->num_expert_groups);
    SET(SHARED_EXPERT_GATE, ffn->shared_expert_gate);
    SET(ROUTER_BIAS, ffn->router_bias);
    SET(EXPERT_BIAS, ffn->expert_bias);
}

static void model_add(const Model *m, RuleValues *values) {
    enum { FRONT_NONE, FRONT_IS_ENCODER, FRONT_IS_VISION };
    const bool front = m->front && (m->front->kind == FRONT_ENCODER || m->num_front_layers > 0);
    SET(LAYERS, model_own_layers(m));
    SET(HIDDEN, m->hidden_size);
    SET(MTP, m->num_mtp_layers);
    SET(NORM, m->norm);
    SET(NORM_BIAS, m->norm_bias);
    SET(NORMS_PER_LAYER, m->norms_per_layer);
    SET(FINAL_NORM, m->final_norm);
    SET(EMBEDDING_NORM, m->embedding_norm);
    SET(PARALLEL_RESIDUAL, m->parallel_residual);
    SET(LM_HEAD_BIAS, m->lm_head_bias);
    SET(TIED, m->tie_word_embeddings);
    SET(FRONT, !front                            ? FRONT_NONE
               : m->front->kind == FRONT_ENCODER ? FRONT_IS_ENCODER
                                                 : FRONT_IS_VISION);
    SET(GPT_OSS, m->functions.swiglu_limit > 0);
    attention_add(m, values);
    mlp_add(m, values);
}

void rule_values_start(const Scenario *scenario, RuleValues *values) {
    const Cluster *cluster = &scenario->cluster;
    *values = (RuleValues){0};
    SET(NUM_GPUS, cluster->num_gpus);
    SET(UNLIKE_GROUPS, cluster->num_pools > 1);
    const Gpu *gpu = &cluster->pools[0].gpu; // rules ask of 8 bits, which want one architecture
    SET(AMD, gpu->vendor && strcmp(gpu->vendor, "AMD") == 0);
    SET(ARCHITECTURE, architecture_of(gpu->architecture ? gpu->architecture : "other"));
    execution_add(&scenario->execution, values);
    job_add(&scenario->training, values);
    model_add(&scenario->model, values);
    values->known = rule_set_without(values->known, scenario->undecided);
}

// --- The plan

static void chunks_add(const Plan *plan, RuleValues *values) {
    int mtp_chunks = 0, empty = 0;
    bool apart = false, even = true;
    const PlanChunk *chunks = plan->chunks;
    const int last = plan->num_chunks - 1;
    for (int c = 0; c <= last; c++) {
        even &= chunks[c].num_layers == chunks[0].num_layers;
        empty += chunks[c].num_layers == 0 && !chunks[c].embedding && !chunks[c].loss &&
                 chunks[c].num_mtp == 0;
        if (chunks[c].num_mtp == 0) continue;
        mtp_chunks++;
        apart |= !chunks[c].loss;
    }
    SET(VPP, plan->vpp);
    SET(ENDS_APART, !chunks[0].embedding || !chunks[last].loss);
    SET(MTP_CHUNKS, mtp_chunks);
    SET(MTP_APART, apart);
    SET(EMPTY_CHUNKS, empty);
    SET(EVEN_CHUNKS, even);
}

static void recompute_add(const Plan *plan, RuleValues *values) {
    const int modules = plan->recompute == RECOMPUTE_SELECTIVE ? plan->recompute_modules : 0;
    SET(RECOMPUTE, plan->recompute);
    SET(MODULE_CORE_ATTN, (modules & MODULE_CORE_ATTN) != 0);
    SET(MODULE_MLA_UP_PROJ, (modules & MODULE_MLA_UP_PROJ) != 0);
    SET(MODULE_LAYERNORM, (modules & MODULE_LAYERNORM) != 0);
    SET(MODULE_MLP, (modules & MODULE_MLP) != 0);
    SET(MODULE_MOE, (modules & MODULE_MOE) != 0);
    SET(MODULE_MOE_ACT, (modules & MODULE_MOE_ACT) != 0);
    SET(MODULE_SHARED_EXPERTS, (modules & MODULE_SHARED_EXPERTS) != 0);
}

void rule_values_add(const Scenario *scenario, const Plan *plan, int group, RuleValues *values) {
    switch (group) {
    case RULE_GROUP_TP:
        SET(TP, plan->tp);
        SET(SEQUENCE_PARALLEL, plan->sequence_parallel);
        break;
    case RULE_GROUP_PP:
        SET(PP, plan->pp);
        SET(VOCAB_PARALLEL, plan_vocab_barriers(scenario, plan->pp) > 0);
        break;
    case RULE_GROUP_REPLICAS:
        SET(CP, plan->cp);
        SET(DP, plan->dp);
        break;
    case RULE_GROUP_EXPERTS:
        SET(EP, plan->ep);
        SET(ETP, plan->etp);
        SET(EXPERT_DP, (int64_t)plan->tp * plan->cp * plan->dp / ((int64_t)plan->ep * plan->etp));
        break;
    case RULE_GROUP_LAYOUT:
        SET(ORDER, plan->order);
        break;
    case RULE_GROUP_BATCH:
        SET(MICRO_BATCH, plan->micro_batch);
        SET(NUM_MICROBATCHES,
            scenario->training.global_batch / ((int64_t)plan->micro_batch * plan->dp));
        break;
    case RULE_GROUP_METHOD:
        SET(CP_METHOD, plan->cp_method);
        break;
    case RULE_GROUP_CHUNKS:
        chunks_add(plan, values);
        break;
    case RULE_GROUP_RECOMPUTE:
        recompute_add(plan, values);
        break;
    case RULE_GROUP_LAYERS:
        SET(SOME_LAYERS, plan_recomputes_first(plan));
        SET(LAYERS_DIFFER, plan->layers != NULL);
        break;
    case RULE_GROUP_ZERO:
        SET(ZERO_STAGE, plan->zero_stage);
        SET(ZERO_GROUP, plan->zero_group);
        SET(RESHARD_AFTER_FORWARD, plan->reshard_after_forward);
        break;
    default:
        SET(SCHEDULE, plan->schedule);
        break;
    }
}

static RuleSet set_of(const RuleVariable *variables, int num) {
    RuleSet set = {{0}};
    for (int i = 0; i < num; i++) set = rule_set_with(set, variables[i]);
    return set;
}

RuleSet rule_group_set(int group) {
    static const RuleVariable GROUPS[NUM_RULE_GROUPS][8] = {
        [RULE_GROUP_TP] = {RULE_TP, RULE_SEQUENCE_PARALLEL},
        [RULE_GROUP_PP] = {RULE_PP, RULE_VOCAB_PARALLEL},
        [RULE_GROUP_REPLICAS] = {RULE_CP, RULE_DP},
        [RULE_GROUP_EXPERTS] = {RULE_EP, RULE_ETP, RULE_EXPERT_DP},
        [RULE_GROUP_LAYOUT] = {RULE_ORDER},
        [RULE_GROUP_BATCH] = {RULE_MICRO_BATCH, RULE_NUM_MICROBATCHES},
        [RULE_GROUP_METHOD] = {RULE_CP_METHOD},
        [RULE_GROUP_CHUNKS] = {RULE_VPP, RULE_ENDS_APART, RULE_MTP_CHUNKS, RULE_MTP_APART,
                               RULE_EMPTY_CHUNKS, RULE_EVEN_CHUNKS},
        [RULE_GROUP_RECOMPUTE] = {RULE_RECOMPUTE, RULE_MODULE_CORE_ATTN, RULE_MODULE_MLA_UP_PROJ,
                                  RULE_MODULE_LAYERNORM, RULE_MODULE_MLP, RULE_MODULE_MOE,
                                  RULE_MODULE_MOE_ACT, RULE_MODULE_SHARED_EXPERTS},
        [RULE_GROUP_LAYERS] = {RULE_SOME_LAYERS, RULE_LAYERS_DIFFER},
        [RULE_GROUP_ZERO] = {RULE_ZERO_STAGE, RULE_ZERO_GROUP, RULE_RESHARD_AFTER_FORWARD},
        [RULE_GROUP_SCHEDULE] = {RULE_SCHEDULE},
    };
    int num = 0;
    while (num < 8 && GROUPS[group][num]) num++;
    return set_of(GROUPS[group], num);
}

void rule_values_complete(const Scenario *scenario, const Plan *plan, RuleValues *out) {
    rule_values_start(scenario, out);
    for (int group = 0; group < NUM_RULE_GROUPS; group++)
        rule_values_add(scenario, plan, group, out);
}
