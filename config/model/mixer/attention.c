// Softmax attention of heads that share keys and values in groups (Ainslie et al. 2023, "GQA",
// arXiv:2305.13245). With an output gate (Qwen3-Next, modeling_qwen3_next.py: Qwen3NextAttention)
// the query's projection makes a second number for each of the attention's results, whose sigmoid
// multiplies it; with a gate of heads (Step 3.5, modeling_step3p5.py: g_proj) one a head.
#include "config/model/mixer.h"

#include <stdio.h>

// Query, key, value and output projections; one logit per head where there are sinks.
static double parameters(const Model *model, const Mixer *m) {
    const double hidden = model->hidden_size;
    const double query = (double)m->num_heads * m->head_dim;
    const double key_value = 2.0 * m->num_kv_heads * m->head_dim;
    double sum = hidden * (query + key_value) + query * hidden;
    if (m->output_gate == GATE_RESULTS) sum += hidden * query;
    if (m->output_gate == GATE_HEADS) sum += hidden * m->num_heads;
    if (m->qkv_bias) sum += query + key_value;
    if (m->out_bias) sum += hidden;
    return m->sinks ? sum + m->num_heads : sum;
}

static double norm_parameters(const Model *model, const Mixer *mixer) {
    return model_heads_norm_parameters(model, mixer);
}

// Scores and results, each a product over the keys.
static double token_flops(const Mixer *mixer, double keys) {
    return 2 * keys * mixer->num_heads * (2 * mixer->head_dim);
}

static double cache_values(const Mixer *mixer) {
    return 2.0 * mixer->num_kv_heads * mixer->head_dim;
}

static bool tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]) {
    const int heads = mixer->num_heads, kv_heads = mixer->num_kv_heads;
    if (heads % tp != 0)
        snprintf(text, MIXER_CONFLICT, "%d does not divide num_attention_heads %d", tp, heads);
    else if (tp <= kv_heads && kv_heads % tp != 0)
        snprintf(text, MIXER_CONFLICT, "%d does not divide num_key_value_heads %d", tp, kv_heads);
    else if (tp > kv_heads && tp % kv_heads != 0) // each kv head stands on tp / kv_heads ranks
        snprintf(text, MIXER_CONFLICT, "%d is not a multiple of num_key_value_heads %d", tp,
                 kv_heads);
    else
        return false;
    return true;
}

// Whole heads; those of keys and values may be copied.
static bool heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]) {
    const int kv_heads = mixer->num_kv_heads > tp ? mixer->num_kv_heads / tp : 1;
    if (mixer->num_heads / tp % cp != 0)
        snprintf(text, MIXER_CONFLICT,
                 "%d does not divide num_attention_heads %d / tp %d (ulysses): heads in parts are "
                 "legal, but not supported yet",
                 cp, mixer->num_heads, tp);
    else if (kv_heads % cp != 0 && cp % kv_heads != 0)
        snprintf(text, MIXER_CONFLICT,
                 "%d neither divides num_key_value_heads %d / tp %d nor is a multiple (ulysses): "
                 "legal, but not supported yet",
                 cp, mixer->num_kv_heads, tp);
    else
        return false;
    return true;
}

static const char *text(const Mixer *m, Arena *arena) {
    static const char *const GATES[] = {"", ", gated results", ", gated heads"};
    const char *text =
        arena_printf(arena, "attention, %d heads of %d for %d of keys and values%s", m->num_heads,
                     m->head_dim, m->num_kv_heads, GATES[m->output_gate]);
    if (m->chunk > 0) text = arena_printf(arena, "%s, in chunks of %d", text, m->chunk);
    if (m->window > 0) text = arena_printf(arena, "%s, window %d", text, m->window);
    return m->no_positions ? arena_printf(arena, "%s, without positions", text) : text;
}

static void add_json(const Mixer *mixer, cJSON *object) {
    static const char *const GATES[] = {"", "results", "heads"};
    cJSON_AddNumberToObject(object, "num_heads", mixer->num_heads);
    cJSON_AddNumberToObject(object, "num_kv_heads", mixer->num_kv_heads);
    cJSON_AddNumberToObject(object, "head_dim", mixer->head_dim);
    if (mixer->window > 0) cJSON_AddNumberToObject(object, "window", mixer->window);
    if (mixer->chunk > 0) cJSON_AddNumberToObject(object, "chunk", mixer->chunk);
    if (mixer->no_positions) cJSON_AddBoolToObject(object, "positions", false);
    if (mixer->output_gate)
        cJSON_AddStringToObject(object, "output_gate", GATES[mixer->output_gate]);
}

const MixerRow ATTENTION_MIXER_ROW = {
    .name = "attention",
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
