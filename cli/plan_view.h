// cli/plan_view.h - a plan priced and played for a report, and the report as a file.
#pragma once

#include "report/report_document.h"

#include <stdbool.h>

// Prices the plan, with its times, and plays it in the simulator where that is asked for: what
// stands in the way of that (view->not_played) is no failure. scenario and plan must outlive it.
Status plan_view_make(const Scenario *scenario, const Plan *plan, bool simulate, Arena *arena,
                      PlanView *out);

// Writes the HTML report; in a build without its page it says so on standard error and writes
// nothing.
Status page_report_save(const ReportContents *contents, const char *path, Arena *arena);
