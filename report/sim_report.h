// report/sim_report.h - a simulation beside its estimate, for people.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "costmodel/step/timeline.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "workload/step/program.h"

#include <stdio.h>

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Program *program;
    const Timeline *timeline; // the estimate's, with its times
    const Estimate *estimate; // of the same plan
    const SimResult *result;  // with times: also says which work takes another time
} SimComparison;

void report_simulation(const SimComparison *comparison, FILE *stream);
