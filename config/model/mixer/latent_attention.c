// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).
#include "config/model/mixer.h"

#include <stdio.h>

// Appendix C: W^DQ, W^UQ with W^QR, W^DKV with W^KR, W^UK with W^UV, W^O. Biases, where a file has
// them, are on the down-projections and W^O.
static double parameters(const Model *model, const Mixer *m) {
    const double hidden = model->hidden_size, heads = m->num_heads;
    const double query = heads * (m->qk_nope_head_dim + m->qk_rope_head_dim);
    const double q_rank = m->q_lora_rank;
    const double kv_down = m->kv_lora_rank + m->qk_rope_head_dim;
    const double kv_up = heads * (m->qk_nope_head_dim + m->v_head_dim);
    double sum = q_rank > 0 ? hidden * q_rank + q_rank * query : hidden * query;
    sum += hidden * kv_down + m->kv_lora_rank * kv_up;
    sum += heads * m->v_head_dim * hidden;
    if (m->qkv_bias) sum += q_rank + kv_down;
    return m->out_bias ? sum + hidden : sum;
}

// Of the ranks.
static double norm_parameters(const Model *model, const Mixer *mixer) {
    const double each = model->norm_bias ? 2 : 1;
    return model_heads_norm_parameters(model, mixer) +
           each * (mixer->q_lora_rank + mixer->kv_lora_rank);
}

static double token_flops(const Mixer *mixer, double keys) {
    const int dims = mixer->qk_nope_head_dim + mixer->qk_rope_head_dim + mixer->v_head_dim;
    return 2 * keys * mixer->num_heads * dims;
}

static double cache_values(const Mixer *mixer) {
    return mixer->kv_lora_rank + mixer->qk_rope_head_dim;
}

static bool tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]) {
    if (mixer->num_heads % tp == 0) return false;
    snprintf(text, MIXER_CONFLICT, "%d does not divide num_attention_heads %d", tp,
             mixer->num_heads);
    return true;
}

static bool heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]) {
    if (mixer->num_heads / tp % cp == 0) return false;
    snprintf(text, MIXER_CONFLICT,
             "%d does not divide num_attention_heads %d / tp %d (ulysses): heads in parts are "
             "legal, but not supported yet",
             cp, mixer->num_heads, tp);
    return true;
}

static const char *text(const Mixer *mixer, Arena *arena) {
    const char *text = arena_printf(arena, "latent attention, %d heads of %d, rank %d",
                                    mixer->num_heads, mixer->head_dim, mixer->kv_lora_rank);
    return mixer->window > 0 ? arena_printf(arena, "%s, window %d", text, mixer->window) : text;
}

static void add_json(const Mixer *mixer, cJSON *object) {
    cJSON_AddNumberToObject(object, "num_heads", mixer->num_heads);
    cJSON_AddNumberToObject(object, "q_lora_rank", mixer->q_lora_rank);
    cJSON_AddNumberToObject(object, "kv_lora_rank", mixer->kv_lora_rank);
    cJSON_AddNumberToObject(object, "head_dim", mixer->head_dim);
    if (mixer->window > 0) cJSON_AddNumberToObject(object, "window", mixer->window);
}

const MixerRow LATENT_ATTENTION_MIXER_ROW = {
    .name = "latent_attention",
    .parameters = parameters,
    .norm_parameters = norm_parameters,
    .token_flops = token_flops,
    .cache_values = cache_values,
    .state_bytes = mixer_no_state,
    .tp_conflict = tp_conflict,
    .heads_conflict = heads_conflict,
    .text = text,
    .add_json = add_json,
};
