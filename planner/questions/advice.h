// planner/questions/advice.h - what holds a plan back, and the nearest change that would help.
//
// Model:  all plans that differ from it in one choice are priced: a factor of two between two
//         degrees, or of ep, micro_batch or vpp; another ZeRO stage, schedule or recomputation,
//         of fewer layers too; a zero_group next to it.
//         The limit is memory where such a change saves more than any exposed term takes and only
//         memory forbids it; else the largest term of the step beside computation, where it is
//         ADVICE_MIN_LIMIT_FRAC of the step or more; else computation. The change is the one that
//         saves most among those that fit; else, of those that do not, the one that lacks the
//         fewest bytes; else twice the global_batch, by what the same plan then needs per token.
//         Savings below ADVICE_MIN_GAIN_FRAC are none.
// Limits: changes of two choices at once are not looked at: for a plan that is proven to be the
//         best they need not be, as nothing that fits is faster.
#pragma once

#include "base/arena.h"
#include "planner/planner.h"

static const double ADVICE_MIN_LIMIT_FRAC = 0.01;
static const double ADVICE_MIN_GAIN_FRAC = 0.005;

enum { ADVICE_MAX_ENTRIES = 10 }; // of a result; the others are not looked at

// Sets the advice of a result's first entries; their limits and options are those of the search.
// Nothing is set where energy or memory was the objective.
void planner_advise(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *result);

// "limited by the pipeline bubble; vpp 10 instead of 5 would be 1.2 % faster";
// NULL where there is no advice.
const char *advice_text(const Advice *advice, Arena *arena);

// The member "advice" of a plan. The caller owns the tree.
cJSON *advice_to_json(const Advice *advice);
