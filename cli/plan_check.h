// cli/plan_check.h - what a command says on standard error about the plan it was given.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"

// Warns where the prediction in a plan.json is not the one of now: the file was edited, or another
// version wrote it.
void plan_warn_changed(const Scenario *scenario, const Estimate *now);

// Warns where the plan does not fit, in the words of a refusal.
void plan_warn_misfit(const Scenario *scenario, const Estimate *now);

// Says which rules of its software a plan breaks that is priced all the same: the software lacks
// what it asks for (config/software/rules.h).
void plan_warn_rules(const Scenario *scenario, const Plan *plan, Arena *arena);

// The member "broken_rules" of an answer: [{"rule", "key", "text", "source"}]; NULL where there are
// none. The caller owns the tree.
cJSON *plan_broken_rules_json(const Scenario *scenario, const Plan *plan, Arena *arena);
