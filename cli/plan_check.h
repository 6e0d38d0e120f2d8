// cli/plan_check.h - what a command says on standard error about the plan it was given.
#pragma once

#include "config/scenario.h"
#include "costmodel/estimate.h"

// Warns where the prediction in a plan.json is not the one of now: the file was edited, or another
// version wrote it.
void plan_warn_changed(const Scenario *scenario, const Estimate *now);

// Warns where the plan does not fit, in the words of a refusal.
void plan_warn_misfit(const Scenario *scenario, const Estimate *now);
