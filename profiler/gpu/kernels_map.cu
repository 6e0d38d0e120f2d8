// profiler/gpu/kernels_map.cu - operators that treat every element alike: one pack a thread.
#include <curand_kernel.h>

#include "profiler/gpu/pack.cuh"

// Calls map(i) for every pack i.
template <class Map> __global__ void __launch_bounds__(256) map_kernel(Map map, int64_t num_packs) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < num_packs) map(i);
}

template <class Map> static cudaError_t map_launch(const KernelCall *call, Map map, int64_t packs) {
    int64_t blocks = (packs + 255) / 256;
    map_kernel<<<(unsigned)blocks, 256, 0, call->stream>>>(map, packs);
    return cudaGetLastError();
}

static int64_t num_packs(const KernelCall *call) {
    return call->rows * call->columns / PACK;
}

// --- Copies and sums

template <class From, class To> struct Convert {
    const From *x;
    To *y;
    __device__ void operator()(int64_t i) const {
        float v[PACK];
        pack_load(x + i * PACK, v);
        pack_store(y + i * PACK, v);
    }
};

template <class From, class To> static cudaError_t convert(const KernelCall *call) {
    Convert<From, To> map = {(const From *)call->buffers[0], (To *)call->buffers[1]};
    return map_launch(call, map, num_packs(call));
}

cudaError_t kernel_copy(const KernelCall *call) {
    return convert<bf16, bf16>(call);
}

cudaError_t kernel_cast_to_float32(const KernelCall *call) {
    return convert<bf16, float>(call);
}

cudaError_t kernel_cast_from_float32(const KernelCall *call) {
    return convert<float, bf16>(call);
}

struct Sum {
    const bf16 *a, *b;
    bf16 *y;
    __device__ void operator()(int64_t i) const {
        float u[PACK], v[PACK];
        pack_load(a + i * PACK, u);
        pack_load(b + i * PACK, v);
#pragma unroll
        for (int j = 0; j < PACK; j++) v[j] += u[j];
        pack_store(y + i * PACK, v);
    }
};

cudaError_t kernel_add(const KernelCall *call) {
    Sum map = {(const bf16 *)call->buffers[0], (const bf16 *)call->buffers[1],
               (bf16 *)call->buffers[2]};
    return map_launch(call, map, num_packs(call));
}

// --- Activations

// Rows of gate_up are the gate's columns, then those of the other projection.
struct Swiglu {
    const bf16 *gate_up;
    bf16 *y;
    int64_t row_packs;
    __device__ void operator()(int64_t i) const {
        int64_t row = i / row_packs, column = i % row_packs;
        const bf16 *from = gate_up + (2 * row * row_packs + column) * PACK;
        float g[PACK], u[PACK];
        pack_load(from, g);
        pack_load(from + row_packs * PACK, u);
#pragma unroll
        for (int j = 0; j < PACK; j++) u[j] *= g[j] / (1.0f + __expf(-g[j]));
        pack_store(y + i * PACK, u);
    }
};

cudaError_t kernel_swiglu_forward(const KernelCall *call) {
    Swiglu map = {(const bf16 *)call->buffers[0], (bf16 *)call->buffers[1], call->columns / PACK};
    return map_launch(call, map, num_packs(call));
}

struct SwigluBackward {
    const bf16 *dy, *gate_up;
    bf16 *dgate_up;
    int64_t row_packs;
    __device__ void operator()(int64_t i) const {
        int64_t row = i / row_packs, column = i % row_packs;
        int64_t at = (2 * row * row_packs + column) * PACK;
        float d[PACK], g[PACK], u[PACK];
        pack_load(dy + i * PACK, d);
        pack_load(gate_up + at, g);
        pack_load(gate_up + at + row_packs * PACK, u);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float sigmoid = 1.0f / (1.0f + __expf(-g[j]));
            float silu = g[j] * sigmoid;
            g[j] = d[j] * u[j] * (sigmoid + silu * (1.0f - sigmoid));
            u[j] = d[j] * silu;
        }
        pack_store(dgate_up + at, g);
        pack_store(dgate_up + at + row_packs * PACK, u);
    }
};

cudaError_t kernel_swiglu_backward(const KernelCall *call) {
    SwigluBackward map = {(const bf16 *)call->buffers[0], (const bf16 *)call->buffers[1],
                          (bf16 *)call->buffers[2], call->columns / PACK};
    return map_launch(call, map, num_packs(call));
}

// gelu(x) = x / 2 (1 + tanh(a (x + b x^3))), a = sqrt(2 / pi), b = 0.044715.
constexpr float GELU_A = 0.7978845608028654f, GELU_B = 0.044715f;

struct Gelu {
    const bf16 *x;
    bf16 *y;
    __device__ void operator()(int64_t i) const {
        float v[PACK];
        pack_load(x + i * PACK, v);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float t = tanhf(GELU_A * (v[j] + GELU_B * v[j] * v[j] * v[j]));
            v[j] = 0.5f * v[j] * (1.0f + t);
        }
        pack_store(y + i * PACK, v);
    }
};

cudaError_t kernel_gelu_forward(const KernelCall *call) {
    Gelu map = {(const bf16 *)call->buffers[0], (bf16 *)call->buffers[1]};
    return map_launch(call, map, num_packs(call));
}

struct GeluBackward {
    const bf16 *dy, *x;
    bf16 *dx;
    __device__ void operator()(int64_t i) const {
        float d[PACK], v[PACK];
        pack_load(dy + i * PACK, d);
        pack_load(x + i * PACK, v);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float square = v[j] * v[j];
            float t = tanhf(GELU_A * v[j] * (1.0f + GELU_B * square));
            float slope = GELU_A * (1.0f + 3.0f * GELU_B * square);
            d[j] *= 0.5f * (1.0f + t) + 0.5f * v[j] * (1.0f - t * t) * slope;
        }
        pack_store(dx + i * PACK, d);
    }
};

cudaError_t kernel_gelu_backward(const KernelCall *call) {
    GeluBackward map = {(const bf16 *)call->buffers[0], (const bf16 *)call->buffers[1],
                        (bf16 *)call->buffers[2]};
    return map_launch(call, map, num_packs(call));
}

// --- Positions, dropout, embedding

// Turns the pairs (j, j + half) of each head; a thread has one pack of each half.
struct Rope {
    const bf16 *x;
    const float *cosine, *sine; // [rows][half]
    bf16 *y;
    int64_t row_packs; // of one half of all heads of a row
    __device__ void operator()(int64_t i) const {
        constexpr int half = MEMORY_HEAD / 2;
        int64_t row = i / row_packs;
        int column = (int)(i % row_packs) * PACK; // among the first halves
        int head = column / half, angle = column % half;
        int64_t at = 2 * row * row_packs * PACK + (int64_t)head * MEMORY_HEAD + angle;
        float a[PACK], b[PACK], c[PACK], s[PACK];
        pack_load(x + at, a);
        pack_load(x + at + half, b);
        pack_load(cosine + row * half + angle, c);
        pack_load(sine + row * half + angle, s);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            float turned = a[j] * c[j] - b[j] * s[j];
            b[j] = b[j] * c[j] + a[j] * s[j];
            a[j] = turned;
        }
        pack_store(y + at, a);
        pack_store(y + at + half, b);
    }
};

cudaError_t kernel_rope(const KernelCall *call) {
    Rope map = {(const bf16 *)call->buffers[0], (const float *)call->buffers[1],
                (const float *)call->buffers[2], (bf16 *)call->buffers[3],
                call->columns / 2 / PACK};
    return map_launch(call, map, num_packs(call) / 2);
}

struct DropoutAdd {
    const bf16 *x, *residual;
    bf16 *y;
    uint8_t *mask;
    __device__ void operator()(int64_t i) const {
        curandStatePhilox4_32_10_t state;
        curand_init(1234, (unsigned long long)i, 0, &state);
        float4 low = curand_uniform4(&state), high = curand_uniform4(&state);
        float draw[PACK] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        float v[PACK], r[PACK];
        pack_load(x + i * PACK, v);
        pack_load(residual + i * PACK, r);
        uint64_t kept = 0;
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            bool keep = draw[j] <= MEMORY_DROPOUT_KEEP;
            if (keep) r[j] += v[j] * (1.0f / MEMORY_DROPOUT_KEEP);
            kept |= (uint64_t)keep << (8 * j);
        }
        pack_store(y + i * PACK, r);
        *reinterpret_cast<uint64_t *>(mask + i * PACK) = kept;
    }
};

cudaError_t kernel_dropout_add(const KernelCall *call) {
    DropoutAdd map = {(const bf16 *)call->buffers[0], (const bf16 *)call->buffers[1],
                      (bf16 *)call->buffers[2], (uint8_t *)call->buffers[3]};
    return map_launch(call, map, num_packs(call));
}

struct Embedding {
    const int32_t *tokens;
    const bf16 *table;
    bf16 *y;
    int64_t row_packs;
    __device__ void operator()(int64_t i) const {
        int64_t from = tokens[i / row_packs] * row_packs + i % row_packs;
        reinterpret_cast<uint4 *>(y)[i] = reinterpret_cast<const uint4 *>(table)[from];
    }
};

cudaError_t kernel_embedding_forward(const KernelCall *call) {
    Embedding map = {(const int32_t *)call->buffers[0], (const bf16 *)call->buffers[1],
                     (bf16 *)call->buffers[2], call->columns / PACK};
    return map_launch(call, map, num_packs(call));
}

struct EmbeddingBackward {
    const int32_t *tokens;
    const bf16 *dy;
    float *dtable;
    int64_t row_packs;
    __device__ void operator()(int64_t i) const {
        float v[PACK];
        pack_load(dy + i * PACK, v);
        float *to = dtable + (tokens[i / row_packs] * row_packs + i % row_packs) * PACK;
#if __CUDA_ARCH__ >= 900
        atomicAdd(reinterpret_cast<float4 *>(to), make_float4(v[0], v[1], v[2], v[3]));
        atomicAdd(reinterpret_cast<float4 *>(to) + 1, make_float4(v[4], v[5], v[6], v[7]));
#else
#pragma unroll
        for (int j = 0; j < PACK; j++) atomicAdd(to + j, v[j]);
#endif
    }
};

cudaError_t kernel_embedding_backward(const KernelCall *call) {
    EmbeddingBackward map = {(const int32_t *)call->buffers[0], (const bf16 *)call->buffers[1],
                             (float *)call->buffers[2], call->columns / PACK};
    return map_launch(call, map, num_packs(call));
}

// --- Optimizer

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
struct Adamw {
    const float *gradient;
    float *master, *moment1, *moment2;
    bf16 *weight;
    __device__ void operator()(int64_t i) const {
        float g[PACK], p[PACK], m[PACK], v[PACK];
        pack_load(gradient + i * PACK, g);
        pack_load(master + i * PACK, p);
        pack_load(moment1 + i * PACK, m);
        pack_load(moment2 + i * PACK, v);
#pragma unroll
        for (int j = 0; j < PACK; j++) {
            m[j] = MEMORY_ADAM_BETA1 * m[j] + (1.0f - MEMORY_ADAM_BETA1) * g[j];
            v[j] = MEMORY_ADAM_BETA2 * v[j] + (1.0f - MEMORY_ADAM_BETA2) * g[j] * g[j];
            float size = sqrtf(v[j] / MEMORY_ADAM_CORRECTION2) + MEMORY_ADAM_EPSILON;
            float step = m[j] / MEMORY_ADAM_CORRECTION1 / size + MEMORY_ADAM_DECAY * p[j];
            p[j] -= MEMORY_ADAM_RATE * step;
        }
        pack_store(master + i * PACK, p);
        pack_store(moment1 + i * PACK, m);
        pack_store(moment2 + i * PACK, v);
        pack_store(weight + i * PACK, p);
    }
};

cudaError_t kernel_adamw(const KernelCall *call) {
    Adamw map = {(const float *)call->buffers[0], (float *)call->buffers[1],
                 (float *)call->buffers[2], (float *)call->buffers[3], (bf16 *)call->buffers[4]};
    return map_launch(call, map, num_packs(call));
}

cudaError_t kernel_memset(const KernelCall *call) {
    size_t bytes = (size_t)call->rows * (size_t)call->columns * sizeof(float);
    return cudaMemsetAsync(call->buffers[0], 0, bytes, call->stream);
}
