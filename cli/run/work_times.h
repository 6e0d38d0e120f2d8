// cli/run/work_times.h - what GPUs do with a step, by class of work: as predicted, simulated,
// measured.
#pragma once

#include "report/trace.h"

enum { MAX_WORK_CLASSES = 24 };

// Of one run of a Program, mean over its rows.
typedef struct {
    const char *names[MAX_WORK_CLASSES]; // "forward", "grad_reduce_scatter", ...; NULL: no more
    double seconds[MAX_WORK_CLASSES];
    double waiting_s; // the rest of the step: messages, waiting for others, the host
} WorkTimes;

// Adds up the times of a timeline's rows. Classes stand in the order in which the Program has them
// first, the same for all timelines of one Program with all its stages among the rows.
Status work_times_of(const Program *program, const TraceTimeline *timeline, WorkTimes *out);

// The median of each entry.
WorkTimes work_times_median(const WorkTimes *times, int num);
