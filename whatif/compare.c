#include "whatif/compare.h"

#include "planner/questions/idle.h"
#include "planner/why/explain.h"

#include <math.h>
#include <string.h>

// --- One side

Status compare_side(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    CompareSide *out) {
    *out = (CompareSide){.scenario = scenario};
    if (!options) {
        TRY(plan_resolve(scenario, arena, &out->plan));
        return estimate_plan(scenario, &out->plan, arena, &out->estimate, NULL);
    }
    PlannerOptions one = *options;
    one.top = 1;
    PlannerResult result;
    Scenario *used = ARENA_NEW(arena, Scenario);
    TRY(planner_search_idle(scenario, &one, arena, used, &result));
    out->scenario = used;
    if (result.num_entries == 0) {
        out->miss = planner_miss_text(&result, arena);
        return status_ok();
    }
    out->plan = result.entries[0].plan;
    out->estimate = result.entries[0].estimate;
    return status_ok();
}

// --- What was asked differently

typedef struct {
    Arena *arena;
    CompareChange *changes; // [num_changes]
    int num_changes, capacity;
} Changes;

static const char *value_text(const cJSON *value, Arena *arena) {
    if (!value || cJSON_IsNull(value)) return NULL;
    char *text = cJSON_PrintUnformatted(value);
    const char *copy = arena_strdup(arena, text ? text : "");
    cJSON_free(text);
    return copy;
}

static void change_add(Changes *c, const char *path, const cJSON *a, const cJSON *b) {
    if (c->num_changes == c->capacity) {
        const int capacity = c->capacity ? 2 * c->capacity : 16;
        CompareChange *grown = ARENA_ARRAY(c->arena, capacity, CompareChange);
        if (c->num_changes) memcpy(grown, c->changes, (size_t)c->num_changes * sizeof *grown);
        c->changes = grown;
        c->capacity = capacity;
    }
    c->changes[c->num_changes++] =
        (CompareChange){path, value_text(a, c->arena), value_text(b, c->arena)};
}

static bool is_nothing(const cJSON *value) {
    return !value || cJSON_IsNull(value);
}

static const char *path_join(const char *path, const char *key, Arena *arena) {
    return path[0] ? arena_printf(arena, "%s.%s", path, key) : arena_strdup(arena, key);
}

static void trees_differ(Changes *c, const char *path, const cJSON *a, const cJSON *b);

// Keys of a, then those that only b has.
static void objects_differ(Changes *c, const char *path, const cJSON *a, const cJSON *b) {
    const cJSON *member;
    cJSON_ArrayForEach(member, a) {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(b, member->string);
        trees_differ(c, path_join(path, member->string, c->arena), member, other);
    }
    cJSON_ArrayForEach(member, b) {
        if (cJSON_GetObjectItemCaseSensitive(a, member->string)) continue;
        trees_differ(c, path_join(path, member->string, c->arena), NULL, member);
    }
}

static void trees_differ(Changes *c, const char *path, const cJSON *a, const cJSON *b) {
    if (is_nothing(a) && is_nothing(b)) return;
    if (cJSON_IsObject(a) && cJSON_IsObject(b))
        objects_differ(c, path, a, b);
    else if (!a || !b || !cJSON_Compare(a, b, true))
        change_add(c, path, a, b);
}

// The scenario without what says nothing about the job; the model in full where it came from a
// file. `parallel` is compared as the plan has it.
static cJSON *job_of(const CompareSide *side, Arena *arena) {
    static const char *const OTHERS[] = {"schema",     "name",     "description",
                                         "provenance", "parallel", "model"};
    cJSON *copy = cJSON_Duplicate(side->scenario->document, true);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(copy, OTHERS[i]);
    cJSON_AddItemToObject(copy, "model", cJSON_Duplicate(side->scenario->model_document, true));
    json_own(arena, copy);
    return copy;
}

static cJSON *parallel_of(const CompareSide *side, Arena *arena) {
    cJSON *json = side->miss ? cJSON_CreateObject() : plan_to_json(&side->plan);
    json_own(arena, json);
    return json;
}

// --- Figures

enum { MAX_ROWS = 32 };

typedef struct {
    CompareRow *rows; // [MAX_ROWS]
    int num_rows;
} Rows;

static void row_add(Rows *rows, const char *name, CompareUnit unit, double a, double b) {
    rows->rows[rows->num_rows++] = (CompareRow){name, unit, a, b};
}

static void memory_add(Rows *rows, const RankMemory *a, const RankMemory *b) {
    row_add(rows, "weights", COMPARE_BYTES, a->weights_bytes, b->weights_bytes);
    row_add(rows, "gradients", COMPARE_BYTES, a->gradients_bytes, b->gradients_bytes);
    row_add(rows, "optimizer", COMPARE_BYTES, a->optimizer_bytes, b->optimizer_bytes);
    row_add(rows, "activations", COMPARE_BYTES, a->activations_bytes, b->activations_bytes);
    row_add(rows, "buffers", COMPARE_BYTES, a->buffers_bytes, b->buffers_bytes);
    row_add(rows, "memory_peak_bytes", COMPARE_BYTES, a->peak_bytes, b->peak_bytes);
    row_add(rows, "memory_device_bytes", COMPARE_BYTES, a->device_bytes, b->device_bytes);
}

static Rows rows_build(const Estimate *a, const Estimate *b, Arena *arena) {
    Rows rows = {.rows = ARENA_ARRAY(arena, MAX_ROWS, CompareRow)};
    _Static_assert(NUM_TERMS + 16 <= MAX_ROWS, "a row each");
    for (int t = 0; t < NUM_TERMS; t++)
        row_add(&rows, TERM_NAMES[t], COMPARE_SECONDS, a->term_s[t], b->term_s[t]);
    row_add(&rows, "step_time_s", COMPARE_SECONDS, a->step_time_s, b->step_time_s);
    memory_add(&rows, &a->memory, &b->memory);
    row_add(&rows, "memory_available_bytes", COMPARE_BYTES, a->memory_available_bytes,
            b->memory_available_bytes);
    row_add(&rows, "tokens_per_s", COMPARE_NUMBER, a->tokens_per_s, b->tokens_per_s);
    row_add(&rows, "tokens_per_s_per_gpu", COMPARE_NUMBER, a->tokens_per_s_per_gpu,
            b->tokens_per_s_per_gpu);
    row_add(&rows, "mfu_frac", COMPARE_NUMBER, a->mfu_frac, b->mfu_frac);
    row_add(&rows, "usd_per_1e9_tokens", COMPARE_NUMBER, a->usd_per_1e9_tokens,
            b->usd_per_1e9_tokens);
    row_add(&rows, "joules_per_token", COMPARE_NUMBER, a->joules_per_token, b->joules_per_token);
    return rows;
}

static bool is_within_noise(const CompareSide *a, const CompareSide *b) {
    const PlannedEntry x = {.plan = a->plan, .estimate = a->estimate};
    const PlannedEntry y = {.plan = b->plan, .estimate = b->estimate};
    const bool a_first = a->estimate.step_time_s <= b->estimate.step_time_s;
    return explain_within_noise(a->scenario, OBJECTIVE_THROUGHPUT, a_first ? &x : &y,
                                a_first ? &y : &x);
}

Comparison compare_sides(const CompareSide *a, const CompareSide *b, Arena *arena) {
    Comparison out = {.a = *a, .b = *b};
    Changes changes = {.arena = arena};
    trees_differ(&changes, "", job_of(a, arena), job_of(b, arena));
    out.same_job = changes.num_changes == 0;
    if (!a->miss && !b->miss) {
        trees_differ(&changes, "parallel", parallel_of(a, arena), parallel_of(b, arena));
        const Rows rows = rows_build(&a->estimate, &b->estimate, arena);
        out.rows = rows.rows;
        out.num_rows = rows.num_rows;
        out.tokens_ratio = b->estimate.tokens_per_s / a->estimate.tokens_per_s;
        out.within_noise = out.same_job && is_within_noise(a, b);
    }
    out.changes = changes.changes;
    out.num_changes = changes.num_changes;
    return out;
}

// --- JSON

static cJSON *side_to_json(const CompareSide *side) {
    cJSON *json =
        side->miss ? cJSON_CreateObject() : estimate_to_json(&side->estimate, &side->plan);
    cJSON_AddStringToObject(json, "file", side->scenario->file);
    if (side->miss) cJSON_AddStringToObject(json, "error", side->miss);
    return json;
}

static void raw_add(cJSON *json, const char *key, const char *value) {
    if (value)
        cJSON_AddRawToObject(json, key, value);
    else
        cJSON_AddNullToObject(json, key);
}

cJSON *compare_to_json(const Comparison *c) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddItemToObject(json, "a", side_to_json(&c->a));
    cJSON_AddItemToObject(json, "b", side_to_json(&c->b));
    cJSON_AddBoolToObject(json, "same_job", c->same_job);
    cJSON *changes = cJSON_AddArrayToObject(json, "changes");
    for (int i = 0; i < c->num_changes; i++) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(changes, entry);
        cJSON_AddStringToObject(entry, "path", c->changes[i].path);
        raw_add(entry, "a", c->changes[i].a);
        raw_add(entry, "b", c->changes[i].b);
    }
    if (c->num_rows == 0) return json;
    cJSON *terms = cJSON_AddArrayToObject(json, "terms");
    for (int i = 0; i < c->num_rows; i++) {
        const CompareRow *row = &c->rows[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(terms, entry);
        cJSON_AddStringToObject(entry, "name", row->name);
        json_add_number(entry, "a", row->a);
        json_add_number(entry, "b", row->b);
        json_add_number(entry, "difference", row->b - row->a);
        json_add_number(entry, "ratio", row->a != 0 ? row->b / row->a : NAN); // else null
    }
    json_add_number(json, "tokens_per_s_ratio", c->tokens_ratio);
    if (c->same_job) cJSON_AddBoolToObject(json, "within_noise", c->within_noise);
    return json;
}

const char *compare_misfit_text(bool a_fits, bool b_fits) {
    if (a_fits && b_fits) return "";
    if (a_fits) return " But B does not fit in memory.";
    return b_fits ? " But A does not fit in memory." : " But neither fits in memory.";
}
