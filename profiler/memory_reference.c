#include "profiler/memory_reference.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
    const MemoryOp *op;
    void *const *buffers;
    size_t rows, columns;
} Call;

static double get(const Call *call, int buffer, size_t i) {
    return number_read(call->op->buffers[buffer].dtype, call->buffers[buffer], i);
}

static void set(const Call *call, int buffer, size_t i, double value) {
    number_write(call->op->buffers[buffer].dtype, call->buffers[buffer], i, value);
}

static size_t num_elements(const Call *call) {
    return call->rows * call->columns;
}

// --- Element by element

static void convert(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++) set(call, 1, i, get(call, 0, i));
}

static void add(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++)
        set(call, 2, i, get(call, 0, i) + get(call, 1, i));
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void swiglu_forward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        for (size_t c = 0; c < call->columns; c++) {
            double gate = get(call, 0, 2 * r * call->columns + c);
            double up = get(call, 0, (2 * r + 1) * call->columns + c);
            set(call, 1, r * call->columns + c, gate * sigmoid(gate) * up);
        }
    }
}

static void swiglu_backward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        for (size_t c = 0; c < call->columns; c++) {
            size_t gate_at = 2 * r * call->columns + c, up_at = gate_at + call->columns;
            double dy = get(call, 0, r * call->columns + c);
            double gate = get(call, 1, gate_at), up = get(call, 1, up_at), s = sigmoid(gate);
            set(call, 2, gate_at, dy * up * s * (1 + gate * (1 - s)));
            set(call, 2, up_at, dy * gate * s);
        }
    }
}

// Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, the form with tanh.
static double gelu_tanh(double x) {
    return tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x));
}

static void gelu_forward(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++) {
        double x = get(call, 0, i);
        set(call, 1, i, 0.5 * x * (1 + gelu_tanh(x)));
    }
}

static void gelu_backward(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++) {
        double x = get(call, 1, i), t = gelu_tanh(x);
        double slope = sqrt(2 / 3.14159265358979323846) * (1 + 3 * 0.044715 * x * x);
        set(call, 2, i, get(call, 0, i) * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope));
    }
}

static void rope(const Call *call) {
    size_t half = MEMORY_HEAD / 2;
    for (size_t r = 0; r < call->rows; r++) {
        for (size_t c = 0; c < call->columns; c++) {
            size_t at = c % MEMORY_HEAD, angle = r * half + at % half, i = r * call->columns + c;
            double x = get(call, 0, i), cosine = get(call, 1, angle), sine = get(call, 2, angle);
            bool first = at < half;
            double other = get(call, 0, first ? i + half : i - half);
            set(call, 3, i, first ? x * cosine - other * sine : x * cosine + other * sine);
        }
    }
}

static void dropout_add(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++) {
        double kept = get(call, 3, i) * get(call, 0, i) / (double)MEMORY_DROPOUT_KEEP;
        set(call, 2, i, get(call, 1, i) + kept);
    }
}

static void embedding_forward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        size_t token = (size_t)get(call, 0, r);
        for (size_t c = 0; c < call->columns; c++)
            set(call, 2, r * call->columns + c, get(call, 1, token * call->columns + c));
    }
}

static void embedding_backward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        size_t token = (size_t)get(call, 0, r);
        for (size_t c = 0; c < call->columns; c++) {
            size_t at = token * call->columns + c;
            set(call, 2, at, get(call, 2, at) + get(call, 1, r * call->columns + c));
        }
    }
}

// --- Row by row

// With a mean it is LayerNorm; weights are buffer 1, biases 2.
static void norm_forward(const Call *call, bool centred) {
    int y = centred ? 3 : 2, rstd_out = centred ? 5 : 3;
    double n = (double)call->columns;
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns;
        double mean = 0, squares = 0;
        for (size_t c = 0; centred && c < call->columns; c++) mean += get(call, 0, row + c) / n;
        for (size_t c = 0; c < call->columns; c++)
            squares += pow(get(call, 0, row + c) - mean, 2) / n;
        double rstd = 1 / sqrt(squares + (double)MEMORY_EPSILON);
        for (size_t c = 0; c < call->columns; c++) {
            double value = (get(call, 0, row + c) - mean) * rstd * get(call, 1, c);
            set(call, y, row + c, value + (centred ? get(call, 2, c) : 0));
        }
        set(call, rstd_out, r, rstd);
        if (centred) set(call, 4, r, mean);
    }
}

static void rmsnorm_forward(const Call *call) {
    norm_forward(call, false);
}

static void layernorm_forward(const Call *call) {
    norm_forward(call, true);
}

// Buffers: dy, x, weight, mean where centred, rstd, dx, dweight (and dbias behind it).
static void norm_backward(const Call *call, bool centred) {
    int rstd_in = centred ? 4 : 3, dx = centred ? 5 : 4, dweight = centred ? 6 : 5;
    double n = (double)call->columns;
    size_t width = (centred ? 2 : 1) * call->columns;
    for (size_t c = 0; c < width; c++) set(call, dweight, c, 0);
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns;
        double mean = centred ? get(call, 3, r) : 0, rstd = get(call, rstd_in, r);
        double mean_g = 0, mean_gh = 0;
        for (size_t c = 0; c < call->columns; c++) {
            double dy = get(call, 0, row + c), h = (get(call, 1, row + c) - mean) * rstd;
            double g = dy * get(call, 2, c);
            if (centred) mean_g += g / n;
            mean_gh += g * h / n;
            set(call, dweight, c, get(call, dweight, c) + dy * h);
            if (centred)
                set(call, dweight, call->columns + c, get(call, dweight, call->columns + c) + dy);
        }
        for (size_t c = 0; c < call->columns; c++) {
            double h = (get(call, 1, row + c) - mean) * rstd;
            double g = get(call, 0, row + c) * get(call, 2, c);
            set(call, dx, row + c, rstd * (g - h * mean_gh - mean_g));
        }
    }
}

static void rmsnorm_backward(const Call *call) {
    norm_backward(call, false);
}

static void layernorm_backward(const Call *call) {
    norm_backward(call, true);
}

static size_t last_seen(const Call *call, size_t row) {
    size_t queries = (size_t)memory_op_queries((int64_t)call->rows, (int64_t)call->columns);
    return call->columns - queries + row % queries;
}

static void softmax_forward(const Call *call) {
    double scale = (double)MEMORY_SOFTMAX_SCALE;
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns, last = last_seen(call, r);
        double most = -INFINITY, sum = 0;
        for (size_t c = 0; c <= last; c++) most = fmax(most, scale * get(call, 0, row + c));
        for (size_t c = 0; c <= last; c++) sum += exp(scale * get(call, 0, row + c) - most);
        for (size_t c = 0; c < call->columns; c++)
            set(call, 1, row + c, c <= last ? exp(scale * get(call, 0, row + c) - most) / sum : 0);
    }
}

static void softmax_backward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns, last = last_seen(call, r);
        double sum = 0;
        for (size_t c = 0; c <= last; c++) sum += get(call, 0, row + c) * get(call, 1, row + c);
        for (size_t c = 0; c < call->columns; c++) {
            double slope = get(call, 1, row + c) * (get(call, 0, row + c) - sum);
            set(call, 2, row + c, c <= last ? (double)MEMORY_SOFTMAX_SCALE * slope : 0);
        }
    }
}

static void cross_entropy_forward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns;
        double most = -INFINITY, sum = 0;
        for (size_t c = 0; c < call->columns; c++) most = fmax(most, get(call, 0, row + c));
        for (size_t c = 0; c < call->columns; c++) sum += exp(get(call, 0, row + c) - most);
        double total = most + log(sum);
        set(call, 2, r, total - get(call, 0, row + (size_t)get(call, 1, r)));
        set(call, 3, r, total);
    }
}

static void cross_entropy_backward(const Call *call) {
    for (size_t r = 0; r < call->rows; r++) {
        size_t row = r * call->columns, target = (size_t)get(call, 1, r);
        for (size_t c = 0; c < call->columns; c++) {
            double share = exp(get(call, 0, row + c) - get(call, 2, r));
            set(call, 4, row + c, get(call, 3, r) * (share - (c == target ? 1 : 0)));
        }
    }
}

// --- Parameters

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
static void adamw(const Call *call) {
    double beta1 = (double)MEMORY_ADAM_BETA1, beta2 = (double)MEMORY_ADAM_BETA2;
    for (size_t i = 0; i < num_elements(call); i++) {
        double g = get(call, 0, i), p = get(call, 1, i);
        double m = beta1 * get(call, 2, i) + (1 - beta1) * g;
        double v = beta2 * get(call, 3, i) + (1 - beta2) * g * g;
        double size = sqrt(v / (double)MEMORY_ADAM_CORRECTION2) + (double)MEMORY_ADAM_EPSILON;
        double step = m / (double)MEMORY_ADAM_CORRECTION1 / size + (double)MEMORY_ADAM_DECAY * p;
        p -= (double)MEMORY_ADAM_RATE * step;
        set(call, 1, i, p);
        set(call, 2, i, m);
        set(call, 3, i, v);
        set(call, 4, i, p);
    }
}

static void gradient_norm(const Call *call) {
    double sum = get(call, 1, 0);
    for (size_t i = 0; i < num_elements(call); i++) sum += pow(get(call, 0, i), 2);
    set(call, 1, 0, sum);
}

static void set_zero(const Call *call) {
    for (size_t i = 0; i < num_elements(call); i++) set(call, 0, i, 0);
}

static const struct {
    const char *op;
    void (*run)(const Call *call);
} REFERENCES[] = {
    {"copy", convert},
    {"add", add},
    {"cast_to_float32", convert},
    {"cast_from_float32", convert},
    {"rmsnorm_forward", rmsnorm_forward},
    {"rmsnorm_backward", rmsnorm_backward},
    {"layernorm_forward", layernorm_forward},
    {"layernorm_backward", layernorm_backward},
    {"softmax_forward", softmax_forward},
    {"softmax_backward", softmax_backward},
    {"swiglu_forward", swiglu_forward},
    {"swiglu_backward", swiglu_backward},
    {"gelu_forward", gelu_forward},
    {"gelu_backward", gelu_backward},
    {"rope", rope},
    {"dropout_add", dropout_add},
    {"embedding_forward", embedding_forward},
    {"embedding_backward", embedding_backward},
    {"cross_entropy_forward", cross_entropy_forward},
    {"cross_entropy_backward", cross_entropy_backward},
    {"adamw", adamw},
    {"gradient_norm", gradient_norm},
    {"memset", set_zero},
};

void memory_reference(const MemoryOp *op, int64_t rows, int64_t columns, void *const *buffers) {
    Call call = {op, buffers, (size_t)rows, (size_t)columns};
    size_t i = 0;
    while (i < sizeof REFERENCES / sizeof *REFERENCES && strcmp(REFERENCES[i].op, op->name) != 0)
        i++;
    assert(i < sizeof REFERENCES / sizeof *REFERENCES);
    REFERENCES[i].run(&call);
}
