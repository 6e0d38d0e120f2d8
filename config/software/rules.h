// config/software/rules.h - what a software can run, as a table of rules: stacks/rules/NAME.json.
//
// There is one table for each stack, and one for each target of `launch` (for-NAME.json). A
// target's rules are those of what it writes: they are about what its stack can run and it has no
// flag or key for.
// {
//   "schema": 1, "name": "megatron-core", "software": "Megatron-LM",
//   "launch": ["megatron"],          the targets that start it, the first by default
//   "sources": {"mlm": "NVIDIA/Megatron-LM@000c4ac..."},
//   "rules": [ {
//     "id": "heads-by-tp",
//     "key": "parallel.tp",          what a message points to; stated, it lifts the rule
//     "holds": "heads % tp == 0",    the condition (config/software/rule_expression.h)
//     "says": "{tp} does not divide the {heads} attention heads",   where it does not hold
//     "legal": "a divisor",          absent: the values of the key with which it holds
//     "source": ["mlm", "megatron/core/transformer/transformer_config.py", "__post_init__"],
//     "stops": true,                 the software ends with an error: every command refuses.
//                                    Absent: the software lacks it (a fork may have it); `plan`
//                                    proposes nothing of the kind, `launch` refuses it, `estimate`
//                                    says so
//     "firm": true,                  a stated value of the key alone does not lift it
//     "breaks": {...}, "obeys": {...}  scenarios (over a small one) that break this rule alone, and
//   } ] }                              none: tests/planner/test_rule_tables.c tries them all
// Every fact is the software's at the version named; none is ours.
#pragma once

#include "config/software/rule_expression.h"

typedef struct {
    const char *id;
    const char *key;
    RuleExpression holds;
    RuleText says, legal; // legal.num_pieces 0: by the values of the key
    const char *version;  // "NVIDIA/Megatron-LM@000c4ac..."
    const char *file, *place;
    bool stops, firm;
    const char *text; // of the condition, as it stands in the file
    const cJSON *breaks, *obeys;
} Rule;

typedef struct RuleTable {
    const char *name, *software;
    const char *file;
    const char *const *launch; // ends with NULL
    const Rule *rules;         // [num_rules]
    int num_rules;
    bool strict; // set by who asks: no stated value lifts a rule
} RuleTable;

// Rules whose conditions are not decided yet.
enum { RULES_MAX = 160 };
typedef struct {
    const Rule *rules[RULES_MAX];
    int num_rules;
} RuleList;

// Reads stacks/rules/NAME.json.
Status rules_load(const char *name, Arena *arena, const RuleTable **out);
Status rules_read(const JsonNode *root, Arena *arena, RuleTable *out); // root: a whole file

// All rules of a table.
void rules_list(const RuleTable *table, RuleList *out);

// Of the rules in a list those that the values do not decide; in and out may be the same.
//   fresh    variables that were not known when `in` was made: rules that read none of them are not
//            looked at
//   returns  NULL, or the first rule that does not hold: *out is then of no use
const Rule *rules_narrow(const RuleList *in, const RuleValues *values, RuleSet fresh,
                         RuleList *out);

// "NVIDIA/Megatron-LM@000c4ac24f61, arguments.py, validate_args"; a commit by its first letters.
const char *rule_source_text(const Rule *rule, Arena *arena);
