#include "cli/job_options.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "config/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUM_OPTIONS = 5 };

bool job_option(int key) {
    return key >= KEY_JOB && key < KEY_JOB + NUM_OPTIONS;
}

// A whole number of at least 1.
static error_t parse_count(struct argp_state *state, const char *option, const char *text,
                           double *out) {
    error_t error = parse_quantity(state, option, text, QUANTITY_COUNT, 1, out);
    if (error || *out == floor(*out)) return error;
    return parse_refuse(state, "--%s: \"%.60s\" is not a whole number", option, text);
}

error_t job_parse(int key, char *arg, struct argp_state *state) {
    JobOptions *job = &((CommonOptions *)state->input)->job;
    switch (key - KEY_JOB) {
    case 0:
        job->cluster = arg;
        return 0;
    case 1:
        return parse_count(state, "seq-len", arg, &job->seq_len);
    case 2:
        return parse_count(state, "batch", arg, &job->batch);
    case 3:
        job->precision = arg;
        return 0;
    default:
        job->stack = arg;
        return 0;
    }
}

static const char *first_given(const JobOptions *job) {
    return job->cluster       ? "cluster"
           : job->seq_len > 0 ? "seq-len"
           : job->batch > 0   ? "batch"
           : job->precision   ? "precision"
           : job->stack       ? "stack"
                              : NULL;
}

// What a model needs to become a job, joined as in a sentence; "" where all is there.
static const char *missing_options(const JobOptions *job, Arena *arena) {
    const char *names[3];
    int n = 0;
    if (!job->cluster) names[n++] = "--cluster PRESET:NODES";
    if (job->seq_len == 0) names[n++] = "--seq-len TOKENS";
    if (job->batch == 0) names[n++] = "--batch SEQUENCES";
    const char *text = n > 0 ? names[0] : "";
    for (int i = 1; i < n; i++)
        text = arena_printf(arena, "%s%s%s", text, i + 1 < n ? ", " : " and ", names[i]);
    return text;
}

// The path of a cluster's file, which a scenario would take for one beside the model's.
static const char *cluster_value(const char *cluster, Arena *arena) {
    char *whole = value_is_json_path(cluster) ? realpath(cluster, NULL) : NULL;
    const char *value = whole ? arena_strdup(arena, whole) : cluster;
    free(whole);
    return value;
}

// Takes the model's item.
static cJSON *job_document(const JobOptions *job, cJSON *model, Arena *arena) {
    cJSON *tree = cJSON_CreateObject();
    json_own(arena, tree);
    cJSON_AddNumberToObject(tree, "schema", 1);
    cJSON_AddItemToObject(tree, "model", model);
    cJSON_AddStringToObject(tree, "cluster", cluster_value(job->cluster, arena));
    cJSON *training = cJSON_AddObjectToObject(tree, "training");
    cJSON_AddNumberToObject(training, "seq_len", job->seq_len);
    cJSON_AddNumberToObject(training, "global_batch", job->batch);
    if (job->precision) cJSON_AddStringToObject(training, "precision", job->precision);
    if (job->stack) cJSON_AddStringToObject(training, "stack", job->stack);
    return tree;
}

// A scenario of a model; `what` is what the user named.
static Status job_make(const JobOptions *job, const char *file, const char *what, cJSON *model,
                       Arena *arena, Scenario *out) {
    const char *missing = missing_options(job, arena);
    if (missing[0]) {
        cJSON_Delete(model);
        return status_at(
            STATUS_INVALID, file, "",
            "this is %s, no scenario: add %s, or name it under \"model\" of a scenario", what,
            missing);
    }
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = file, .item = job_document(job, model, arena)};
    return scenario_read(root, arena, out);
}

// Keys of a Hugging Face config.json, and no key of ours.
static bool is_model_config(const JsonNode *root) {
    JsonNode schema = json_get(root, "schema"), type = json_get(root, "model_type");
    JsonNode model = json_get(root, "model"), architectures = json_get(root, "architectures");
    return !json_is_present(&schema) && !json_is_present(&model) &&
           (json_is_present(&type) || json_is_present(&architectures));
}

// The config.json of a folder; the path itself where it is no folder.
static const char *folder_config(const char *path, Arena *arena) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return path;
    const char *inside = arena_printf(arena, "%s/config.json", path);
    return access(inside, R_OK) == 0 ? inside : path;
}

static bool is_preset(const char *name, Arena *arena) {
    Model model;
    return access(name, F_OK) != 0 && !value_is_path(name) && strcmp(name, "-") != 0 &&
           model_load_preset(name, arena, &model).code == STATUS_OK;
}

// The model's item of a scenario: a path beside it, or what standard input had.
static cJSON *model_item(const JsonNode *root, const char *path, Arena *arena) {
    if (strcmp(path, "-") == 0) return cJSON_Duplicate(root->item, true);
    const char *slash = strrchr(path, '/');
    return cJSON_CreateString(arena_printf(arena, "./%s", slash ? slash + 1 : path));
}

Status job_load(const CommonOptions *options, Arena *arena, Scenario *out) {
    const JobOptions *job = &options->job;
    const char *path = options->scenario;
    if (is_preset(path, arena))
        return job_make(job, path, "a model's name", cJSON_CreateString(path), arena, out);
    path = folder_config(path, arena);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_load(path, arena, root));
    if (is_model_config(root))
        return job_make(job, root->file, "a Hugging Face config.json",
                        model_item(root, path, arena), arena, out);
    const char *given = first_given(job);
    if (given)
        return status_at(STATUS_INVALID, root->file, "",
                         "this is a scenario, which says all of its job: --%s goes with a model "
                         "(whatif --vary changes a scenario)",
                         given);
    return scenario_read(root, arena, out);
}
