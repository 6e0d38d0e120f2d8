// report/trace.h - timelines as a Chrome trace (chrome://tracing, ui.perfetto.dev).
//
// Format: "Trace Event Format", Google 2016: an object with displayTimeUnit and traceEvents;
// complete
//         events (ph X) with ts and dur in microseconds, metadata events (ph M) for names.
// One process per timeline, one track per pipeline stage and stream. Slices of a track follow each
// other or nest, never overlap: messages under way at the same time get further tracks.
#pragma once

#include "base/status.h"
#include "config/scenario.h"
#include "costmodel/price.h"
#include "plan/plan.h"
#include "workload/block.h"
#include "workload/program.h"

// One run of the Program.
typedef struct {
    const char *name;             // "estimate", "simulation"
    const double *const *start_s; // [num_ranks][num_instructions]
    const double *const *end_s;   // the same
    double step_time_s;           // its end: what follows the last instruction is the host's
} TraceTimeline;

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Program *program;
    const Workload *workload; // for operators
    bool operators;           // expands computations of the first timeline into their operators
} TraceContext;

// Writes to a new file beside path, then renames it there. Nothing is left behind on failure.
Status trace_save(const char *path, const TraceContext *context, const TraceTimeline *timelines,
                  int num_timelines);
