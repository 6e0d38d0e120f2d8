#include "profiler/wrap_file.h"
#include "profiler/wrap_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18, FIRST_SLOTS = 1024, MOST_NAME_BYTES = 16384 };

typedef struct {
    char *text; // NULL: free
    uint64_t hash;
    uint32_t id;
} NameSlot;

struct WrapWriter {
    int fd;
    double num_bytes, most_bytes; // handed to the file, and the bound
    size_t num_lost;
    NameSlot *names; // open addressing, a power of two
    size_t num_names, max_names;
    size_t used;
    uint8_t buffer[BUFFER_BYTES];
};

void wrap_writer_flush(WrapWriter *writer) {
    size_t done = 0;
    while (done < writer->used) {
        ssize_t n = write(writer->fd, writer->buffer + done, writer->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    if (done < writer->used) writer->most_bytes = 0; // the disk is full: no half records
    writer->num_bytes += (double)done;
    writer->used = 0;
}

// Whether there is room for so many bytes in one piece; the file's bound is kept here.
static bool room_make(WrapWriter *writer, size_t num_bytes) {
    if (writer->used + num_bytes > BUFFER_BYTES) wrap_writer_flush(writer);
    double after = writer->num_bytes + (double)(writer->used + num_bytes);
    return num_bytes <= BUFFER_BYTES && after <= writer->most_bytes;
}

static bool record_append(WrapWriter *writer, const WrapRecord *record, const char *text) {
    size_t length = text ? strlen(text) : 0, padded = (length + 7) / 8 * 8;
    if (!room_make(writer, sizeof *record + padded)) {
        writer->num_lost++;
        return false;
    }
    memcpy(writer->buffer + writer->used, record, sizeof *record);
    memset(writer->buffer + writer->used + sizeof *record, 0, padded);
    if (length) memcpy(writer->buffer + writer->used + sizeof *record, text, length);
    writer->used += sizeof *record + padded;
    return true;
}

WrapWriter *wrap_writer_open(const char *path, double most_bytes) {
    WrapWriter *writer = calloc(1, sizeof *writer);
    NameSlot *names = calloc(FIRST_SLOTS, sizeof *names);
    int fd = writer && names ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (fd < 0) {
        free(writer);
        free(names);
        return NULL;
    }
    writer->fd = fd;
    writer->most_bytes = most_bytes;
    writer->names = names;
    writer->max_names = FIRST_SLOTS;
    WrapRecord header = {.type = WRAP_HEADER, .value = (uint64_t)getpid()};
    record_append(writer, &header, NULL);
    wrap_writer_flush(writer);
    return writer;
}

// --- Names: each text is written once

// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (FNV-1a, 64 bit).
static uint64_t text_hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static NameSlot *name_slot(NameSlot *names, size_t num_slots, const char *text, uint64_t hash) {
    size_t at = (size_t)hash & (num_slots - 1);
    while (names[at].text && (names[at].hash != hash || strcmp(names[at].text, text) != 0))
        at = (at + 1) & (num_slots - 1);
    return &names[at];
}

static bool names_grow(WrapWriter *writer) {
    size_t num_slots = 2 * writer->max_names;
    NameSlot *names = calloc(num_slots, sizeof *names);
    if (!names) return false;
    for (size_t i = 0; i < writer->max_names; i++) {
        const NameSlot *old = &writer->names[i];
        if (old->text) *name_slot(names, num_slots, old->text, old->hash) = *old;
    }
    free(writer->names);
    writer->names = names;
    writer->max_names = num_slots;
    return true;
}

// False where the name could not be kept or written: the record is then lost.
static bool name_write(WrapWriter *writer, const char *name, uint32_t *id) {
    char text[MOST_NAME_BYTES];
    text[0] = '\0';
    strncat(text, name, sizeof text - 1);
    if (2 * writer->num_names >= writer->max_names && !names_grow(writer)) return false;
    uint64_t hash = text_hash(text);
    NameSlot *slot = name_slot(writer->names, writer->max_names, text, hash);
    if (!slot->text) {
        char *copy = strdup(text);
        WrapRecord record = {.type = WRAP_NAME, .value = strlen(text)};
        if (!copy || !record_append(writer, &record, text)) {
            free(copy);
            return false;
        }
        *slot = (NameSlot){.text = copy, .hash = hash, .id = (uint32_t)writer->num_names++};
    }
    *id = slot->id;
    return true;
}

// --- Records

static void named_append(WrapWriter *writer, WrapRecord *record, const char *name) {
    if (!name_write(writer, name, &record->name))
        writer->num_lost++;
    else
        record_append(writer, record, NULL);
}

void wrap_write_work(WrapWriter *writer, const ActivityRecord *work) {
    static const WrapRecordType TYPES[] = {
        [ACTIVITY_KERNEL] = WRAP_KERNEL, [ACTIVITY_COPY] = WRAP_COPY, [ACTIVITY_SET] = WRAP_SET};
    WrapRecord record = {.type = TYPES[work->kind],
                         .start_ns = work->start_ns,
                         .end_ns = work->end_ns,
                         .correlation_id = work->correlation_id,
                         .device = work->device,
                         .stream = work->stream,
                         .value = (uint64_t)work->bytes};
    named_append(writer, &record, work->name);
}

void wrap_write_call(WrapWriter *writer, const WrapCall *call) {
    WrapRecord record = {.type = WRAP_CALL,
                         .start_ns = call->start_ns,
                         .end_ns = call->end_ns,
                         .correlation_id = call->correlation_id,
                         .thread = call->thread};
    record_append(writer, &record, NULL);
}

void wrap_write_range(WrapWriter *writer, const WrapRange *range) {
    WrapRecord record = {.type = range->all_threads ? WRAP_RANGE_ALL : WRAP_RANGE,
                         .start_ns = range->start_ns,
                         .end_ns = range->end_ns,
                         .thread = range->thread};
    named_append(writer, &record, range->text);
}

void wrap_write_dropped(WrapWriter *writer, size_t num_dropped) {
    writer->num_lost += num_dropped;
}

void wrap_write_overhead(WrapWriter *writer, uint64_t overhead_ns) {
    WrapRecord record = {.type = WRAP_OVERHEAD, .value = overhead_ns};
    record_append(writer, &record, NULL);
}

void wrap_writer_close(WrapWriter *writer) {
    if (!writer) return;
    wrap_writer_flush(writer);
    // Two more records may always be added, so that a full file says how much it lacks.
    if (writer->most_bytes > 0) writer->most_bytes = writer->num_bytes + 2 * sizeof(WrapRecord);
    WrapRecord dropped = {.type = WRAP_DROPPED, .value = writer->num_lost};
    WrapRecord end = {.type = WRAP_END};
    if (writer->num_lost > 0) record_append(writer, &dropped, NULL);
    record_append(writer, &end, NULL);
    wrap_writer_flush(writer);
    close(writer->fd);
    for (size_t i = 0; i < writer->max_names; i++) free(writer->names[i].text);
    free(writer->names);
    free(writer);
}
