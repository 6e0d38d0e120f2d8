// The architecture.
#include "import/megatron.h"

#include "base/data_dir.h"
#include "config/model/model.h"
#include "config/model/model_limits.h"
#include "import/layer_list.h"

#include <stdlib.h>
#include <string.h>

static void add_int(cJSON *object, const char *key, long long value) {
    cJSON_AddNumberToObject(object, key, (double)value);
}

// The file's name without folder and ending.
static const char *model_name(const Imported *out) {
    const char *slash = strrchr(out->file, '/');
    char *name = arena_strdup(out->arena, slash ? slash + 1 : out->file);
    char *dot = strrchr(name, '.');
    if (dot && dot > name) *dot = '\0';
    return name;
}

// Words that the model's table has, before it is padded. Sizes of tokenizers that are no one's own:
// GPT-2's vocab.json has 50,257 entries, Llama 2's tokenizer.model 32,000.
static Status vocab_read(MegatronRead *read, int stated) {
    FlagArgs *args = &read->args;
    const char *type;
    int size;
    TRY(args_text(args, "--tokenizer-type", "GPT2BPETokenizer", &type));
    TRY(args_int(args, "--vocab-size", 1, 0, &size));
    if (size > 0 && strcmp(type, "NullTokenizer") == 0) size++; // it adds one of its own
    if (stated > 0) size = stated;
    if (size == 0) TRY(args_int(args, "--padded-vocab-size", 1, 0, &size));
    if (size == 0 && strcmp(type, "GPT2BPETokenizer") == 0) size = 50257;
    if (size == 0 && strcmp(type, "Llama2Tokenizer") == 0) size = 32000;
    if (size == 0)
        return import_refuse(args->out, "--vocab-size",
                             "missing, and the file does not say how many tokens %.60s has; give "
                             "--vocab-size N",
                             type);
    add_int(read->model, "vocab_size", size);
    return status_ok();
}

// gpt-oss's MLP; transformer_config.py, glu_linear_offset and activation_func_clamp_value.
static Status quick_geglu_read(MegatronRead *read, int hidden) {
    FlagArgs *args = &read->args;
    double limit, offset;
    int size;
    TRY(args_number(args, "--activation-func-clamp-value", 0, &limit));
    TRY(args_number(args, "--glu-linear-offset", 0, &offset));
    TRY(args_int(args, "--ffn-hidden-size", 1, 4 * hidden, &size));
    if (limit <= 0 || offset != 1)
        return import_refuse(args->out, "--quick-geglu",
                             "is supported as gpt-oss has it: with --activation-func-clamp-value "
                             "and --glu-linear-offset 1");
    add_int(read->model, "intermediate_size", size);
    cJSON_AddTrueToObject(read->model, "gated_mlp");
    cJSON_AddStringToObject(read->model, "hidden_act", "silu");
    cJSON_AddNumberToObject(read->model, "swiglu_limit", limit);
    return status_ok();
}

static Status mlp_read(MegatronRead *read, int hidden) {
    FlagArgs *args = &read->args;
    bool gated = args_has(args, "--swiglu"), squared = args_has(args, "--squared-relu");
    int size;
    if (args_has(args, "--quick-geglu")) return quick_geglu_read(read, hidden);
    // arguments.py: 4 h, of a gated one two thirds of it down to a multiple of 64.
    TRY(args_int(args, "--ffn-hidden-size", 1, gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden,
                 &size));
    add_int(read->model, "intermediate_size", size);
    cJSON_AddBoolToObject(read->model, "gated_mlp", gated);
    cJSON_AddStringToObject(read->model, "hidden_act", gated ? "silu" : squared ? "relu2" : "gelu");
    return status_ok();
}

// Multi-head latent attention; transformer_config.py, MLATransformerConfig.
static Status latent_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    int q_rank, kv_rank, nope, rope, value;
    double factor, mscale, mscale_all;
    const char *type;
    TRY(args_int(args, "--q-lora-rank", 1, 0, &q_rank));
    TRY(args_int(args, "--kv-lora-rank", 1, 32, &kv_rank));
    TRY(args_int(args, "--qk-head-dim", 1, 128, &nope));
    TRY(args_int(args, "--qk-pos-emb-head-dim", 1, 64, &rope));
    TRY(args_int(args, "--v-head-dim", 1, 128, &value));
    TRY(args_text(args, "--rope-type", "yarn", &type));
    TRY(args_number(args, "--rotary-scaling-factor", 1, &factor));
    TRY(args_number(args, "--mscale", 1, &mscale));
    TRY(args_number(args, "--mscale-all-dim", 0, &mscale_all));
    if (q_rank > 0) add_int(read->model, "q_lora_rank", q_rank);
    add_int(read->model, "kv_lora_rank", kv_rank);
    add_int(read->model, "qk_nope_head_dim", nope);
    add_int(read->model, "qk_rope_head_dim", rope);
    add_int(read->model, "v_head_dim", value);
    static const char *const ignored[] = {"--kv-channels", "--qk-layernorm", NULL};
    args_use(args, ignored);
    if (strcmp(type, "yarn") != 0) return status_ok();
    cJSON *scaling = cJSON_AddObjectToObject(read->model, "rope_scaling");
    cJSON_AddStringToObject(scaling, "type", "yarn");
    cJSON_AddNumberToObject(scaling, "factor", factor);
    cJSON_AddNumberToObject(scaling, "mscale", mscale);
    cJSON_AddNumberToObject(scaling, "mscale_all_dim", mscale_all);
    return status_ok();
}

static Status heads_read(MegatronRead *read, int hidden) {
    FlagArgs *args = &read->args;
    int heads, groups, size;
    TRY(args_int(args, "--num-attention-heads", 1, 0, &heads));
    if (heads == 0) return import_refuse(args->out, "--num-attention-heads", "missing");
    add_int(read->model, "num_attention_heads", heads);
    if (args_has(args, "--multi-latent-attention")) return latent_read(read);
    TRY(args_int(args, "--num-query-groups", 1, 1, &groups));
    TRY(args_int(args, "--kv-channels", 1, hidden / heads, &size));
    add_int(read->model, "num_key_value_heads",
            args_has(args, "--group-query-attention") ? groups : heads);
    add_int(read->model, "head_dim", size);
    if (args_has(args, "--qk-layernorm")) cJSON_AddTrueToObject(read->model, "qk_norm");
    return status_ok();
}

// A window of LEFT,RIGHT tokens, on all layers or those of a list.
static Status window_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *window, *list, *softmax;
    TRY(args_text(args, "--window-size", NULL, &window));
    TRY(args_text(args, "--window-attn-skip-freq", NULL, &list));
    TRY(args_text(args, "--softmax-type", "vanilla", &softmax));
    if (strcmp(softmax, "learnable") == 0)
        cJSON_AddTrueToObject(read->model, "attention_sinks");
    else if (strcmp(softmax, "vanilla") != 0)
        return import_refuse(args->out, "--softmax-type",
                             "\"%.40s\" is not supported yet; expected vanilla or learnable",
                             softmax);
    if (!window) return status_ok();
    long left = strtol(window[0] == '(' ? window + 1 : window, NULL, 10);
    if (left < 1 || left > 1000000000)
        return import_refuse(args->out, "--window-size", "\"%.40s\" is not LEFT,0", window);
    add_int(read->model, "sliding_window", left + 1); // with the token itself
    if (!list) return status_ok();
    int *slides = ARENA_ARRAY(args->out->arena, MODEL_MAX_LAYERS, int);
    if (number_list(list, MODEL_MAX_LAYERS, slides) != read->num_layers)
        return import_refuse(args->out, "--window-attn-skip-freq",
                             "\"%.60s\" is not a list of %d entries", list, read->num_layers);
    cJSON *types = cJSON_AddArrayToObject(read->model, "layer_types");
    for (int l = 0; l < read->num_layers; l++)
        cJSON_AddItemToArray(
            types, cJSON_CreateString(slides[l] ? "sliding_attention" : "full_attention"));
    return status_ok();
}

static Status rope_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    int base;
    double part, factor, linear;
    TRY(args_int(args, "--rotary-base", 1, 10000, &base));
    TRY(args_number(args, "--rotary-percent", 1, &part));
    TRY(args_number(args, "--rope-scaling-factor", 8, &factor));
    TRY(args_number(args, "--rotary-seq-len-interpolation-factor", 1, &linear));
    add_int(read->model, "rope_theta", base);
    if (part < 1) cJSON_AddNumberToObject(read->model, "partial_rotary_factor", part);
    bool llama = args_has(args, "--use-rope-scaling");
    if (!llama && linear <= 1) return status_ok();
    if (cJSON_GetObjectItemCaseSensitive(read->model, "rope_scaling"))
        return import_refuse(args->out,
                             llama ? "--use-rope-scaling" : "--rotary-seq-len-interpolation-factor",
                             "beside latent attention's own scaling has no meaning");
    cJSON *scaling = cJSON_AddObjectToObject(read->model, "rope_scaling");
    cJSON_AddStringToObject(scaling, "rope_type", llama ? "llama3" : "linear");
    cJSON_AddNumberToObject(scaling, "factor", llama ? factor : linear);
    return status_ok();
}

static Status positions_read(MegatronRead *read) {
    static const char *const types[][2] = {
        {"rope", "rope"}, {"learned_absolute", "learned"}, {"none", "none"}, {NULL, NULL}};
    FlagArgs *args = &read->args;
    const char *type, *position = NULL;
    int longest;
    TRY(args_text(args, "--position-embedding-type",
                  args_has(args, "--use-rotary-position-embeddings") ? "rope" : "learned_absolute",
                  &type));
    TRY(args_int(args, "--max-position-embeddings", 1, 0, &longest));
    if (args_has(args, "--no-position-embedding") && strcmp(type, "learned_absolute") == 0)
        type = "none";
    for (int i = 0; types[i][0]; i++)
        if (strcmp(types[i][0], type) == 0) position = types[i][1];
    if (!position)
        return import_refuse(args->out, "--position-embedding-type",
                             "\"%.40s\" is not supported yet; expected rope, learned_absolute or "
                             "none",
                             type);
    cJSON_AddStringToObject(read->model, "position", position);
    if (longest > 0) add_int(read->model, "max_position_embeddings", longest);
    return strcmp(position, "rope") == 0 ? rope_read(read) : status_ok();
}

static Status norms_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *kind;
    double epsilon;
    TRY(args_text(args, "--normalization", "LayerNorm", &kind));
    TRY(args_number(
        args, args_has(args, "--layernorm-epsilon") ? "--layernorm-epsilon" : "--norm-epsilon",
        1e-5, &epsilon));
    bool rms = strcmp(kind, "RMSNorm") == 0;
    if (!rms && strcmp(kind, "LayerNorm") != 0)
        return import_refuse(args->out, "--normalization",
                             "\"%.40s\" is not supported yet; expected LayerNorm or RMSNorm", kind);
    cJSON_AddStringToObject(read->model, "norm", rms ? "rmsnorm" : "layernorm");
    cJSON_AddNumberToObject(read->model, rms ? "rms_norm_eps" : "layer_norm_eps", epsilon);
    if (args_has(args, "--apply-layernorm-1p"))
        import_note(args->out, "--apply-layernorm-1p is left out: it changes no price.");
    cJSON_AddBoolToObject(read->model, "linear_bias", !args_has(args, "--disable-bias-linear"));
    if (args_has(args, "--add-qkv-bias")) cJSON_AddTrueToObject(read->model, "qkv_bias");
    return status_ok();
}

Status megatron_read_model(MegatronRead *read, int vocab_size) {
    FlagArgs *args = &read->args;
    int hidden;
    cJSON_AddStringToObject(read->model, "name", model_name(args->out));
    cJSON_AddStringToObject(read->model, "model_type", "generic");
    TRY(args_int(args, "--num-layers", 1, 0, &read->num_layers));
    TRY(args_int(args, "--hidden-size", 1, 0, &hidden));
    TRY(args_int(args, "--mtp-num-layers", 0, 0, &read->num_mtp));
    if (read->num_layers == 0) return import_refuse(args->out, "--num-layers", "missing");
    if (hidden == 0) return import_refuse(args->out, "--hidden-size", "missing");
    if (read->num_layers > MODEL_MAX_LAYERS || hidden > MODEL_MAX_WIDTH)
        return import_refuse(args->out, "--num-layers", "%d layers of width %d are too many",
                             read->num_layers, hidden);
    add_int(read->model, "num_hidden_layers", read->num_layers);
    add_int(read->model, "hidden_size", hidden);
    TRY(vocab_read(read, vocab_size));
    TRY(mlp_read(read, hidden));
    TRY(heads_read(read, hidden));
    TRY(window_read(read));
    TRY(positions_read(read));
    TRY(norms_read(read));
    cJSON_AddBoolToObject(read->model, "tie_word_embeddings",
                          !args_has(args, "--untie-embeddings-and-output-weights"));
    if (read->num_mtp > 0) add_int(read->model, "num_nextn_predict_layers", read->num_mtp);
    return status_ok();
}
