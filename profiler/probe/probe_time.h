// profiler/probe/probe_time.h - times one piece of work on all ranks of a run at once.
//
// All ranks do the same at the same time, so that a price is that of a core whose neighbours are
// busy too. After each batch of calls they exchange their times, and so stop after the same one.
//
// Another program that takes a core away for a while must not count. Of what a rank does alone the
// processor time of its thread is taken, which is the time that passed where nobody disturbs. A
// rank that waits for others is on its core all the same: of what ranks do together batches are
// left out during which any rank's processor time is short of the time that passed.
#pragma once

#include "base/arena.h"
#include "profiler/measure.h"
#include "profiler/probe/probe_work.h"

typedef struct {
    double latency_s;       // median over batches and ranks, per call, undisturbed
    double batch_latency_s; // the same of the time that passed
    double spread_frac;
    int num_samples;   // of latency_s
    int num_disturbed; // batches
} ProbeMeasured;

// all: of every rank. The same on every rank.
Status probe_measure(Comm *all, Work *work, const MeasureLimits *limits, Arena *scratch,
                     ProbeMeasured *out);
