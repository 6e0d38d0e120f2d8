// profiler/wrap_file.h - the file in which one wrapped process leaves what its GPUs did.
//
// A stream of WrapRecord in the byte order of the machine, the first of type WRAP_HEADER; a
// WRAP_NAME is followed by its text, padded to 8 bytes. It is written piece by piece from inside
// a foreign process, so nothing here exits, and memory is bounded by the number of different
// names. A process that is killed leaves a file without its last piece, which is read as far as
// it goes. Touches no CUDA.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "profiler/activity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRAP_FILE_SUFFIX ".records"
#define WRAP_REFUSED_SUFFIX ".refused" // one line: why this process could not be recorded

// --- What is in it

// A call of the CUDA API, which a kernel names by its correlation id.
typedef struct {
    uint64_t start_ns, end_ns; // of CUPTI's clock, as for kernels
    uint32_t correlation_id;
    uint32_t thread;
} WrapCall;

// A range that the program has marked by NVTX with a text beginning in WRAP_RANGE_PREFIX.
typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t thread;
    bool all_threads; // started and ended (nvtxRangeStart), instead of pushed and popped
    const char *text;
} WrapRange;

#define WRAP_RANGE_PREFIX "mw:"

typedef struct {
    int64_t process;
    const ActivityRecord *work; // [num_work], in no order; tags are 0
    const WrapCall *calls;      // [num_calls], from the first range on
    const WrapRange *ranges;    // [num_ranges]
    size_t num_work, num_calls, num_ranges;
    size_t num_dropped; // records that CUPTI or the file had no room for
    uint64_t overhead_ns;
    bool complete; // the process closed it
} WrapLog;

// Reads a file. One that breaks off is not complete; the rest of it counts.
//   fails with STATUS_MACHINE where it cannot be read or is none of ours
Status wrap_log_load(const char *path, Arena *arena, WrapLog *out);

// --- Writing, in the wrapped process; the caller keeps threads apart

typedef struct WrapWriter WrapWriter;

#define WRAP_FILE_MOST_BYTES (4e9) // 80 million records; further ones count as dropped

// NULL where the file cannot be made or there is no memory; errno says why.
WrapWriter *wrap_writer_open(const char *path, double most_bytes);

void wrap_write_work(WrapWriter *writer, const ActivityRecord *work);
void wrap_write_call(WrapWriter *writer, const WrapCall *call);
void wrap_write_range(WrapWriter *writer, const WrapRange *range);
void wrap_write_dropped(WrapWriter *writer, size_t num_dropped);
void wrap_write_overhead(WrapWriter *writer, uint64_t overhead_ns);

// Hands what there is to the operating system, so that it outlives this process.
void wrap_writer_flush(WrapWriter *writer);

// Marks the file complete. Accepts NULL.
void wrap_writer_close(WrapWriter *writer);
