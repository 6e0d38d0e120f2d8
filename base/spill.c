#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

// The file is mapped in parts as it grows.
#define PART_BYTES ((size_t)16 << 20)

typedef struct {
    char *start; // [size] to read; what is not written yet has no bytes in the file
    size_t size, used;
    off_t offset; // in the file
} Part;

struct Spill {
    Arena *arena;
    size_t memory_bytes; // of texts that are in the arena
    int fd;              // -1: there is no file
    Part *parts;         // [num_parts]; the last one is filled
    int num_parts, capacity;
};

static void spill_close(void *thing) {
    Spill *spill = thing;
    for (int i = 0; i < spill->num_parts; i++) munmap(spill->parts[i].start, spill->parts[i].size);
    if (spill->fd >= 0) close(spill->fd);
}

Spill *spill_new(Arena *arena) {
    Spill *spill = ARENA_NEW(arena, Spill);
    spill->arena = arena;
    spill->fd = -1;
    arena_own(arena, spill_close, spill);
    return spill;
}

static int file_open(const char *folder, Arena *arena) {
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || errno == ENOENT) return fd;
    char *path = arena_printf(arena, "%s/meshwright-XXXXXX", folder);
    const int named = mkostemp(path, O_CLOEXEC);
    if (named >= 0) unlink(path);
    return named;
}

static Status spill_open(Spill *spill) {
    const char *set = getenv("TMPDIR");
    const char *const folders[] = {set && *set ? set : "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders && spill->fd < 0; i++)
        spill->fd = file_open(folders[i], spill->arena);
    if (spill->fd >= 0) return status_ok();
    return status_error(STATUS_MACHINE, "no temporary file can be made in %s: %s", folders[0],
                        strerror(errno));
}

static Status part_add(Spill *spill, size_t size) {
    const Part *last = spill->num_parts > 0 ? &spill->parts[spill->num_parts - 1] : NULL;
    Part part = {.offset = last ? last->offset + (off_t)last->size : 0,
                 .size = (size + PART_BYTES - 1) / PART_BYTES * PART_BYTES};
    part.start = mmap(NULL, part.size, PROT_READ, MAP_SHARED, spill->fd, part.offset);
    if (part.start == MAP_FAILED)
        return status_error(STATUS_MACHINE, "a temporary file cannot be mapped: %s",
                            strerror(errno));
    if (spill->num_parts == spill->capacity)
        spill->parts =
            arena_grow(spill->arena, spill->parts,
                       (size_t)(spill->capacity = 2 * spill->capacity + 8) * sizeof *spill->parts);
    spill->parts[spill->num_parts++] = part;
    return status_ok();
}

static Status file_write(int fd, const char *text, size_t size, off_t offset) {
    while (size > 0) {
        const ssize_t written = pwrite(fd, text, size, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return status_error(STATUS_MACHINE, "a temporary file cannot be written: %s",
                                strerror(errno));
        text += written;
        size -= (size_t)written;
        offset += written;
    }
    return status_ok();
}

Status spill_add(Spill *spill, const char *text, const char **out) {
    const size_t size = strlen(text) + 1;
    if (spill->memory_bytes + size <= SPILL_MEMORY_BYTES) {
        spill->memory_bytes += size;
        *out = arena_strdup(spill->arena, text);
        return status_ok();
    }
    if (spill->fd < 0) TRY(spill_open(spill));
    const Part *last = spill->num_parts > 0 ? &spill->parts[spill->num_parts - 1] : NULL;
    if (!last || last->size - last->used < size) TRY(part_add(spill, size));
    Part *part = &spill->parts[spill->num_parts - 1];
    TRY(file_write(spill->fd, text, size, part->offset + (off_t)part->used));
    *out = part->start + part->used;
    part->used += size;
    return status_ok();
}

void spill_forget(const Spill *spill) {
    for (int i = 0; i < spill->num_parts; i++)
        madvise(spill->parts[i].start, spill->parts[i].size, MADV_DONTNEED);
}
