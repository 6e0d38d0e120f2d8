// backend/cuda/kernels_optimizer.cu - AdamW and SGD, each one pass over all it reads and writes.
#include <math.h>

#include "backend/cuda/call.cuh"

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
template <class T> struct AdamwMap {
    const float *gradient;
    float *master, *moment, *variance;
    T *weight; // nullptr: none
    float gradient_scale, beta1, beta2, epsilon;
    float step_size;      // learning rate / (1 - beta1^step)
    float variance_scale; // 1 / (1 - beta2^step)
    float decay;          // learning rate x weight decay
    template <int N> __device__ void run(int64_t i) const {
        float g[N], p[N], m[N], v[N];
        pack_load(gradient + i, g);
        pack_load(master + i, p);
        pack_load(moment + i, m);
        pack_load(variance + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) {
            g[j] *= gradient_scale;
            m[j] += (1.0f - beta1) * (g[j] - m[j]);
            v[j] += (1.0f - beta2) * (g[j] * g[j] - v[j]);
            float size = sqrtf(v[j] * variance_scale) + epsilon;
            p[j] -= step_size * m[j] / size + decay * p[j];
        }
        pack_store(master + i, p);
        pack_store(moment + i, m);
        pack_store(variance + i, v);
        if (weight) pack_store(weight + i, p);
    }
};

template <class T> static cudaError_t adamw(const AdamW *call, cudaStream_t stream) {
    AdamwMap<T> map = {};
    map.gradient = (const float *)call->gradient;
    map.master = (float *)call->master;
    map.moment = (float *)call->moment;
    map.variance = (float *)call->variance;
    map.weight = call->weight == call->master ? nullptr : (T *)call->weight;
    map.gradient_scale = (float)call->gradient_scale;
    map.beta1 = (float)call->beta1;
    map.beta2 = (float)call->beta2;
    map.epsilon = (float)call->epsilon;
    map.step_size = (float)(call->learning_rate / (1 - pow(call->beta1, (double)call->step)));
    map.variance_scale = (float)(1 / (1 - pow(call->beta2, (double)call->step)));
    map.decay = (float)(call->learning_rate * call->weight_decay);
    bool packs = aligned(map.gradient, map.master, map.moment, map.variance, map.weight);
    return map_launch(map, call->count, packs, stream);
}

void cuda_adamw(Backend *backend, const AdamW *call, BackendStream *stream) {
    const void *arrays[] = {call->gradient, call->master, call->weight, call->moment,
                            call->variance};
    if (!cuda_begin(backend, stream, arrays, 5)) return;
    cuda_end(backend, stream, CALL_ACT(backend, adamw, call, stream->handle), "adamw");
}

// As torch.optim.SGD without dampening: the decay is part of the gradient.
template <class T> struct SgdMap {
    const float *gradient;
    float *master, *momentum; // momentum nullptr: none
    T *weight;                // nullptr: none
    float gradient_scale, learning_rate, momentum_frac, weight_decay;
    template <int N> __device__ void run(int64_t i) const {
        float g[N], p[N], m[N];
        pack_load(gradient + i, g);
        pack_load(master + i, p);
        if (momentum) pack_load(momentum + i, m);
#pragma unroll
        for (int j = 0; j < N; j++) {
            g[j] = g[j] * gradient_scale + weight_decay * p[j];
            if (momentum) g[j] = m[j] = momentum_frac * m[j] + g[j];
            p[j] -= learning_rate * g[j];
        }
        pack_store(master + i, p);
        if (momentum) pack_store(momentum + i, m);
        if (weight) pack_store(weight + i, p);
    }
};

template <class T> static cudaError_t sgd(const Sgd *call, cudaStream_t stream) {
    SgdMap<T> map = {};
    map.gradient = (const float *)call->gradient;
    map.master = (float *)call->master;
    map.momentum = (float *)call->momentum;
    map.weight = call->weight == call->master ? nullptr : (T *)call->weight;
    map.gradient_scale = (float)call->gradient_scale;
    map.learning_rate = (float)call->learning_rate;
    map.momentum_frac = (float)call->momentum_frac;
    map.weight_decay = (float)call->weight_decay;
    bool packs = aligned(map.gradient, map.master, map.momentum, map.weight);
    return map_launch(map, call->count, packs, stream);
}

void cuda_sgd(Backend *backend, const Sgd *call, BackendStream *stream) {
    const void *arrays[] = {call->gradient, call->master, call->weight, call->momentum};
    if (!cuda_begin(backend, stream, arrays, 4)) return;
    cuda_end(backend, stream, CALL_ACT(backend, sgd, call, stream->handle), "sgd");
}
