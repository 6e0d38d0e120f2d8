// The T5 family: an encoder, and a decoder whose layers attend to what that made.
#include "config/model/model_front.h"
#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

#include <string.h>

#define KEYS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

// Values of Hugging Face's T5Config and MT5Config where a key is absent.
typedef struct {
    int vocab_size;
    bool gated_mlp, tie_word_embeddings;
} Absent;
static const Absent T5 = {32128, false, true}, MT5 = {250112, true, false};

// feed_forward_proj: an activation, which "gated-" stands before where a third matrix gates it.
static Status mlp_read(const JsonNode *config, Model *out) {
    static const char *const NAMES[] = {"relu",       "gelu",       "gelu_new", "silu",
                                        "gated-gelu", "gated-silu", NULL};
    JsonNode node = json_get(config, "feed_forward_proj");
    if (!json_is_present(&node)) return status_ok();
    int kind;
    TRY(json_read_name(&node, NAMES, &kind));
    out->gated_mlp = kind >= 4;
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
static Status sizes_read(const JsonNode *config, Model *out) {
    KEYS(WIDTH, "d_model", "hidden_size");
    KEYS(HEADS, "num_heads", "num_attention_heads");
    KEYS(HEAD, "d_kv");
    KEYS(MLP, "d_ff");
    KEYS(BUCKETS, "relative_attention_num_buckets");
    TRY(key_read_size_or(config, WIDTH, MODEL_MAX_WIDTH, KEY_REQUIRED, &out->hidden_size));
    TRY(key_read_size_or(config, HEADS, MODEL_MAX_HEADS, KEY_REQUIRED, &out->num_heads));
    TRY(key_read_size_or(config, HEAD, MODEL_MAX_HEAD_DIM, 64, &out->head_dim));
    TRY(key_read_size_or(config, MLP, MODEL_MAX_INTERMEDIATE, KEY_REQUIRED,
                         &out->intermediate_size));
    TRY(key_read_size_or(config, BUCKETS, 1 << 16, 32, &out->num_relative_buckets));
    out->num_kv_heads = out->num_heads;
    return mlp_read(config, out);
}

Status model_import_t5(const JsonNode *config, const char *model_type, Arena *arena, Model *model) {
    KEYS(LAYERS, "num_layers", "num_hidden_layers");
    KEYS(DECODER, "num_decoder_layers");
    KEYS(VOCABULARY, "vocab_size");
    const Absent *absent = strcmp(model_type, "mt5") == 0 ? &MT5 : &T5;
    Model encoder = {.name = "encoder",
                     .norms_per_layer = 2,
                     .final_norm = true,
                     .gated_mlp = absent->gated_mlp,
                     .position = POSITION_NONE,
                     .num_kinds = 1};
    int num_layers;
    TRY(refuse_encoder_alone(config));
    TRY(sizes_read(config, &encoder));
    TRY(key_read_size_or(config, LAYERS, MODEL_MAX_LAYERS / 2, KEY_REQUIRED, &encoder.num_layers));
    TRY(key_read_size_or(config, DECODER, MODEL_MAX_LAYERS / 2, encoder.num_layers, &num_layers));
    encoder.layer_kind = ARENA_ARRAY(arena, encoder.num_layers, uint8_t);
    *model = encoder;
    model->num_layers = num_layers;
    model->kinds[0].cross = true;
    model->layer_kind = ARENA_ARRAY(arena, num_layers, uint8_t);
    model->tie_word_embeddings = absent->tie_word_embeddings;
    TRY(key_read_size_or(config, VOCABULARY, MODEL_MAX_VOCAB, absent->vocab_size,
                         &model->vocab_size));
    TRY(key_read_bool(config, "tie_word_embeddings", &model->tie_word_embeddings));
    TRY(model_read_functions(config, arena, &model->functions));
    Model *own = ARENA_NEW(arena, Model);
    *own = encoder;
    ModelFront *front = ARENA_NEW(arena, ModelFront);
    *front = (ModelFront){.kind = FRONT_ENCODER, .model = own};
    model->front = front;
    model_add_front(arena, model);
    return model_check(config, model);
}
