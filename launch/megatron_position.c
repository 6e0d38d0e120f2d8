// Positions: rotary embeddings and their scaling to long contexts.
#include "launch/megatron.h"

#include <math.h>
#include <string.h>

RopeScaling megatron_rope_scaling(const Scenario *scenario, Arena *arena) {
    const cJSON *item = megatron_model_key(scenario, "rope_scaling", arena);
    if (!item) item = megatron_model_key(scenario, "rope_parameters", arena); // transformers 5
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(item, "rope_type");
    if (!type) type = cJSON_GetObjectItemCaseSensitive(item, "type");
    const char *name = cJSON_IsString(type) ? type->valuestring : "default";
    return (RopeScaling){.keys = item, .type = strcmp(name, "default") == 0 ? NULL : name};
}

double megatron_rope_number(const RopeScaling *scaling, const char *key, double absent) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(scaling->keys, key);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

// Latent attention: Megatron-LM's default is yarn, also where the model has none.
static void latent_scaling_flags(const RopeScaling *scaling, FlagList *flags) {
    bool yarn = scaling->type && strcmp(scaling->type, "yarn") == 0;
    flag_text(flags, "--rope-type", yarn ? "yarn" : "rope");
    if (!yarn) return;
    flag_number(flags, "--rotary-scaling-factor", megatron_rope_number(scaling, "factor", 1));
    flag_number(flags, "--mscale", megatron_rope_number(scaling, "mscale", 1));
    flag_number(flags, "--mscale-all-dim", megatron_rope_number(scaling, "mscale_all_dim", 0));
}

static void scaling_flags(const Scenario *scenario, FlagList *flags) {
    RopeScaling scaling = megatron_rope_scaling(scenario, flags->arena);
    if (mixer_is_latent(model_mixer(&scenario->model))) {
        latent_scaling_flags(&scaling, flags);
    } else if (scaling.type && strcmp(scaling.type, "llama3") == 0) {
        flag_switch(flags, "--use-rope-scaling");
        flag_number(flags, "--rope-scaling-factor", megatron_rope_number(&scaling, "factor", 8));
    } else if (scaling.type && strcmp(scaling.type, "linear") == 0) {
        double factor = megatron_rope_number(&scaling, "factor", 1);
        if (factor == floor(factor))
            flag_int(flags, "--rotary-seq-len-interpolation-factor", (long long)factor);
    }
}

static void rope_flags(const Scenario *scenario, FlagList *flags) {
    RopeScaling scaling = megatron_rope_scaling(scenario, flags->arena);
    double base = megatron_model_number(scenario, "rope_theta", flags->arena,
                                        megatron_rope_number(&scaling, "rope_theta", 0));
    base = megatron_model_number(scenario, "rotary_emb_base", flags->arena, base); // GPT-NeoX
    flag_text(flags, "--position-embedding-type", "rope");
    if (base > 0)
        flag_int(flags, "--rotary-base", (long long)base);
    else
        flag_raw(flags, "--rotary-base", "\"$ROTARY_BASE\"");
    double part =
        megatron_model_number(scenario, "partial_rotary_factor", flags->arena,
                              megatron_model_number(scenario, "rotary_pct", flags->arena, 1));
    if (part < 1) flag_number(flags, "--rotary-percent", part);
    scaling_flags(scenario, flags);
}

void megatron_position_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    // Of a learned table the rows that are priced: OPT's has two more than it states.
    double stated = model->functions.max_positions;
    int longest = model->max_position_embeddings;
    if (model->position != POSITION_LEARNED && stated > 0 && stated < 2e9) longest = (int)stated;
    if (longest < scenario->training.seq_len) longest = (int)scenario->training.seq_len;
    flag_int(flags, "--max-position-embeddings", longest);
    switch (model->position) {
    case POSITION_ROPE:
        rope_flags(scenario, flags);
        break;
    case POSITION_LEARNED:
        flag_text(flags, "--position-embedding-type", "learned_absolute");
        break;
    case POSITION_NONE:
        flag_text(flags, "--position-embedding-type", "none");
        break;
    case POSITION_ALIBI:
        break; // a rule of megatron-core
    }
}
