// report/assumption_sections.h - what the figures of a report rest on.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"
#include "report/document.h"

// A part: every file that was read, with a hash of its bytes, and every key of the scenario, the
// plan, and the profiles of model, cluster, GPU, link, software and calibration, with its source.
//   plan  NULL: what the scenario states of it
Status assumption_sections(Document *document, const Scenario *scenario, const Plan *plan,
                           Arena *arena);

// A part: how far such predictions were from what was measured, family by family of published
// steps: published/accuracy.json, the figures of docs/accuracy.md. Where the file is not installed
// the part says so.
Status accuracy_sections(Document *document, Arena *arena);
