// The T5 family: an encoder, and a decoder whose layers attend to what that made.
#include "config/model/model_front.h"
#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

#include <string.h>

#define KEYS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

const char *const MODEL_T5_KEYS[] = {
    "model_type",
    "name",
    "d_model",
    "d_kv",
    "d_ff",
    "num_heads",
    "num_layers",
    "num_decoder_layers",
    "vocab_size",
    "feed_forward_proj",
    "tie_word_embeddings",
    "relative_attention_num_buckets",
    NULL,
};

// Values of Hugging Face's T5Config and MT5Config where a key is absent.
typedef struct {
    int vocab_size;
    bool gated_mlp, tie_word_embeddings;
} Absent;
static const Absent T5 = {32128, false, true}, MT5 = {250112, true, false};

// feed_forward_proj: an activation, which "gated-" stands before where a third matrix gates it.
static Status mlp_read(const JsonNode *config, ModelDraft *out) {
    static const char *const NAMES[] = {"relu",       "gelu",       "gelu_new", "silu",
                                        "gated-gelu", "gated-silu", NULL};
    JsonNode node = json_get(config, "feed_forward_proj");
    if (!json_is_present(&node)) return status_ok();
    int kind;
    TRY(json_read_name(&node, NAMES, &kind));
    out->ffn.gated = kind >= 4;
    return status_ok();
}

// T5EncoderModel, as image generators read prompts with.
static Status refuse_encoder_alone(const JsonNode *config) {
    JsonNode names = json_get(config, "architectures"),
             both = json_get(config, "is_encoder_decoder");
    bool decodes = true;
    TRY(key_read_bool(config, "is_encoder_decoder", &decodes));
    if (!decodes)
        return json_error(&both, "false: an encoder alone is legal, but not supported yet");
    for (int i = 0; json_is_present(&names) && i < json_size(&names); i++) {
        JsonNode name = json_at(&names, i);
        const char *text = cJSON_GetStringValue(name.item);
        if (text && strstr(text, "EncoderModel"))
            return json_error(&name, "\"%.60s\": an encoder alone is legal, but not supported yet",
                              text);
    }
    return status_ok();
}

// What encoder and decoder share.
static Status sizes_read(const JsonNode *config, ModelDraft *out) {
    KEYS(WIDTH, "d_model", "hidden_size");
    KEYS(HEADS, "num_heads", "num_attention_heads");
    KEYS(HEAD, "d_kv");
    KEYS(MLP, "d_ff");
    KEYS(BUCKETS, "relative_attention_num_buckets");
    TRY(key_read_size_or(config, WIDTH, MODEL_MAX_WIDTH, KEY_REQUIRED, &out->model.hidden_size));
    TRY(key_read_size_or(config, HEADS, MODEL_MAX_HEADS, KEY_REQUIRED, &out->mixer.num_heads));
    TRY(key_read_size_or(config, HEAD, MODEL_MAX_HEAD_DIM, 64, &out->mixer.head_dim));
    TRY(key_read_size_or(config, MLP, MODEL_MAX_INTERMEDIATE, KEY_REQUIRED,
                         &out->ffn.intermediate_size));
    TRY(key_read_size_or(config, BUCKETS, 1 << 16, 32, &out->model.num_relative_buckets));
    out->mixer.num_kv_heads = out->mixer.num_heads;
    return mlp_read(config, out);
}

// The layers of an encoder or a decoder are all of one kind.
static void layers_set(ModelDraft *draft, int num_layers, bool cross, Arena *arena, Model *out) {
    *out = draft->model;
    out->num_layers = num_layers;
    out->num_kinds = 1;
    out->kinds[0] = (LayerKind){.mixer = draft->mixer, .ffn = draft->ffn, .cross = cross};
    out->layer_kind = ARENA_ARRAY(arena, num_layers, uint8_t);
}

Status model_import_t5(const JsonNode *config, const char *model_type, Arena *arena, Model *model) {
    KEYS(LAYERS, "num_layers", "num_hidden_layers");
    KEYS(DECODER, "num_decoder_layers");
    KEYS(VOCABULARY, "vocab_size");
    const Absent *absent = strcmp(model_type, "mt5") == 0 ? &MT5 : &T5;
    ModelDraft draft = {.model = {.name = "encoder",
                                  .norms_per_layer = 2,
                                  .final_norm = true,
                                  .position = POSITION_NONE},
                        .ffn.gated = absent->gated_mlp};
    int encoder_layers, num_layers;
    TRY(refuse_encoder_alone(config));
    TRY(sizes_read(config, &draft));
    TRY(key_read_size_or(config, LAYERS, MODEL_MAX_LAYERS / 2, KEY_REQUIRED, &encoder_layers));
    TRY(key_read_size_or(config, DECODER, MODEL_MAX_LAYERS / 2, encoder_layers, &num_layers));
    Model *encoder = ARENA_NEW(arena, Model);
    layers_set(&draft, encoder_layers, false, arena, encoder);
    layers_set(&draft, num_layers, true, arena, model);
    model->tie_word_embeddings = absent->tie_word_embeddings;
    TRY(key_read_size_or(config, VOCABULARY, MODEL_MAX_VOCAB, absent->vocab_size,
                         &model->vocab_size));
    TRY(key_read_bool(config, "tie_word_embeddings", &model->tie_word_embeddings));
    TRY(model_read_functions(config, arena, &model->functions));
    ModelFront *front = ARENA_NEW(arena, ModelFront);
    *front = (ModelFront){.kind = FRONT_ENCODER, .model = encoder};
    model->front = front;
    model_add_front(arena, model);
    return model_check(config, model);
}
