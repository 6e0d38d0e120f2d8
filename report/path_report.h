// report/path_report.h - the critical path of a simulated step, for people.
#pragma once

#include "report/document.h"
#include "report/table.h"
#include "sim/sim.h"

// Its seconds by kind of work beside what the estimate grants the same work; then rank by rank what
// the step waited for.
//
// The seconds by kind stand in a report, too: path_section makes them of `simulate --json`, nothing
// where it has none.
Status path_section(Document *document, const JsonNode *root, Arena *arena);
void report_path(const SimResult *result, const Paper *paper);
