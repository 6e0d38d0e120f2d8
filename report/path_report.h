// report/path_report.h - the critical path of a simulated step, for people.
#pragma once

#include "report/table.h"
#include "sim/sim.h"

// Its seconds by kind of work beside what the estimate grants the same work; then rank by rank what
// the step waited for.
void report_path(const SimResult *result, const Paper *paper);
