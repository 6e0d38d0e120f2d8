// Laws of one answer: how a scenario is written changes no byte of it, and it is the same wherever
// it is asked for.
#include "tests/laws/law.h"

#include "costmodel/step/estimate.h"
#include "planner/planner.h"
#include "tests/laws/scenario_keys.h"
#include "whatif/compare.h"
#include "whatif/whatif.h"

#include <CUnit/CUnit.h>

#include <string.h>

enum { MAX_MEMBERS = 512 };

static const char *text_of(cJSON *tree, Arena *arena) {
    char *text = cJSON_PrintUnformatted(tree);
    const char *copy = arena_strdup(arena, text);
    cJSON_free(text);
    cJSON_Delete(tree);
    return copy;
}

// `estimate --json`, or why there is none.
static const char *estimate_text(const DrawnScenario *drawn, Arena *arena) {
    Estimate estimate;
    const Status status = estimate_plan(&drawn->scenario, &drawn->plan, arena, &estimate, NULL);
    if (status.code != STATUS_OK) return arena_strdup(arena, status.text);
    return text_of(estimate_to_json(&estimate, &drawn->plan), arena);
}

// `plan --json` without its timing, or why there is none.
static const char *search_text(const DrawnScenario *drawn, int num_threads, Arena *arena) {
    const PlannerOptions options = {.top = 3, .brief = true, .num_threads = num_threads};
    PlannerResult found;
    const Status status = planner_search(&drawn->scenario, &options, arena, &found);
    if (status.code != STATUS_OK) return arena_strdup(arena, status.text);
    cJSON *tree = planner_to_json(&found);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "timing");
    return text_of(tree, arena);
}

// The first place where two texts differ; NULL for none.
static const char *first_difference(const char *a, const char *b, Arena *arena) {
    enum { BEFORE = 60, SHOWN = 120 };
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    if (a[at] == b[at]) return NULL;
    const size_t from = at > BEFORE ? at - BEFORE : 0;
    return arena_printf(arena, "\"%.*s\" and \"%.*s\"", SHOWN, a + from, SHOWN, b + from);
}

// --- How it is written

// Members of all objects in another order.
static void keys_shuffle(cJSON *tree, Draw *draw) {
    cJSON *members[MAX_MEMBERS];
    int num = 0;
    for (cJSON *item = tree->child; item; item = item->next) keys_shuffle(item, draw);
    if (!cJSON_IsObject(tree) || cJSON_GetArraySize(tree) > MAX_MEMBERS) return;
    while (tree->child) members[num++] = cJSON_DetachItemViaPointer(tree, tree->child);
    while (num > 0) {
        const int one = draw_int(draw, 0, num - 1);
        cJSON_AddItemToArray(tree, members[one]); // it keeps its name
        members[one] = members[--num];
    }
}

// States each key of the job that the document leaves to its default.
static void defaults_state(const DrawnScenario *drawn, cJSON *document) {
    cJSON *keys = scenario_keys(&drawn->scenario, &drawn->plan), *key;
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training");
    cJSON_ArrayForEach(key, keys) {
        if (strncmp(key->string, "training.", 9) != 0) continue;
        if (cJSON_GetObjectItemCaseSensitive(training, key->string + 9)) continue;
        key_restore(document, key->string, key);
    }
    cJSON_Delete(keys);
}

// The complete plan in place of what is stated of it.
static void plan_state(const DrawnScenario *drawn, cJSON *document) {
    cJSON *whole = plan_document(&drawn->scenario, &drawn->plan, NULL);
    cJSON *parallel = cJSON_DetachItemFromObjectCaseSensitive(whole, "parallel");
    cJSON_DeleteItemFromObjectCaseSensitive(document, "parallel");
    cJSON_AddItemToObject(document, "parallel", parallel);
    cJSON_Delete(whole);
}

typedef enum {
    WRITTEN_SHUFFLED,
    WRITTEN_DEFAULTS,
    WRITTEN_PLAN,
    WRITTEN_NAME,
    NUM_WRITTEN
} Written;

static const char *const WRITTEN_NAMES[] = {"keys in another order", "defaults stated",
                                            "the whole plan stated", "another name"};

static cJSON *rewritten(const DrawnScenario *drawn, Written way, Draw *draw, Arena *arena) {
    cJSON *document = cJSON_Duplicate(drawn->document, true);
    json_own(arena, document);
    if (way == WRITTEN_SHUFFLED) keys_shuffle(document, draw);
    if (way == WRITTEN_DEFAULTS) defaults_state(drawn, document);
    if (way == WRITTEN_PLAN) plan_state(drawn, document);
    if (way == WRITTEN_NAME) cJSON_AddStringToObject(document, "name", "zz-another");
    return document;
}

static LawVerdict written_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                                Arena *arena) {
    const char *before = estimate_text(drawn, arena);
    for (int way = 0; way < NUM_WRITTEN; way++) {
        DrawnScenario again;
        const cJSON *document = rewritten(drawn, (Written)way, draw, arena);
        const Status status = scenario_take(document, shelf, arena, &again);
        if (status.code != STATUS_OK)
            return law_broken(arena, "%s: refused: %s", WRITTEN_NAMES[way], status.text);
        const char *differs = first_difference(before, estimate_text(&again, arena), arena);
        if (differs) return law_broken(arena, "%s: %s", WRITTEN_NAMES[way], differs);
    }
    return LAW_HOLDS;
}

static LawVerdict search_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                               Arena *arena) {
    const char *before = search_text(drawn, 1, arena);
    const char *threads = first_difference(before, search_text(drawn, 3, arena), arena);
    if (threads) return law_broken(arena, "three threads: %s", threads);
    for (int way = 0; way < NUM_WRITTEN; way++) {
        DrawnScenario again;
        if (way == WRITTEN_PLAN || way == WRITTEN_DEFAULTS) continue;
        const cJSON *document = rewritten(drawn, (Written)way, draw, arena);
        const Status status = scenario_take(document, shelf, arena, &again);
        if (status.code != STATUS_OK)
            return law_broken(arena, "%s: refused: %s", WRITTEN_NAMES[way], status.text);
        const char *differs = first_difference(before, search_text(&again, 1, arena), arena);
        if (differs) return law_broken(arena, "%s: %s", WRITTEN_NAMES[way], differs);
    }
    return LAW_HOLDS;
}

static void how_it_is_written_changes_no_estimate(void) {
    law_run(&(Law){.name = "written otherwise, estimated",
                   .space = {.max_gpus = 64, .split = SPLIT_WHOLE},
                   .check = written_check,
                   .num_cases = 100,
                   .num_cases_full = 2000});
}

static void how_it_is_written_changes_no_plan(void) {
    law_run(&(Law){.name = "written otherwise, planned",
                   .space = {.max_gpus = 16, .split = SPLIT_SOME},
                   .check = search_check,
                   .num_cases = 15,
                   .num_cases_full = 600});
}

// --- Where it is asked for

static const char *grid_text(const DrawnScenario *drawn, Arena *arena) {
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(drawn->document, "training");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(training, "global_batch");
    const WhatifAxis axis = {"training.global_batch", &value, 1};
    WhatifResult result;
    const Status status =
        whatif_run(&drawn->scenario, &axis, 1, &(WhatifOptions){0}, arena, &result);
    if (status.code != STATUS_OK) return arena_strdup(arena, status.text);
    const WhatifPoint *point = &result.points[0];
    cJSON *answer = point->answer ? cJSON_Parse(point->answer) : NULL;
    return answer ? text_of(answer, arena) : point->message;
}

static const char *compared_text(const DrawnScenario *drawn, Arena *arena) {
    CompareSide side;
    const Status status = compare_side(&drawn->scenario, NULL, arena, &side);
    if (status.code != STATUS_OK) return arena_strdup(arena, status.text);
    return text_of(estimate_to_json(&side.estimate, &side.plan), arena);
}

// Numbers as they are read again.
static const char *alone_text(const DrawnScenario *drawn, Arena *arena) {
    const char *text = estimate_text(drawn, arena);
    cJSON *tree = cJSON_Parse(text);
    return tree ? text_of(tree, arena) : text;
}

static LawVerdict asked_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                              Arena *arena) {
    (void)shelf;
    (void)draw;
    const char *alone = estimate_text(drawn, arena);
    const char *compared = first_difference(alone, compared_text(drawn, arena), arena);
    if (compared) return law_broken(arena, "alone and in a comparison: %s", compared);
    const char *grid = first_difference(alone_text(drawn, arena), grid_text(drawn, arena), arena);
    if (grid) return law_broken(arena, "alone and in a grid: %s", grid);
    return LAW_HOLDS;
}

// Entries of a search, and what `estimate` says of each when it is read as a plan.json.
static LawVerdict listed_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                               Arena *arena) {
    const PlannerOptions options = {.top = 4, .brief = true};
    PlannerResult found;
    (void)draw;
    if (planner_search(&drawn->scenario, &options, arena, &found).code != STATUS_OK ||
        found.num_entries == 0)
        return LAW_SILENT;
    for (int i = 0; i < found.num_entries; i++) {
        const PlannedEntry *entry = &found.entries[i];
        cJSON *document = plan_document(&drawn->scenario, &entry->plan, NULL);
        json_own(arena, document);
        DrawnScenario alone;
        const Status status = scenario_take(document, shelf, arena, &alone);
        if (status.code != STATUS_OK)
            return law_broken(arena, "plan %d is refused: %s", i + 1, status.text);
        // Search and estimate ask for room with a probability of their own.
        alone.scenario.fit_deviates =
            planner_limited(&drawn->scenario, &options, arena).fit_deviates;
        const char *planned = text_of(estimate_to_json(&entry->estimate, &entry->plan), arena);
        const char *differs = first_difference(planned, estimate_text(&alone, arena), arena);
        if (differs) return law_broken(arena, "plan %d and alone: %s", i + 1, differs);
    }
    return LAW_HOLDS;
}

static void grids_and_comparisons_say_what_an_estimate_says(void) {
    law_run(&(Law){.name = "alone, in a grid, in a comparison",
                   .space = {.max_gpus = 64, .split = SPLIT_WHOLE},
                   .check = asked_check,
                   .num_cases = 100,
                   .num_cases_full = 2000});
}

static void plans_say_what_an_estimate_says(void) {
    law_run(&(Law){.name = "listed by a search, and alone",
                   .space = {.max_gpus = 16, .split = SPLIT_SOME},
                   .check = listed_check,
                   .num_cases = 25,
                   .num_cases_full = 600});
}

CU_TestInfo laws_answer_tests[] = {
    {"how it is written changes no estimate", how_it_is_written_changes_no_estimate},
    {"how it is written changes no plan", how_it_is_written_changes_no_plan},
    {"grids and comparisons say what an estimate says",
     grids_and_comparisons_say_what_an_estimate_says},
    {"plans say what an estimate says", plans_say_what_an_estimate_says},
    CU_TEST_INFO_NULL,
};
