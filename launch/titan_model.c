// Which of torchtitan's models the scenario's is.
#include "launch/task.h"
#include "launch/titan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

Status titan_refuse(const Scenario *scenario, const char *path, const char *nearest,
                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    const Status status = task_refuse(scenario, "torchtitan", path, nearest, format, args);
    va_end(args);
    return status;
}

static bool mixer_is_same(const Mixer *a, const Mixer *b) {
    return a->kind == b->kind && a->num_heads == b->num_heads &&
           a->num_kv_heads == b->num_kv_heads && a->head_dim == b->head_dim &&
           a->q_lora_rank == b->q_lora_rank && a->kv_lora_rank == b->kv_lora_rank &&
           a->qk_nope_head_dim == b->qk_nope_head_dim &&
           a->qk_rope_head_dim == b->qk_rope_head_dim && a->v_head_dim == b->v_head_dim &&
           a->qk_norm == b->qk_norm && a->qk_norm_whole == b->qk_norm_whole &&
           a->qkv_bias == b->qkv_bias && a->window == b->window;
}

static bool ffn_is_same(const FeedForward *a, const FeedForward *b) {
    return a->intermediate_size == b->intermediate_size && a->gated == b->gated &&
           a->num_experts == b->num_experts && a->num_experts_per_tok == b->num_experts_per_tok &&
           a->moe_intermediate_size == b->moe_intermediate_size &&
           a->shared_intermediate_size == b->shared_intermediate_size &&
           a->num_expert_groups == b->num_expert_groups &&
           a->expert_groups_per_tok == b->expert_groups_per_tok;
}

static bool layers_are_same(const Model *a, const Model *b) {
    if (a->num_layers != b->num_layers) return false;
    for (int l = 0; l < a->num_layers; l++) {
        const LayerKind *x = &a->kinds[a->layer_kind[l]], *y = &b->kinds[b->layer_kind[l]];
        if (!mixer_is_same(&x->mixer, &y->mixer) || !ffn_is_same(&x->ffn, &y->ffn)) return false;
    }
    return true;
}

static bool model_is_same(const Model *a, const Model *b) {
    return layers_are_same(a, b) && a->hidden_size == b->hidden_size &&
           a->vocab_size == b->vocab_size && a->norm == b->norm && a->position == b->position &&
           a->tie_word_embeddings == b->tie_word_embeddings;
}

// How far the numbers of parameters are apart, as a factor's logarithm.
static double distance(const Model *a, const Model *b) {
    return fabs(log(model_num_parameters(a) / model_num_parameters(b)));
}

Status titan_model_keys(const Scenario *scenario, KeyList *keys) {
    const TitanModel *nearest = TITAN_MODELS;
    double least = INFINITY;
    for (const TitanModel *row = TITAN_MODELS; row->name; row++) {
        Model known;
        TRY(model_load_preset(row->preset, keys->arena, &known));
        if (model_is_same(&scenario->model, &known)) {
            key_text(keys, "model", "name", row->name);
            key_text(keys, "model", "flavor", row->flavor);
            return status_ok();
        }
        if (distance(&scenario->model, &known) >= least) continue;
        least = distance(&scenario->model, &known);
        nearest = row;
    }
    return titan_refuse(
        scenario, "model",
        arena_printf(keys->arena, "%s (%s %s)", nearest->preset, nearest->name, nearest->flavor),
        "no flavor has these sizes");
}

bool titan_has_model(const Scenario *scenario, Arena *arena) {
    KeyList keys = {.arena = arena, .rows = TITAN_KEYS};
    return titan_model_keys(scenario, &keys).code == STATUS_OK;
}
