#include "config/model/model_functions.h"

#include "config/model/model_keys.h"

#include <string.h>

#define KEYS(name, ...) const char *const name[] = {__VA_ARGS__, NULL}

// The first spelling that is there; leaves *out where none is.
static Status read_double(const JsonNode *config, const char *const *keys, double min, double max,
                          double *out) {
    JsonNode node = key_find(config, keys);
    return json_is_present(&node) ? json_read_double(&node, min, max, out) : status_ok();
}

// Reads what only a warning needs: what is no positive number is left.
static void read_any(const JsonNode *config, const char *const *keys, double *out) {
    JsonNode node = key_find(config, keys);
    if (cJSON_IsNumber(node.item) && node.item->valuedouble > 0) *out = node.item->valuedouble;
}

static Status read_name(const JsonNode *config, const char *const *keys, Arena *arena,
                        const char **out) {
    JsonNode node = key_find(config, keys);
    return json_is_present(&node) ? json_read_string(&node, arena, out) : status_ok();
}

static FunctionKind activation_of(const char *name) {
    static const struct {
        const char *name;
        FunctionKind kind;
    } NAMES[] = {{"silu", FUNCTION_SILU},      {"swish", FUNCTION_SILU},
                 {"gelu", FUNCTION_GELU},      {"gelu_new", FUNCTION_GELU},
                 {"gelu_fast", FUNCTION_GELU}, {"gelu_pytorch_tanh", FUNCTION_GELU},
                 {"relu", FUNCTION_RELU}};
    if (!name) return FUNCTION_UNSTATED;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(name, NAMES[i].name) == 0) return NAMES[i].kind;
    return FUNCTION_OTHER;
}

static RopeKind kind_of(const char *name) {
    if (!name || strcmp(name, "default") == 0) return ROPE_PLAIN;
    if (strcmp(name, "linear") == 0) return ROPE_LINEAR;
    return strcmp(name, "llama3") == 0 ? ROPE_LLAMA3 : ROPE_OTHER;
}

static KEYS(SCALING, "rope_scaling", "rope_parameters");
static KEYS(ROTARY, "partial_rotary_factor", "rotary_pct");

// Newer files have rope_parameters, with the base in it; one for each kind of layer is of no kind
// that is known here.
static Status read_rope(const JsonNode *config, Arena *arena, ModelFunctions *out) {
    static KEYS(TYPE, "rope_type", "type");
    static KEYS(THETA, "rope_theta", "rotary_emb_base");
    static KEYS(FACTOR, "factor");
    static KEYS(LOW, "low_freq_factor");
    static KEYS(HIGH, "high_freq_factor");
    static KEYS(ORIGINAL, "original_max_position_embeddings");
    TRY(read_double(config, THETA, 1, 1e12, &out->rope_theta));
    JsonNode scaling = key_find(config, SCALING);
    if (!json_is_present(&scaling)) return status_ok();
    TRY(json_expect_object(&scaling));
    const char *name = NULL;
    TRY(read_name(&scaling, TYPE, arena, &name));
    const cJSON *first = scaling.item->child;
    if (!name && cJSON_IsObject(first)) name = first->string;
    out->rope = kind_of(name);
    TRY(read_double(&scaling, THETA, 1, 1e12, &out->rope_theta));
    TRY(read_double(&scaling, ROTARY, 0, 1, &out->rotary_frac));
    if (out->rope == ROPE_PLAIN) return status_ok();
    out->rope_name = name;
    read_any(&scaling, FACTOR, &out->stated_factor);
    read_any(&scaling, ORIGINAL, &out->scaled_from);
    if (out->rope == ROPE_OTHER) return status_ok();
    TRY(read_double(&scaling, FACTOR, 1, 1e6, &out->rope_factor));
    TRY(read_double(&scaling, LOW, 1e-6, 1e6, &out->low_freq_factor));
    TRY(read_double(&scaling, HIGH, 1e-6, 1e6, &out->high_freq_factor));
    TRY(read_double(&scaling, ORIGINAL, 1, 1e9, &out->original_positions));
    return status_ok();
}

// Between both bands of wavelengths lies a third.
static Status check_bands(const JsonNode *config, const ModelFunctions *f) {
    if (f->rope != ROPE_LLAMA3 || f->high_freq_factor > f->low_freq_factor) return status_ok();
    JsonNode scaling = key_find(config, SCALING), high = json_get(&scaling, "high_freq_factor");
    return json_error(&high, "%g; expected more than low_freq_factor %g", f->high_freq_factor,
                      f->low_freq_factor);
}

Status model_read_stated(const JsonNode *config, Arena *arena, ModelFunctions *out) {
    static KEYS(ACTIVATION, "hidden_act", "activation_function", "hidden_activation", "activation",
                "mlp_hidden_act");
    static KEYS(EPSILON, "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps",
                "norm_epsilon");
    static KEYS(POSITIONS, "max_position_embeddings", "n_positions");
    static KEYS(LIMIT, "swiglu_limit");
    *out = (ModelFunctions){.norm_epsilon = 1e-5,
                            .rope_theta = 1e4,
                            .rotary_frac = 1,
                            .rope_factor = 1,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4,
                            .original_positions = 8192,
                            .stated_factor = 1};
    TRY(read_name(config, ACTIVATION, arena, &out->activation_name));
    out->activation = activation_of(out->activation_name);
    TRY(read_double(config, LIMIT, 0, 1e6, &out->swiglu_limit));
    TRY(read_double(config, EPSILON, 0, 1, &out->norm_epsilon));
    TRY(read_double(config, ROTARY, 0, 1, &out->rotary_frac));
    read_any(config, POSITIONS, &out->max_positions);
    return read_rope(config, arena, out);
}

Status model_read_functions(const JsonNode *config, Arena *arena, ModelFunctions *out) {
    TRY(model_read_stated(config, arena, out));
    return check_bands(config, out);
}
