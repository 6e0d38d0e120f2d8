// report/trace.h - timelines as a Chrome trace (chrome://tracing, ui.perfetto.dev).
//
// Format: "Trace Event Format", Google 2016: an object with displayTimeUnit and traceEvents;
//         complete events (ph X) with ts and dur in microseconds, flow events (ph s and f) for
//         messages, metadata events (ph M) for names.
// One process per timeline, one track per row (a GPU, or a pipeline stage) and stream. Slices of a
// track follow each other or nest, never overlap: messages under way at the same time get further
// tracks. An arrow leads from each SEND to its RECV where both rows are shown.
// A row is read, written and forgotten before the next, so a trace of any size takes the memory of
// its largest row.
#pragma once

#include "base/status.h"
#include "config/job/scenario.h"
#include "costmodel/pass/price.h"
#include "costmodel/step/timeline.h"
#include "plan/plan.h"
#include "workload/pass/block.h"
#include "workload/step/program.h"

// What a group of tracks shows: one GPU, or all GPUs of a stage where they do the same.
typedef struct {
    int stage;
    int replica; // of the stage: 0 .. multiplicity - 1
    bool whole_stage;
} TraceRow;

// One run of the Program.
typedef struct {
    const char *name;     // "estimate", "simulation"
    double step_time_s;   // its end
    double host_s;        // of it, what follows the last instruction
    const TraceRow *rows; // [num_rows]
    int num_rows;
    // Reads the times of a row's instructions: [num_instructions] of its stage.
    Status (*read)(const void *context, const TraceRow *row, double *start_s, double *end_s);
    const void *context;
} TraceTimeline;

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Program *program;
    const Workload *workload; // for operators
    bool operators;           // expands computations of the first timeline into their operators
    const char *answer;       // names what it is of, 16 hexadecimal digits; NULL: nothing
} TraceContext;

// The estimate's timeline, a row for each stage.
//   timeline  with its times
//   stages    [num_ranks] which to show; NULL: all
TraceTimeline trace_estimate(const Program *program, const Prices *prices, const Timeline *timeline,
                             const bool *stages, Arena *arena);

// Writes the file (base/output_file.h). Nothing is left behind on failure.
Status trace_save(const char *path, const TraceContext *context, const TraceTimeline *timelines,
                  int num_timelines);
