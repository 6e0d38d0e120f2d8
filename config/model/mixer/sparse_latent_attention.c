// Latent attention to the keys that an indexer chooses (DeepSeek Sparse Attention, DeepSeek-V3.2,
// arXiv:2512.02556, section 2.1). The indexer has many queries and one key a token; it weighs their
// products by head, and each query of the attention sees the index_topk keys of the largest sums. A
// layer may have no indexer and see the keys that the one of a layer before has chosen (GLM-5.2).
#include "config/model/mixer.h"

#include <stdio.h>

#define LATENT (mixer_row(MIXER_LATENT_ATTENTION))

// Of the indexer: queries of the query's latent, one key and the weights of the heads of the input
// (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py, Indexer). No biases.
static double parameters(const Model *model, const Mixer *m) {
    const double hidden = model->hidden_size, heads = m->index_num_heads;
    if (heads <= 0) return LATENT->parameters(model, m);
    return LATENT->parameters(model, m) + heads * m->index_head_dim * m->q_lora_rank +
           hidden * m->index_head_dim + hidden * heads;
}

// A LayerNorm of the indexer's keys, with a bias.
static double norm_parameters(const Model *model, const Mixer *mixer) {
    const double own = mixer->index_num_heads > 0 ? 2.0 * mixer->index_head_dim : 0;
    return LATENT->norm_parameters(model, mixer) + own;
}

// The indexer looks at all keys. Of causal queries that see `keys` on average the last one sees
// twice as many, and those before the index_topk-th see less than index_topk.
static double token_flops(const Mixer *mixer, double keys) {
    const double topk = mixer->index_topk, all = 2 * keys;
    const double chosen = all <= topk ? keys : topk - topk * topk / (2 * all);
    return LATENT->token_flops(mixer, chosen) +
           2 * keys * mixer->index_num_heads * mixer->index_head_dim;
}

static double cache_values(const Mixer *mixer) {
    return LATENT->cache_values(mixer) + (mixer->index_num_heads > 0 ? mixer->index_head_dim : 0);
}

static bool tp_conflict(const Mixer *mixer, int tp, char text[MIXER_CONFLICT]) {
    return LATENT->tp_conflict(mixer, tp, text);
}

static bool heads_conflict(const Mixer *mixer, int tp, int cp, char text[MIXER_CONFLICT]) {
    (void)mixer, (void)tp;
    snprintf(text, MIXER_CONFLICT,
             "%d: an indexer whose keys lie on several ranks is legal, but not supported yet", cp);
    return true;
}

static const char *text(const Mixer *mixer, Arena *arena) {
    if (mixer->index_num_heads == 0)
        return arena_printf(arena, "%s, to the %d keys chosen before", LATENT->text(mixer, arena),
                            mixer->index_topk);
    return arena_printf(arena, "%s, to %d keys that %d heads of %d choose",
                        LATENT->text(mixer, arena), mixer->index_topk, mixer->index_num_heads,
                        mixer->index_head_dim);
}

static void add_json(const Mixer *mixer, cJSON *object) {
    LATENT->add_json(mixer, object);
    cJSON_AddNumberToObject(object, "index_num_heads", mixer->index_num_heads);
    cJSON_AddNumberToObject(object, "index_head_dim", mixer->index_head_dim);
    cJSON_AddNumberToObject(object, "index_topk", mixer->index_topk);
}

const MixerRow SPARSE_LATENT_ATTENTION_MIXER_ROW = {
    .name = "sparse_latent_attention",
    .parameters = parameters,
    .norm_parameters = norm_parameters,
    .token_flops = token_flops,
    .cache_values = cache_values,
    .state_bytes = mixer_no_state,
    .tp_conflict = tp_conflict,
    .heads_conflict = heads_conflict,
    .always_trades_heads = true,
    .unmeasured = "attention with an indexer",
    .text = text,
    .add_json = add_json,
};
