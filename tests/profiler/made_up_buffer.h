// tests/profiler/made_up_buffer.h - buffers as CUPTI fills them, and the walk over them.
//
// They are made up after the layouts of CUPTI 13.0's headers (cupti_activity.h): none was recorded
// on a GPU, and fields that nobody reads are 0. What CUPTI itself fills in is checked by
// tests/profiler/gpu_program.c, where there is a GPU.
#pragma once

#include <cupti.h>

#include <stddef.h>
#include <stdint.h>

enum { MADE_UP_BYTES = 1 << 16 };

typedef struct {
    _Alignas(8) uint8_t bytes[MADE_UP_BYTES];
    size_t valid_bytes;
} MadeUpBuffer; // zero-initialise

void made_up_kernel(MadeUpBuffer *buffer, const char *name, uint32_t correlation_id,
                    uint64_t start_ns, uint64_t end_ns);
void made_up_copy(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t start_ns, uint64_t end_ns,
                  uint64_t num_bytes);
void made_up_set(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t start_ns, uint64_t end_ns,
                 uint64_t num_bytes);
void made_up_overhead(MadeUpBuffer *buffer, uint64_t start_ns, uint64_t end_ns);
void made_up_tag(MadeUpBuffer *buffer, uint32_t correlation_id, uint64_t tag);
void made_up_call(MadeUpBuffer *buffer, CUpti_ActivityKind kind, uint32_t correlation_id,
                  uint32_t thread, uint64_t start_ns);
void made_up_other(MadeUpBuffer *buffer); // of a kind that nobody reads

// As cuptiActivityGetNextRecord: ends at the first record that is not whole; refuses kind 0.
CUptiResult made_up_next(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record);
