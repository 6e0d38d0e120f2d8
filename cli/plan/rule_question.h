// cli/plan/rule_question.h - `plan --explain-rule cp=16`: which rule of the software forbids a
// value.
#pragma once

#include "cli/plan/plan_options.h"

// Answers for the scenario with these values of `parallel` or `training`.
//   returns  STATUS_NO where they are forbidden, after the answer; STATUS_INVALID with
//            "--explain-rule: ...": no such key or value
Status rule_question_answer(const PlanOptions *options, const Scenario *scenario, Arena *arena);
