// report/sim_report.h - a simulation beside its estimate, for people.
#pragma once

#include "config/scenario.h"
#include "plan/plan.h"
#include "sim/sim.h"

#include <stdio.h>

void report_simulation(const Scenario *scenario, const Plan *plan, const SimResult *result,
                       FILE *stream);
