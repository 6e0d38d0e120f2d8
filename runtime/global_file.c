#include "runtime/global_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Elements [begin, end) of a block, on the host and on the device.
typedef struct {
    int64_t begin, end;
    void *array; // wide, of the device
    double *values;
} Part;

static Part part_of(const Rank *rank, const ChunkState *chunk, const FlatState *f,
                    GlobalKind kind) {
    const bool weights = kind == GLOBAL_WEIGHTS, gradients = kind == GLOBAL_GRADIENTS;
    const bool all = weights     ? chunk->masters_are_weights && f->zero_stage < 3
                     : gradients ? f->zero_stage == 0
                                 : false;
    Part part = {.begin = all ? 0 : f->shard_begin,
                 .end = all ? f->layout.count : f->shard_begin + f->shard_count};
    if (gradients)
        part.array = gradient_at(rank->backend, f, part.begin);
    else if (kind == GLOBAL_MOMENT || kind == GLOBAL_VARIANCE)
        part.array = kind == GLOBAL_MOMENT ? f->moment : f->variance;
    else
        part.array = all ? f->weights : f->masters;
    return part;
}

// Between the host's fp64 and the device's wide numbers.
static Status part_move(const Rank *rank, const Part *part, bool to_device) {
    Backend *b = rank->backend;
    const int64_t count = part->end - part->begin;
    const bool narrow = b->wide == DTYPE_FP32;
    const size_t bytes = (size_t)count * dtype_bytes(b->wide);
    float *raw = narrow ? malloc(bytes + 1) : NULL;
    if (narrow && !raw) return status_error(STATUS_MACHINE, "no memory for %zu bytes", bytes);
    void *host = narrow ? (void *)raw : part->values;
    Status status = status_ok();
    for (int64_t i = 0; i < count && narrow && to_device; i++) raw[i] = (float)part->values[i];
    if (to_device) {
        b->table->upload(b, part->array, host, bytes, rank->stream);
        status = backend_sync(b);
    } else {
        status = b->table->download(b, host, part->array, bytes, rank->stream);
    }
    for (int64_t i = 0; i < count && narrow && !to_device; i++) part->values[i] = (double)raw[i];
    free(raw);
    return status;
}

// A disk that fills up takes a part of what is written before it takes nothing and says why.
static bool bytes_move(int fd, double *values, size_t bytes, off_t place, bool write) {
    for (char *next = (char *)values; bytes > 0;) {
        const ssize_t moved =
            write ? pwrite(fd, next, bytes, place) : pread(fd, next, bytes, place);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        next += moved;
        place += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

// The elements of one row of a parameter that lie in the part.
static bool row_move(int fd, const Parameter *p, int64_t row, const Part *part, bool write) {
    int64_t first = p->offset + row * p->num_columns, last = first + p->num_columns;
    int64_t column = p->first_column;
    if (p->first_row + row >= p->rows) return true; // padding
    if (first < part->begin) {
        column += part->begin - first;
        first = part->begin;
    }
    if (last > part->end) last = part->end;
    if (first >= last) return true;
    const off_t place = (off_t)(p->global_offset + (p->first_row + row) * p->columns + column) *
                        (off_t)sizeof(double);
    const size_t bytes = (size_t)(last - first) * sizeof(double);
    return bytes_move(fd, part->values + (first - part->begin), bytes, place, write);
}

static bool rows_move(int fd, const ChunkState *chunk, int block, const Part *part, bool write) {
    errno = 0;
    for (int i = 0; i < chunk->list.num_parameters; i++) {
        const Parameter *p = &chunk->list.parameters[i];
        for (int64_t row = 0; row < p->num_rows && p->block == block; row++)
            if (!row_move(fd, p, row, part, write)) return false;
    }
    return true;
}

static Status block_move(const Rank *rank, const ChunkState *chunk, int block, GlobalKind kind,
                         int fd) {
    const FlatState *f = &chunk->blocks[block];
    Part part = part_of(rank, chunk, f, kind);
    if (f->layout.count == 0 || part.begin == part.end) return status_ok();
    part.values = calloc((size_t)(part.end - part.begin), sizeof(double));
    if (!part.values) return status_error(STATUS_MACHINE, "no memory to write a model");
    Status status = part_move(rank, &part, false);
    if (status.code == STATUS_OK && !rows_move(fd, chunk, block, &part, true))
        status = status_error(STATUS_MACHINE, "%s", strerror(errno ? errno : ENOSPC));
    free(part.values);
    return status;
}

// Weights are made of all masters that they hold, by way of a wide array of their size.
static Status block_read(const Rank *rank, const ChunkState *chunk, int block, GlobalKind kind,
                         int fd) {
    Backend *b = rank->backend;
    const FlatState *f = &chunk->blocks[block];
    Part part = part_of(rank, chunk, f, kind);
    const bool casts = kind == GLOBAL_WEIGHTS && !chunk->masters_are_weights;
    if (f->layout.count == 0) return status_ok();
    if (casts && f->zero_stage < 3) part.begin = 0, part.end = f->layout.count;
    const size_t bytes = (size_t)(part.end - part.begin) * dtype_bytes(b->wide);
    if (casts) part.array = b->table->alloc(b, bytes);
    part.values = calloc((size_t)(part.end - part.begin), sizeof(double));
    Status status =
        part.values ? b->failure : status_error(STATUS_MACHINE, "no memory for a model");
    if (status.code == STATUS_OK && !rows_move(fd, chunk, block, &part, false))
        status = errno ? status_error(STATUS_MACHINE, "%s", strerror(errno))
                       : status_error(STATUS_INVALID, "it ends too early");
    if (status.code == STATUS_OK) status = part_move(rank, &part, true);
    if (casts && part.array) {
        b->table->cast(b, f->weights, b->act, part.array, b->wide, false, part.end - part.begin,
                       rank->stream);
        b->table->release(b, part.array, bytes);
    }
    free(part.values);
    return status;
}

static Status blocks_move(const Rank *rank, const char *path, GlobalKind kind, int fd, bool write) {
    Status status = status_ok();
    for (int i = 0; i < rank->num_chunks; i++)
        for (int k = 0; k < rank->chunks[i].list.num_blocks && status.code == STATUS_OK; k++)
            status = write ? block_move(rank, &rank->chunks[i], k, kind, fd)
                           : block_read(rank, &rank->chunks[i], k, kind, fd);
    if (status.code != STATUS_OK) return status_at(status.code, path, "", "%s", status.text);
    return status;
}

Status global_file_write(const Rank *rank, const char *path, GlobalKind kind) {
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    if (fd < 0) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    Status status = blocks_move(rank, path, kind, fd, true);
    if (fsync(fd) != 0 && status.code == STATUS_OK)
        status = status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    close(fd);
    return status;
}

Status global_file_read(const Rank *rank, const char *path, GlobalKind kind) {
    const int fd = open(path, O_RDONLY);
    if (fd < 0) return status_error(STATUS_INVALID, "%s: %s", path, strerror(errno));
    const Status status = blocks_move(rank, path, kind, fd, false);
    close(fd);
    return status;
}
