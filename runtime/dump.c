#include "runtime/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Numbers of a chunk's buffer on the host; those outside of [begin, end) are not written.
typedef struct {
    double *values; // [end - begin]
    int64_t begin, end;
} Part;

static Status part_download(const Rank *rank, const void *array, Dtype dtype, Part *part) {
    const int64_t count = part->end - part->begin;
    const size_t bytes = (size_t)count * dtype_bytes(dtype);
    part->values = malloc((size_t)count * sizeof(double));
    void *raw = malloc(bytes);
    Status status =
        status_error(STATUS_MACHINE, "no memory to dump %lld numbers", (long long)count);
    if (part->values && raw)
        status = rank->backend->table->download(rank->backend, raw, array, bytes, rank->stream);
    for (int64_t i = 0; i < count && status.code == STATUS_OK; i++)
        part->values[i] = dtype == DTYPE_FP64 ? ((double *)raw)[i] : (double)((float *)raw)[i];
    free(raw);
    return status;
}

// The elements of one row of a parameter that lie in the part.
static bool row_write(int fd, const Parameter *p, int64_t row, const Part *part) {
    int64_t first = p->offset + row * p->num_columns, last = first + p->num_columns;
    int64_t column = p->first_column;
    if (p->first_row + row >= p->rows) return true; // padding
    if (first < part->begin) {
        column += part->begin - first;
        first = part->begin;
    }
    if (last > part->end) last = part->end;
    if (first >= last) return true;
    const int64_t place = p->global_offset + (p->first_row + row) * p->columns + column;
    const size_t bytes = (size_t)(last - first) * sizeof(double);
    return pwrite(fd, part->values + (first - part->begin), bytes,
                  (off_t)place * (off_t)sizeof(double)) == (ssize_t)bytes;
}

static Status block_dump(const Rank *rank, const ChunkState *chunk, int block, DumpKind kind,
                         int fd) {
    const FlatState *f = &chunk->blocks[block];
    const bool weights = kind == DUMP_WEIGHTS;
    const bool all =
        weights ? chunk->masters_are_weights && chunk->zero_stage < 3 : chunk->zero_stage == 0;
    Part part = {.begin = all ? 0 : f->shard_begin,
                 .end = all ? f->layout.count : f->shard_begin + f->shard_count};
    if (f->layout.count == 0) return status_ok();
    void *array = !weights ? gradient_at(rank->backend, chunk, f, part.begin)
                  : all    ? f->weights
                           : f->masters;
    Status status = part_download(rank, array, rank->backend->wide, &part);
    bool written = true;
    for (int i = 0; i < chunk->list.num_parameters && status.code == STATUS_OK; i++) {
        const Parameter *p = &chunk->list.parameters[i];
        for (int64_t row = 0; row < p->num_rows && written && p->block == block; row++)
            written = row_write(fd, p, row, &part);
    }
    free(part.values);
    if (!written)
        status = status_error(STATUS_MACHINE, "a dump cannot be written: %s", strerror(errno));
    return status;
}

static Status chunk_dump(const Rank *rank, const ChunkState *chunk, DumpKind kind, int fd) {
    for (int i = 0; i < chunk->list.num_blocks; i++) TRY(block_dump(rank, chunk, i, kind, fd));
    return status_ok();
}

Status dump_write(const Rank *rank, const char *folder, DumpKind kind, int64_t step) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%lld.f64", folder,
             kind == DUMP_GRADIENTS ? "gradients" : "weights", (long long)step);
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    if (fd < 0) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    Status status = status_ok();
    for (int i = 0; i < rank->num_chunks && status.code == STATUS_OK; i++)
        status = chunk_dump(rank, &rank->chunks[i], kind, fd);
    close(fd);
    return status;
}

Status dump_list(const Rank *rank, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/parameters.txt", folder);
    FILE *file = fopen(path, "a");
    if (!file) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    for (int c = 0; c < rank->num_chunks; c++) {
        const ChunkParameters *list = &rank->chunks[c].list;
        for (int i = 0; i < list->num_parameters; i++) {
            const Parameter *p = &list->parameters[i];
            fprintf(file, "%s %lld %lld %lld\n", p->name, (long long)p->rows, (long long)p->columns,
                    (long long)p->global_offset);
        }
    }
    fclose(file);
    return status_ok();
}
