// Laws of searches: a constraint is never better than none, and more of a machine is never slower.
#include "tests/laws/law.h"

#include "plan/rule_check.h"
#include "planner/planner.h"
#include "planner/questions/idle.h"
#include "planner/space/space_text.h"
#include "whatif/resource.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 4 };

// Beyond rounding of sums in another order.
static const double ROUNDING_FRAC = 1e-9;

static bool search(const Scenario *scenario, int top, Arena *arena, PlannerResult *out) {
    const PlannerOptions options = {.top = top, .brief = true, .uncounted = top == 1};
    return planner_search(scenario, &options, arena, out).code == STATUS_OK && out->num_entries > 0;
}

// --- Constraints

// Keys that a search leaves free, of a plan that it listed.
static const char *const KEYS[] = {"tp",
                                   "pp",
                                   "cp",
                                   "dp",
                                   "ep",
                                   "etp",
                                   "vpp",
                                   "zero_stage",
                                   "zero_group",
                                   "recompute",
                                   "schedule",
                                   "cp_method",
                                   "order",
                                   "micro_batch",
                                   "sequence_parallel",
                                   "reshard_after_forward",
                                   "recompute_layers",
                                   NULL};

// The document with one key more of `parallel`; NULL where it states it already. The arena's.
static cJSON *constrained(const DrawnScenario *drawn, const char *key, const cJSON *value,
                          Arena *arena) {
    cJSON *document = cJSON_Duplicate(drawn->document, true);
    json_own(arena, document);
    cJSON *parallel = cJSON_GetObjectItemCaseSensitive(document, "parallel");
    if (!parallel) parallel = cJSON_AddObjectToObject(document, "parallel");
    if (cJSON_GetObjectItemCaseSensitive(parallel, key)) return NULL;
    cJSON_AddItemToObject(parallel, key, cJSON_Duplicate(value, true));
    return document;
}

// A question to `plan`: what it leaves open need not be a plan.
static Status question_read(const cJSON *document, KernelShelf *shelf, Arena *arena,
                            Scenario *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = "drawn.json", .item = document};
    TRY(scenario_read_shared(root, shelf, arena, out));
    return scenario_refuse_unsupported(out);
}

// Whether the software lacks what a plan needs: searched only where it is stated.
static bool is_lacking(const Scenario *scenario, const Plan *plan) {
    const Rule *broken[RULES_MAX];
    const RuleTable *table = scenario->execution.stack.rules;
    return table && plan_broken_rules(scenario, table, plan, broken) > 0;
}

static const char *value_text(const cJSON *value, Arena *arena) {
    char *text = cJSON_PrintUnformatted(value);
    const char *copy = arena_printf(arena, "%.160s", text);
    cJSON_free(text);
    return copy;
}

// A key as some listed plan has it: the constrained search is not better than the free one, nor
// worse than that plan.
static LawVerdict constraint_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                                   Arena *arena) {
    PlannerResult found, again;
    Scenario narrow;
    if (!search(&drawn->scenario, LISTED, arena, &found)) return LAW_SILENT;
    const PlannedEntry *entry = &found.entries[draw_int(draw, 0, found.num_entries - 1)];
    const char *key = draw_text(draw, KEYS);
    cJSON *whole = plan_document(&drawn->scenario, &entry->plan, NULL);
    json_own(arena, whole);
    const cJSON *value =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(whole, "parallel"), key);
    const cJSON *document = value ? constrained(drawn, key, value, arena) : NULL;
    if (!document) return LAW_SILENT;
    // Stated alone it is of all layers (planner/space/space.h): the plan has another.
    if (strcmp(key, "recompute") == 0 && entry->plan.recompute_layers != ABSENT) return LAW_SILENT;
    const Status status = question_read(document, shelf, arena, &narrow);
    const char *stated = arena_printf(arena, "%s %s", key, value_text(value, arena));
    if (status.code != STATUS_OK)
        return law_broken(arena, "%s of plan %s is refused: %s", stated,
                          plan_describe(&entry->plan, arena), status.text);
    if (!search(&narrow, 1, arena, &again))
        return law_broken(arena, "%s leaves no plan, but %s has it", stated,
                          plan_describe(&entry->plan, arena));
    const double free_s = found.entries[0].estimate.step_time_s;
    const double narrow_s = again.entries[0].estimate.step_time_s;
    if (narrow_s < free_s * (1 - ROUNDING_FRAC) && !is_lacking(&narrow, &again.entries[0].plan))
        return law_broken(arena, "free %.9g s (%s), with %s %.9g s (%s)", free_s,
                          plan_describe(&found.entries[0].plan, arena), stated, narrow_s,
                          plan_describe(&again.entries[0].plan, arena));
    if (narrow_s > entry->estimate.step_time_s * (1 + ROUNDING_FRAC))
        return law_broken(arena, "%s is listed with %.9g s, but with %s the best is %.9g s (%s)",
                          plan_describe(&entry->plan, arena), entry->estimate.step_time_s, stated,
                          narrow_s, plan_describe(&again.entries[0].plan, arena));
    return LAW_HOLDS;
}

// What plan_search never proposes, stated: not better than the free plan, or the answer of that
// says that it was not searched.
static LawVerdict unsearched_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                                   Arena *arena) {
    static const struct {
        const char *key, *value;
    } STATED[] = {
        {"sequence_parallel", "false"},
        {"reshard_after_forward", "false"},
        {"vocab_parallel", "true"},
        {"order", "\"tp-cp-ep-pp-dp\""},
        {"recompute_layers", "1"},
        {"recompute_modules", "[\"core_attn\"]"},
        {"zero_stage", "0"},
        {"zero_stage", "1"},
        {"zero_stage", "2"},
        {"zero_stage", "3"},
        {"vpp", "2"},
        {"schedule", "\"zb-h1\""},
        {"recompute", "\"selective\""},
        {"micro_batch", "96"},
        {"cp_method", "\"ulysses\""},
    };
    const size_t at = (size_t)draw_int(draw, 0, (int)(sizeof STATED / sizeof *STATED) - 1);
    const char *key = STATED[at].key;
    cJSON *value = cJSON_Parse(STATED[at].value);
    json_own(arena, value);
    const cJSON *document = constrained(drawn, key, value, arena);
    PlannerResult found, again;
    Scenario narrow;
    if (!document || question_read(document, shelf, arena, &narrow).code != STATUS_OK ||
        !search(&narrow, 1, arena, &again))
        return LAW_SILENT;
    const double narrow_s = again.entries[0].estimate.step_time_s;
    const bool any = search(&drawn->scenario, 1, arena, &found);
    if (any && narrow_s >= found.entries[0].estimate.step_time_s * (1 - ROUNDING_FRAC))
        return LAW_HOLDS;
    const char *space = any ? space_text(&drawn->scenario, &found, arena) : "";
    if (any && strstr(space, key)) return LAW_HOLDS;
    if (is_lacking(&narrow, &again.entries[0].plan)) return LAW_HOLDS; // which the text says, too
    return law_broken(arena, "free %.9g s (%s), with %s %s %.9g s (%s), and the answer says: %s",
                      any ? found.entries[0].estimate.step_time_s : INFINITY,
                      any ? plan_describe(&found.entries[0].plan, arena) : "nothing fits", key,
                      STATED[at].value, narrow_s, plan_describe(&again.entries[0].plan, arena),
                      space);
}

// Small enough to be searched by hundreds.
static const char *const MODELS[] = {"gpt2-124m",    "llama-3.2-1b",     "llama-3.1-8b",
                                     "gemma-2-9b",   "qwen2.5-7b",       "gpt-oss-20b",
                                     "mixtral-8x7b", "deepseek-v2-lite", NULL};

static const char *const ALL_STACKS[] = {
    "megatron-core", "megatron-2021", "internevo", "torchtitan", "pytorch-fsdp", "runtime", NULL};

static void a_constraint_is_never_better_than_none(void) {
    law_run(&(Law){.name = "constraints of listed plans",
                   .space = {.models = MODELS,
                             .only_presets = true,
                             .stacks = ALL_STACKS,
                             .max_gpus = 8,
                             .split = SPLIT_SOME},
                   .max_tries = 40,
                   .check = constraint_check,
                   .num_cases = 7,
                   .num_cases_full = 200});
}

static void what_is_not_searched_is_named(void) {
    law_run(&(Law){.name = "constraints beyond the space",
                   .space = {.models = MODELS,
                             .only_presets = true,
                             .stacks = ALL_STACKS,
                             .max_gpus = 8,
                             .split = SPLIT_NONE},
                   .max_tries = 40,
                   .check = unsearched_check,
                   .num_cases = 7,
                   .num_cases_full = 200});
}

// --- Resources

// The plan of the smaller machine on the larger one, then the best of both.
static LawVerdict resource_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                                 Arena *arena) {
    static const double FACTORS[] = {1.01, 1.1, 1.5, 2, 8};
    PlannerResult found, again;
    (void)shelf;
    const Resource resource = (Resource)draw_int(draw, 0, NUM_RESOURCES - 1);
    const double factor = FACTORS[draw_int(draw, 0, 4)];
    if (!search(&drawn->scenario, 1, arena, &found)) return LAW_SILENT;
    const bool more = resource_more_is_better(resource);
    const Scenario larger =
        resource_scaled(&drawn->scenario, resource, more ? factor : 1 / factor, arena);
    const char *name = RESOURCE_NAMES[resource];
    const PlannedEntry *best = &found.entries[0];
    if (!search(&larger, 1, arena, &again))
        return law_broken(arena, "nothing fits with %g of %s", factor, name);
    const double before_s = best->estimate.step_time_s;
    const double after_s = again.entries[0].estimate.step_time_s;
    if (after_s <= before_s * (1 + ROUNDING_FRAC)) return LAW_HOLDS;
    Estimate same;
    estimate_plan(&larger, &best->plan, arena, &same, NULL);
    return law_broken(arena, "%g of %s: %.9g s (%s) before, %.9g s (%s) after; the same plan %.9g",
                      factor, name, before_s, plan_describe(&best->plan, arena), after_s,
                      plan_describe(&again.entries[0].plan, arena), same.step_time_s);
}

static void more_of_a_machine_is_never_slower(void) {
    law_run(&(Law){.name = "more of a machine",
                   .space = {.models = MODELS,
                             .only_presets = true,
                             .stacks = ALL_STACKS,
                             .max_gpus = 8,
                             .split = SPLIT_SOME},
                   .max_tries = 40,
                   .check = resource_check,
                   .num_cases = 7,
                   .num_cases_full = 200});
}

// A node more of a preset, for the same job: some GPUs may idle.
static LawVerdict nodes_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                              Arena *arena) {
    const PlannerOptions options = {.top = 1, .brief = true};
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(drawn->document, "cluster");
    const char *colon = cJSON_IsString(cluster) ? strchr(cluster->valuestring, ':') : NULL;
    PlannerResult found, again;
    Scenario larger, used;
    if (!colon || !search(&drawn->scenario, 1, arena, &found)) return LAW_SILENT;
    const int length = (int)(colon - cluster->valuestring);
    const char *name = arena_printf(arena, "%.*s:%d", length, cluster->valuestring,
                                    atoi(colon + 1) + draw_int(draw, 1, 2));
    cJSON *document = cJSON_Duplicate(drawn->document, true);
    json_own(arena, document);
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cluster", cJSON_CreateString(name));
    if (question_read(document, shelf, arena, &larger).code != STATUS_OK) return LAW_SILENT;
    const Status status = planner_search_idle(&larger, &options, arena, &used, &again);
    if (status.code != STATUS_OK || again.num_entries == 0)
        return law_broken(arena, "%s has no plan: %s", name, status.text);
    const double before_s = found.entries[0].estimate.step_time_s;
    const double after_s = again.entries[0].estimate.step_time_s;
    if (after_s <= before_s * (1 + ROUNDING_FRAC)) return LAW_HOLDS;
    return law_broken(arena, "%.9g s (%s) before, %.9g s (%s) on %s", before_s,
                      plan_describe(&found.entries[0].plan, arena), after_s,
                      plan_describe(&again.entries[0].plan, arena), name);
}

static void more_nodes_are_never_slower(void) {
    law_run(&(Law){.name = "more nodes",
                   .space = {.models = MODELS,
                             .only_presets = true,
                             .stacks = ALL_STACKS,
                             .max_gpus = 8,
                             .split = SPLIT_NONE},
                   .max_tries = 20,
                   .check = nodes_check,
                   .num_cases = 2,
                   .num_cases_full = 100});
}

CU_TestInfo laws_plan_tests[] = {
    {"a constraint is never better than none", a_constraint_is_never_better_than_none},
    {"what is not searched is named", what_is_not_searched_is_named},
    {"more of a machine is never slower", more_of_a_machine_is_never_slower},
    {"more nodes are never slower", more_nodes_are_never_slower},
    CU_TEST_INFO_NULL,
};
