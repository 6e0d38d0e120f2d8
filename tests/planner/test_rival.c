#include "planner/questions/rival.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena arena;
    Scenario scenario;
    PlannerOptions options;
    PlannerResult best;
} Case;

static void case_open(Case *c, const char *parallel, PlannerOptions options) {
    *c = (Case){.options = options};
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", "dgx-h100:2", 4096, 64, parallel, &c->arena, &c->scenario).code,
        STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(planner_search(&c->scenario, &options, &c->arena, &c->best).code,
                          STATUS_OK);
}

static Rival rival_of(Case *c, int tp, int pp) {
    Scenario named = c->scenario;
    named.parallel.tp = tp;
    named.parallel.pp = pp;
    Rival rival;
    Status status = planner_rival(&named, &c->options, &c->best, &c->arena, &rival);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return rival;
}

static void the_terms_add_up_to_the_loss(void) {
    Case c;
    case_open(&c, NULL, (PlannerOptions){.top = 1});
    const Rival rival = rival_of(&c, 4, 4);
    CU_ASSERT_PTR_NULL(rival.refusal);
    CU_ASSERT_EQUAL_FATAL(rival.found.num_entries, 1);
    const Estimate *named = &rival.found.entries[0].estimate;
    const Estimate *best = &c.best.entries[0].estimate;
    CU_ASSERT_EQUAL(rival.found.entries[0].plan.tp, 4);
    CU_ASSERT_EQUAL(rival.found.entries[0].plan.pp, 4);
    double step_s = 0, bytes = 0;
    for (int t = 0; t < NUM_TERMS; t++) step_s += rival.term_s[t];
    for (int i = 0; RIVAL_PARTS[i]; i++) bytes += rival.part_bytes[i];
    CU_ASSERT_DOUBLE_EQUAL(step_s, named->step_time_s - best->step_time_s, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(bytes, named->memory.peak_bytes - best->memory.peak_bytes, 1);
    CU_ASSERT_DOUBLE_EQUAL(rival.loses_frac, named->step_time_s / best->step_time_s - 1, 1e-12);
    CU_ASSERT(rival.loses_frac > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(rival.why, "% slower: "));
    arena_free(&c.arena);
}

static void the_best_loses_nothing_to_itself(void) {
    Case c;
    case_open(&c, NULL, (PlannerOptions){.top = 1});
    const Plan *best = &c.best.entries[0].plan;
    const Rival rival = rival_of(&c, best->tp, best->pp);
    CU_ASSERT_EQUAL(rival.loses_frac, 0);
    CU_ASSERT_TRUE(rival.within_noise_of_best);
    for (int t = 0; t < NUM_TERMS; t++) CU_ASSERT_EQUAL(rival.term_s[t], 0);
    arena_free(&c.arena);
}

// The scenario asks for tp 8; what is named gives that up.
static void what_is_named_may_be_better_than_the_constraints(void) {
    Case c;
    case_open(&c, "{\"tp\": 8}", (PlannerOptions){.top = 1});
    const Rival rival = rival_of(&c, 1, ABSENT);
    CU_ASSERT(rival.loses_frac < 0);
    const char *const begin = "better than the best within the scenario's constraints, which is ";
    CU_ASSERT_EQUAL(strncmp(rival.why, begin, strlen(begin)), 0);
    const double slower = 1 / (1 + rival.loses_frac) - 1;
    CU_ASSERT_DOUBLE_EQUAL(strtod(rival.why + strlen(begin), NULL), slower * 100, 0.051);
    arena_free(&c.arena);
}

static void the_other_objectives_are_compared_in_their_own_terms(void) {
    static const struct {
        PlannerOptions options;
        const char *text;
    } CASES[] = {{{.top = 1, .objective = OBJECTIVE_MEMORY}, "more memory"},
                 {{.top = 1, .objective = OBJECTIVE_COST}, "more expensive"},
                 {{.top = 1, .robust = true}, "upper end of its interval"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        case_open(&c, NULL, CASES[i].options);
        const Rival rival = rival_of(&c, 2, 2);
        CU_ASSERT_PTR_NOT_NULL_FATAL(rival.why);
        CU_ASSERT_PTR_NOT_NULL(strstr(rival.why, CASES[i].text));
        arena_free(&c.arena);
    }
}

static void what_is_not_legal_is_an_answer(void) {
    Case c;
    case_open(&c, NULL, (PlannerOptions){.top = 1});
    const Rival rival = rival_of(&c, 8, 8);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rival.refusal);
    CU_ASSERT_PTR_NOT_NULL(strstr(rival.refusal, "tp 8 or pp 8"));
    CU_ASSERT_PTR_NULL(strstr(rival.refusal, "job.json"));
    cJSON *json = rival_to_json(&rival, "tp=8,pp=8");
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "legal")));
    CU_ASSERT_PTR_NULL(cJSON_GetObjectItemCaseSensitive(json, "plan"));
    cJSON_Delete(json);
    arena_free(&c.arena);
}

static void what_does_not_fit_is_an_answer(void) {
    Case c;
    case_open(&c, NULL, (PlannerOptions){.top = 1, .max_memory_bytes = 20e9});
    CU_ASSERT_EQUAL_FATAL(c.best.num_entries, 1);
    Scenario named = c.scenario;
    named.parallel.tp = 1;
    named.parallel.pp = 1;
    named.parallel.zero_stage = 0;
    Rival rival;
    CU_ASSERT_EQUAL(planner_rival(&named, &c.options, &c.best, &c.arena, &rival).code, STATUS_OK);
    CU_ASSERT_PTR_NULL(rival.refusal);
    CU_ASSERT_EQUAL(rival.found.num_entries, 0);
    CU_ASSERT(rival.found.miss.missing_bytes > 0);
    cJSON *json = rival_to_json(&rival, "tp=1,pp=1,zero_stage=0");
    CU_ASSERT_TRUE(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "legal")));
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "fits")));
    CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItemCaseSensitive(json, "closest_miss"));
    cJSON_Delete(json);
    arena_free(&c.arena);
}

CU_TestInfo rival_tests[] = {
    {"the_terms_add_up_to_the_loss", the_terms_add_up_to_the_loss},
    {"the_best_loses_nothing_to_itself", the_best_loses_nothing_to_itself},
    {"what_is_named_may_be_better_than_the_constraints",
     what_is_named_may_be_better_than_the_constraints},
    {"the_other_objectives_are_compared_in_their_own_terms",
     the_other_objectives_are_compared_in_their_own_terms},
    {"what_is_not_legal_is_an_answer", what_is_not_legal_is_an_answer},
    {"what_does_not_fit_is_an_answer", what_does_not_fit_is_an_answer},
    CU_TEST_INFO_NULL,
};
