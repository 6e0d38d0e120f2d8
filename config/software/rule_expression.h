// config/software/rule_expression.h - the conditions and sentences of rules, read once from their
// text.
//
// A condition is made of the names in config/software/rule_variables.h, whole numbers, and
//   + - * / %      of numbers; / rounds down, and by 0 gives 0
//   == != < <= > >=
//   in {1, 2}      one of a list; of a choice {'ring', 'ulysses'}, with the names between quotes
//   not, and, or, =>   of conditions; A => B holds where A does not, or B does
// from the one that binds most to the one that binds least, with parentheses. A switch is a
// condition by itself ("not mla"). A sentence is a text with expressions between braces:
// "{kv_heads / tp} heads".
//
// What is not known yet (RuleValues.known) decides nothing: "pp == 1 or zero_stage <= 1" holds as
// soon as pp is known to be 1.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/software/rule_variables.h"

#include <stdbool.h>

typedef struct {
    unsigned char operation;
    short left, right; // nodes
    int64_t value;     // of a number; the variable
} RuleNode;

typedef struct {
    const RuleNode *nodes; // [num_nodes], operands before what uses them: the last is the whole
    int num_nodes;
    RuleSet reads;
} RuleExpression;

typedef enum { RULE_FALSE, RULE_TRUE, RULE_UNDECIDED } RuleAnswer;

// Refuses, at the node, what is no condition, with the place in the text; unknown names are refused
// with the nearest known one.
Status rule_condition_read(const JsonNode *node, Arena *arena, RuleExpression *out);

// Whether the condition holds, as far as that is known.
RuleAnswer rule_condition_holds(const RuleExpression *condition, const RuleValues *values);

// A part of a sentence: a text, or a value to print.
typedef struct {
    const char *text; // NULL: a value
    RuleExpression value;
    const char *const *names; // of the value's choices; NULL: a number
} RulePiece;

typedef struct {
    const RulePiece *pieces; // [num_pieces]
    int num_pieces;          // 0: none
    RuleSet reads;
} RuleText;

Status rule_text_read(const JsonNode *node, Arena *arena, RuleText *out);

// The sentence of a configuration; what is not known reads "?".
const char *rule_text_print(const RuleText *text, const RuleValues *values, Arena *arena);
