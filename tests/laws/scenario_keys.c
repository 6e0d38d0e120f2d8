#include "tests/laws/scenario_keys.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "launch/megatron.h"
#include "plan/rank_place.h"

#include <math.h>
#include <string.h>

static void add_number(cJSON *keys, const char *key, double value) {
    cJSON_AddNumberToObject(keys, key, value);
}

static void add_text(cJSON *keys, const char *key, const char *value) {
    cJSON_AddStringToObject(keys, key, value);
}

// What of the key's value is not what its absence means.
static void add_true(cJSON *keys, const char *key, bool value) {
    if (value) cJSON_AddTrueToObject(keys, key);
}

static void add_positive(cJSON *keys, const char *key, double value) {
    if (value > 0) add_number(keys, key, value);
}

static void rope_keys(const ModelFunctions *f, cJSON *keys) {
    add_number(keys, "model.rope_theta", f->rope_theta);
    if (f->rotary_frac < 1) add_number(keys, "model.partial_rotary_factor", f->rotary_frac);
    if (f->rope == ROPE_PLAIN) return;
    cJSON *scaling = cJSON_AddObjectToObject(keys, "model.rope_scaling");
    cJSON_AddStringToObject(scaling, "rope_type", f->rope_name);
    cJSON_AddNumberToObject(scaling, "factor", f->stated_factor);
    if (f->rope != ROPE_LLAMA3) return;
    cJSON_AddNumberToObject(scaling, "low_freq_factor", f->low_freq_factor);
    cJSON_AddNumberToObject(scaling, "high_freq_factor", f->high_freq_factor);
    cJSON_AddNumberToObject(scaling, "original_max_position_embeddings", f->original_positions);
}

static void position_keys(const Model *model, cJSON *keys) {
    static const char *const NAMES[] = {"rope", "learned", "alibi", "none"};
    add_text(keys, "model.position", NAMES[model->position]);
    if (model->position == POSITION_LEARNED)
        add_number(keys, "model.max_position_embeddings", model->max_position_embeddings);
    if (model->position == POSITION_ROPE) rope_keys(&model->functions, keys);
}

// "silu" of a gated MLP that states none, "gelu" of another.
static void function_keys(const Model *model, cJSON *keys) {
    const ModelFunctions *f = &model->functions;
    const char *name = f->activation_name;
    if (f->activation == FUNCTION_UNSTATED) name = model_ffn(model)->gated ? "silu" : "gelu";
    if (f->activation == FUNCTION_SILU) name = "silu";
    if (f->activation == FUNCTION_GELU) name = "gelu";
    add_text(keys, "model.hidden_act", name);
    add_number(keys, "model.rms_norm_eps", f->norm_epsilon);
    add_positive(keys, "model.swiglu_limit", f->swiglu_limit);
}

static void attention_keys(const Model *model, cJSON *keys) {
    const Mixer *mixer = model_mixer(model);
    add_number(keys, "model.num_attention_heads", mixer->num_heads);
    if (mixer->kind == MIXER_LATENT_ATTENTION) {
        add_positive(keys, "model.q_lora_rank", mixer->q_lora_rank);
        add_number(keys, "model.kv_lora_rank", mixer->kv_lora_rank);
        add_number(keys, "model.qk_nope_head_dim", mixer->qk_nope_head_dim);
        add_number(keys, "model.qk_rope_head_dim", mixer->qk_rope_head_dim);
        add_number(keys, "model.v_head_dim", mixer->v_head_dim);
    } else {
        add_number(keys, "model.num_key_value_heads", mixer->num_kv_heads);
        add_number(keys, "model.head_dim", mixer->head_dim);
        add_true(keys, "model.qk_norm", mixer->qk_norm);
    }
    add_true(keys, "model.qkv_bias", mixer->qkv_bias);
    add_true(keys, "model.attention_out_bias", mixer->out_bias);
    add_true(keys, "model.attention_sinks", mixer->sinks);
}

static void expert_keys(const Model *model, cJSON *keys) {
    const FeedForward *ffn = model_ffn(model);
    if (ffn->num_experts == 0) return;
    add_number(keys, "model.num_experts", ffn->num_experts);
    add_number(keys, "model.num_experts_per_tok", ffn->num_experts_per_tok);
    cJSON_AddBoolToObject(keys, "model.norm_topk_prob", ffn->norm_topk_prob);
    add_positive(keys, "model.n_group", ffn->num_expert_groups);
    add_positive(keys, "model.topk_group", ffn->expert_groups_per_tok);
    add_number(keys, "model.moe_intermediate_size", ffn->moe_intermediate_size);
    add_positive(keys, "model.shared_expert_intermediate_size", ffn->shared_intermediate_size);
    add_true(keys, "model.shared_expert_gate", ffn->shared_expert_gate);
    add_true(keys, "model.router_bias", ffn->router_bias);
    add_true(keys, "model.expert_bias", ffn->expert_bias);
}

// Of every layer whether it has experts, and its window.
static void layer_keys(const Model *model, cJSON *keys) {
    bool moe = false, window = false, dense = false;
    cJSON *experts = cJSON_CreateArray(), *windows = cJSON_CreateArray();
    for (int l = 0; l < model->num_layers; l++) {
        const LayerKind *kind = &model->kinds[model->layer_kind[l]];
        cJSON_AddItemToArray(experts, cJSON_CreateBool(kind_is_moe(kind)));
        cJSON_AddItemToArray(windows, cJSON_CreateNumber(kind->mixer.window));
        moe |= kind_is_moe(kind);
        dense |= !kind_is_moe(kind);
        window |= kind->mixer.window > 0;
    }
    if (dense) {
        add_number(keys, "model.intermediate_size", model_ffn(model)->intermediate_size);
        add_true(keys, "model.mlp_bias", model_ffn(model)->bias);
    }
    if (moe) cJSON_AddItemToObject(keys, "model.layers_with_experts", experts);
    if (window) cJSON_AddItemToObject(keys, "model.windows", windows);
    if (!moe) cJSON_Delete(experts);
    if (!window) cJSON_Delete(windows);
}

static void model_keys(const Model *model, cJSON *keys) {
    add_number(keys, "model.num_hidden_layers", model->num_layers);
    add_number(keys, "model.hidden_size", model->hidden_size);
    add_number(keys, "model.vocab_size", model->vocab_size);
    add_true(keys, "model.tie_word_embeddings", model->tie_word_embeddings);
    add_true(keys, "model.gated_mlp", model_ffn(model)->gated);
    add_text(keys, "model.norm", model->norm == NORM_RMSNORM ? "rmsnorm" : "layernorm");
    add_true(keys, "model.norm_bias", model->norm_bias);
    add_number(keys, "model.norms_per_layer", model->norms_per_layer);
    add_true(keys, "model.final_norm", model->final_norm);
    add_true(keys, "model.embedding_norm", model->embedding_norm);
    add_true(keys, "model.parallel_residual", model->parallel_residual);
    add_true(keys, "model.lm_head_bias", model->lm_head_bias);
    add_positive(keys, "model.num_nextn_predict_layers", model->num_mtp_layers);
    add_positive(keys, "model.front_layers", model->num_front_layers);
    attention_keys(model, keys);
    position_keys(model, keys);
    function_keys(model, keys);
    expert_keys(model, keys);
    layer_keys(model, keys);
}

// What routes tokens, of which Model knows nothing: it has no price.
static void score_keys(const Scenario *scenario, cJSON *keys) {
    const FeedForward *ffn = model_ffn(&scenario->model);
    Arena arena = {0};
    if (ffn->num_experts == 0) return;
    const cJSON *score = megatron_model_key(scenario, "scoring_func", &arena);
    const bool biased = ffn->router_bias && !ffn->expert_bias;
    add_text(keys, "model.scoring_func",
             cJSON_IsString(score) ? score->valuestring
             : biased              ? "sigmoid"
                                   : "softmax");
    add_number(keys, "model.routed_scaling_factor",
               megatron_model_number(scenario, "routed_scaling_factor", &arena, 1));
    arena_free(&arena);
}

static void graph_keys(int bits, cJSON *keys) {
    static const struct {
        int bit;
        const char *name;
    } SCOPES[] = {{GRAPH_FULL, "full"},
                  {GRAPH_LAYER, "layer"},
                  {GRAPH_ATTN, "attn"},
                  {GRAPH_MOE_ROUTER, "moe_router"},
                  {GRAPH_MOE_PREPROCESS, "moe_preprocess"}};
    char text[80] = "";
    for (size_t i = 0; i < sizeof SCOPES / sizeof *SCOPES; i++) {
        if (!(bits & SCOPES[i].bit)) continue;
        if (text[0]) strcat(text, ",");
        strcat(text, SCOPES[i].name);
    }
    add_text(keys, "training.cuda_graphs", text[0] ? text : "none");
}

static void routing_keys(const Scenario *scenario, const Plan *plan, cJSON *keys) {
    const Execution *e = &scenario->execution;
    const TrainingJob *t = &scenario->training;
    add_text(keys, "training.moe_dispatcher", MOE_DISPATCHER_NAMES[e->moe_dispatcher]);
    add_positive(keys, "training.capacity_factor", t->capacity_factor);
    if (plan->ep > 1) cJSON_AddBoolToObject(keys, "training.ep_overlap", e->ep_overlap);
    if (t->moe_imbalance > 1)
        add_number(cJSON_AddObjectToObject(keys, "training.moe_routing"), "imbalance",
                   t->moe_imbalance);
}

// Messages that a switch may overlap: none of one rank.
static void overlap_keys(const Execution *e, const Plan *plan, cJSON *keys) {
    if (plan->dp * plan->cp > 1)
        cJSON_AddBoolToObject(keys, "training.overlap_grad_reduce", e->overlap_grad_reduce);
    if (plan->dp * plan->cp > 1 && plan->zero_stage > 0)
        cJSON_AddBoolToObject(keys, "training.overlap_param_gather", e->overlap_param_gather);
    if (plan->tp > 1) cJSON_AddBoolToObject(keys, "training.tp_comm_overlap", e->tp_comm_overlap);
}

static void training_keys(const Scenario *scenario, const Plan *plan, cJSON *keys) {
    const Execution *execution = &scenario->execution;
    const TrainingJob *t = &scenario->training;
    add_number(keys, "training.seq_len", (double)t->seq_len);
    add_number(keys, "training.global_batch", (double)t->global_batch);
    add_text(keys, "training.precision", PRECISION_NAMES[execution->precision]);
    // tensorwise is what torchtitan and Transformer Engine call scaling by the current values.
    if (execution->precision == PRECISION_FP8)
        add_text(keys, "training.fp8_recipe",
                 FP8_RECIPE_NAMES[execution->fp8_recipe == FP8_CURRENT ? FP8_TENSORWISE
                                                                       : execution->fp8_recipe]);
    add_text(keys, "training.optimizer", OPTIMIZER_NAMES[t->optimizer]);
    add_text(keys, "training.optimizer_dtype", PRECISION_NAMES[execution->optimizer_precision]);
    add_text(keys, "training.grad_reduce_dtype", PRECISION_NAMES[execution->grad_reduce_precision]);
    add_text(keys, "training.stack", execution->stack.name);
    if (execution->stack_version)
        add_text(keys, "training.stack_version", execution->stack_version);
    add_text(keys, "training.attention", ATTENTION_NAMES[execution->attention]);
    overlap_keys(execution, plan, keys);
    cJSON_AddBoolToObject(keys, "training.compile", execution->compile);
    cJSON_AddBoolToObject(keys, "training.cross_entropy_fused", execution->cross_entropy_fused);
    add_true(keys, "training.optimizer_post_validation", execution->optimizer_post_validation);
    graph_keys(execution->cuda_graphs, keys);
    if (!t->causal) cJSON_AddFalseToObject(keys, "training.causal");
    if (model_is_moe(&scenario->model)) routing_keys(scenario, plan, keys);
}

static void stage_keys(const Plan *plan, cJSON *keys) {
    cJSON *full = plan_to_json(plan);
    cJSON *stages = cJSON_DetachItemFromObjectCaseSensitive(full, "stages");
    cJSON *layers = cJSON_DetachItemFromObjectCaseSensitive(full, "layers");
    cJSON_AddItemToObject(keys, "parallel.stages", stages);
    if (layers) cJSON_AddItemToObject(keys, "parallel.layers", layers);
    cJSON_Delete(full);
}

static void recompute_keys(const Plan *plan, cJSON *keys) {
    const bool some = plan->recompute_layers != ABSENT;
    const bool none = plan->recompute == RECOMPUTE_NONE || plan->recompute_layers == 0;
    add_text(keys, "parallel.recompute", RECOMPUTE_NAMES[none ? RECOMPUTE_NONE : plan->recompute]);
    if (none) return;
    // As many as the fullest stage has, or more: all.
    if (some && plan->recompute_layers < plan_fullest_rank(plan))
        add_number(keys, "parallel.recompute_layers", plan->recompute_layers);
    if (plan->recompute != RECOMPUTE_SELECTIVE || !plan->recompute_modules) return;
    cJSON *modules = cJSON_AddArrayToObject(keys, "parallel.recompute_modules");
    for (int m = 0; RECOMPUTE_MODULE_NAMES[m]; m++)
        if (plan->recompute_modules & 1 << m)
            cJSON_AddItemToArray(modules, cJSON_CreateString(RECOMPUTE_MODULE_NAMES[m]));
}

static void sharding_keys(const Plan *plan, cJSON *keys) {
    if (plan->dp * plan->cp == 1) return;
    add_number(keys, "parallel.zero_stage", plan->zero_stage);
    if (plan->zero_stage > 0) add_number(keys, "parallel.zero_group", plan->zero_group);
    if (plan->zero_stage == 3)
        cJSON_AddBoolToObject(keys, "parallel.reshard_after_forward", plan->reshard_after_forward);
}

static void parallel_keys(const Scenario *scenario, const Plan *plan, cJSON *keys) {
    add_number(keys, "parallel.tp", plan->tp);
    add_number(keys, "parallel.pp", plan->pp);
    add_number(keys, "parallel.cp", plan->cp);
    add_number(keys, "parallel.dp", plan->dp);
    add_positive(keys, "parallel.idle_gpus", plan->idle_gpus);
    add_number(keys, "parallel.micro_batch", plan->micro_batch);
    if (model_is_moe(&scenario->model)) {
        add_number(keys, "parallel.ep", plan->ep);
        add_number(keys, "parallel.etp", plan->etp);
    }
    if (plan->tp > 1)
        cJSON_AddBoolToObject(keys, "parallel.sequence_parallel", plan->sequence_parallel);
    if (plan->cp > 1) add_text(keys, "parallel.cp_method", CP_METHOD_NAMES[plan->cp_method]);
    if (plan->pp > 1) {
        add_number(keys, "parallel.vpp", plan->vpp);
        add_text(keys, "parallel.schedule", plan_schedule_name(plan));
        stage_keys(plan, keys);
    }
    if (plan_stages_alternate(plan))
        add_text(keys, "parallel.order", PLAN_ORDER_NAMES[plan->order]);
    if (plan->vocab_barriers > 0) cJSON_AddTrueToObject(keys, "parallel.vocab_parallel");
    if (plan->node_order)
        cJSON_AddItemToObject(
            keys, "parallel.placement",
            cJSON_CreateIntArray(plan->node_order->node, plan->node_order->num_nodes));
    recompute_keys(plan, keys);
    sharding_keys(plan, keys);
}

cJSON *scenario_keys(const Scenario *scenario, const Plan *plan) {
    cJSON *keys = cJSON_CreateObject();
    model_keys(&scenario->model, keys);
    score_keys(scenario, keys);
    training_keys(scenario, plan, keys);
    parallel_keys(scenario, plan, keys);
    return keys;
}

int keys_compare(const cJSON *a, const cJSON *b,
                 void (*at)(const char *key, const cJSON *a, const cJSON *b, void *context),
                 void *context) {
    const cJSON *item;
    int num = 0;
    cJSON_ArrayForEach(item, a) {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(b, item->string);
        if (other && cJSON_Compare(item, other, true)) continue;
        at(item->string, item, other, context);
        num++;
    }
    cJSON_ArrayForEach(item, b) {
        if (cJSON_GetObjectItemCaseSensitive(a, item->string)) continue;
        at(item->string, NULL, item, context);
        num++;
    }
    return num;
}

// The preset by name, written out, so that it can be changed.
static void preset_write_out(cJSON *document) {
    Arena arena = {0};
    JsonNode root;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "model"));
    if (name && json_load(data_path(&arena, "models", name), &arena, &root).code == STATUS_OK)
        cJSON_ReplaceItemInObjectCaseSensitive(document, "model", cJSON_Duplicate(root.item, true));
    arena_free(&arena);
}

void key_restore(cJSON *document, const char *key, const cJSON *value) {
    const char *dot = strchr(key, '.');
    char section[40];
    const size_t length = (size_t)(dot - key);
    if (length >= sizeof section) return;
    memcpy(section, key, length);
    section[length] = '\0';
    if (strcmp(section, "model") == 0) preset_write_out(document);
    cJSON *object = cJSON_GetObjectItemCaseSensitive(document, section);
    cJSON_DeleteItemFromObjectCaseSensitive(object, dot + 1);
    if (value) cJSON_AddItemToObject(object, dot + 1, cJSON_Duplicate(value, true));
}
