// backend/cuda/kernels_activation.cu - gated and plain activations.
#include "backend/cuda/call.cuh"

// gelu(x) = x / 2 (1 + tanh(a (x + b x^3))), a = sqrt(2 / pi), b = 0.044715.
constexpr float GELU_A = 0.7978845608028654f, GELU_B = 0.044715f;

// Value and slope of one activation at x.
template <class T, bool GELU> struct Curve {
    float value, slope;
    __device__ __forceinline__ explicit Curve(float x) {
        if (GELU) {
            float square = x * x, t = tanh_of<T>(GELU_A * x * (1.0f + GELU_B * square));
            value = 0.5f * x * (1.0f + t);
            slope = 0.5f * (1.0f + t) +
                    0.5f * x * (1.0f - t * t) * GELU_A * (1.0f + 3.0f * GELU_B * square);
        } else {
            float sigmoid = 1.0f / (1.0f + exp_of<T>(-x));
            value = x * sigmoid;
            slope = sigmoid + value * (1.0f - sigmoid);
        }
    }
};

// --- Gated: a row of x is the gate's columns, then those of the other projection

template <class T, bool GELU> struct GatedForward {
    const T *x;
    T *y;
    int64_t width;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        const T *from = x + 2 * row * width + column;
        float g[N], u[N];
        pack_load(from, g);
        pack_load(from + width, u);
#pragma unroll
        for (int j = 0; j < N; j++) u[j] *= Curve<T, GELU>(g[j]).value;
        pack_store(y + row * width + column, u);
    }
};

template <class T, bool GELU> struct GatedBackward {
    const T *x, *dy;
    T *dx;
    int64_t width;
    template <int N> __device__ void run(int64_t row, int64_t column) const {
        int64_t at = 2 * row * width + column;
        float d[N], g[N], u[N];
        pack_load(dy + row * width + column, d);
        pack_load(x + at, g);
        pack_load(x + at + width, u);
#pragma unroll
        for (int j = 0; j < N; j++) {
            Curve<T, GELU> curve(g[j]);
            g[j] = d[j] * u[j] * curve.slope;
            u[j] = d[j] * curve.value;
        }
        pack_store(dx + at, g);
        pack_store(dx + at + width, u);
    }
};

// --- Plain

template <class T, bool GELU> struct PlainForward {
    const T *x;
    T *y;
    template <int N> __device__ void run(int64_t i) const {
        float v[N];
        pack_load(x + i, v);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = GELU ? Curve<T, true>(v[j]).value : fmaxf(v[j], 0.0f);
        pack_store(y + i, v);
    }
};

template <class T, bool GELU> struct PlainBackward {
    const T *x, *dy;
    T *dx;
    template <int N> __device__ void run(int64_t i) const {
        float d[N], v[N];
        pack_load(dy + i, d);
        pack_load(x + i, v);
#pragma unroll
        for (int j = 0; j < N; j++)
            d[j] *= GELU ? Curve<T, true>(v[j]).slope : (v[j] > 0.0f ? 1.0f : 0.0f);
        pack_store(dx + i, d);
    }
};

// --- The calls

template <class T, bool GELU>
static cudaError_t gated(const Activation *call, bool forward, cudaStream_t stream) {
    const T *x = (const T *)call->x, *dy = (const T *)call->dy;
    bool rows_aligned = call->width % PACK == 0;
    if (forward) {
        GatedForward<T, GELU> map = {x, (T *)call->y, call->width};
        return rows_launch(map, call->rows, call->width, rows_aligned && aligned(x, call->y),
                           stream);
    }
    GatedBackward<T, GELU> map = {x, dy, (T *)call->dx, call->width};
    return rows_launch(map, call->rows, call->width, rows_aligned && aligned(x, dy, call->dx),
                       stream);
}

template <class T, bool GELU>
static cudaError_t plain(const Activation *call, bool forward, cudaStream_t stream) {
    const T *x = (const T *)call->x, *dy = (const T *)call->dy;
    int64_t count = call->rows * call->width;
    if (forward) {
        PlainForward<T, GELU> map = {x, (T *)call->y};
        return map_launch(map, count, aligned(x, call->y), stream);
    }
    PlainBackward<T, GELU> map = {x, dy, (T *)call->dx};
    return map_launch(map, count, aligned(x, dy, call->dx), stream);
}

template <class T>
static cudaError_t activation(const Activation *call, bool forward, cudaStream_t stream) {
    switch (call->op) {
    case ACTIVATION_SILU_GATED:
        return gated<T, false>(call, forward, stream);
    case ACTIVATION_GELU_GATED:
        return gated<T, true>(call, forward, stream);
    case ACTIVATION_GELU:
        return plain<T, true>(call, forward, stream);
    default:
        return plain<T, false>(call, forward, stream);
    }
}

static void run(Backend *backend, const Activation *call, bool forward, BackendStream *stream) {
    if (!cuda_begin(backend, stream, nullptr, 0)) return;
    cuda_end(backend, stream, CALL_ACT(backend, activation, call, forward, stream->handle),
             "activation");
}

void cuda_activation_forward(Backend *backend, const Activation *call, BackendStream *stream) {
    run(backend, call, true, stream);
}

void cuda_activation_backward(Backend *backend, const Activation *call, BackendStream *stream) {
    run(backend, call, false, stream);
}
