#include "config/job/calibration.h"

#include "base/data_dir.h"

#include <math.h>
#include <string.h>

const char *const PART_NAMES[NUM_PARTS + 1] = {"products", "attention", "memory",    "host",
                                               "inside",   "across",    "optimizer", NULL};

#define OTHER(key, required)                                                                       \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, required }
#define TEXT(key, required)                                                                        \
    { #key, JSON_FIELD_STRING, offsetof(Calibration, key), 0, 0, NULL, required }
#define NUMBER(key, low, high)                                                                     \
    { #key, JSON_FIELD_DOUBLE, offsetof(Calibration, key), low, high, NULL, true }

static const JsonField FIELDS[] = {
    OTHER("schema", true),
    TEXT(title, true),
    TEXT(gpu, false),
    TEXT(stack, false),
    TEXT(stack_version, false),
    OTHER("factor", true),
    OTHER("spread", true),
    OTHER("run_spread", true),
    OTHER("correlation", false),
    NUMBER(step_spread, 0, 10),
    NUMBER(inherited_spread, 0, 10),
    NUMBER(foreign_spread, 0, 10),
    NUMBER(octave_spread, 0, 10),
    NUMBER(num_nodes, 1, 1e6),
    OTHER("measured", false),
    OTHER("sources", false),
};

// One number for each part.
static Status parts_read(const JsonNode *node, double low, double high, double *out) {
    return json_read_numbers(node, PART_NAMES, NUM_PARTS, low, high, true, out);
}

static Status row_read(const JsonNode *node, double *row) {
    TRY(json_expect_array(node));
    if (json_size(node) != NUM_PARTS)
        return json_error(node, "%d entries; expected %d, one for each part", json_size(node),
                          NUM_PARTS);
    for (int k = 0; k < NUM_PARTS; k++) {
        JsonNode value = json_at(node, k);
        TRY(json_read_double(&value, -1, 1, &row[k]));
    }
    return status_ok();
}

// Whether a symmetric matrix is positive semidefinite but for rounding: Cholesky's factors exist
// (Golub and Van Loan, "Matrix Computations", section 4.2).
static bool is_semidefinite(double matrix[NUM_PARTS][NUM_PARTS]) {
    double factor[NUM_PARTS][NUM_PARTS] = {0};
    for (int i = 0; i < NUM_PARTS; i++)
        for (int j = 0; j <= i; j++) {
            double rest = matrix[i][j] + (i == j ? 1e-9 : 0);
            for (int k = 0; k < j; k++) rest -= factor[i][k] * factor[j][k];
            if (i == j && rest <= 0) return false;
            factor[i][j] = i == j ? sqrt(rest) : rest / factor[j][j];
        }
    return true;
}

static Status correlation_read(const JsonNode *node, double correlation[NUM_PARTS][NUM_PARTS]) {
    if (!json_is_present(node)) {
        for (int k = 0; k < NUM_PARTS; k++) correlation[k][k] = 1;
        return status_ok();
    }
    JsonNode rows[NUM_PARTS];
    TRY(json_expect_array(node));
    if (json_size(node) != NUM_PARTS)
        return json_error(node, "%d rows; expected %d, one for each part", json_size(node),
                          NUM_PARTS);
    for (int i = 0; i < NUM_PARTS; i++) {
        rows[i] = json_at(node, i);
        TRY(row_read(&rows[i], correlation[i]));
        JsonNode own = json_at(&rows[i], i);
        if (correlation[i][i] != 1) return json_error(&own, "expected 1 on the diagonal");
        for (int j = 0; j < i; j++) {
            JsonNode value = json_at(&rows[i], j);
            if (correlation[i][j] != correlation[j][i])
                return json_error(&value, "differs from [%d][%d]; expected a symmetric matrix", j,
                                  i);
        }
    }
    if (!is_semidefinite(correlation))
        return json_error(node, "is not a correlation: it has a negative eigenvalue");
    return status_ok();
}

// Where its numbers are from: published steps of many machines (sources), or a run, which tells of
// one GPU and one stack.
static Status origin_check(const JsonNode *root, const Calibration *c) {
    JsonNode measured = json_get(root, "measured"), sources = json_get(root, "sources");
    JsonNode gpu = json_get(root, "gpu"), stack = json_get(root, "stack");
    if (!json_is_present(&measured) && !json_is_present(&sources))
        return json_error(root, "has neither measured nor sources; expected where its numbers are "
                                "from");
    if (json_is_present(&sources)) TRY(json_expect_object(&sources));
    if (json_is_present(&measured)) TRY(json_expect_object(&measured));
    if (json_is_present(&sources) && !c->gpu && !c->stack) return status_ok();
    if (!c->gpu) return json_error(&gpu, "missing; expected the name of the GPU that was measured");
    if (!c->stack) return json_error(&stack, "missing; expected the stack that was measured");
    return status_ok();
}

static Status calibration_read(const JsonNode *root, const char *path, Arena *arena,
                               const Calibration **out) {
    Calibration *c = ARENA_NEW(arena, Calibration);
    double spread[NUM_PARTS], correlation[NUM_PARTS][NUM_PARTS] = {0};
    TRY(json_read_object(root, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, c));
    JsonNode schema = json_get(root, "schema"), factors = json_get(root, "factor");
    JsonNode spreads = json_get(root, "spread"), matrix = json_get(root, "correlation");
    JsonNode runs = json_get(root, "run_spread");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(parts_read(&factors, 0.01, 100, c->factor));
    TRY(parts_read(&spreads, 0, 10, spread));
    TRY(parts_read(&runs, 0, 10, c->run_spread));
    TRY(correlation_read(&matrix, correlation));
    TRY(origin_check(root, c));
    for (int i = 0; i < NUM_PARTS; i++)
        for (int j = 0; j < NUM_PARTS; j++)
            c->covariance[i][j] = spread[i] * spread[j] * correlation[i][j];
    c->path = path;
    *out = c;
    return status_ok();
}

Status calibration_load_default(Arena *arena, const Calibration **out) {
    JsonNode root;
    TRY(json_load(data_path(arena, "hw-profiles", "steps"), arena, &root));
    return calibration_read(&root, NULL, arena, out);
}

Status calibration_load(const JsonNode *value, Arena *arena, const Calibration **out) {
    if (!json_is_present(value)) return calibration_load_default(arena, out);
    const char *path;
    JsonNode root;
    TRY(json_read_string(value, arena, &path));
    path = path_beside(arena, value->file, path);
    TRY(json_load_named(value, path, arena, &root));
    return calibration_read(&root, path, arena, out);
}

Status calibration_check(const JsonNode *value, const Calibration *c, const char *gpu,
                         const char *stack, const char *stack_version) {
    static const char NONE[] = "of no stated version";
    if (!c->gpu) return status_ok();
    const char *version = stack_version ? stack_version : NONE;
    const char *measured = c->stack_version ? c->stack_version : NONE;
    if (strcmp(c->gpu, gpu) == 0 && strcmp(c->stack, stack) == 0 && strcmp(measured, version) == 0)
        return status_ok();
    return json_error(value,
                      "%.150s was measured on %s with %s %s, but this scenario has %s with %s %s; "
                      "expected a run of the same GPU and stack",
                      c->path, c->gpu, c->stack, measured, gpu, stack, version);
}

// To 6 significant digits: far finer than what any run tells.
static double rounded(double value) {
    if (value == 0 || !isfinite(value)) return 0;
    double scale = pow(10, 5 - floor(log10(fabs(value))));
    return round(value * scale) / scale;
}

static double correlation_of(const Calibration *c, int i, int j) {
    if (i == j) return 1;
    double variances = c->covariance[i][i] * c->covariance[j][j];
    return variances > 0 ? rounded(c->covariance[i][j] / sqrt(variances)) : 0;
}

cJSON *calibration_to_json(const Calibration *c) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddStringToObject(json, "title", c->title);
    if (c->gpu) cJSON_AddStringToObject(json, "gpu", c->gpu);
    if (c->stack) cJSON_AddStringToObject(json, "stack", c->stack);
    if (c->stack_version) cJSON_AddStringToObject(json, "stack_version", c->stack_version);
    cJSON *factors = cJSON_AddObjectToObject(json, "factor");
    cJSON *spreads = cJSON_AddObjectToObject(json, "spread");
    cJSON *runs = cJSON_AddObjectToObject(json, "run_spread");
    cJSON *rows = cJSON_AddArrayToObject(json, "correlation");
    for (int i = 0; i < NUM_PARTS; i++) {
        json_add_number(factors, PART_NAMES[i], rounded(c->factor[i]));
        json_add_number(spreads, PART_NAMES[i], rounded(sqrt(c->covariance[i][i])));
        json_add_number(runs, PART_NAMES[i], rounded(c->run_spread[i]));
        cJSON *row = cJSON_CreateArray();
        for (int j = 0; j < NUM_PARTS; j++)
            cJSON_AddItemToArray(row, cJSON_CreateNumber(correlation_of(c, i, j)));
        cJSON_AddItemToArray(rows, row);
    }
    json_add_number(json, "step_spread", rounded(c->step_spread));
    json_add_number(json, "inherited_spread", rounded(c->inherited_spread));
    json_add_number(json, "foreign_spread", rounded(c->foreign_spread));
    json_add_number(json, "octave_spread", rounded(c->octave_spread));
    json_add_number(json, "num_nodes", c->num_nodes);
    return json;
}
