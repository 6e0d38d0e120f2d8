// A configuration of Megatron Bridge (keys of its ConfigContainer, as run_config.yaml and files of
// overrides have them): read as the flags of Megatron-LM that its keys are (launch/bridge.h).
#include "base/yaml.h"
#include "config/model/model_limits.h"
#include "import/megatron.h"
#include "import/nemo_values.h"
#include "launch/bridge.h"

#include <string.h>

// Keys that launch never writes: what is not priced, and what goes by another name.
static const BridgeFlag MORE_FLAGS[] = {
    {"--is-hybrid-model", "model", "is_hybrid_model", FLAG_TRUE, NULL},
    {"--hybrid-layer-pattern", "model", "hybrid_layer_pattern", FLAG_SAME, NULL},
    {"--cpu-offloading", "model", "cpu_offloading", FLAG_TRUE, NULL},
    {"--fine-grained-activation-offloading", "model", "fine_grained_activation_offloading",
     FLAG_TRUE, NULL},
    {"--optimizer-cpu-offload", "optimizer", "optimizer_cpu_offload", FLAG_TRUE, NULL},
    {"--use-torch-fsdp2", "dist", "use_torch_fsdp2", FLAG_TRUE, NULL},
    {"--hierarchical-context-parallel-sizes", "model", "hierarchical_context_parallel_sizes",
     FLAG_SAME, NULL},
    {"--heterogeneous-layers-config-path", "model", "heterogeneous_layers_config_path", FLAG_SAME,
     NULL},
    {"--rampup-batch-size", "train", "rampup_batch_size", FLAG_SAME, NULL},
    {"--moe-latent-size", "model", "moe_latent_size", FLAG_SAME, NULL},
    {"--experimental-attention-variant", "model", "experimental_attention_variant", FLAG_SAME,
     NULL},
    {"--moe-enable-deepep", "model", "moe_enable_deepep", FLAG_TRUE, NULL},
    {"--tp-comm-overlap", "comm_overlap", "tp_comm_overlap", FLAG_TRUE, NULL},
    {"--overlap-grad-reduce", "comm_overlap", "overlap_grad_reduce", FLAG_TRUE, NULL},
    {"--overlap-param-gather", "comm_overlap", "overlap_param_gather", FLAG_TRUE, NULL},
    {"--overlap-moe-expert-parallel-comm", "comm_overlap", "overlap_moe_expert_parallel_comm",
     FLAG_TRUE, NULL},
    {0},
};

typedef struct {
    Imported *out;
    cJSON *config;
    WordList words;
} NemoRead;

static const cJSON *key_of(const NemoRead *read, const char *section, const char *key) {
    const cJSON *table = cJSON_GetObjectItemCaseSensitive(read->config, section);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(table, key);
    return cJSON_IsNull(item) ? NULL : item;
}

static Status key_refuse(const NemoRead *read, const char *section, const char *key,
                         const char *what) {
    return import_refuse(read->out, arena_printf(read->out->arena, "%s.%s", section, key), "%s",
                         what);
}

// The key that a flag is, for what is said to the user.
static const char *flag_spelled(const char *flag, Arena *arena) {
    const BridgeFlag *const tables[] = {BRIDGE_FLAGS, MORE_FLAGS};
    for (size_t t = 0; t < 2; t++)
        for (const BridgeFlag *row = tables[t]; row->flag; row++)
            if (strcmp(row->flag, flag) == 0 && row->key)
                return arena_printf(arena, "%s.%s", row->section, row->key);
    return flag;
}

static void flag_add(NemoRead *read, const char *flag, const char *value) {
    words_add(read->out->arena, &read->words, flag);
    if (value) words_add(read->out->arena, &read->words, value);
}

// A number or text as a word. NULL: it is neither.
static const char *scalar_text(const cJSON *item, Arena *arena) {
    if (cJSON_IsNumber(item)) return number_text(item->valuedouble, arena);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

// The elements of a list with `between` between them; NULL where one is no scalar.
static const char *list_text(const cJSON *item, const char *between, Arena *arena) {
    const char **texts = ARENA_ARRAY(arena, cJSON_GetArraySize(item), const char *);
    const cJSON *element;
    size_t size = 1;
    int num_texts = 0;
    cJSON_ArrayForEach(element, item) {
        const char *text = scalar_text(element, arena);
        if (!text) return NULL;
        texts[num_texts++] = text;
        size += strlen(text) + strlen(between);
    }
    char *all = arena_alloc(arena, size), *end = all;
    for (int i = 0; i < num_texts; i++) {
        if (end > all) end = stpcpy(end, between);
        end = stpcpy(end, texts[i]);
    }
    return all;
}

// [["embedding", "decoder"], ["decoder", "loss"]] as "Et|tL"; NULL where it is no such list.
static const char *layout_text(const cJSON *item, Arena *arena) {
    static const struct {
        const char *name, *letter;
    } LAYERS[] = {{"embedding", "E"}, {"decoder", "t"}, {"mtp", "m"}, {"loss", "L"}};
    const cJSON *stage, *layer;
    size_t size = 1;
    cJSON_ArrayForEach(stage, item) size += 1 + (size_t)cJSON_GetArraySize(stage);
    char *text = arena_alloc(arena, size), *end = text;
    cJSON_ArrayForEach(stage, item) {
        if (stage != item->child) *end++ = '|';
        cJSON_ArrayForEach(layer, stage) {
            const char *letter = NULL;
            for (size_t i = 0; cJSON_IsString(layer) && i < sizeof LAYERS / sizeof *LAYERS; i++)
                if (strcmp(layer->valuestring, LAYERS[i].name) == 0) letter = LAYERS[i].letter;
            if (!letter) return NULL;
            *end++ = letter[0];
        }
    }
    return text;
}

static const char *value_text(const BridgeFlag *row, const cJSON *item, Arena *arena) {
    if (!cJSON_IsArray(item)) return scalar_text(item, arena);
    if (strcmp(row->flag, "--pipeline-model-parallel-layout") == 0) return layout_text(item, arena);
    const char *list = list_text(item, row->as == FLAG_WORDS ? " " : ",", arena);
    return list && row->as == FLAG_RUNS ? arena_printf(arena, "[%s]", list) : list;
}

static Status row_read(NemoRead *read, const BridgeFlag *row) {
    const cJSON *item = row->key ? key_of(read, row->section, row->key) : NULL;
    if (!item) return status_ok();
    if (row->as == FLAG_TRUE || row->as == FLAG_FALSE) {
        if (!cJSON_IsBool(item))
            return key_refuse(read, row->section, row->key, "is neither true nor false");
        if (cJSON_IsTrue(item) == (row->as == FLAG_TRUE)) flag_add(read, row->flag, NULL);
        return status_ok();
    }
    if (row->as == FLAG_TEXT) return status_ok(); // read one by one
    const char *text = value_text(row, item, read->out->arena);
    if (!text) return key_refuse(read, row->section, row->key, "is no value of this key");
    if (text[0]) flag_add(read, row->flag, text);
    return status_ok();
}

static bool text_is(const cJSON *item, const char *text) {
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static Status activation_read(NemoRead *read) {
    const cJSON *item = key_of(read, "model", "activation_func");
    bool gated = cJSON_IsTrue(key_of(read, "model", "gated_linear_unit"));
    if (!item && !gated) return status_ok(); // gelu
    if (text_is(item, "gelu") && !gated) return status_ok();
    if (text_is(item, "silu") && gated) return status_ok(); // gated_linear_unit is --swiglu
    if ((text_is(item, "squared_relu") || text_is(item, "relu2")) && !gated) {
        flag_add(read, "--squared-relu", NULL);
        return status_ok();
    }
    return key_refuse(read, "model", "activation_func",
                      "is not priced; expected silu in a gated MLP, gelu or squared_relu in one "
                      "that is not");
}

static Status dispatcher_read(NemoRead *read) {
    const cJSON *item = key_of(read, "model", "moe_flex_dispatcher_backend");
    bool flex = text_is(key_of(read, "model", "moe_token_dispatcher_type"), "flex");
    if (!flex || !item || text_is(item, "deepep")) {
        if (flex && item) flag_add(read, "--moe-enable-deepep", NULL);
        return status_ok();
    }
    return key_refuse(read, "model", "moe_flex_dispatcher_backend",
                      "is not deepep, which alone is supported yet");
}

static void ends_note(NemoRead *read, const char *name) {
    import_note(read->out,
                "mixed_precision %s keeps the first and the last layer in bf16; they are priced as "
                "the others.",
                name);
}

// The recipes of training/mixed_precision.py by their names.
static Status precision_recipe(NemoRead *read, const char *name) {
    static const struct {
        const char *name, *type, *fp8, *recipe;
    } RECIPES[] = {
        {"bf16_mixed", "--bf16", NULL, NULL},
        {"fp16_mixed", "--fp16", NULL, NULL},
        {"bf16_with_fp8_delayed_scaling_mixed", "--bf16", "hybrid", "delayed"},
        {"bf16_with_fp8_current_scaling_mixed", "--bf16", "hybrid", "tensorwise"},
        {"bf16_with_fp8_subchannel_scaling_mixed", "--bf16", "hybrid", "blockwise"},
        {"bf16_with_mxfp8_mixed", "--bf16", "e4m3", "mxfp8"},
    };
    char *spelled = arena_strdup(read->out->arena, name);
    for (char *c = spelled; *c; c++)
        if (*c == '-') *c = '_';
    for (size_t i = 0; i < sizeof RECIPES / sizeof *RECIPES; i++) {
        if (strcmp(spelled, RECIPES[i].name) != 0) continue;
        flag_add(read, RECIPES[i].type, NULL);
        if (strcmp(RECIPES[i].type, "--bf16") == 0)
            flag_add(read, "--accumulate-allreduce-grads-in-fp32", NULL);
        if (!RECIPES[i].fp8) return status_ok();
        flag_add(read, "--fp8-format", RECIPES[i].fp8);
        flag_add(read, "--fp8-recipe", RECIPES[i].recipe);
        if (strcmp(RECIPES[i].recipe, "tensorwise") == 0) ends_note(read, name);
        return status_ok();
    }
    return import_refuse(
        read->out, "mixed_precision",
        "\"%.60s\" is not known; expected a recipe such as bf16_mixed, or its keys", name);
}

static Status precision_read(NemoRead *read) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(read->config, "mixed_precision");
    if (cJSON_IsString(item)) return precision_recipe(read, item->valuestring);
    if (!cJSON_IsObject(item))
        return import_refuse(read->out, "mixed_precision",
                             "missing; expected a recipe such as bf16_mixed, or its keys");
    if (key_of(read, "mixed_precision", "fp8") &&
        cJSON_IsTrue(key_of(read, "mixed_precision", "first_last_layers_bf16")))
        ends_note(read, "first_last_layers_bf16");
    // Its own default, which is not Megatron-LM's.
    if (!key_of(read, "mixed_precision", "grad_reduce_in_fp32") &&
        cJSON_IsTrue(key_of(read, "mixed_precision", "bf16")))
        flag_add(read, "--accumulate-allreduce-grads-in-fp32", NULL);
    return status_ok();
}

// What the dataclasses take for granted and Megatron-LM's arguments do not.
static void defaults_add(NemoRead *read) {
    const cJSON *overlap = cJSON_GetObjectItemCaseSensitive(read->config, "comm_overlap");
    bool sharded = cJSON_IsTrue(key_of(read, "ddp", "use_distributed_optimizer"));
    if (!key_of(read, "model", "cross_entropy_loss_fusion"))
        flag_add(read, "--cross-entropy-loss-fusion", NULL);
    if (!cJSON_IsObject(overlap) || !sharded) return;
    if (!key_of(read, "comm_overlap", "overlap_grad_reduce"))
        flag_add(read, "--overlap-grad-reduce", NULL);
    if (!key_of(read, "comm_overlap", "overlap_param_gather"))
        flag_add(read, "--overlap-param-gather", NULL);
}

static bool key_is_known(const char *section, const char *key) {
    for (const KeyRow *row = BRIDGE_KEYS; row->key; row++)
        if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0) return true;
    for (const BridgeFlag *row = MORE_FLAGS; row->flag; row++)
        if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0) return true;
    return key[0] == '_'; // _target_
}

// Keys of the sections that a plan is made of, which are set and were not read.
static void unread_note(NemoRead *read) {
    static const char *const sections[] = {
        "model", "ddp", "dist", "comm_overlap", "optimizer", "mixed_precision", NULL};
    Arena *arena = read->out->arena;
    NoteNames names = {.length = 0};
    for (const char *const *section = sections; *section; section++) {
        const cJSON *table = cJSON_GetObjectItemCaseSensitive(read->config, *section), *item;
        cJSON_ArrayForEach(item, table) {
            bool off = cJSON_IsNull(item) || cJSON_IsFalse(item) ||
                       (cJSON_IsNumber(item) && item->valuedouble == 0);
            if (off || key_is_known(*section, item->string)) continue;
            if (nemo_key_is_own(*section, item)) continue;
            note_names_add(&names, arena_printf(arena, "%s.", *section), item->string);
        }
    }
    if (names.length > 0)
        import_note(read->out, "Not read, for meshwright does not know what they change: %s.",
                    note_names_text(&names, arena));
}

// The moments of the optimizer.
static Status moments_read(NemoRead *read) {
    static const struct {
        const char *key, *flag;
    } ROWS[] = {{"exp_avg_dtype", "--exp-avg-dtype"}, {"exp_avg_sq_dtype", "--exp-avg-sq-dtype"}};
    for (size_t i = 0; i < 2; i++) {
        const cJSON *item = key_of(read, "optimizer", ROWS[i].key);
        if (text_is(item, "bfloat16"))
            flag_add(read, ROWS[i].flag, "bf16");
        else if (item && !text_is(item, "float32"))
            return key_refuse(read, "optimizer", ROWS[i].key,
                              "is not priced; expected float32 or bfloat16");
    }
    return status_ok();
}

// Sections that make another job of it.
static Status sections_check(NemoRead *read) {
    const cJSON *adapter = cJSON_GetObjectItemCaseSensitive(read->config, "peft");
    if (adapter && !cJSON_IsNull(adapter))
        return import_refuse(read->out, "peft", "adapters are not supported yet; expected null");
    const cJSON *length = key_of(read, "model", "seq_length");
    static const char *const keys[] = {"seq_length", "sequence_length"};
    for (size_t i = 0; i < 2; i++) {
        const cJSON *other = key_of(read, "dataset", keys[i]);
        if (cJSON_IsNumber(other) && cJSON_IsNumber(length) &&
            other->valuedouble != length->valuedouble)
            return import_refuse(read->out, arena_printf(read->out->arena, "dataset.%s", keys[i]),
                                 "is %g, and model.seq_length %g", other->valuedouble,
                                 length->valuedouble);
    }
    if (cJSON_IsObject(key_of(read, "dataset", "packed_sequence_specs")))
        import_note(read->out, "dataset.packed_sequence_specs: a packed sequence is priced as one "
                               "of model.seq_length; training.sequence_lengths can say more.");
    return status_ok();
}

// Keys of experts and of recomputation stand in every complete file; where there is neither, they
// say nothing.
static bool says_nothing(const NemoRead *read, const BridgeFlag *row) {
    bool layout = key_of(read, "model", "pipeline_model_parallel_layout") != NULL;
    // The layout says how many chunks there are.
    if (layout && strcmp(row->flag, "--num-virtual-stages-per-pipeline-rank") == 0) return true;
    if (!row->key) return true;
    if (strcmp(row->key, "fp8_recipe") == 0) return !key_of(read, "mixed_precision", "fp8");
    if (strncmp(row->key, "recompute_", 10) == 0)
        return !key_of(read, "model", "recompute_granularity");
    return strncmp(row->key, "moe_", 4) == 0 && !key_of(read, "model", "num_moe_experts");
}

static Status flags_read(NemoRead *read) {
    const BridgeFlag *const tables[] = {BRIDGE_FLAGS, MORE_FLAGS};
    for (size_t t = 0; t < 2; t++)
        for (const BridgeFlag *row = tables[t]; row->flag; row++)
            if (!says_nothing(read, row)) TRY(row_read(read, row));
    TRY(activation_read(read));
    TRY(dispatcher_read(read));
    TRY(precision_read(read));
    TRY(moments_read(read));
    if (key_of(read, "model", "num_query_groups")) flag_add(read, "--group-query-attention", NULL);
    defaults_add(read);
    return status_ok();
}

Status import_nemo(const char *text, const ImportOptions *options, Imported *out) {
    char message[200];
    NemoRead read = {
        .out = out,
        .config = yaml_parse_text(text, strlen(text), (YamlOptions){0}, message, sizeof message)};
    if (!read.config) return import_refuse(out, "", "%s", message);
    json_own(out->arena, read.config);
    nemo_values_unwrap(read.config, out->arena);
    if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(read.config, "model")))
        return import_refuse(out, "model",
                             "missing; expected keys of Megatron Bridge's ConfigContainer");
    out->spell = flag_spelled;
    TRY(sections_check(&read));
    TRY(flags_read(&read));
    ImportOptions own = *options;
    const cJSON *vocab = key_of(&read, "model", "vocab_size");
    if (own.vocab_size == 0 && cJSON_IsNumber(vocab) && vocab->valuedouble >= 1 &&
        vocab->valuedouble <= MODEL_MAX_VOCAB)
        own.vocab_size = (int)vocab->valuedouble;
    FlagArgs args = flag_args(&read.words, 0, read.words.num_words, out);
    TRY(megatron_read_flags(args, 0, &own));
    unread_note(&read);
    return status_ok();
}
