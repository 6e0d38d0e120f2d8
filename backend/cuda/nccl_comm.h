// backend/cuda/nccl_comm.h - what the files of groups by NCCL share. nccl_*.c are compiled only
// where nccl.h is.
#pragma once

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_plugin.h"

#include <nccl.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "nccl.h of NCCL 2.18 or later is needed"
#endif

// --- nccl_library.c: NCCL, which is opened at run time

#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRank)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclAllGather)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclReduce)                                                                                  \
    X(ncclBroadcast)                                                                               \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

typedef struct {
    bool loaded;
    char missing[300];
#define FIELD(name) __typeof__(name) *name;
    NCCL_FUNCTIONS(FIELD)
#undef FIELD
    __typeof__(ncclCommSplit) *ncclCommSplit;
} Nccl;

Status nccl_find(const Nccl **out);
Status nccl_error(const Nccl *nccl, ncclResult_t result, const char *what);
ncclDataType_t nccl_type(Dtype dtype);

#define NCCL_TRY(nccl, expression)                                                                 \
    do {                                                                                           \
        ncclResult_t nccl_result_ = (expression);                                                  \
        if (nccl_result_ != ncclSuccess) return nccl_error(nccl, nccl_result_, #expression);       \
    } while (0)

// --- Groups

typedef struct {
    ncclComm_t handle; // of the two ends: 0 sends, 1 receives
    BackendStream *stream;
    bool receives;
} NcclWay;

typedef struct {
    Comm base;
    ncclComm_t handle;
    NcclWay *ways; // [num_ways]; handle NULL: of other ranks
    int num_ways;
} NcclComm;

// --- nccl_ways.c: messages that are under way beside other work; as CommTable has them

Status nccl_open_ways(Comm *comm, const Way *ways, int num_ways);
void nccl_ways_close(NcclComm *comm);
CommRequest *nccl_start(Comm *comm, const Message *message, BackendStream *stream);
bool nccl_finish(Comm *comm, CommRequest *request, bool wait);
