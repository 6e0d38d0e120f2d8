// report/plan_sections.h - the sections of a report about one plan that was priced here.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "report/document.h"
#include "sim/sim.h"

typedef struct {
    const char *file; // that names it in headings
    const Scenario *scenario;
    const Plan *plan;
    const Estimate *estimate;
    const EstimateParts *parts;  // with times
    const SimResult *simulation; // of it, with the times of a lane; NULL: not played
    const char *not_played;      // why; NULL where it was, or nobody asked
} PlanView;

// A part with all of the following.
void plan_sections(Document *document, const PlanView *view, Arena *arena);

// Which GPU does what: the ranks of each stage with their layers; drawn, the GPUs of every node.
// At most LAYOUT_MAX_GPUS are drawn, of each stage the first nodes.
enum { LAYOUT_MAX_GPUS = 1024 };
void layout_section(Document *document, const PlanView *view, Arena *arena);

// The pipeline's timeline, estimated and simulated: what each stage computes, what it sends, when
// it waits. At most TIMELINE_MAX_STAGES stages are shown, and of long steps the beginning and the
// end: what is left out is said.
enum { TIMELINE_MAX_STAGES = 16, TIMELINE_MAX_SLICES = 16000 };
void timeline_section(Document *document, const PlanView *view, Arena *arena);
