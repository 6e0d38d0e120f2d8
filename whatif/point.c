#include "whatif/point.h"

#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "planner/questions/idle.h"
#include "whatif/change.h"
#include "whatif/rays.h"

#include <stdlib.h>
#include <string.h>

const cJSON *whatif_value(const WhatifAxis *axes, int num_axes, int64_t point, int axis) {
    for (int i = num_axes - 1; i > axis; i--) point /= axes[i].num_values;
    return axes[axis].values[point % axes[axis].num_values];
}

// --- The answer

// Of a search of this document: what the prices of its shapes do not depend on is left out.
static const char *prices_key(cJSON *document, Arena *arena) {
    static const char *const WITHOUT[][2] = {{"training", "global_batch"},
                                             {"cluster", "price_usd_per_gpu_hour"}};
    cJSON *copy = cJSON_Duplicate(document, true);
    for (size_t i = 0; i < sizeof WITHOUT / sizeof *WITHOUT; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(copy, WITHOUT[i][0]), WITHOUT[i][1]);
    char *text = cJSON_PrintUnformatted(copy);
    const char *key = text ? arena_strdup(arena, text) : NULL;
    cJSON_free(text);
    cJSON_Delete(copy);
    return key;
}

Status point_scenario(const Grid *grid, int64_t index, Arena *arena, Scenario *out,
                      const char **key) {
    cJSON *document = cJSON_Duplicate(grid->base, true);
    json_own(arena, document);
    change_derive(document, grid->paths, grid->num_axes);
    for (int i = 0; i < grid->num_axes; i++)
        TRY(change_set(grid->scenario, document, grid->paths[i],
                       whatif_value(grid->axes, grid->num_axes, index, i)));
    *key = grid->replan ? prices_key(document, arena) : NULL;
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = grid->scenario->file, .item = document};
    TRY(scenario_read_shared(root, grid->shelf, arena, out));
    return grid->play ? scenario_refuse_unsimulated(out) : scenario_refuse_unsupported(out);
}

// Rates and costs of the estimate go with its step.
static void played_add(cJSON *tree, const Estimate *estimate, const WhatifPlayed *played) {
    const double longer = played->step_time_s / estimate->step_time_s;
    const cJSON *usd = cJSON_GetObjectItemCaseSensitive(tree, "usd_per_1e9_tokens");
    cJSON *simulated = cJSON_AddObjectToObject(tree, "simulated");
    json_add_number(simulated, "step_time_s", played->step_time_s);
    json_add_number(simulated, "tokens_per_s", estimate->tokens_per_s / longer);
    json_add_number(simulated, "mfu_frac", estimate->mfu_frac / longer);
    if (cJSON_IsNumber(usd))
        json_add_number(simulated, "usd_per_1e9_tokens", usd->valuedouble * longer);
    json_add_number(simulated, "p95_step_time_s", played->p95_step_time_s);
    json_add_number(simulated, "undisturbed_step_time_s", played->undisturbed_step_time_s);
    json_add_number(simulated, "num_repetitions", played->num_repetitions);
    cJSON *list = cJSON_AddArrayToObject(simulated, "not_played");
    for (int i = 0; i < played->num_not_played; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(played->not_played[i]));
}

// The sentences of what was not played as one; NULL: there are none.
static const char *note_of(const cJSON *simulated, Arena *arena) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(simulated, "not_played"), *item;
    const char *note = NULL;
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item)) note =
        arena_printf(arena, "%s%s%s", note ? note : "", note ? "; " : "", item->valuestring);
    return note;
}

static void document_add(const Plan *plan, const Estimate *estimate, const WhatifPlayed *played,
                         Arena *arena, WhatifPoint *point) {
    cJSON *tree = estimate_to_json(estimate, plan);
    if (played) played_add(tree, estimate, played);
    char *text = cJSON_PrintUnformatted(tree);
    point->answer = arena_strdup(arena, text ? text : "null");
    point->note = note_of(cJSON_GetObjectItemCaseSensitive(tree, "simulated"), arena);
    cJSON_free(text);
    cJSON_Delete(tree);
}

static void point_answer(const Grid *grid, const Plan *plan, const Estimate *estimate,
                         const WhatifPlayed *played, Arena *arena, WhatifPoint *point) {
    const double longer = played ? played->step_time_s / estimate->step_time_s : 1;
    point->answer = "";
    if (!grid->figures_only) document_add(plan, estimate, played, arena, point);
    point->plan = plan_describe(plan, arena);
    point->figures =
        (WhatifFigures){.step_time_s = played ? played->step_time_s : estimate->step_time_s,
                        .tokens_per_s = estimate->tokens_per_s / longer,
                        .mfu_frac = estimate->mfu_frac / longer,
                        .memory_device_bytes = estimate->memory.device_bytes,
                        .memory_available_bytes = estimate->memory_available_bytes,
                        .usd_per_1e9_tokens = estimate->usd_per_1e9_tokens * longer};
}

// The answer of a plan that fits, played where the grid is.
static Status plan_answer(const Grid *grid, const Scenario *scenario, const Plan *plan,
                          const Estimate *estimate, Arena *arena, WhatifPoint *point) {
    WhatifPlayed played;
    if (grid->play) TRY(grid->play(grid->play_context, scenario, plan, arena, &played));
    point_answer(grid, plan, estimate, grid->play ? &played : NULL, arena, point);
    return status_ok();
}

static Status point_estimate(const Grid *grid, const Scenario *scenario, Arena *arena,
                             WhatifPoint *point) {
    Plan plan;
    Estimate estimate;
    TRY(plan_resolve(scenario, arena, &plan));
    TRY(estimate_plan(scenario, &plan, arena, &estimate, NULL));
    if (estimate.fits) return plan_answer(grid, scenario, &plan, &estimate, arena, point);
    point_answer(grid, &plan, &estimate, NULL, arena, point);
    return status_error(STATUS_NO, "does not fit: needs %.2f GB of %.2f GB",
                        estimate.memory.device_bytes / 1e9, estimate.memory_available_bytes / 1e9);
}

static bool parallel_is_varied(const Grid *grid) {
    for (int i = 0; i < grid->num_axes; i++)
        if (strncmp(grid->paths[i], "parallel", strlen("parallel")) == 0) return true;
    return false;
}

// What a plan takes that is given as the `parallel` of an answer; 0 where it is not legal or does
// not fit.
static double parallel_step_s(const Grid *grid, const Scenario *scenario, const JsonNode *parallel,
                              Arena *arena) {
    Scenario known = *scenario;
    Plan plan;
    Estimate estimate;
    if (parallel_load(parallel, arena, &known.parallel).code != STATUS_OK) return 0;
    if (plan_resolve(&known, arena, &plan).code != STATUS_OK) return 0;
    if (estimate_plan(&known, &plan, arena, &estimate, NULL).code != STATUS_OK) return 0;
    const double asked_frac = planner_fit_probability(&grid->planner);
    return estimate.fits_probability_frac >= asked_frac ? estimate.step_time_s : 0;
}

double point_known_step_s(const Grid *grid, const Scenario *scenario, const WhatifPoint *like,
                          Arena *arena) {
    static const char *const DERIVED[] = {"dp", "zero_group", "placement"};
    static const char *const OF_LAYERS[] = {"stages", "layers"};
    if (!like->answer || parallel_is_varied(grid)) return 0;
    cJSON *answer = cJSON_Parse(like->answer);
    json_own(arena, answer);
    const JsonNode root = {.file = scenario->file, .item = answer};
    const JsonNode parallel = json_get(&root, "parallel");
    if (!json_is_present(&parallel)) return 0;
    for (size_t i = 0; i < sizeof DERIVED / sizeof *DERIVED; i++)
        cJSON_DeleteItemFromObjectCaseSensitive((cJSON *)parallel.item, DERIVED[i]);
    const double step_s = parallel_step_s(grid, scenario, &parallel, arena);
    if (step_s > 0) return step_s;
    for (size_t i = 0; i < sizeof OF_LAYERS / sizeof *OF_LAYERS; i++)
        cJSON_DeleteItemFromObjectCaseSensitive((cJSON *)parallel.item, OF_LAYERS[i]);
    return parallel_step_s(grid, scenario, &parallel, arena);
}

// What is known of a point before it is planned.
typedef struct {
    const WhatifPoint *const *likes; // [num_likes]
    int num_likes;
    int64_t index;
    PriceSource prices; // key NULL: none
} Known;

// The least that the plans of other points take at this one; 0: none is known.
//   like  whose plan it is
static double least_known_s(const Grid *grid, const Scenario *scenario, const Known *known,
                            Arena *arena, const WhatifPoint **like) {
    double least_s = 0;
    *like = NULL;
    for (int i = 0; i < known->num_likes; i++) {
        const double step_s = point_known_step_s(grid, scenario, known->likes[i], arena);
        if (step_s <= 0 || (least_s > 0 && step_s >= least_s)) continue;
        least_s = step_s;
        *like = known->likes[i];
    }
    return least_s;
}

// Nothing slower than a known plan can be the best. That plan may be outside of what the search
// looks at; then the search is done again without it.
static Status best_find(const Grid *grid, const Scenario *scenario, const Known *known,
                        Arena *arena, Scenario *used, PlannerResult *out) {
    static const double ROUNDING = 1e-9;
    PlannerOptions options = grid->planner;
    const WhatifPoint *like;
    const double known_s = least_known_s(grid, scenario, known, arena, &like);
    if (known->prices.key) options.prices = &known->prices;
    if (grid->rays) options.shortlist = rays_list(grid->rays, known->index, like, known_s);
    options.worst_value = known_s * (1 + ROUNDING);
    TRY(planner_search_idle(scenario, &options, arena, used, out));
    if (out->num_entries > 0 || options.worst_value == 0) return status_ok();
    options.worst_value = 0;
    options.shortlist = NULL;
    return planner_search_idle(scenario, &options, arena, used, out);
}

static Status point_replan(const Grid *grid, const Scenario *scenario, const Known *known,
                           Arena *arena, WhatifPoint *point) {
    PlannerResult result;
    Scenario quiet = *scenario; // a search knows nothing of disturbances
    quiet.num_disturb = 0;
    Scenario used;
    TRY(best_find(grid, &quiet, known, arena, &used, &result));
    if (result.num_entries == 0)
        return status_error(STATUS_NO, "%s", planner_miss_text(&result, arena));
    const PlannedEntry *best = &result.entries[0];
    Scenario played = *scenario;
    played.cluster = used.cluster;
    return plan_answer(grid, &played, &best->plan, &best->estimate, arena, point);
}

void point_run(const Grid *grid, int64_t index, const WhatifPoint *const *likes, int num_likes,
               Arena *arena, WhatifPoint *out) {
    *out = (WhatifPoint){.done = true};
    Scenario scenario;
    Known known = {likes, num_likes, index, {grid->prices, NULL, 0}};
    Status status = point_scenario(grid, index, arena, &scenario, &known.prices.key);
    if (!grid->prices) known.prices.key = NULL;
    known.prices.num_gpus = status.code == STATUS_OK ? scenario.cluster.num_gpus : 0;
    if (status.code == STATUS_OK)
        status = grid->replan ? point_replan(grid, &scenario, &known, arena, out)
                              : point_estimate(grid, &scenario, arena, out);
    out->code = status.code;
    if (status.code != STATUS_OK) out->message = arena_strdup(arena, status.text);
}

// --- As a line

static const char *text_copy(const char *text, Arena *arena) {
    return text ? arena_strdup(arena, text) : NULL;
}

Status point_copy(const WhatifPoint *point, Arena *arena, Spill *answers, WhatifPoint *out) {
    *out = *point;
    out->message = text_copy(point->message, arena);
    out->plan = text_copy(point->plan, arena);
    out->note = text_copy(point->note, arena);
    return point->answer ? spill_add(answers, point->answer, &out->answer) : status_ok();
}

static const struct {
    const char *key;
    size_t offset;
    bool may_lack;
} FIGURES[] = {
    {"step_time_s", offsetof(WhatifFigures, step_time_s), false},
    {"tokens_per_s", offsetof(WhatifFigures, tokens_per_s), false},
    {"mfu_frac", offsetof(WhatifFigures, mfu_frac), false},
    {"memory_device_bytes", offsetof(WhatifFigures, memory_device_bytes), false},
    {"memory_available_bytes", offsetof(WhatifFigures, memory_available_bytes), false},
    {"usd_per_1e9_tokens", offsetof(WhatifFigures, usd_per_1e9_tokens), true},
};
enum { NUM_FIGURES = sizeof FIGURES / sizeof *FIGURES };

const char *point_line(int64_t index, const WhatifPoint *point, Arena *arena) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "point", (double)index);
    json_add_number(json, "code", point->code);
    if (point->message) cJSON_AddStringToObject(json, "error", point->message);
    if (point->answer) {
        cJSON_AddStringToObject(json, "plan", point->plan);
        cJSON_AddRawToObject(json, "answer", point->answer);
    }
    char *text = cJSON_PrintUnformatted(json);
    const char *line = arena_printf(arena, "%s\n", text ? text : "");
    cJSON_free(text);
    cJSON_Delete(json);
    return line;
}

// Of the answer: numbers are printed so that they read as the same.
static bool answer_read(const cJSON *answer, Arena *arena, WhatifPoint *out) {
    const cJSON *simulated = cJSON_GetObjectItemCaseSensitive(answer, "simulated");
    for (int i = 0; i < NUM_FIGURES; i++) {
        const cJSON *figure = cJSON_GetObjectItemCaseSensitive(answer, FIGURES[i].key);
        if (!cJSON_IsNumber(figure) && FIGURES[i].may_lack) continue;
        if (!cJSON_IsNumber(figure)) return false;
        const cJSON *played = cJSON_GetObjectItemCaseSensitive(simulated, FIGURES[i].key);
        if (cJSON_IsNumber(played)) figure = played;
        *(double *)(void *)((char *)&out->figures + FIGURES[i].offset) = figure->valuedouble;
    }
    out->note = note_of(simulated, arena);
    char *text = cJSON_PrintUnformatted(answer);
    out->answer = text_copy(text, arena);
    cJSON_free(text);
    return out->answer != NULL;
}

static bool tree_read(const cJSON *json, int64_t num_points, Arena *arena, int64_t *index,
                      WhatifPoint *out) {
    const cJSON *point = cJSON_GetObjectItemCaseSensitive(json, "point");
    const cJSON *code = cJSON_GetObjectItemCaseSensitive(json, "code");
    const cJSON *answer = cJSON_GetObjectItemCaseSensitive(json, "answer");
    const char *plan = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "plan"));
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "error"));
    if (!cJSON_IsNumber(point) || !cJSON_IsNumber(code)) return false;
    if (!(point->valuedouble >= 0 && point->valuedouble < (double)num_points)) return false;
    *index = (int64_t)point->valuedouble;
    *out = (WhatifPoint){.done = true, .code = (StatusCode)code->valueint};
    if (out->code < STATUS_OK || out->code > STATUS_MACHINE) return false;
    if ((out->code == STATUS_OK) != !error || (out->code == STATUS_OK && !answer)) return false;
    out->message = text_copy(error, arena);
    if (!answer) return true;
    out->plan = text_copy(plan, arena);
    return out->plan && answer_read(answer, arena, out);
}

bool point_read(const char *line, int64_t num_points, Arena *arena, int64_t *index,
                WhatifPoint *out) {
    cJSON *json = cJSON_Parse(line);
    const bool good = json && tree_read(json, num_points, arena, index, out);
    cJSON_Delete(json);
    return good;
}
