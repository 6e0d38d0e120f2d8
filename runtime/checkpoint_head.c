#include "runtime/checkpoint_head.h"

#include "base/output_file.h"
#include "runtime/checksum.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// --- What it says

// What decides which function the weights compute, and which weight is where. Numbers are written
// as texts, so that they are compared to the last bit.
static void number_add(cJSON *tree, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    cJSON_AddStringToObject(tree, key, text);
}

static void experts_add(cJSON *tree, const FeedForward *ffn) {
    number_add(tree, "num_experts", ffn->num_experts);
    if (ffn->num_experts == 0) return;
    number_add(tree, "num_experts_per_tok", ffn->num_experts_per_tok);
    number_add(tree, "moe_intermediate_size", ffn->moe_intermediate_size);
    number_add(tree, "shared_expert_intermediate_size", ffn->shared_intermediate_size);
    number_add(tree, "norm_topk_prob", ffn->norm_topk_prob);
}

static void functions_add(cJSON *tree, const Model *m) {
    const ModelFunctions *f = &m->functions;
    const bool rope = m->position == POSITION_ROPE;
    number_add(tree, "activation", f->activation);
    number_add(tree, "norm_epsilon", f->norm_epsilon);
    if (!rope) return;
    number_add(tree, "rope_theta", f->rope_theta);
    cJSON_AddStringToObject(tree, "rope_scaling", f->rope_name ? f->rope_name : "none");
    if (f->rope == ROPE_PLAIN) return;
    number_add(tree, "rope_factor", f->rope_factor);
    if (f->rope != ROPE_LLAMA3) return;
    number_add(tree, "low_freq_factor", f->low_freq_factor);
    number_add(tree, "high_freq_factor", f->high_freq_factor);
    number_add(tree, "original_max_position_embeddings", f->original_positions);
}

// Which layers have experts and windows, as one text: "moe", "4096", "moe 4096", "" ...
static void layers_add(cJSON *tree, const Model *m) {
    cJSON *list = cJSON_AddArrayToObject(tree, "layers");
    for (int i = 0; i < m->num_layers; i++) {
        const LayerKind *kind = &m->kinds[m->layer_kind[i]];
        char text[32];
        snprintf(text, sizeof text, "%s%d", kind_is_moe(kind) ? "moe " : "", kind->mixer.window);
        cJSON_AddItemToArray(list, cJSON_CreateString(text));
    }
}

static cJSON *architecture_make(const Scenario *scenario) {
    const Model *m = &scenario->model;
    const Mixer *mixer = model_mixer(m);
    const FeedForward *ffn = model_ffn(m);
    cJSON *tree = cJSON_CreateObject();
    number_add(tree, "num_hidden_layers", m->num_layers);
    number_add(tree, "hidden_size", m->hidden_size);
    number_add(tree, "vocab_size", m->vocab_size);
    number_add(tree, "num_attention_heads", mixer->num_heads);
    number_add(tree, "num_key_value_heads", mixer->num_kv_heads);
    number_add(tree, "head_dim", mixer->head_dim);
    number_add(tree, "intermediate_size", ffn->intermediate_size);
    number_add(tree, "position", m->position);
    number_add(tree, "max_position_embeddings", m->max_position_embeddings);
    number_add(tree, "tie_word_embeddings", m->tie_word_embeddings);
    number_add(tree, "gated_mlp", ffn->gated);
    number_add(tree, "norm", m->norm);
    number_add(tree, "qk_norm", mixer->qk_norm);
    number_add(tree, "qkv_bias", mixer->qkv_bias);
    number_add(tree, "out_bias", mixer->out_bias);
    number_add(tree, "mlp_bias", ffn->bias);
    number_add(tree, "causal", scenario->training.causal);
    experts_add(tree, ffn);
    functions_add(tree, m);
    layers_add(tree, m);
    return tree;
}

cJSON *checkpoint_head_tree(const Scenario *scenario, const CheckpointHead *head) {
    char seed[24];
    cJSON *tree = cJSON_CreateObject();
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)head->on.seed);
    cJSON_AddStringToObject(tree, "model", scenario->model.name);
    json_add_number(tree, "elements", (double)head->elements);
    json_add_number(tree, "step", (double)head->step);
    json_add_number(tree, "seq_len", (double)head->on.seq_len);
    json_add_number(tree, "global_batch", (double)head->on.global_batch);
    cJSON_AddStringToObject(tree, "seed", seed);
    if (head->on.data.name) {
        cJSON *data = cJSON_AddObjectToObject(tree, "data");
        cJSON_AddStringToObject(data, "name", head->on.data.name);
        json_add_number(data, "num_bytes", (double)head->on.data.num_bytes);
        cJSON_AddStringToObject(data, "checksum", head->on.data.checksum);
    }
    cJSON_AddItemToObject(tree, "architecture", architecture_make(scenario));
    return tree;
}

// --- The file

// What the text ends with; zeros stand for the digits while their sum is made.
static const char ENDING[] = "\"checksum\":\t\"0000000000000000\"\n}\n";

enum { DIGITS = CHECKSUM_SIZE - 1, DIGITS_FROM_END = DIGITS + 4 };

Status checkpoint_head_write(cJSON *tree, const char *path) {
    char checksum[CHECKSUM_SIZE], *text = NULL;
    size_t size = 0;
    OutputFile file;
    cJSON_AddStringToObject(tree, "checksum", "0000000000000000");
    FILE *stream = open_memstream(&text, &size);
    Status status =
        stream ? json_write(tree, stream) : status_error(STATUS_MACHINE, "no memory for %s", path);
    if (stream) fclose(stream);
    if (status.code == STATUS_OK) status = output_open(path, &file);
    if (status.code == STATUS_OK) {
        checksum_print(checksum_add(0, text, size), checksum);
        memcpy(text + size - DIGITS_FROM_END, checksum, DIGITS);
        fwrite(text, 1, size, file.stream); // output_close sees whether that failed
        status = output_close(&file, status);
    }
    free(text);
    return status;
}

// More than is read of a document is nothing that was written.
static Status text_read(const char *path, Arena *arena, char **text, size_t *size) {
    struct stat info = {0};
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) {
        const int error = errno;
        if (file) fclose(file);
        return status_at(STATUS_INVALID, path, "", "cannot be read: %s", strerror(error));
    }
    const size_t most =
        info.st_size < (off_t)JSON_MAX_BYTES ? (size_t)info.st_size : JSON_MAX_BYTES;
    *text = arena_alloc(arena, most + 1); // zeros
    *size = fread(*text, 1, most, file);
    const bool good = !ferror(file);
    const int error = errno;
    fclose(file);
    if (good) return status_ok();
    return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(error));
}

Status checkpoint_head_open(const char *path, Arena *arena, JsonNode *root) {
    enum { ENDING_SIZE = sizeof ENDING - 1 };
    char *text = NULL, expected[CHECKSUM_SIZE] = "", found[CHECKSUM_SIZE];
    size_t size = 0;
    bool ends = false;
    TRY(text_read(path, arena, &text, &size));
    if (size > ENDING_SIZE) {
        char *digits = text + size - DIGITS_FROM_END;
        memcpy(expected, digits, DIGITS);
        memset(digits, '0', DIGITS);
        ends = memcmp(text + size - ENDING_SIZE, ENDING, ENDING_SIZE) == 0;
    }
    if (!ends)
        return status_at(STATUS_INVALID, path, "",
                         "does not end with its checksum: the checkpoint is truncated or damaged, "
                         "or of an older meshwright-run, which wrote none");
    checksum_print(checksum_add(0, text, size), found);
    if (strcmp(expected, found) != 0)
        return status_at(STATUS_INVALID, path, "",
                         "its checksum is %s, expected %s: the checkpoint is damaged", found,
                         expected);
    return json_parse(text, size, path, arena, root);
}

// --- Reading

// What the file holds of the run's own; a text for what is no text.
static const char *value_text(const cJSON *item, Arena *arena) {
    if (!item) return "not there";
    if (cJSON_IsString(item)) return item->valuestring;
    char *text = cJSON_PrintUnformatted(item);
    const char *copy = arena_strdup(arena, text ? text : "something else");
    cJSON_free(text);
    return copy;
}

static Status architecture_check(const Scenario *scenario, const char *name, const JsonNode *node,
                                 Arena *arena) {
    Status status = status_ok();
    cJSON *own = architecture_make(scenario), *item;
    cJSON_ArrayForEach(item, own) {
        const cJSON *saved = cJSON_GetObjectItemCaseSensitive(node->item, item->string);
        if (status.code != STATUS_OK || cJSON_Compare(saved, item, true)) continue;
        const JsonNode at = json_get(node, item->string);
        status = json_error(&at, "%.60s; a checkpoint of %s, the plan's %s has %.60s",
                            value_text(saved, arena), name, scenario->model.name,
                            value_text(item, arena));
    }
    cJSON_Delete(own);
    return status;
}

typedef struct {
    const char *model, *seed;
    int64_t elements, step, seq_len, global_batch;
} Fields;

// The members, of a checkpoint of the same model.
static Status fields_read(const Scenario *scenario, const JsonNode *root, Arena *arena,
                          Fields *out) {
#define FIELD(key, kind, min, max)                                                                 \
    { #key, kind, offsetof(Fields, key), min, max, NULL, true }
    static const JsonField FIELDS[] = {
        FIELD(model, JSON_FIELD_STRING, 0, 0),
        FIELD(seed, JSON_FIELD_STRING, 0, 0),
        FIELD(elements, JSON_FIELD_INT64, 1, 1e15),
        FIELD(step, JSON_FIELD_INT64, 0, 1e15),
        FIELD(seq_len, JSON_FIELD_INT64, 1, 1e15),
        FIELD(global_batch, JSON_FIELD_INT64, 1, 1e15),
        {"architecture", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
        {"data", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
        {"checksums", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
        {"checksum", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    };
#undef FIELD
    *out = (Fields){0};
    TRY(json_read_object(root, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, out));
    const JsonNode architecture = json_get(root, "architecture");
    TRY(json_expect_object(&architecture));
    return architecture_check(scenario, out->model, &architecture, arena);
}

static Status data_read(const JsonNode *root, Arena *arena, DataMark *out) {
    static const JsonField FIELDS[] = {
        {"name", JSON_FIELD_STRING, offsetof(DataMark, name), 0, 0, NULL, true},
        {"num_bytes", JSON_FIELD_INT64, offsetof(DataMark, num_bytes), 1, 1e15, NULL, true},
        {"checksum", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    };
    const JsonNode data = json_get(root, "data"), checksum = json_get(&data, "checksum");
    const char *text;
    *out = (DataMark){0};
    if (!json_is_present(&data)) return status_ok(); // made-up tokens
    TRY(json_read_object(&data, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, out));
    TRY(json_read_string(&checksum, arena, &text));
    snprintf(out->checksum, sizeof out->checksum, "%s", text);
    return status_ok();
}

Status checkpoint_head_check_model(const Scenario *scenario, const JsonNode *root, Arena *arena) {
    Fields fields;
    return fields_read(scenario, root, arena, &fields);
}

Status checkpoint_head_read(const Scenario *scenario, const JsonNode *root, Arena *arena,
                            CheckpointHead *head) {
    Fields fields;
    TRY(fields_read(scenario, root, arena, &fields));
    const JsonNode seed = json_get(root, "seed");
    if (fields.elements != head->elements)
        return json_error(root, "a checkpoint of %s with %lld parameters; the plan's %s has %lld",
                          fields.model, (long long)fields.elements, scenario->model.name,
                          (long long)head->elements);
    if (strtoull(fields.seed, NULL, 10) != head->on.seed)
        return json_error(&seed, "%s; this run has %llu, and would read other data", fields.seed,
                          (unsigned long long)head->on.seed);
    head->step = fields.step;
    head->on.seq_len = fields.seq_len;
    head->on.global_batch = fields.global_batch;
    return data_read(root, arena, &head->on.data);
}
