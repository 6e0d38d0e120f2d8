// profiler/gpu/gpu_kernels.h - the CUDA kernels, behind functions that C can call.
//
// All arrays are aligned to 16 bytes; rows x columns are in row-major order and columns a multiple
// of 8. Each function only launches and returns what the launch said.
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/memory_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// One call of an operator of MEMORY_OPS.
typedef struct {
    void *buffers[MEMORY_MAX_BUFFERS];
    int64_t rows, columns;
    int num_sms;
    cudaStream_t stream;
} KernelCall;

typedef cudaError_t (*KernelLaunch)(const KernelCall *call);

// kernels_map.cu: element by element
cudaError_t kernel_copy(const KernelCall *call);
cudaError_t kernel_add(const KernelCall *call);
cudaError_t kernel_cast_to_float32(const KernelCall *call);
cudaError_t kernel_cast_from_float32(const KernelCall *call);
cudaError_t kernel_swiglu_forward(const KernelCall *call);
cudaError_t kernel_swiglu_backward(const KernelCall *call);
cudaError_t kernel_gelu_forward(const KernelCall *call);
cudaError_t kernel_gelu_backward(const KernelCall *call);
cudaError_t kernel_rope(const KernelCall *call);
cudaError_t kernel_dropout_add(const KernelCall *call);
cudaError_t kernel_embedding_forward(const KernelCall *call);
cudaError_t kernel_embedding_backward(const KernelCall *call);
cudaError_t kernel_adamw(const KernelCall *call);
cudaError_t kernel_memset(const KernelCall *call);

// kernels_norm.cu: columns at most 16384
cudaError_t kernel_rmsnorm_forward(const KernelCall *call);
cudaError_t kernel_rmsnorm_backward(const KernelCall *call);
cudaError_t kernel_layernorm_forward(const KernelCall *call);
cudaError_t kernel_layernorm_backward(const KernelCall *call);

// kernels_rows.cu: sums over rows; softmax: columns at most 16384
cudaError_t kernel_softmax_forward(const KernelCall *call);
cudaError_t kernel_softmax_backward(const KernelCall *call);
cudaError_t kernel_cross_entropy_forward(const KernelCall *call);
cudaError_t kernel_cross_entropy_backward(const KernelCall *call);
cudaError_t kernel_gradient_norm(const KernelCall *call);

// kernels_tools.cu

// Fills an array with pseudo-random numbers (not FILL_ZERO); limit bounds whole numbers.
cudaError_t kernel_fill(void *array, Number dtype, size_t num_elements, BufferFill fill, int limit,
                        uint64_t seed, cudaStream_t stream);

// Holds the stream until gate[0] >= ticket, but not longer than most_ns; then it counts up gate[1].
cudaError_t kernel_gate(unsigned *gate, unsigned ticket, uint64_t most_ns, cudaStream_t stream);

cudaError_t kernel_empty(cudaStream_t stream);

// Does nothing for so long.
cudaError_t kernel_pause(uint64_t pause_ns, cudaStream_t stream);

// kernels_beside.cu

enum { BESIDE_PART_BYTES = 16 << 20, BESIDE_PIECE_BYTES = 64 << 10 };

// On the device, zeros before the kernel begins.
typedef struct {
    unsigned started; // blocks that run
    unsigned stop;    // set by whoever wants them to end
    unsigned late;    // they ended by themselves
    unsigned unused;
    unsigned long long num_pieces; // that all blocks have copied
} BesideState;

// num_blocks blocks that each copy a part of their own over and over, until state->stop or for
// most_ns at most. from, to: [num_blocks] parts.
cudaError_t kernel_beside(const void *from, void *to, int num_blocks, BesideState *state,
                          uint64_t most_ns, cudaStream_t stream);

// Holds the stream until all those blocks run, but not longer than most_ns.
cudaError_t kernel_await(const BesideState *state, int num_blocks, uint64_t most_ns,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif
