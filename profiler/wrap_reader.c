#include "profiler/wrap_file.h"
#include "profiler/wrap_record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    Arena *arena;
    WrapLog log;
    ActivityRecord *work;
    WrapCall *calls;
    WrapRange *ranges;
    const char **names;
    size_t num_names;
} Reader;

// How many there are of each, for arrays of the right size; and where whole records end.
typedef struct {
    size_t num_work, num_calls, num_ranges, num_names;
    size_t end_bytes;
} Counts;

static size_t record_size(const WrapRecord *record) {
    return sizeof *record + (record->type == WRAP_NAME ? (size_t)(record->value + 7) / 8 * 8 : 0);
}

static Counts records_count(const uint8_t *bytes, size_t num_bytes) {
    Counts counts = {0};
    WrapRecord record;
    while (num_bytes - counts.end_bytes >= sizeof record) {
        memcpy(&record, bytes + counts.end_bytes, sizeof record);
        bool fits = record.type != WRAP_NAME || record.value < num_bytes;
        if (!fits || record_size(&record) > num_bytes - counts.end_bytes) break;
        counts.end_bytes += record_size(&record);
        counts.num_names += record.type == WRAP_NAME;
        counts.num_work += record.type >= WRAP_KERNEL && record.type <= WRAP_SET;
        counts.num_calls += record.type == WRAP_CALL;
        counts.num_ranges += record.type == WRAP_RANGE || record.type == WRAP_RANGE_ALL;
    }
    return counts;
}

static const char *name_of(const Reader *reader, uint32_t id) {
    return id < reader->num_names ? reader->names[id] : "?";
}

static void work_take(Reader *reader, const WrapRecord *record) {
    static const ActivityKind KINDS[] = {
        [WRAP_KERNEL] = ACTIVITY_KERNEL, [WRAP_COPY] = ACTIVITY_COPY, [WRAP_SET] = ACTIVITY_SET};
    reader->work[reader->log.num_work++] = (ActivityRecord){
        .kind = KINDS[record->type],
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .correlation_id = record->correlation_id,
        .device = record->device,
        .stream = record->stream,
        .bytes = (double)record->value,
        .name = name_of(reader, record->name),
    };
}

static void record_take(Reader *reader, const WrapRecord *record, const uint8_t *text) {
    WrapLog *log = &reader->log;
    switch (record->type) {
    case WRAP_NAME: {
        char *name = arena_alloc(reader->arena, (size_t)record->value + 1);
        memcpy(name, text, (size_t)record->value);
        reader->names[reader->num_names++] = name;
        break;
    }
    case WRAP_KERNEL:
    case WRAP_COPY:
    case WRAP_SET:
        work_take(reader, record);
        break;
    case WRAP_CALL:
        reader->calls[log->num_calls++] = (WrapCall){.start_ns = record->start_ns,
                                                     .end_ns = record->end_ns,
                                                     .correlation_id = record->correlation_id,
                                                     .thread = record->thread};
        break;
    case WRAP_RANGE:
    case WRAP_RANGE_ALL:
        reader->ranges[log->num_ranges++] = (WrapRange){.start_ns = record->start_ns,
                                                        .end_ns = record->end_ns,
                                                        .thread = record->thread,
                                                        .all_threads = record->type != WRAP_RANGE,
                                                        .text = name_of(reader, record->name)};
        break;
    case WRAP_DROPPED:
        log->num_dropped += (size_t)record->value;
        break;
    case WRAP_OVERHEAD:
        log->overhead_ns += record->value;
        break;
    case WRAP_END:
        log->complete = true;
        break;
    default:
        break;
    }
}

static void records_read(Reader *reader, const uint8_t *bytes, size_t num_bytes) {
    Counts counts = records_count(bytes, num_bytes);
    reader->work = ARENA_ARRAY(reader->arena, counts.num_work, ActivityRecord);
    reader->calls = ARENA_ARRAY(reader->arena, counts.num_calls, WrapCall);
    reader->ranges = ARENA_ARRAY(reader->arena, counts.num_ranges, WrapRange);
    reader->names = ARENA_ARRAY(reader->arena, counts.num_names, const char *);
    WrapRecord record;
    for (size_t at = 0; at < counts.end_bytes; at += record_size(&record)) {
        memcpy(&record, bytes + at, sizeof record);
        record_take(reader, &record, bytes + at + sizeof record);
    }
    reader->log.work = reader->work;
    reader->log.calls = reader->calls;
    reader->log.ranges = reader->ranges;
}

Status wrap_log_load(const char *path, Arena *arena, WrapLog *out) {
    *out = (WrapLog){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) {
        Status status = status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    size_t num_bytes = (size_t)file.st_size;
    void *bytes = MAP_FAILED;
    if (num_bytes >= sizeof(WrapRecord))
        bytes = mmap(NULL, num_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    WrapRecord header = {0};
    if (bytes != MAP_FAILED) memcpy(&header, bytes, sizeof header);
    if (header.type == WRAP_HEADER) {
        Reader reader = {.arena = arena, .log.process = (int64_t)header.value};
        records_read(&reader, bytes, num_bytes);
        *out = reader.log;
    }
    if (bytes != MAP_FAILED) munmap(bytes, num_bytes);
    if (header.type == WRAP_HEADER) return status_ok();
    return status_at(STATUS_MACHINE, path, "", "is no record of a wrapped process");
}
