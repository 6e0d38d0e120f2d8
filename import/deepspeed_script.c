// A script of Megatron-DeepSpeed and the configuration that it hands to DeepSpeed
// (launch/deepspeed.h has the version): its flags as those of Megatron-LM, what DeepSpeed alone
// knows put in behind.
#include "base/data_dir.h"
#include "base/json.h"
#include "import/megatron.h"
#include "plan/schedule/schedule.h"

#include <string.h>

// A flag, and the words of Megatron-LM that say the same; its own values stand behind them.
typedef struct {
    const char *flag;
    const char *words; // "" for none; NULL: it is left out
} Translation;

static const Translation TRANSLATIONS[] = {
    {"--layernorm-epsilon", "--norm-epsilon"},
    {"--rotary-position-embeddings-theta", "--rotary-base"},
    {"--use-rotary-position-embeddings", "--position-embedding-type rope"},
    {"--num-key-value-heads", "--group-query-attention --num-query-groups"},
    {"--ds-sequence-parallel-size", "--cp-comm-type a2a --context-parallel-size"},
    {"--checkpoint-activations",
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"},
    {"--use-flash-attn-v2", "--attention-backend flash"},
    {"--use-flash-attn-v1", "--attention-backend flash"},
    {"--use-flash-attn", "--attention-backend flash"},
    // Read below, or said by the others.
    {"--no-position-embedding", NULL},
    {"--no-pipeline-parallel", NULL},
    {"--checkpoint-num-layers", NULL},
    {"--deepspeed-activation-checkpointing", NULL},
    {"--enable-zbh1-pipeline", NULL},
    {"--zero-stage", NULL},
    {"--deepspeed", NULL},
    {"--deepspeed_config", NULL},
    {"--normalization", NULL},
    {"--attention-dropout", NULL},
    {"--hidden-dropout", NULL},
    {0},
};

typedef struct {
    Imported *out;
    FlagArgs args;       // of Megatron-DeepSpeed
    const cJSON *config; // of DeepSpeed
    WordList words;      // of Megatron-LM
    int zero_stage;
} DeepspeedRead;

static void words_split(DeepspeedRead *read, const char *text) {
    char *words = arena_strdup(read->out->arena, text), *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words_add(read->out->arena, &read->words, word);
}

static const Translation *translation_find(const char *flag) {
    for (const Translation *row = TRANSLATIONS; row->flag; row++)
        if (strcmp(row->flag, flag) == 0) return row;
    return NULL;
}

// What Megatron-DeepSpeed calls a flag of Megatron-LM whose value is the same.
static const char *flag_spelled(const char *flag, Arena *arena) {
    (void)arena;
    for (const Translation *row = TRANSLATIONS; row->flag; row++) {
        const char *last = row->words ? strrchr(row->words, ' ') : NULL;
        if (row->words && strcmp(last ? last + 1 : row->words, flag) == 0) return row->flag;
    }
    return flag;
}

static void flags_translate(DeepspeedRead *read) {
    for (int i = 0; i < read->args.num_args; i++) {
        const FlagArg *arg = &read->args.args[i];
        const Translation *row = translation_find(arg->name);
        if (row && !row->words) continue;
        words_split(read, row ? row->words : arg->name);
        for (int k = 0; k < arg->num_values; k++)
            words_add(read->out->arena, &read->words, arg->values[k]);
    }
}

// The configuration that the script itself writes.
static Status document_load(DeepspeedRead *read, const Document *document) {
    Imported *out = read->out;
    JsonNode root;
    if (strpbrk(document->text, "$`"))
        return import_refuse(out, "--deepspeed_config",
                             "the script writes %.60s with variables that it does not set",
                             document->name);
    const Status status =
        json_parse(document->text, strlen(document->text), document->name, out->arena, &root);
    if (status.code != STATUS_OK)
        return import_refuse(out, "--deepspeed_config", "%s", status.text);
    if (!cJSON_IsObject(root.item))
        return import_refuse(out, "--deepspeed_config", "%.200s is no object", document->name);
    read->config = root.item;
    return status_ok();
}

// The configuration beside the script: where it stands is often the script's own folder, which only
// a run of it would tell.
static Status config_load(DeepspeedRead *read) {
    Imported *out = read->out;
    const FlagArg *found = NULL;
    for (int i = 0; i < read->args.num_args; i++)
        if (strcmp(read->args.args[i].name, "--deepspeed_config") == 0) found = &read->args.args[i];
    if (!found || found->num_values != 1)
        return import_refuse(out, "--deepspeed_config",
                             "missing; expected the configuration that DeepSpeed gets");
    const char *name = found->values[0];
    JsonNode root;
    for (int i = out->num_documents - 1; i >= 0; i--)
        if (strcmp(out->documents[i].name, name) == 0)
            return document_load(read, &out->documents[i]);
    if (strpbrk(name, "$`")) {
        const char *slash = strrchr(name, '/');
        name = slash ? slash + 1 : name;
    }
    if (strpbrk(name, "$`"))
        return import_refuse(out, "--deepspeed_config", "%.60s is not set in the file", name);
    Status status = json_load(path_beside(out->arena, out->file, name), out->arena, &root);
    if (status.code != STATUS_OK)
        return import_refuse(out, "--deepspeed_config", "%s", status.text);
    if (!cJSON_IsObject(root.item))
        return import_refuse(out, "--deepspeed_config", "%.200s is no object", name);
    read->config = root.item;
    return status_ok();
}

static const cJSON *config_key(const DeepspeedRead *read, const char *section, const char *key) {
    const cJSON *table = cJSON_GetObjectItemCaseSensitive(read->config, section);
    return cJSON_GetObjectItemCaseSensitive(section[0] ? table : read->config, key);
}

static Status stage_read(DeepspeedRead *read) {
    const cJSON *item = config_key(read, "zero_optimization", "stage");
    int of_config = cJSON_IsNumber(item) ? item->valueint : 0;
    double stage; // Megatron-DeepSpeed reads 1.0, too
    TRY(args_number(&read->args, "--zero-stage", of_config, &stage));
    if (stage != 0 && stage != 1 && stage != 2 && stage != 3)
        return import_refuse(read->out, "--zero-stage", "%g is none of 0, 1, 2, 3", stage);
    read->zero_stage = (int)stage;
    if (read->zero_stage != of_config)
        return import_refuse(read->out, "--zero-stage",
                             "%d is not the %d of zero_optimization.stage in the configuration",
                             read->zero_stage, of_config);
    return status_ok();
}

// Batches that both state have to agree: DeepSpeed takes its own.
static Status batch_check(DeepspeedRead *read) {
    static const struct {
        const char *flag, *key;
    } PAIRS[] = {{"--global-batch-size", "train_batch_size"},
                 {"--micro-batch-size", "train_micro_batch_size_per_gpu"}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        const cJSON *item = config_key(read, "", PAIRS[i].key);
        int of_config = cJSON_IsNumber(item) ? item->valueint : 0, stated;
        TRY(args_int(&read->args, PAIRS[i].flag, 1, of_config, &stated));
        if (of_config > 0 && stated != of_config)
            return import_refuse(read->out, PAIRS[i].flag,
                                 "%d is not the %d of %s in the configuration", stated, of_config,
                                 PAIRS[i].key);
        if (!args_has(&read->args, PAIRS[i].flag) && of_config > 0)
            words_split(read, arena_printf(read->out->arena, "%s %d", PAIRS[i].flag, of_config));
    }
    return status_ok();
}

static Status model_words(DeepspeedRead *read) {
    const char *norm;
    int layers_each;
    bool rope = args_has(&read->args, "--use-rotary-position-embeddings");
    TRY(args_text(&read->args, "--normalization", "layernorm", &norm));
    if (strcmp(norm, "layernorm") != 0 && strcmp(norm, "rmsnorm") != 0)
        return import_refuse(read->out, "--normalization",
                             "\"%.40s\" is unknown; expected layernorm or rmsnorm", norm);
    words_split(read, strcmp(norm, "rmsnorm") == 0 ? "--normalization RMSNorm"
                                                   : "--normalization LayerNorm");
    if (!rope && args_has(&read->args, "--no-position-embedding"))
        words_split(read, "--position-embedding-type none");
    TRY(args_int(&read->args, "--checkpoint-num-layers", 1, 1, &layers_each));
    if (layers_each > 1)
        import_note(read->out, "--checkpoint-num-layers %d is priced as 1: every layer by itself.",
                    layers_each);
    if (args_has(&read->args, "--num-experts"))
        return import_refuse(read->out, "--num-experts",
                             "experts of Megatron-DeepSpeed (GShard's) are not supported yet");
    bool flash = args_has(&read->args, "--use-flash-attn-v2") ||
                 args_has(&read->args, "--use-flash-attn-v1") ||
                 args_has(&read->args, "--use-flash-attn");
    if (!flash) words_split(read, "--attention-backend unfused");
    return status_ok();
}

// What the stack prices: with dropout, as Megatron-DeepSpeed has it by default.
static Status dropout_words(DeepspeedRead *read) {
    static const char *const flags[] = {"--attention-dropout", "--hidden-dropout"};
    for (size_t i = 0; i < 2; i++) {
        double share;
        TRY(args_number(&read->args, flags[i], 0.1, &share));
        if (share == 0)
            import_note(read->out, "%s 0 is priced as if there were dropout.", flags[i]);
        words_split(read, arena_printf(read->out->arena, "%s 0", flags[i]));
    }
    return status_ok();
}

static void engine_words(DeepspeedRead *read) {
    const cJSON *type = config_key(read, "", "communication_data_type");
    bool narrow = cJSON_IsString(type) && (strcmp(type->valuestring, "bf16") == 0 ||
                                           strcmp(type->valuestring, "bfp16") == 0);
    bool half = args_has(&read->args, "--fp16");
    if (cJSON_IsTrue(config_key(read, "fp16", "enabled")) && !half) words_split(read, "--fp16");
    if (cJSON_IsTrue(config_key(read, "bf16", "enabled")) && !args_has(&read->args, "--bf16"))
        words_split(read, "--bf16");
    words_split(read, narrow ? "--grad-reduce-in-bf16" : "--accumulate-allreduce-grads-in-fp32");
    if (cJSON_IsTrue(config_key(read, "zero_optimization", "overlap_comm")))
        words_split(read, "--overlap-grad-reduce");
    if (read->zero_stage > 0) words_split(read, "--use-distributed-optimizer");
}

static void member_set(cJSON *object, const char *key, cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, value);
}

// What Megatron-LM's flags cannot say.
static void scenario_finish(DeepspeedRead *read) {
    cJSON *scenario = read->out->scenario;
    cJSON *training = cJSON_GetObjectItemCaseSensitive(scenario, "training");
    cJSON *parallel = cJSON_GetObjectItemCaseSensitive(scenario, "parallel");
    member_set(training, "stack", cJSON_CreateString("megatron-2021"));
    if (read->zero_stage == 3)
        cJSON_DeleteItemFromObjectCaseSensitive(training, "overlap_param_gather");
    member_set(parallel, "zero_stage", cJSON_CreateNumber(read->zero_stage));
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const char *flag = schedule_find((ScheduleKind)kind)->megatron_deepspeed_flag;
        if (flag && args_has(&read->args, flag))
            member_set(parallel, "schedule", cJSON_CreateString(SCHEDULE_NAMES[kind]));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(scenario, "provenance"); // of Megatron-LM's flags
}

static bool text_among(const char *text, const char *const *texts) {
    for (; *texts; texts++)
        if (strcmp(*texts, text) == 0) return true;
    return false;
}

// Keys of the configuration that change the step, and that nothing here prices.
static Status refuse_unpriced(const DeepspeedRead *read) {
    static const struct {
        const char *section, *key, *what;
    } KEYS[] = {
        {"zero_optimization", "offload_optimizer", "an optimizer in host memory"},
        {"zero_optimization", "offload_param", "weights in host memory"},
        {"zero_optimization", "zero_hpz_partition_size", "weights sharded in groups"},
        {"zero_optimization", "zero_quantized_weights", "quantized weights"},
        {"zero_optimization", "zero_quantized_gradients", "quantized gradients"},
        {"zero_optimization", "mics_shard_size", "shards in groups"},
        {"activation_checkpointing", "cpu_checkpointing", "activations in host memory"},
        {"activation_checkpointing", "partition_activations", "activations sharded over tp"},
    };
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const cJSON *item = config_key(read, KEYS[i].section, KEYS[i].key);
        const cJSON *device = cJSON_GetObjectItemCaseSensitive(item, "device");
        bool off = !item || cJSON_IsFalse(item) || cJSON_IsNull(item) ||
                   (cJSON_IsNumber(item) && item->valuedouble <= 1) ||
                   (cJSON_IsString(device) && strcmp(device->valuestring, "none") == 0);
        if (!off)
            return import_refuse(read->out,
                                 arena_printf(read->out->arena, "%s.%s of the configuration",
                                              KEYS[i].section, KEYS[i].key),
                                 "%s: not supported yet", KEYS[i].what);
    }
    return status_ok();
}

// Sections of the configuration that nobody reads, and optimizers that send other messages.
static Status configuration_note(const DeepspeedRead *read) {
    static const char *const known[] = {"activation_checkpointing",
                                        "aio",
                                        "bf16",
                                        "checkpoint",
                                        "comms_logger",
                                        "communication_data_type",
                                        "csv_monitor",
                                        "data_types",
                                        "dump_state",
                                        "flops_profiler",
                                        "fp16",
                                        "gradient_accumulation_steps",
                                        "gradient_clipping",
                                        "gradient_predivide_factor",
                                        "memory_breakdown",
                                        "optimizer",
                                        "prescale_gradients",
                                        "scheduler",
                                        "steps_per_print",
                                        "tensorboard",
                                        "train_batch_size",
                                        "train_micro_batch_size_per_gpu",
                                        "wall_clock_breakdown",
                                        "wandb",
                                        "zero_allow_untested_optimizer",
                                        "zero_force_ds_cpu_optimizer",
                                        "zero_optimization",
                                        NULL};
    static const char *const optimizers[] = {"Adam", "AdamW", "FusedAdam", "SGD", NULL};
    const cJSON *type = config_key(read, "optimizer", "type"), *item;
    NoteNames names = {.length = 0};
    if (cJSON_IsString(type) && !text_among(type->valuestring, optimizers))
        return import_refuse(read->out, "optimizer.type of the configuration",
                             "\"%.40s\" is not supported yet; expected Adam, AdamW or SGD",
                             type->valuestring);
    cJSON_ArrayForEach(item, read->config) {
        const bool off = cJSON_IsFalse(item) || cJSON_IsNull(item);
        if (off || text_among(item->string, known)) continue;
        note_names_add(&names, item->string, "");
    }
    if (names.length > 0)
        import_note(read->out,
                    "Of the configuration not read, for meshwright does not know what they change: "
                    "%s.",
                    note_names_text(&names, read->out->arena));
    return status_ok();
}

Status import_deepspeed(const char *text, const ImportOptions *options, Imported *out) {
    int num_nodes;
    DeepspeedRead read = {.out = out};
    out->spell = flag_spelled;
    TRY(megatron_command_find(text, options, out, &read.args, &num_nodes));
    TRY(config_load(&read));
    TRY(refuse_unpriced(&read));
    TRY(configuration_note(&read));
    TRY(stage_read(&read));
    flags_translate(&read);
    TRY(batch_check(&read));
    TRY(model_words(&read));
    TRY(dropout_words(&read));
    engine_words(&read);
    FlagArgs args = flag_args(&read.words, 0, read.words.num_words, out);
    TRY(megatron_read_flags(args, num_nodes, options));
    scenario_finish(&read);
    return status_ok();
}
