#include "profiler/cupti/activity_decode.h"

#include "profiler/cupti/activity_read.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_RECORDS = 4096, FIRST_SLOTS = 1024 };

struct ActivityName {
    const char *text; // NULL: free
    uint64_t hash;
};

struct ActivityTag {
    uint64_t tag; // 0: free
    uint32_t correlation_id;
};

// --- Names: each text is kept once

// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (FNV-1a, 64 bit).
static uint64_t text_hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

// The slot that holds the text, or the free one where it belongs.
static ActivityName *name_slot(ActivityName *names, size_t num_slots, const char *text,
                               uint64_t hash) {
    size_t at = (size_t)hash & (num_slots - 1);
    while (names[at].text && (names[at].hash != hash || strcmp(names[at].text, text) != 0))
        at = (at + 1) & (num_slots - 1);
    return &names[at];
}

static void names_grow(ActivityDecoder *decoder) {
    size_t num_slots = decoder->max_names ? 2 * decoder->max_names : FIRST_SLOTS;
    ActivityName *names = ARENA_ARRAY(&decoder->kept, num_slots, ActivityName);
    for (size_t i = 0; i < decoder->max_names; i++) {
        const ActivityName *old = &decoder->names[i];
        if (old->text) *name_slot(names, num_slots, old->text, old->hash) = *old;
    }
    decoder->names = names;
    decoder->max_names = num_slots;
}

static const char *name_keep(ActivityDecoder *decoder, const char *text) {
    if (2 * decoder->num_names >= decoder->max_names) names_grow(decoder);
    uint64_t hash = text_hash(text);
    ActivityName *slot = name_slot(decoder->names, decoder->max_names, text, hash);
    if (!slot->text) {
        *slot = (ActivityName){.text = arena_strdup(&decoder->kept, text), .hash = hash};
        decoder->num_names++;
    }
    return slot->text;
}

// --- Tags by correlation

static ActivityTag *tag_slot(ActivityTag *tags, size_t num_slots, uint32_t correlation_id) {
    // Knuth's multiplier: consecutive ids, which is what CUPTI gives, spread over the table.
    size_t at = (size_t)(correlation_id * 2654435769u) & (num_slots - 1);
    while (tags[at].tag && tags[at].correlation_id != correlation_id)
        at = (at + 1) & (num_slots - 1);
    return &tags[at];
}

static void tags_grow(ActivityDecoder *decoder) {
    size_t num_slots = decoder->max_tags ? 2 * decoder->max_tags : FIRST_SLOTS;
    ActivityTag *tags = ARENA_ARRAY(&decoder->batch, num_slots, ActivityTag);
    for (size_t i = 0; i < decoder->max_tags; i++) {
        const ActivityTag *old = &decoder->tags[i];
        if (old->tag) *tag_slot(tags, num_slots, old->correlation_id) = *old;
    }
    decoder->tags = tags;
    decoder->max_tags = num_slots;
}

static void tag_keep(ActivityDecoder *decoder, const CUpti_ActivityExternalCorrelation *external) {
    if (external->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return;
    if (external->externalId == 0) return;
    if (2 * decoder->num_tags >= decoder->max_tags) tags_grow(decoder);
    uint32_t correlation_id = external->correlationId;
    ActivityTag *slot = tag_slot(decoder->tags, decoder->max_tags, correlation_id);
    if (!slot->tag) decoder->num_tags++;
    *slot = (ActivityTag){.tag = external->externalId, .correlation_id = correlation_id};
}

static uint64_t tag_find(const ActivityDecoder *decoder, uint32_t correlation_id) {
    if (!decoder->tags) return 0;
    return tag_slot(decoder->tags, decoder->max_tags, correlation_id)->tag;
}

// --- Buffers

static void record_keep(ActivityDecoder *decoder, const ActivityRecord *record) {
    if (decoder->num_records == decoder->max_records) {
        decoder->max_records = decoder->max_records ? 2 * decoder->max_records : FIRST_RECORDS;
        decoder->records = arena_grow(&decoder->batch, decoder->records,
                                      decoder->max_records * sizeof *decoder->records);
    }
    ActivityRecord *kept = &decoder->records[decoder->num_records++];
    *kept = *record;
    kept->name = name_keep(decoder, record->name);
}

static void overhead_add(ActivityDecoder *decoder, const CUpti_ActivityOverhead3 *overhead) {
    if (overhead->start > 0 && overhead->end >= overhead->start)
        decoder->overhead_ns += overhead->end - overhead->start;
    // "Client is responsible for freeing this memory using the free function."
    if (overhead->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL)
        free(overhead->overheadData);
}

static void activity_keep(ActivityDecoder *decoder, const CUpti_Activity *activity) {
    ActivityRecord record;
    if (activity->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        tag_keep(decoder, (const void *)activity);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
        overhead_add(decoder, (const void *)activity);
    } else {
        ActivityClass class = activity_read(activity, &record);
        if (class == ACTIVITY_WORK) record_keep(decoder, &record);
        if (class == ACTIVITY_INCOMPLETE) decoder->num_dropped++;
    }
}

void activity_decode(ActivityDecoder *decoder, CuptiNextRecord next, uint8_t *buffer,
                     size_t valid_bytes) {
    CUpti_Activity *activity = NULL;
    CUptiResult result;
    while ((result = next(buffer, valid_bytes, &activity)) == CUPTI_SUCCESS)
        activity_keep(decoder, activity);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) decoder->num_dropped++;
}

// --- Take

static int by_start(const void *a, const void *b) {
    const ActivityRecord *left = a, *right = b;
    if (left->start_ns != right->start_ns) return left->start_ns < right->start_ns ? -1 : 1;
    if (left->correlation_id != right->correlation_id)
        return left->correlation_id < right->correlation_id ? -1 : 1;
    if (left->end_ns != right->end_ns) return left->end_ns < right->end_ns ? -1 : 1;
    return (left->stream > right->stream) - (left->stream < right->stream);
}

ActivityRecords activity_decoder_take(ActivityDecoder *decoder) {
    for (size_t i = 0; i < decoder->num_records; i++)
        decoder->records[i].tag = tag_find(decoder, decoder->records[i].correlation_id);
    if (decoder->num_records > 0)
        qsort(decoder->records, decoder->num_records, sizeof *decoder->records, by_start);
    ActivityRecords answer = {
        .records = decoder->records,
        .num_records = decoder->num_records,
        .num_dropped = decoder->num_dropped,
        .overhead_ns = decoder->overhead_ns,
    };
    arena_free(&decoder->taken);
    decoder->taken = decoder->batch;
    decoder->batch = (Arena){0};
    decoder->records = NULL;
    decoder->tags = NULL;
    decoder->num_records = decoder->max_records = decoder->num_tags = decoder->max_tags = 0;
    decoder->num_dropped = 0;
    decoder->overhead_ns = 0;
    return answer;
}

void activity_decoder_free(ActivityDecoder *decoder) {
    arena_free(&decoder->taken);
    arena_free(&decoder->batch);
    arena_free(&decoder->kept);
    *decoder = (ActivityDecoder){0};
}
