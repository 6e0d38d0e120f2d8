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
    const int64_t *first_arrow; // [num_ranks] number of the first instruction of a stage
    int64_t num_arrows;         // numbers that one replica takes
    int pid;
    bool operators;      // of computations
    const TraceRow *row; // that is being written
    int row_index;
    bool *shown;         // [num_gpus] that have a row in this process
    int64_t computed_ns; // end of the row's last computation
    bool has_events;     // a comma is due
    int tid;             // of lane 0 of the last track
    int num_left_out;
} TraceWriter;

// Numbers the arrows of the context's Program.
void trace_writer_start(TraceWriter *writer, Arena *arena);

// Seconds as whole nanoseconds: slices that meet in the timeline meet in the trace.
int64_t trace_ns(double time_s);

// Metadata: the process, and one track before its first slice.
void trace_process(TraceWriter *writer, const char *name);
void trace_track(TraceWriter *writer, Stream stream, int lane);

// One instruction of the row on the lane of the last track, with its operators nested in it if
// asked for; of a message also its end of the arrow.
void trace_instruction(TraceWriter *writer, int lane, int instruction, int64_t start_ns,
                       int64_t end_ns);

// This end of a message's arrow, where the other end's row is shown; else nothing.
void trace_arrow(TraceWriter *writer, int lane, int instruction, int64_t start_ns, int64_t end_ns);

// What the host does once a step, on the row's track of computations.
void trace_host(TraceWriter *writer, int64_t start_ns, int64_t end_ns);

// The operators of a computation, in trace_operators.c: they share its time by their prices.
void trace_operators(TraceWriter *writer, int tid, const Instruction *instruction, int64_t start_ns,
                     int64_t end_ns);

// Begins an event, up to its arguments: the caller closes with "}}".
void trace_slice(TraceWriter *writer, int tid, const char *name, const char *category,
                 int64_t start_ns, int64_t end_ns);
