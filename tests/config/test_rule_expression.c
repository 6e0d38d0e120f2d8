// Conditions and sentences of rules: what they mean, what they refuse.
#include "config/software/rule_expression.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static const JsonNode *node_of(const char *text, Arena *arena) {
    cJSON *item = ARENA_NEW(arena, cJSON);
    *item = (cJSON){.type = cJSON_String, .valuestring = arena_strdup(arena, text)};
    JsonNode *node = ARENA_NEW(arena, JsonNode);
    *node = (JsonNode){.file = "rules.json", .item = item};
    return node;
}

static Status condition_of(const char *text, Arena *arena, RuleExpression *out) {
    return rule_condition_read(node_of(text, arena), arena, out);
}

// tp 4, pp 1, cp 2, heads 32, kv_heads 8, mla false, cp_method ulysses; nothing else is known.
static RuleValues some_values(void) {
    RuleValues values = {0};
    rule_set_value(&values, RULE_TP, 4);
    rule_set_value(&values, RULE_PP, 1);
    rule_set_value(&values, RULE_CP, 2);
    rule_set_value(&values, RULE_HEADS, 32);
    rule_set_value(&values, RULE_KV_HEADS, 8);
    rule_set_value(&values, RULE_MLA, false);
    rule_set_value(&values, RULE_CP_METHOD, 1);
    return values;
}

static const struct {
    const char *text;
    RuleAnswer answer;
} MEANINGS[] = {
    {"heads % tp == 0", RULE_TRUE},
    {"heads / tp % cp == 0 and kv_heads / tp % cp == 0", RULE_TRUE},
    {"kv_heads / tp % (2 * cp) == 0", RULE_FALSE},
    {"1 + 2 * 3 == 7", RULE_TRUE},
    {"-7 / 2 == -4", RULE_TRUE},
    {"(1 + 2) * 3 == 9 or mla", RULE_TRUE},
    {"not mla", RULE_TRUE},
    {"not mla and mla", RULE_FALSE}, // (not mla) and mla
    {"mla => pp == 7", RULE_TRUE},
    {"not mla => pp == 7", RULE_FALSE},
    {"cp_method in {'ring', 'ulysses'}", RULE_TRUE},
    {"cp_method == 'all-gather'", RULE_FALSE},
    {"tp in {1, 2, 8}", RULE_FALSE},
    // What is not known decides nothing, unless the rest does.
    {"zero_stage <= 1", RULE_UNDECIDED},
    {"zero_stage <= 1 or pp == 1", RULE_TRUE},
    {"pp > 1 and zero_stage <= 1", RULE_FALSE},
    {"not (zero_stage <= 1)", RULE_UNDECIDED},
    {"zero_stage > 1 => pp == 1", RULE_TRUE},
    {"micro_batch % tp == 0", RULE_UNDECIDED},
};

static void conditions_mean_what_they_say(void) {
    const RuleValues values = some_values();
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++) {
        Arena arena = {0};
        RuleExpression condition;
        const Status status = condition_of(MEANINGS[i].text, &arena, &condition);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_EQUAL(rule_condition_holds(&condition, &values), MEANINGS[i].answer);
        arena_free(&arena);
    }
}

static void a_condition_knows_what_it_reads(void) {
    Arena arena = {0};
    RuleExpression condition;
    CU_ASSERT_EQUAL_FATAL(condition_of("tp == 1 or pp == 1", &arena, &condition).code, STATUS_OK);
    CU_ASSERT_TRUE(rule_set_has(condition.reads, RULE_TP) &&
                   rule_set_has(condition.reads, RULE_PP));
    CU_ASSERT_FALSE(rule_set_has(condition.reads, RULE_CP));
    arena_free(&arena);
}

static const struct {
    const char *text, *refusal;
} REFUSALS[] = {
    {"head % tp == 0", "rules.json: column 1: head is no variable; did you mean heads"},
    {"tp % == 0", "rules.json: column 6: expected a name, a number or a parenthesis"},
    {"cp_method == 'rings'", "rules.json: column 21: 'rings' is none of its choices; did you mean "
                             "ring"},
    {"tp == 'ring'", "rules.json: column 13: 'ring' beside what is no choice"},
    {"cp_method < 'ring'", "rules.json: column 19: only numbers have an order"},
    {"tp and pp", "rules.json: column 10: and joins conditions"},
    {"mla + 1 == 2", "rules.json: column 9: + joins numbers"},
    {"(tp == 1", "rules.json: column 9: expected )"},
    {"tp == 1 pp", "rules.json: column 9: expected the end, found \"pp\""},
    {"tp", "rules.json: is no condition"},
    {"cp_method == 'ring", "rules.json: column 15: a quote without its end"},
    {"tp in 1", "rules.json: column 7: expected { after in"},
};

static void what_is_no_condition_is_refused(void) {
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
        Arena arena = {0};
        RuleExpression condition;
        ASSERT_REFUSED(condition_of(REFUSALS[i].text, &arena, &condition), REFUSALS[i].refusal);
        arena_free(&arena);
    }
}

static void conditions_do_not_nest_without_end(void) {
    Arena arena = {0};
    char text[4000] = "";
    for (int i = 0; i < 900; i++) strcat(text, "(");
    RuleExpression condition;
    ASSERT_REFUSED(condition_of(text, &arena, &condition),
                   "rules.json: column 65: more than 64 levels");
    arena_free(&arena);
}

static void a_sentence_prints_its_values(void) {
    Arena arena = {0};
    const JsonNode *node =
        node_of("cp {cp} of {heads / tp} heads, {cp_method}, {mla}, {ep}", &arena);
    RuleText text;
    CU_ASSERT_EQUAL_FATAL(rule_text_read(node, &arena, &text).code, STATUS_OK);
    const RuleValues values = some_values();
    CU_ASSERT_STRING_EQUAL(rule_text_print(&text, &values, &arena),
                           "cp 2 of 8 heads, ulysses, false, ?");
    arena_free(&arena);
}

CU_TestInfo rule_expression_tests[] = {
    {"conditions_mean_what_they_say", conditions_mean_what_they_say},
    {"a_condition_knows_what_it_reads", a_condition_knows_what_it_reads},
    {"what_is_no_condition_is_refused", what_is_no_condition_is_refused},
    {"conditions_do_not_nest_without_end", conditions_do_not_nest_without_end},
    {"a_sentence_prints_its_values", a_sentence_prints_its_values},
    CU_TEST_INFO_NULL,
};
