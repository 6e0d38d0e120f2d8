// Tables of rules: what is read, what is refused.
#include "base/data_dir.h"
#include "config/software/rules.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

// A table with one rule, of which one member is another.
static Status table_of(const char *member, Arena *arena, RuleTable *out) {
    const char *text = arena_printf(
        arena,
        "{\"schema\": 1, \"name\": \"x\", \"software\": \"X\", \"launch\": [], "
        "\"sources\": {\"x\": \"y/x@0123456789012345678901234567890123456789\"}, "
        "\"rules\": [{\"id\": \"one\", \"key\": \"parallel.tp\", \"says\": \"{tp} is not 1\", "
        "\"breaks\": {}, \"obeys\": {}, %s}]}",
        member);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_parse(text, strlen(text), "x.json", arena, root));
    return rules_read(root, arena, out);
}

static void a_rule_has_a_place_in_the_software(void) {
    Arena arena = {0};
    RuleTable table;
    const char *good = "\"holds\": \"tp == 1\", \"source\": [\"x\", \"a.py\", \"f\"]";
    CU_ASSERT_EQUAL_FATAL(table_of(good, &arena, &table).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(rule_source_text(&table.rules[0], &arena), "y/x@012345678901, a.py, f");
    ASSERT_REFUSED(
        table_of("\"holds\": \"tp == 1\", \"source\": [\"z\", \"a.py\", \"f\"]", &arena, &table),
        "x.json: rules[0].source[0]: z is none of sources");
    ASSERT_REFUSED(
        table_of("\"holds\": \"tp == 1\", \"source\": [\"x\", \"a.py\"]", &arena, &table),
        "x.json: rules[0].source: expected a source, a file and a place in it");
    ASSERT_REFUSED(
        table_of("\"holds\": \"tpp == 1\", \"source\": [\"x\", \"a.py\", \"f\"]", &arena, &table),
        "x.json: rules[0].holds: column 1: tpp is no variable; did you mean tp");
    arena_free(&arena);
}

static void narrowing_leaves_what_is_not_decided(void) {
    Arena arena = {0};
    const RuleTable *table;
    CU_ASSERT_EQUAL_FATAL(rules_load("pytorch-fsdp", &arena, &table).code, STATUS_OK);
    RuleList all, left;
    RuleValues values = {0};
    rules_list(table, &all);
    rule_set_value(&values, RULE_TP, 1);
    const RuleSet tp = rule_set_with((RuleSet){{0}}, RULE_TP);
    CU_ASSERT_PTR_NULL(rules_narrow(&all, &values, tp, &left));
    CU_ASSERT_EQUAL(left.num_rules, all.num_rules - 1);
    rule_set_value(&values, RULE_TP, 2);
    const Rule *broken = rules_narrow(&all, &values, tp, &left);
    CU_ASSERT_PTR_NOT_NULL_FATAL(broken);
    CU_ASSERT_STRING_EQUAL(broken->id, "no-tp");
    arena_free(&arena);
}

static void every_stack_has_a_table(void) {
    Arena arena = {0};
    const char *const *names;
    CU_ASSERT_EQUAL_FATAL(stack_names(&arena, &names).code, STATUS_OK);
    for (int i = 0; names[i]; i++) {
        Stack stack;
        const Status status = stack_load_named(names[i], &arena, &stack);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_PTR_NOT_NULL_FATAL(stack.rules);
        CU_ASSERT_STRING_EQUAL(stack.rules->name, names[i]);
        CU_ASSERT_TRUE(stack.rules->num_rules > 0);
    }
    arena_free(&arena);
}

CU_TestInfo rules_tests[] = {
    {"a_rule_has_a_place_in_the_software", a_rule_has_a_place_in_the_software},
    {"narrowing_leaves_what_is_not_decided", narrowing_leaves_what_is_not_decided},
    {"every_stack_has_a_table", every_stack_has_a_table},
    CU_TEST_INFO_NULL,
};
