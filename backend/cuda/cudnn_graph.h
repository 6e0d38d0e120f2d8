// backend/cuda/cudnn_graph.h - graphs of operations for cuDNN, and the plans that it makes of them.
//
// cuDNN is opened at run time and may be missing. It has no single operation for attention with a
// mask (before 9.21), but knows the graph of its steps, and runs that as one kernel.
//
// Source: cuDNN 9.19 backend API; NVIDIA/cudnn-frontend for the steps that it knows.
#pragma once

#include <cudnn_backend.h>
#include <cudnn_version.h>
#include <stdbool.h>
#include <stdint.h>

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

typedef struct {
#define FIELD(name) __typeof__(name) *name;
    CUDNN_FUNCTIONS(FIELD)
#undef FIELD
} Cudnn;

// NULL, with why, where there is none that this file knows. [300]
const Cudnn *cudnn_open(char *why);

typedef cudnnBackendDescriptor_t CudnnNode;

typedef struct {
    int64_t dims[4], strides[4];
} CudnnShape;

enum { CUDNN_MAX_DESCRIPTORS = 192, CUDNN_MAX_OPERATIONS = 48 };

// Its first failure is kept, what follows it does nothing and returns NULL.
typedef struct {
    const Cudnn *cudnn;
    cudnnHandle_t handle;
    CudnnNode device; // DEVICEPROP of a GPU to plan for without a handle; NULL: the handle's
    cudnnStatus_t status;
    char failure[600];
    CudnnNode descriptors[CUDNN_MAX_DESCRIPTORS]; // all, to be destroyed
    CudnnNode operations[CUDNN_MAX_OPERATIONS];
    int num_descriptors, num_operations;
    int64_t last_uid; // of tensors that are not written anywhere
} CudnnGraph;

// uids of callers, from 1 on; what is kept inside the graph has larger ones.
enum { CUDNN_FIRST_VIRTUAL_UID = 1000 };

void cudnn_graph_begin(CudnnGraph *graph, const Cudnn *cudnn, cudnnHandle_t handle);
void cudnn_graph_free(CudnnGraph *graph);

// An array of the caller's.
CudnnNode cudnn_tensor(CudnnGraph *graph, int64_t uid, cudnnDataType_t type, CudnnShape shape);
// A float in the host's memory.
CudnnNode cudnn_scalar(CudnnGraph *graph, int64_t uid);
// An array inside the graph.
CudnnNode cudnn_virtual(CudnnGraph *graph, cudnnDataType_t type, CudnnShape shape);

// y = mode(x, b); b and select NULL where the mode has none. precision: of the arithmetic.
void cudnn_pointwise(CudnnGraph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t precision,
                     CudnnNode x, CudnnNode b, CudnnNode select, CudnnNode y);
// y = index of each element along an axis.
void cudnn_index(CudnnGraph *graph, int64_t axis, CudnnNode x, CudnnNode y);
void cudnn_matmul(CudnnGraph *graph, CudnnNode a, CudnnNode b, CudnnNode c);
void cudnn_reduce(CudnnGraph *graph, cudnnReduceTensorOp_t operator, CudnnNode x, CudnnNode y);
void cudnn_reshape(CudnnGraph *graph, CudnnNode x, CudnnNode y);

// The plan that cuDNN's heuristic names first among those that it can build; NULL after a failure.
// The caller destroys it, after which the graph may be gone.
CudnnNode cudnn_plan(CudnnGraph *graph, int64_t *workspace_bytes);
