// profiler/cupti/activity_decode.h - from the bytes of CUPTI's buffers to records with their tags.
//
// Touches no CUDA: the walk over a buffer is a function pointer, so that made-up buffers can be
// read (tests/profiler/made_up_buffer.h). A record and what tells its tag may come in any order and
// in different buffers.
// Source: CUPTI 13.0, cupti_activity.h: CUpti_ActivityKernel10, Memcpy6, Memset4, Overhead3,
//         ExternalCorrelation (of kind CUSTOM0, which precedes each record of an API call made
//         under a tag and names that call's correlation id).
#pragma once

#include "base/arena.h"
#include "profiler/activity.h"
#include "profiler/cupti/cupti_library.h"

typedef struct ActivityName ActivityName;
typedef struct ActivityTag ActivityTag;

typedef struct {
    Arena kept;  // names, for the decoder's lifetime
    Arena batch; // records and tags since the last take
    Arena taken; // those of the last take
    ActivityRecord *records;
    size_t num_records, max_records;
    ActivityTag *tags; // open addressing by correlation; a power of two
    size_t num_tags, max_tags;
    ActivityName *names; // open addressing by text; a power of two
    size_t num_names, max_names;
    size_t num_dropped;
    uint64_t overhead_ns;
} ActivityDecoder; // zero-initialise

// Reads a whole buffer; stops at the first record that is not whole, which counts as dropped.
void activity_decode(ActivityDecoder *decoder, CuptiNextRecord next, uint8_t *buffer,
                     size_t valid_bytes);

// Sorted records with their tags; valid until the next take. The decoder goes on, empty.
ActivityRecords activity_decoder_take(ActivityDecoder *decoder);

void activity_decoder_free(ActivityDecoder *decoder);
