#include "report/trace.h"

#include "base/output_file.h"
#include "report/trace_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A slice of one track: an instruction of one row.
typedef struct {
    int64_t start_ns, end_ns;
    int instruction;
} Slice;

static int slice_compare(const void *a, const void *b) {
    const Slice *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns) return x->end_ns < y->end_ns ? -1 : 1;
    return x->instruction - y->instruction;
}

// The instructions of one stream of one row, by time.
static int stream_slices(const RankProgram *rank, const double *start_s, const double *end_s,
                         Stream stream, Slice *slices) {
    int n = 0;
    for (int i = 0; i < rank->num_instructions; i++) {
        if (rank->instructions[i].stream != stream) continue;
        int64_t start_ns = trace_ns(start_s[i]), end_ns = trace_ns(end_s[i]);
        slices[n++] = (Slice){start_ns, end_ns < start_ns ? start_ns : end_ns, i};
    }
    qsort(slices, (size_t)n, sizeof *slices, slice_compare);
    return n;
}

// One stream: each slice goes to the first lane that is free.
static void stream_write(TraceWriter *writer, Stream stream, const Slice *slices, int num_slices) {
    int64_t lane_end_ns[TRACE_MAX_LANES];
    int num_lanes = 0;
    for (int i = 0; i < num_slices; i++) {
        int lane = 0;
        while (lane < num_lanes && lane_end_ns[lane] > slices[i].start_ns) lane++;
        if (lane == TRACE_MAX_LANES) { // more at once than anybody can read
            writer->num_left_out++;
            trace_arrow(writer, lane - 1, slices[i].instruction, slices[i].start_ns,
                        slices[i].end_ns);
            continue;
        }
        if (lane == num_lanes) {
            num_lanes++;
            trace_track(writer, stream, lane);
        }
        lane_end_ns[lane] = slices[i].end_ns;
        trace_instruction(writer, lane, slices[i].instruction, slices[i].start_ns,
                          slices[i].end_ns);
        if (stream == STREAM_COMPUTE) writer->computed_ns = slices[i].end_ns;
    }
}

static Status row_write(TraceWriter *writer, const TraceTimeline *timeline, Arena *scratch) {
    const RankProgram *rank = &writer->context->program->ranks[writer->row->stage];
    double *start_s = ARENA_ARRAY(scratch, rank->num_instructions, double);
    double *end_s = ARENA_ARRAY(scratch, rank->num_instructions, double);
    Slice *slices = ARENA_ARRAY(scratch, rank->num_instructions, Slice);
    TRY(timeline->read(timeline->context, writer->row, start_s, end_s));
    for (int s = 0; s < NUM_STREAMS; s++) {
        int n = stream_slices(rank, start_s, end_s, (Stream)s, slices);
        stream_write(writer, (Stream)s, slices, n);
    }
    return status_ok();
}

// The host's time at the end of the step goes with the first row.
static void host_write(TraceWriter *writer, const TraceTimeline *timeline) {
    int64_t from_ns = trace_ns(timeline->step_time_s - timeline->host_s);
    int64_t to_ns = trace_ns(timeline->step_time_s);
    if (from_ns < writer->computed_ns) from_ns = writer->computed_ns; // by rounding
    if (to_ns > from_ns) trace_host(writer, from_ns, to_ns);
}

static Status timeline_write(TraceWriter *writer, const TraceTimeline *timeline, Arena *scratch) {
    const int multiplicity = writer->context->program->multiplicity;
    trace_process(writer, timeline->name);
    writer->shown = ARENA_ARRAY(scratch, writer->context->program->num_ranks * multiplicity, bool);
    for (int i = 0; i < timeline->num_rows; i++)
        writer->shown[timeline->rows[i].stage * multiplicity + timeline->rows[i].replica] = true;
    Arena of_row = {0};
    Status status = status_ok();
    for (int i = 0; i < timeline->num_rows && status.code == STATUS_OK; i++) {
        if (output_interrupted() || ferror(writer->stream)) break;
        writer->row = &timeline->rows[i];
        writer->row_index = i;
        status = row_write(writer, timeline, &of_row);
        if (i == 0) host_write(writer, timeline);
        arena_reset(&of_row);
    }
    arena_free(&of_row);
    return status;
}

static Status trace_write(FILE *stream, const TraceContext *context, const TraceTimeline *timelines,
                          int num_timelines) {
    Arena scratch = {0};
    TraceWriter writer = {.stream = stream, .context = context};
    Status status = status_ok();
    trace_writer_start(&writer, &scratch);
    fprintf(stream, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (int t = 0; t < num_timelines && status.code == STATUS_OK; t++) {
        writer.pid = t + 1;
        writer.operators = context->operators && t == 0;
        status = timeline_write(&writer, &timelines[t], &scratch);
    }
    fprintf(stream, "\n]");
    if (context->answer) fprintf(stream, ", \"otherData\": {\"answer\": \"%s\"}", context->answer);
    fprintf(stream, "}\n");
    arena_free(&scratch);
    return status;
}

Status trace_save(const char *path, const TraceContext *context, const TraceTimeline *timelines,
                  int num_timelines) {
    OutputFile file;
    TRY(output_open(path, &file));
    return output_close(&file, trace_write(file.stream, context, timelines, num_timelines));
}

// --- The estimate

typedef struct {
    const Program *program;
    const Timeline *timeline;
} EstimateTimes;

static Status estimate_read(const void *context, const TraceRow *row, double *start_s,
                            double *end_s) {
    const EstimateTimes *times = context;
    size_t size = (size_t)times->program->ranks[row->stage].num_instructions * sizeof *start_s;
    if (size == 0) return status_ok();
    memcpy(start_s, times->timeline->start_s[row->stage], size);
    memcpy(end_s, times->timeline->end_s[row->stage], size);
    return status_ok();
}

TraceTimeline trace_estimate(const Program *program, const Prices *prices, const Timeline *timeline,
                             const bool *stages, Arena *arena) {
    EstimateTimes *times = ARENA_NEW(arena, EstimateTimes);
    *times = (EstimateTimes){program, timeline};
    TraceRow *rows = ARENA_ARRAY(arena, program->num_ranks, TraceRow);
    int num_rows = 0;
    for (int stage = 0; stage < program->num_ranks; stage++) {
        if (stages && !stages[stage]) continue;
        rows[num_rows++] = (TraceRow){.stage = stage, .whole_stage = true};
    }
    return (TraceTimeline){
        .name = "estimate",
        .step_time_s = timeline->begin_s + timeline->step_time_s,
        .host_s = prices->step_s,
        .rows = rows,
        .num_rows = num_rows,
        .read = estimate_read,
        .context = times,
    };
}
