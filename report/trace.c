#include "report/trace.h"

#include "report/trace_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A slice of one track: an instruction of one rank.
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

// The instructions of one stream of one rank, by time.
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
static void stream_write(TraceWriter *writer, int rank, Stream stream, const Slice *slices,
                         int num_slices) {
    const RankProgram *program = &writer->context->program->ranks[rank];
    int64_t lane_end_ns[TRACE_MAX_LANES];
    int num_lanes = 0;
    for (int i = 0; i < num_slices; i++) {
        int lane = 0;
        while (lane < num_lanes && lane_end_ns[lane] > slices[i].start_ns) lane++;
        if (lane == TRACE_MAX_LANES) { // more at once than anybody can read
            writer->num_left_out++;
            continue;
        }
        if (lane == num_lanes) {
            num_lanes++;
            trace_track(writer, rank, stream, lane);
        }
        lane_end_ns[lane] = slices[i].end_ns;
        trace_instruction(writer, lane, &program->instructions[slices[i].instruction],
                          slices[i].start_ns, slices[i].end_ns);
    }
}

// The end of the last instruction of any rank.
static int64_t timeline_end_ns(const Program *program, const TraceTimeline *timeline) {
    int64_t last_ns = 0;
    for (int r = 0; r < program->num_ranks; r++)
        for (int i = 0; i < program->ranks[r].num_instructions; i++) {
            int64_t end_ns = trace_ns(timeline->end_s[r][i]);
            if (end_ns > last_ns) last_ns = end_ns;
        }
    return last_ns;
}

static void timeline_write(TraceWriter *writer, const TraceTimeline *timeline, Arena *scratch) {
    const Program *program = writer->context->program;
    trace_process(writer, timeline->name);
    for (int r = 0; r < program->num_ranks; r++) {
        Slice *slices = ARENA_ARRAY(scratch, program->ranks[r].num_instructions, Slice);
        for (int s = 0; s < NUM_STREAMS; s++) {
            int n = stream_slices(&program->ranks[r], timeline->start_s[r], timeline->end_s[r],
                                  (Stream)s, slices);
            stream_write(writer, r, (Stream)s, slices, n);
        }
        arena_reset(scratch);
    }
    int64_t from_ns = timeline_end_ns(program, timeline), to_ns = trace_ns(timeline->step_time_s);
    if (to_ns > from_ns) trace_host(writer, from_ns, to_ns);
}

static void trace_write(FILE *stream, const TraceContext *context, const TraceTimeline *timelines,
                        int num_timelines) {
    TraceWriter writer = {.stream = stream, .context = context};
    Arena scratch = {0};
    fprintf(stream, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (int t = 0; t < num_timelines; t++) {
        writer.pid = t + 1;
        writer.operators = context->operators && t == 0;
        timeline_write(&writer, &timelines[t], &scratch);
    }
    fprintf(stream, "\n]}\n");
    arena_free(&scratch);
}

Status trace_save(const char *path, const TraceContext *context, const TraceTimeline *timelines,
                  int num_timelines) {
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.tmp%ld", path, (long)getpid());
    if (n < 0 || n >= (int)sizeof temporary)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    FILE *stream = fopen(temporary, "wb");
    if (!stream)
        return status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
    trace_write(stream, context, timelines, num_timelines);
    bool failed = ferror(stream) != 0;
    failed |= fclose(stream) != 0;
    failed = failed || rename(temporary, path) != 0;
    if (!failed) return status_ok();
    Status status = status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
    unlink(temporary);
    return status;
}
