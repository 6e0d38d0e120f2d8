// tests/checked_gpu/checked_gpu.h - a CUDA runtime without a GPU that does what is queued as late
// as it may, in an order of its own, and finds what a GPU would only sometimes punish.
//
// The host code of the CUDA backend (backend/cuda/*.c) is compiled with it as it stands; kernels
// are the CPU's in fp32 (kernels.c), products OpenBLAS's (cublaslt.c), groups MPI's (nccl.c). Found
// are, of each call that is queued:
//   - arrays outside of what was allocated, given back before the call, or not written by anybody;
//   - two streams that use one array, one of them writing, with nothing that orders them (vector
//     clocks: Mattern, "Virtual Time and Global States of Distributed Systems", 1989);
//   - memory given back while another stream's calls may still use it;
//   - copies from memory that is not pinned, waits for events that nobody recorded;
//   - calls that wait for all that is queued (cudaMalloc, cudaFree) while messages are under way;
//   - waits for what does not come to its end within a minute;
//   - members of a group that do not call the same thing with the same counts in the same order;
// and at the end streams, events and memory that were not given back. Memory of the device can be
// read and written only while queued work runs: a host that touches it dies of SIGSEGV. What is
// allocated and not written holds NaN.
//
// A finding is printed and ends the process with CHECKED_EXIT, or is counted (checked_count).
//
// CHECKED_GPU_PRINT, set: what is counted is printed as well. CHECKED_GPU has members joined by
// commas:
//   seed=N      of the order; else 1
//   memory=MIB  of the device; else 1024
//   gpus=N      there are so many; else 64
//   nccl=K      NCCL refuses calls of OpKind K (nccl.c)
//   after=N     but for the first N of them
//   lose=K      of the waits of a stream for an event that order anything, the K-th is forgotten
//   fault=K     the K-th call that is queued fails when it runs
#pragma once

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKED_EXIT = 86, MOST_STREAMS = 32, MOST_ACCESSES = 64 };

// What a call does to an array: `planes` times `rows` pieces of `bytes`.
typedef struct {
    const char *begin;
    size_t bytes;
    int64_t rows, stride_bytes;
    int64_t planes, plane_stride_bytes;
    bool read, write;
    bool rest; // which part of the allocation from `begin` on, indices on the device say
} Access;

typedef struct {
    Access list[MOST_ACCESSES];
    int num;
} Accesses;

// Arrays without an address or of no bytes are left out.
void reads(Accesses *accesses, const void *array, int64_t bytes);
void writes(Accesses *accesses, const void *array, int64_t bytes);
void updates(Accesses *accesses, const void *array, int64_t bytes); // reads and writes
void accesses_add(Accesses *accesses, Access access);

// Queues a call, which is done on a copy of `arguments`: by run, or by poll, which is called again
// and again until it says that it is done and does not wait for other processes.
typedef struct {
    const char *what;
    Accesses accesses;
    void (*run)(void *arguments);
    bool (*poll)(void *arguments);
    const void *arguments;
    size_t bytes;
} Call;
cudaError_t checked_queue(cudaStream_t stream, const Call *call);

// The number of a member of CHECKED_GPU; -1: it is not there.
int64_t checked_option(const char *name);

void checked_find(const char *format, ...) __attribute__((format(printf, 1, 2)));

// From now on findings are counted, not punished; the count so far, which begins anew.
int checked_count(void);

// How often cuBLASLt was asked for an algorithm so far.
int checked_num_asked(void);

// --- work.c: streams and events

// Counts of calls of each stream that came before.
typedef struct {
    uint64_t of[MOST_STREAMS];
} Clock;

struct CUevent_st {
    bool timed, destroyed;
    uint64_t num_recorded, num_passed; // times
    int num_queued;                    // records and waits that are still to run
    Clock clock;                       // of the last record
    double at_s;                       // it passed
};

typedef struct Work Work;

struct CUstream_st {
    int index;
    Clock clock; // of what is queued here so far
    Work *first, *last;
};

// What comes next on a stream comes after all that the host knows to be over.
Clock *checked_tick(cudaStream_t stream);
// The K-th call fails; cudaSuccess until then.
cudaError_t checked_failure(void);
// Finds what was not given back: streams, events, arrays. The end of a process calls it too.
void checked_left(void);
// Runs all that is queued.
void checked_drain(void);
// Whether anything is queued that waits for other processes.
bool checked_waits(void);

// --- memory.c

// Opens or shuts the memory of the device to the host.
void memory_open(bool open);
// Checks a call's arrays and notes them.
void memory_check(cudaStream_t stream, const Call *call);
bool memory_is_pinned(const void *array, size_t bytes);
int memory_num_left(void);
