// profiler/probe/probe_work.h - one operator of one shape on the CPU backend, ready to be called.
//
// Arrays are rotated among copies that together hold WORK_ROTATED_BYTES: a call finds them outside
// its core's own cache, as in a step that did other work in between. What the operator before has
// just made is one array for all calls: in the cache as far as it fits, as in a step. What ranks
// send each other was written since it was sent before, as in a step: lines that nobody wrote are
// in both cores' caches, and a gather of them takes half the time.
#pragma once

#include "backend/comm.h"
#include "profiler/cpu_shapes.h"

#define WORK_ROTATED_BYTES 16e6
enum { WORK_MAX_ARRAYS = 9, WORK_MAX_COPIES = 64 };

typedef struct {
    Backend *backend;
    Comm *comm; // of what ranks do together; NULL: this rank stands aside
    const CpuShape *shape;
    size_t bytes[WORK_MAX_ARRAYS]; // of each array
    int num_arrays, num_copies, next;
    void *arrays[WORK_MAX_COPIES][WORK_MAX_ARRAYS];
    int64_t *parts; // [2][ranks]: counts and offsets of an all-to-all
} Work;

// comm: NULL of what a rank does alone.
Status work_prepare(Backend *backend, Comm *comm, const CpuShape *shape, Work *out);
void work_call(Work *work);             // once
bool work_is_renewed(const Work *work); // before every call: of messages of 4 KiB and more
void work_renew(Work *work);            // of all copies
void work_release(Work *work);

// The parts (probe_calls.c). a: the arrays of one copy, in the order of arrays_of (probe_work.c).
void work_alone(Backend *b, const CpuShape *s, void *const *a);
void work_attention(Backend *b, const CpuShape *s, bool backward, void *const *a);
void work_together(Work *work, void *const *a);
