// launch/plan_lines.h - what of a plan no software has a flag for, as comments that `import` reads
// back: GPUs on which no rank runs, and which node runs which ranks.
#pragma once

#include "config/job/scenario.h"
#include "launch/script.h"
#include "plan/plan.h"

#define PLAN_LINE "# meshwright: "
#define PLAN_LINE_IDLE "idle_gpus"
#define PLAN_LINE_PLACEMENT "placement"

// "# meshwright: idle_gpus 4 of 16", "# meshwright: placement 1 0 3 2"; nothing where all GPUs run
// ranks in the nodes' own order.
void plan_lines_add(Script *script, const Scenario *scenario, const Plan *plan);
