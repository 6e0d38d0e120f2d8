// report/summary.h - the recommendation in a paragraph for people who do not know the field.
#pragma once

#include "report/answer_sections.h"
#include "report/plan_sections.h"

// What to do, how long it takes and how sure that is, whether it fits, what it costs.
const char *summary_of_plan(const PlanView *view, Arena *arena);

// What the simulator says of it; NULL where it was not played.
const char *summary_of_simulation(const PlanView *view, Arena *arena);

// What else there is: the runners-up, or that nothing fits; of changes the best and the cheapest;
// what limits; what failures leave; which of two is better. NULL of other answers.
const char *summary_of_answer(const Answer *answer, bool with_plan, Arena *arena);
