// Which rules bound the plans of a scenario.
#include "plan/rule_check.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static void job_of(Arena *arena, const char *model, const char *training, const char *parallel,
                   Scenario *out) {
    const Status status =
        scenario_of(scenario_text(arena, model, "\"dgx-h100:2\"", training, parallel), arena, out);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
}

static bool has_rule(const RulesInForce *rules, const char *id) {
    for (int i = 0; i < rules->list.num_rules; i++)
        if (strcmp(rules->list.rules[i]->id, id) == 0) return true;
    return false;
}

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64}"
#define LLAMA "\"llama-3.1-8b\""

static void what_the_scenario_decides_is_not_asked_again(void) {
    Arena arena = {0};
    Scenario scenario;
    RulesInForce rules;
    job_of(&arena, LLAMA, TRAINING, NULL, &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_TRUE(has_rule(&rules, "kv-heads-by-tp") && has_rule(&rules, "schedules"));
    CU_ASSERT_FALSE(has_rule(&rules, "norms-after") || has_rule(&rules, "experts-need-sp"));
    CU_ASSERT_PTR_NULL(rules.never);
    arena_free(&arena);
}

// What the software lacks is priced where it is stated; a firm rule stays while other keys can
// obey.
static void a_stated_value_lifts_the_rule_of_its_key(void) {
    Arena arena = {0};
    Scenario scenario;
    RulesInForce rules;
    job_of(&arena, LLAMA, TRAINING, "{\"schedule\": \"zb-h1\"}", &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_FALSE(has_rule(&rules, "schedules"));
    job_of(&arena, LLAMA, TRAINING, "{\"zero_stage\": 3}", &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_TRUE(has_rule(&rules, "fsdp-without-pipeline"));
    job_of(&arena, LLAMA, TRAINING, "{\"zero_stage\": 3, \"pp\": 2}", &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_FALSE(has_rule(&rules, "fsdp-without-pipeline"));
    arena_free(&arena);
}

static void nothing_lifts_what_stops_the_software(void) {
    Arena arena = {0};
    Scenario scenario;
    RulesInForce rules;
    job_of(&arena, "\"mistral-7b-v0.1\"", TRAINING, "{\"cp_method\": \"ring\"}", &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_TRUE(has_rule(&rules, "windows-by-ring") && !rules.never);
    job_of(&arena, "\"mistral-7b-v0.1\"", TRAINING, "{\"cp\": 2, \"cp_method\": \"ring\"}",
           &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rules.never);
    CU_ASSERT_STRING_EQUAL(rules.never->id, "windows-by-ring");
    job_of(&arena, LLAMA, TRAINING, "{\"pp\": 1, \"vpp\": 2, \"schedule\": \"interleaved\"}",
           &scenario);
    rules_in_force(&scenario, &rules);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rules.never);
    CU_ASSERT_STRING_EQUAL(rules.never->id, "interleaving-without-pipeline");
    arena_free(&arena);
}

static void a_model_that_the_software_lacks_breaks_rules_of_its_own(void) {
    Arena arena = {0};
    Scenario scenario;
    const Rule *broken[RULES_MAX];
    job_of(&arena, "\"gemma-2-2b\"", TRAINING, NULL, &scenario);
    const int num = scenario_broken_rules(&scenario, NULL, broken);
    bool norms = false;
    for (int i = 0; i < num; i++) norms |= strcmp(broken[i]->id, "norms-after") == 0;
    CU_ASSERT_TRUE(norms);
    job_of(&arena, LLAMA, TRAINING, NULL, &scenario);
    CU_ASSERT_EQUAL(scenario_broken_rules(&scenario, NULL, broken), 0);
    arena_free(&arena);
}

CU_TestInfo rule_check_tests[] = {
    {"what_the_scenario_decides_is_not_asked_again", what_the_scenario_decides_is_not_asked_again},
    {"a_stated_value_lifts_the_rule_of_its_key", a_stated_value_lifts_the_rule_of_its_key},
    {"nothing_lifts_what_stops_the_software", nothing_lifts_what_stops_the_software},
    {"a_model_that_the_software_lacks_breaks_rules_of_its_own",
     a_model_that_the_software_lacks_breaks_rules_of_its_own},
    CU_TEST_INFO_NULL,
};
