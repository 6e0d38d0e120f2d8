// Checks that CUPTI itself walks through made-up buffers as made_up_next does: that each record has
// the length and the place that NVIDIA's library knows, at the end of a buffer too. It answers
// without a GPU or a driver. Exit: 0 right, 1 wrong, 77 there is no CUPTI.
#include "profiler/cupti/activity_decode.h"
#include "profiler/cupti/cupti_find.h"
#include "tests/profiler/made_up_buffer.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CUPTI = 77, NUM_BUFFERS = 200, MOST_RECORDS = 12, NUM_KINDS = 8 };

static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "cupti-walk: %s\n", what);
    exit(1);
}

// Linear congruential; Knuth's constants (MMIX).
static uint32_t draw(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static void record_add(MadeUpBuffer *buffer, uint32_t kind, uint32_t id) {
    switch (kind) {
    case 0:
        made_up_kernel(buffer, "kernel", id, 10 * id + 1, 10 * id + 2);
        break;
    case 1:
        made_up_copy(buffer, id, 10 * id + 1, 10 * id + 2, 64);
        break;
    case 2:
        made_up_set(buffer, id, 10 * id + 1, 10 * id + 2, 64);
        break;
    case 3:
        made_up_overhead(buffer, 10 * id + 1, 10 * id + 2);
        break;
    case 4:
        made_up_tag(buffer, id, id + 1);
        break;
    case 5:
        made_up_call(buffer, CUPTI_ACTIVITY_KIND_RUNTIME, id, 1, id);
        break;
    case 6:
        made_up_call(buffer, CUPTI_ACTIVITY_KIND_DRIVER, id, 1, id);
        break;
    default:
        made_up_other(buffer);
    }
}

// Both go the same way and end with the same answer. Returns the number of records.
static int walk_both(CuptiNextRecord next, MadeUpBuffer *buffer, size_t valid_bytes) {
    CUpti_Activity *theirs = NULL, *ours = NULL;
    for (int i = 0;; i++) {
        CUptiResult their_result = next(buffer->bytes, valid_bytes, &theirs);
        CUptiResult our_result = made_up_next(buffer->bytes, valid_bytes, &ours);
        must(their_result == our_result, "the walks end apart");
        if (their_result != CUPTI_SUCCESS) return i;
        must(theirs == ours, "the walks are at two places");
    }
}

static bool same_records(CuptiNextRecord next, MadeUpBuffer *buffer) {
    ActivityDecoder theirs = {0}, ours = {0};
    activity_decode(&theirs, next, buffer->bytes, buffer->valid_bytes);
    activity_decode(&ours, made_up_next, buffer->bytes, buffer->valid_bytes);
    ActivityRecords a = activity_decoder_take(&theirs), b = activity_decoder_take(&ours);
    bool same = a.num_records == b.num_records && a.num_dropped == b.num_dropped &&
                a.overhead_ns == b.overhead_ns;
    for (size_t i = 0; i < a.num_records && same; i++)
        same = a.records[i].start_ns == b.records[i].start_ns &&
               a.records[i].tag == b.records[i].tag &&
               strcmp(a.records[i].name, b.records[i].name) == 0;
    activity_decoder_free(&theirs);
    activity_decoder_free(&ours);
    return same;
}

static void buffers_check(CuptiNextRecord next) {
    static MadeUpBuffer buffer;
    uint64_t state = 1;
    int num_records = 0;
    for (int i = 0; i < NUM_BUFFERS; i++) {
        buffer = (MadeUpBuffer){0};
        int count = 1 + (int)draw(&state, MOST_RECORDS);
        for (int k = 0; k < count; k++)
            record_add(&buffer, draw(&state, NUM_KINDS), draw(&state, 8));
        must(walk_both(next, &buffer, buffer.valid_bytes) == count, "another number of records");
        must(same_records(next, &buffer), "other records");
        walk_both(next, &buffer, draw(&state, (uint32_t)buffer.valid_bytes)); // cut
        num_records += count;
    }
    printf("%d records in %d buffers\n", num_records, NUM_BUFFERS);
}

int main(void) {
    char path[4096];
    if (!cupti_find(NULL, path, sizeof path)) {
        printf("skipped: there is no %s\n", CUPTI_SONAME);
        return NO_CUPTI;
    }
    void *library = dlopen(path, RTLD_NOW);
    must(library != NULL, path);
    CuptiNextRecord next;
    void *found = dlsym(library, "cuptiActivityGetNextRecord");
    must(found != NULL, "cuptiActivityGetNextRecord");
    memcpy(&next, &found, sizeof found);
    buffers_check(next);
    return 0;
}
