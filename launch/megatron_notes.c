// What of a model has no flag, in sentences for the head of the script.
#include "launch/megatron.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void note_add(MegatronCommand *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note_add(MegatronCommand *command, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (command->num_notes < MEGATRON_MAX_NOTES)
        command->notes[command->num_notes++] = arena_strdup(command->flags.arena, text);
}

static void rope_notes(const Scenario *scenario, MegatronCommand *command) {
    Arena *arena = command->flags.arena;
    RopeScaling scaling = megatron_rope_scaling(scenario, arena);
    if (scenario->model.position != POSITION_ROPE || !scaling.type) return;
    bool latent = mixer_is_latent(model_mixer(&scenario->model));
    double low = megatron_rope_number(&scaling, "low_freq_factor", 1);
    double high = megatron_rope_number(&scaling, "high_freq_factor", 4);
    double fast = megatron_rope_number(&scaling, "beta_fast", 32);
    double slow = megatron_rope_number(&scaling, "beta_slow", 1);
    double factor = megatron_rope_number(&scaling, "factor", 1);
    double was = megatron_rope_number(&scaling, "original_max_position_embeddings", 0);
    if (latent && strcmp(scaling.type, "yarn") == 0) {
        if (fast != 32 || slow != 1 || (was != 0 && was != 4096))
            note_add(command,
                     "rope_scaling: beta_fast %g, beta_slow %g and %g original positions have no "
                     "flag; Megatron-LM takes 32, 1 and 4096.",
                     fast, slow, was);
    } else if (!latent && strcmp(scaling.type, "llama3") == 0) {
        if (low != 1 || high != 4 || (was != 0 && was != 8192))
            note_add(command,
                     "rope_scaling: low_freq_factor %g, high_freq_factor %g and %g original "
                     "positions have no flag; Megatron-LM takes 1, 4 and 8192.",
                     low, high, was);
    } else if (latent || strcmp(scaling.type, "linear") != 0 || factor != (int)factor) {
        note_add(command,
                 "rope_scaling of type %s is left out: positions are rotated as without it.",
                 shell_name(scaling.type, arena));
    }
}

static void router_notes(const Scenario *scenario, MegatronCommand *command) {
    Arena *arena = command->flags.arena;
    if (!model_is_moe(&scenario->model)) return;
    const cJSON *score = megatron_model_key(scenario, "scoring_func", arena);
    const cJSON *method = megatron_model_key(scenario, "topk_method", arena);
    const cJSON *norm = megatron_model_key(scenario, "norm_topk_prob", arena);
    bool sigmoid = cJSON_IsString(score) && strcmp(score->valuestring, "sigmoid") == 0;
    if (cJSON_IsString(score) && !sigmoid && strcmp(score->valuestring, "softmax") != 0)
        note_add(command, "Router scores %s are replaced by softmax.",
                 shell_name(score->valuestring, arena));
    if (!norm)
        note_add(command, "The model does not state norm_topk_prob: the weights of a token's "
                          "experts add up to 1.");
    else if (sigmoid && cJSON_IsFalse(norm))
        note_add(command, "norm_topk_prob false is left out: Megatron-LM normalises sigmoid "
                          "scores.");
    if (cJSON_IsString(method) && strcmp(method->valuestring, "group_limited_greedy") == 0)
        note_add(command, "topk_method group_limited_greedy: Megatron-LM ranks groups of experts "
                          "by the sum of their best scores, not by the best one.");
    note_add(command, "Experts are balanced by an auxiliary loss over the micro-batch with weight "
                      "MOE_AUX_LOSS_COEFF, whatever the model's authors used.");
}

// Keys that change what is computed, at next to no cost, and have no flag.
static void key_notes(const Scenario *scenario, MegatronCommand *command) {
    static const struct {
        const char *key;
        double without; // value that means "not used"
    } keys[] = {{"attn_logit_softcapping", 0},
                {"final_logit_softcapping", 0},
                {"query_pre_attn_scalar", 0},
                {"logit_scale", 1},
                {"logits_scaling", 1},
                {"embedding_multiplier", 1},
                {"residual_multiplier", 1},
                {"attention_multiplier", 0},
                {"scale_emb", 1},
                {"mup_base_width", 0}};
    Arena *arena = command->flags.arena;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double value = megatron_model_number(scenario, keys[i].key, arena, keys[i].without);
        if (value != keys[i].without)
            note_add(command, "%s %g is left out: it has no flag.", keys[i].key, value);
    }
}

static void dropout_notes(const Scenario *scenario, MegatronCommand *command) {
    static const char *const keys[] = {"attention_dropout", "attn_pdrop", "hidden_dropout",
                                       "resid_pdrop"};
    Arena *arena = command->flags.arena;
    if (scenario->execution.stack.training.dropout) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (megatron_model_number(scenario, keys[i], arena, 0) > 0) {
            note_add(command, "The model's dropout is left out.");
            return;
        }
}

void megatron_notes(const Scenario *scenario, MegatronCommand *command) {
    const Model *model = &scenario->model;
    Arena *arena = command->flags.arena;
    const char *epsilon = model->norm == NORM_RMSNORM ? "rms_norm_eps" : "layer_norm_eps";
    if (cJSON_IsObject(megatron_model_key(scenario, "vision_config", arena)))
        note_add(command, "The vision tower is left out: this trains the language model alone.");
    rope_notes(scenario, command);
    router_notes(scenario, command);
    key_notes(scenario, command);
    dropout_notes(scenario, command);
    if (megatron_norm_epsilon(scenario, arena) <= 0)
        note_add(command, "The model does not state %s: Megatron-LM's is 1e-5.", epsilon);
    note_add(command, "Initialisation, schedule of the learning rate, weight decay and the "
                      "optimizer's betas are Megatron-LM's defaults; it pads the vocabulary to a "
                      "multiple of 128 x tp.");
}
