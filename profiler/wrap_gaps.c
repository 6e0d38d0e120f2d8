#include "profiler/wrap_gaps.h"

#include "base/output_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t device, stream;
    uint64_t start_ns, end_ns;
} Interval;

static int by_device(const void *a, const void *b) {
    const Interval *left = a, *right = b;
    if (left->device != right->device) return left->device < right->device ? -1 : 1;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static int by_stream(const void *a, const void *b) {
    const Interval *left = a, *right = b;
    if (left->device != right->device) return left->device < right->device ? -1 : 1;
    if (left->stream != right->stream) return left->stream < right->stream ? -1 : 1;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

// Of intervals in order of their start; at least one.
static GapRow intervals_sum(const Interval *intervals, size_t count) {
    uint64_t busy_ns = 0, longest_ns = 0, until_ns = intervals[0].start_ns;
    for (size_t i = 0; i < count; i++) {
        const Interval *now = &intervals[i];
        if (now->start_ns > until_ns) {
            uint64_t gap_ns = now->start_ns - until_ns;
            if (gap_ns > longest_ns) longest_ns = gap_ns;
            until_ns = now->start_ns;
        }
        if (now->end_ns > until_ns) {
            busy_ns += now->end_ns - until_ns;
            until_ns = now->end_ns;
        }
    }
    uint64_t span_ns = until_ns - intervals[0].start_ns;
    return (GapRow){.device = intervals[0].device,
                    .stream = intervals[0].stream,
                    .num_records = (int64_t)count,
                    .span_s = (double)span_ns * 1e-9,
                    .busy_s = (double)busy_ns * 1e-9,
                    .idle_s = (double)(span_ns - busy_ns) * 1e-9,
                    .longest_gap_s = (double)longest_ns * 1e-9};
}

typedef struct {
    GapRow *rows;
    size_t num_rows, max_rows;
    Arena *arena;
} Rows;

static void row_add(Rows *rows, GapRow row) {
    if (rows->num_rows == rows->max_rows) {
        rows->max_rows = rows->max_rows ? 2 * rows->max_rows : 64;
        rows->rows = arena_grow(rows->arena, rows->rows, rows->max_rows * sizeof *rows->rows);
    }
    rows->rows[rows->num_rows++] = row;
}

// A row per run of intervals that the comparison, but for their starts, puts together.
static void rows_add(Rows *rows, Interval *intervals, size_t count, int64_t process, bool unite) {
    qsort(intervals, count, sizeof *intervals, unite ? by_device : by_stream);
    for (size_t first = 0, end; first < count; first = end) {
        const Interval *one = &intervals[first];
        for (end = first + 1; end < count; end++)
            if (intervals[end].device != one->device ||
                (!unite && intervals[end].stream != one->stream))
                break;
        GapRow row = intervals_sum(one, end - first);
        row.process = process;
        row.is_union = unite;
        row_add(rows, row);
    }
}

static int by_place(const void *a, const void *b) {
    const GapRow *left = a, *right = b;
    if (left->process != right->process) return left->process < right->process ? -1 : 1;
    if (left->device != right->device) return left->device < right->device ? -1 : 1;
    if (left->is_union != right->is_union) return left->is_union ? -1 : 1;
    return (left->stream > right->stream) - (left->stream < right->stream);
}

static void log_add(Rows *rows, const WrapLog *log) {
    Arena scratch = {0};
    Interval *intervals = ARENA_ARRAY(&scratch, log->num_work, Interval);
    for (size_t i = 0; i < log->num_work; i++) {
        const ActivityRecord *work = &log->work[i];
        intervals[i] = (Interval){work->device, work->stream, work->start_ns, work->end_ns};
    }
    rows_add(rows, intervals, log->num_work, log->process, true);
    rows_add(rows, intervals, log->num_work, log->process, false);
    arena_free(&scratch);
}

Gaps gaps_find(const WrapLog *logs, int num_logs, Arena *arena) {
    Rows rows = {.arena = arena};
    for (int i = 0; i < num_logs; i++) log_add(&rows, &logs[i]);
    if (rows.num_rows > 0) qsort(rows.rows, rows.num_rows, sizeof *rows.rows, by_place);
    Gaps gaps = {.rows = rows.rows, .num_rows = (int)rows.num_rows};
    for (size_t i = 0; i < rows.num_rows; i++) {
        if (!rows.rows[i].is_union) continue;
        gaps.num_devices++;
        gaps.span_s += rows.rows[i].span_s;
        gaps.busy_s += rows.rows[i].busy_s;
    }
    return gaps;
}

Status gaps_write(const Gaps *gaps, const char *path) {
    OutputFile file;
    TRY(output_open(path, &file));
    fprintf(file.stream,
            "process,device,stream,num_records,span_s,busy_s,idle_s,busy_frac,longest_gap_s\n");
    for (int i = 0; i < gaps->num_rows; i++) {
        const GapRow *row = &gaps->rows[i];
        char stream[16];
        snprintf(stream, sizeof stream, "%u", row->stream);
        fprintf(file.stream, "%lld,%u,%s,%lld,%.9g,%.9g,%.9g,%.6g,%.9g\n", (long long)row->process,
                row->device, row->is_union ? "all" : stream, (long long)row->num_records,
                row->span_s, row->busy_s, row->idle_s,
                row->span_s > 0 ? row->busy_s / row->span_s : 1, row->longest_gap_s);
    }
    return output_close(&file, status_ok());
}
