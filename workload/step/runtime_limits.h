// workload/step/runtime_limits.h - which plans the bundled runtime executes (runtime/, launch/).
#pragma once

#include "base/status.h"
#include "plan/plan.h"

// Refuses, in one sentence, what is legal but not run yet.
Status runtime_supports(const Scenario *scenario, const Plan *plan);
