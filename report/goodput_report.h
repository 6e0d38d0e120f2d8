// report/goodput_report.h - what failures leave of a job, for people.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "whatif/goodput.h"

#include <stdio.h>

void report_goodput(const Scenario *scenario, const Plan *plan, const Estimate *estimate,
                    const Goodput *goodput, FILE *stream);
