#include "base/times_file.h"

#include <errno.h>
#include <string.h>

static const int64_t MAGIC = 0x314d495457484d; // "MHWTIM1"

static Status failed(const char *path) {
    return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
}

static void sizes_set(TimesFile *file) {
    file->head_bytes = 2 * (int64_t)sizeof(int64_t) + file->num_rows * (int64_t)sizeof(int);
    file->step_bytes = 0;
    for (int r = 0; r < file->num_rows; r++)
        file->step_bytes += file->counts[r] * 2 * (int64_t)sizeof(double);
}

Status times_file_create(const char *path, int num_rows, const int *counts, TimesFile *out) {
    *out = (TimesFile){.path = path, .num_rows = num_rows, .counts = counts};
    sizes_set(out);
    const int64_t head[2] = {MAGIC, num_rows};
    out->stream = fopen(path, "wb");
    if (!out->stream) return status_error(STATUS_INVALID, "%s: %s", path, strerror(errno));
    fwrite(head, sizeof head, 1, out->stream);
    fwrite(counts, sizeof *counts, (size_t)num_rows, out->stream);
    return ferror(out->stream) ? failed(path) : status_ok();
}

Status times_file_add(const TimesFile *file, int row, const double *pairs) {
    fwrite(pairs, 2 * sizeof *pairs, (size_t)file->counts[row], file->stream);
    return ferror(file->stream) ? failed(file->path) : status_ok();
}

Status times_file_open(const char *path, Arena *arena, TimesFile *out) {
    enum { MOST_ROWS = 1 << 24 }; // far more processes than there are
    int64_t head[2] = {0};
    *out = (TimesFile){.path = path, .stream = fopen(path, "rb")};
    if (!out->stream) return failed(path);
    bool good = fread(head, sizeof head, 1, out->stream) == 1 && head[0] == MAGIC && head[1] > 0 &&
                head[1] <= MOST_ROWS;
    if (good) {
        int *counts = ARENA_ARRAY(arena, (size_t)head[1], int);
        good = fread(counts, sizeof *counts, (size_t)head[1], out->stream) == (size_t)head[1];
        out->num_rows = (int)head[1];
        out->counts = counts;
    }
    for (int r = 0; good && r < out->num_rows; r++) good = out->counts[r] >= 0;
    if (good) {
        sizes_set(out);
        good = out->step_bytes > 0 && fseeko(out->stream, 0, SEEK_END) == 0;
    }
    if (!good) {
        times_file_close(out);
        return status_error(STATUS_MACHINE, "%s: no times of instructions", path);
    }
    out->num_steps = ((int64_t)ftello(out->stream) - out->head_bytes) / out->step_bytes;
    return status_ok();
}

Status times_file_read(const TimesFile *file, int64_t step, int row, double *start_s,
                       double *end_s) {
    int64_t offset = file->head_bytes + step * file->step_bytes;
    for (int r = 0; r < row; r++) offset += file->counts[r] * 2 * (int64_t)sizeof(double);
    if (fseeko(file->stream, (off_t)offset, SEEK_SET) != 0) return failed(file->path);
    for (int i = 0; i < file->counts[row]; i++) {
        double pair[2];
        if (fread(pair, sizeof pair, 1, file->stream) != 1)
            return status_error(STATUS_MACHINE, "%s: times are missing", file->path);
        start_s[i] = pair[0];
        end_s[i] = pair[1];
    }
    return status_ok();
}

Status times_file_close(TimesFile *file) {
    const bool bad = file->stream && fclose(file->stream) != 0;
    file->stream = NULL;
    return bad ? failed(file->path) : status_ok();
}
