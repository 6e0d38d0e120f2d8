// profiler/wrap_record.h - the bytes of a wrap file, for its writer and its reader.
#pragma once

#include <stdint.h>

typedef enum {
    WRAP_HEADER = 0x4d575231, // "MWR1"; value is the process
    WRAP_NAME = 1,            // value is the length of the text that follows
    WRAP_KERNEL,
    WRAP_COPY,
    WRAP_SET,
    WRAP_CALL,
    WRAP_RANGE,     // of one thread
    WRAP_RANGE_ALL, // of all
    WRAP_DROPPED,   // value is their number
    WRAP_OVERHEAD,  // value is ns
    WRAP_END,
} WrapRecordType;

typedef struct {
    uint32_t type;
    uint32_t name; // of WRAP_NAME: the next one, from 0
    uint64_t start_ns, end_ns;
    uint32_t correlation_id, thread;
    uint32_t device, stream;
    uint64_t value; // bytes of a copy or set
} WrapRecord;

_Static_assert(sizeof(WrapRecord) == 48, "no padding");
