// backend/cuda_backend.h - the backend of an NVIDIA GPU: a library loaded at run time, so that the
// program itself links no CUDA.
#pragma once

#include "backend/comm.h"

// libmeshwright-cuda.so is looked for at MESHWRIGHT_CUDA_BACKEND, beside the program, in ../lib.
// STATUS_MACHINE names what is missing (library, driver, GPU). act: DTYPE_BF16 or DTYPE_FP32.
Status cuda_backend_open(int device, Dtype act, Backend **out);

// The CUstream behind a stream of such a backend, for whoever times what is queued there.
void *cuda_stream_handle(const Backend *backend, const BackendStream *stream);

// Of what that library opens at run time, as each counts; 0: there is none that it can use.
typedef struct {
    int64_t cudnn, nccl;
} CudaVersions;

Status cuda_versions(CudaVersions *out);

enum { CUDA_COMM_ID_BYTES = 128 }; // of an ncclUniqueId

// One process makes the id, all get it (by MPI), all call create at the same time.
Status cuda_comm_id(Backend *backend, unsigned char id[CUDA_COMM_ID_BYTES]);
Status cuda_comm_create(Backend *backend, const unsigned char id[CUDA_COMM_ID_BYTES], int rank,
                        int size, Comm **out);
