#include "config/job/training.h"

#include "config/software/kernel_shelf.h"

#include <math.h>
#include <string.h>

const char *const OPTIMIZER_NAMES[] = {"adam", "sgd", "muon", NULL};

// The keys of the object are of the job and of how it is executed alike.
typedef struct {
    TrainingJob job;
    Execution execution;
} Keys;

#define NAME(key, member, list)                                                                    \
    { #key, JSON_FIELD_NAME, offsetof(Keys, member.key), 0, 0, list, false }
#define SWITCH(key, member)                                                                        \
    { #key, JSON_FIELD_BOOL, offsetof(Keys, member.key), 0, 0, NULL, false }
#define NUMBER(key, kind, low, high, required)                                                     \
    { #key, JSON_FIELD_##kind, offsetof(Keys, job.key), low, high, NULL, required }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) SWITCH(key, execution),

static const JsonField TRAINING_FIELDS[] = {
    NUMBER(seq_len, INT64, 1, 1e8, true),
    NUMBER(global_batch, INT64, 1, 1e9, true),
    NAME(precision, execution, PRECISION_NAMES),
    NAME(fp8_recipe, execution, FP8_RECIPE_NAMES),
    NAME(optimizer, job, OPTIMIZER_NAMES),
    OTHER("optimizer_dtype"),
    OTHER("grad_reduce_dtype"),
    NAME(grad_reduce, execution, GRAD_REDUCE_NAMES),
    OTHER("stack"),
    OTHER("stack_version"),
    NAME(attention, execution, ATTENTION_NAMES),
#include "config/software/techniques.def"
    SWITCH(compile, execution),
    SWITCH(cross_entropy_fused, execution),
    OTHER("cuda_graphs"),
    SWITCH(causal, job),
    NUMBER(images_per_sequence, INT, 1, 1e6, false),
    NUMBER(image_size, INT, 1, 16384, false),
    NUMBER(encoder_seq_len, INT64, 1, 1e8, false),
    OTHER("moe_routing"),
    NAME(moe_dispatcher, execution, MOE_DISPATCHER_NAMES),
    NUMBER(capacity_factor, DOUBLE, 1e-3, 1e3, false),
    OTHER("sequence_lengths"),
    OTHER("adapters"),
    OTHER("frozen"),
};
static Status moe_routing_read(const JsonNode *node, Arena *arena, double *imbalance) {
    static const JsonField FIELDS[] = {
        {"imbalance", JSON_FIELD_DOUBLE, 0, 1, 1e4, NULL, true},
    };
    if (!json_is_present(node)) return status_ok();
    if (cJSON_IsObject(node->item)) return json_read_object(node, FIELDS, 1, arena, imbalance);
    if (cJSON_IsString(node->item) && strcmp(node->item->valuestring, "balanced") == 0)
        return status_ok();
    if (cJSON_IsString(node->item))
        return json_error(node, "\"%.60s\" is unknown; expected balanced or {\"imbalance\": x}",
                          node->item->valuestring);
    return json_error(node, "expected balanced or {\"imbalance\": x}, found %s",
                      json_type_name(node));
}

static Status sequence_lengths_read(const JsonNode *node, Arena *arena, TrainingJob *out) {
    if (!json_is_present(node)) return status_ok();
    const JsonField fields[] = {
        {"length", JSON_FIELD_INT64, offsetof(LengthShare, length), 1, 1e8, NULL, true},
        {"frac", JSON_FIELD_DOUBLE, offsetof(LengthShare, frac), 0, 1, NULL, true},
    };
    TRY(json_expect_array(node));
    LengthShare *shares = ARENA_ARRAY(arena, json_size(node), LengthShare);
    double sum = 0;
    int index = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = index};
        LengthShare *share = &shares[index++];
        TRY(json_read_object(&entry, fields, 2, arena, share));
        if (share->length > out->seq_len)
            return json_error(&entry, "length %lld is more than seq_len %lld",
                              (long long)share->length, (long long)out->seq_len);
        sum += share->frac;
    }
    if (fabs(sum - 1) > 1e-6)
        return json_error(node, "the fractions add up to %.9g; expected 1", sum);
    out->sequence_lengths = shares;
    out->num_sequence_lengths = index;
    return status_ok();
}

Status training_load(const JsonNode *value, const Gpu *gpu, KernelShelf *shelf, Arena *arena,
                     TrainingJob *job, Execution *execution) {
    TRY(json_expect_object(value));
    Keys keys = {.job = {.causal = true, .moe_imbalance = 1}};
    TRY(execution_default(value, shelf, arena, &keys.execution));
    TRY(json_read_object(value, TRAINING_FIELDS, sizeof TRAINING_FIELDS / sizeof *TRAINING_FIELDS,
                         arena, &keys));
    TRY(execution_complete(value, gpu, arena, &keys.execution));
    JsonNode routing = json_get(value, "moe_routing");
    TRY(moe_routing_read(&routing, arena, &keys.job.moe_imbalance));
    JsonNode lengths = json_get(value, "sequence_lengths");
    TRY(sequence_lengths_read(&lengths, arena, &keys.job));
    TRY(fine_tuning_read(value, &keys.execution, arena, &keys.job.tuning));
    *job = keys.job;
    *execution = keys.execution;
    return status_ok();
}
