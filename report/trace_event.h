// report/trace_event.h - single events of a Chrome trace.
#pragma once

#include "report/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TRACE_MAX_LANES = 16 };

typedef struct {
    FILE *stream;
    const TraceContext *context;
    int pid;
    bool operators;  // of computations
    bool has_events; // a comma is due
    int tid;         // of lane 0 of the last track
    int num_left_out;
} TraceWriter;

// Seconds as whole nanoseconds: slices that meet in the timeline meet in the trace.
int64_t trace_ns(double time_s);

// Metadata: the process, and one track before its first slice.
void trace_process(TraceWriter *writer, const char *name);
void trace_track(TraceWriter *writer, int rank, Stream stream, int lane);

// One instruction on the lane of the last track, with its operators nested in it if asked for.
void trace_instruction(TraceWriter *writer, int lane, const Instruction *instruction,
                       int64_t start_ns, int64_t end_ns);

// What the host does once a step, on the first stage's track of computations.
void trace_host(TraceWriter *writer, int64_t start_ns, int64_t end_ns);

// The operators of a computation, in trace_operators.c: they share its time by their prices.
void trace_operators(TraceWriter *writer, int tid, const Instruction *instruction, int64_t start_ns,
                     int64_t end_ns);

// Begins an event, up to its arguments: the caller closes with "}}".
void trace_slice(TraceWriter *writer, int tid, const char *name, const char *category,
                 int64_t start_ns, int64_t end_ns);
