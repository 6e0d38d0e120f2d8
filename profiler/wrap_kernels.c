#include "profiler/wrap_kernels.h"

#include "base/output_file.h"
#include "profiler/wrap_name.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    KernelRow *rows;
    size_t num_rows, max_rows;
    size_t *slots; // open addressing: row + 1, 0 is free; a power of two, twice max_rows
    size_t num_slots;
    Arena scratch;
} Rows;

// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (FNV-1a, 64 bit).
static uint64_t key_hash(ActivityKind kind, const char *text) {
    uint64_t hash = (0xcbf29ce484222325u ^ (uint64_t)kind) * 0x100000001b3u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static size_t *slot_of(const Rows *rows, ActivityKind kind, const char *name) {
    size_t at = (size_t)key_hash(kind, name) & (rows->num_slots - 1);
    while (rows->slots[at]) {
        const KernelRow *row = &rows->rows[rows->slots[at] - 1];
        if (row->kind == kind && strcmp(row->name, name) == 0) break;
        at = (at + 1) & (rows->num_slots - 1);
    }
    return &rows->slots[at];
}

static void rows_grow(Rows *rows) {
    rows->max_rows = rows->max_rows ? 2 * rows->max_rows : 512;
    rows->rows = arena_grow(&rows->scratch, rows->rows, rows->max_rows * sizeof *rows->rows);
    rows->num_slots = 2 * rows->max_rows;
    rows->slots = ARENA_ARRAY(&rows->scratch, rows->num_slots, size_t);
    for (size_t i = 0; i < rows->num_rows; i++)
        *slot_of(rows, rows->rows[i].kind, rows->rows[i].name) = i + 1;
}

static KernelRow *row_of(Rows *rows, const ActivityRecord *work) {
    if (rows->num_rows == rows->max_rows) rows_grow(rows);
    size_t *slot = slot_of(rows, work->kind, work->name);
    if (*slot == 0) {
        rows->rows[rows->num_rows++] = (KernelRow){.kind = work->kind, .name = work->name};
        *slot = rows->num_rows;
    }
    return &rows->rows[*slot - 1];
}

static void row_add(KernelRow *row, const ActivityRecord *work) {
    double duration_s = (double)(work->end_ns - work->start_ns) * 1e-9;
    if (row->num_calls == 0 || duration_s < row->min_s) row->min_s = duration_s;
    if (duration_s > row->max_s) row->max_s = duration_s;
    row->num_calls++;
    row->total_s += duration_s;
    row->bytes += work->bytes;
}

static int by_total(const void *a, const void *b) {
    const KernelRow *left = a, *right = b;
    if (left->total_s != right->total_s) return left->total_s > right->total_s ? -1 : 1;
    if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void totals_add(KernelTotals *totals, const KernelRow *row) {
    totals->total_s += row->total_s;
    if (row->is_nccl) totals->nccl_s += row->total_s;
    if (row->kind == ACTIVITY_KERNEL) totals->num_kernels += row->num_calls;
    if (row->kind == ACTIVITY_COPY) totals->num_copies += row->num_calls;
    if (row->kind == ACTIVITY_SET) totals->num_sets += row->num_calls;
}

KernelTotals kernel_totals(const WrapLog *logs, int num_logs, Arena *arena) {
    Rows rows = {0};
    for (int l = 0; l < num_logs; l++)
        for (size_t i = 0; i < logs[l].num_work; i++)
            row_add(row_of(&rows, &logs[l].work[i]), &logs[l].work[i]);

    KernelTotals totals = {.num_rows = (int)rows.num_rows};
    KernelRow *kept = ARENA_ARRAY(arena, rows.num_rows, KernelRow);
    if (rows.num_rows > 0) memcpy(kept, rows.rows, rows.num_rows * sizeof *kept);
    qsort(kept, rows.num_rows, sizeof *kept, by_total);
    for (size_t i = 0; i < rows.num_rows; i++) {
        bool is_kernel = kept[i].kind == ACTIVITY_KERNEL;
        kept[i].readable = is_kernel ? kernel_name_readable(kept[i].name, arena) : kept[i].name;
        kept[i].is_nccl = is_kernel && kernel_is_nccl(kept[i].name);
        totals_add(&totals, &kept[i]);
    }
    for (size_t i = 0; i < rows.num_rows; i++)
        kept[i].share_frac = totals.total_s > 0 ? kept[i].total_s / totals.total_s : 0;
    totals.rows = kept;
    arena_free(&rows.scratch);
    return totals;
}

// RFC 4180: in quotes, quotes doubled.
static void text_print(FILE *stream, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"') fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

Status kernel_totals_write(const KernelTotals *totals, const char *path) {
    static const char *const KINDS[] = {
        [ACTIVITY_KERNEL] = "kernel", [ACTIVITY_COPY] = "copy", [ACTIVITY_SET] = "set"};
    OutputFile file;
    TRY(output_open(path, &file));
    fprintf(file.stream,
            "kind,name,count,total_s,mean_s,min_s,max_s,share_frac,bytes,nccl,mangled\n");
    for (int i = 0; i < totals->num_rows; i++) {
        const KernelRow *row = &totals->rows[i];
        fprintf(file.stream, "%s,", KINDS[row->kind]);
        text_print(file.stream, row->readable);
        fprintf(file.stream, ",%lld,%.9g,%.9g,%.9g,%.9g,%.6g,%.0f,%d,", (long long)row->num_calls,
                row->total_s, row->total_s / (double)row->num_calls, row->min_s, row->max_s,
                row->share_frac, row->bytes, row->is_nccl);
        text_print(file.stream, row->name);
        fputc('\n', file.stream);
    }
    return output_close(&file, status_ok());
}
