// backend/backend.h - one device as one process of a run uses it: memory, streams, events, products
// and kernels. backend/comm.h has what several processes do together.
//
// Everything a decoder's training step computes is one of the functions of BackendTable. Arrays are
// row-major. Three formats, chosen when the device is opened:
//   act   of activations and of the weights that products read: bf16, fp32 or fp64
//   wide  of statistics, losses, gradients of weights, masters and moments: fp32, or fp64 with fp64
//   int32 of tokens, positions and indices
//
// Work is queued on a stream and done in its order; the host does not wait. The functions that
// queue work return nothing: the first failure is kept, what follows it is not run, and
// backend_sync (or whatever returns a Status next) tells of it. alloc returns NULL after a failure.
//
// Formulas: Vaswani et al., arXiv:1706.03762 (attention); Dao, "FlashAttention-2",
// arXiv:2307.08691, section 3.1 (its blocks and backward); Zhang and Sennrich, NeurIPS 2019
// (RMSNorm); Ba et al., arXiv:1607.06450 (LayerNorm); Su et al., arXiv:2104.09864 (rope); Shazeer,
// arXiv:2002.05202 (gated activations); Loshchilov and Hutter, arXiv:1711.05101 (AdamW).
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Changes with every change of this header, of comm.h or of cuda/cuda_plugin.h.
#define BACKEND_ABI 6

typedef enum { DTYPE_BF16, DTYPE_FP32, DTYPE_FP64, DTYPE_INT32, NUM_DTYPES } Dtype;

const char *dtype_name(Dtype dtype); // "bf16", "fp32", "fp64", "int32"
size_t dtype_bytes(Dtype dtype);     // of one element

typedef struct BackendTable BackendTable;
typedef struct BackendStream BackendStream; // NULL is never one: backend->stream is the first
typedef struct BackendEvent BackendEvent;

// The head of what each kind of backend keeps; its own fields follow.
typedef struct Backend {
    const BackendTable *table;
    Dtype act, wide;
    BackendStream *stream; // the compute stream
    char name[256];        // of the device: "NVIDIA H100 80GB HBM3", "CPU, OpenBLAS 0.3.21"
    size_t memory_bytes;   // of the device
    size_t allocated_bytes, peak_bytes; // by alloc, now and at most since reset_peak
    Status failure;                     // the first; code STATUS_OK while all is well
} Backend;

// --- Products

// Whose product it is; m, n, k are those of the product itself, out [m][n].
typedef enum {
    PRODUCT_FORWARD,         // y = x W^T + bias:  a is x [m][k],  b is W [n][k]
    PRODUCT_BACKWARD_INPUT,  // dx = dy W:         a is dy [m][k], b is W [k][n]
    PRODUCT_BACKWARD_WEIGHT, // dW = dy^T x:       a is dy [k][m], b is x [k][n]
} ProductLayout;

typedef struct {
    ProductLayout layout;
    int64_t m, n, k;
    const void *a, *b; // act
    const void *bias;  // act [n], of the forward; NULL: none
    void *out;         // act, or wide
    bool out_wide;
    bool accumulate; // adds to out
    // The rows that are summed over or written (k of a weight's gradient, else m) differ from call
    // to call, as a router has it. So what a device plans for one number may serve for those near
    // it.
    bool rows_vary;
} Product;

// --- Norms, one row a token

typedef enum { NORM_RMS, NORM_LAYER } NormOp;

typedef struct {
    NormOp op;
    int64_t rows, columns;
    double epsilon;
    const void *x;      // act [rows][columns]
    const void *add;    // act, or NULL: what is normalised is x + add (a residual), and
    void *sum;          // act: the sum is kept here; may be x or add; unused where add is NULL
    const void *weight; // act [columns]
    const void *bias;   // act [columns]; NULL: none
    void *y;            // act [rows][columns]
    void *mean, *rstd;  // wide [rows]; mean unused by NORM_RMS
} NormForward;

typedef struct {
    NormOp op;
    int64_t rows, columns;
    const void *dy, *x;      // act; x is what was normalised: the sum where there was one
    const void *weight;      // act [columns]
    const void *mean, *rstd; // wide [rows]
    const void *add;         // act, or NULL: added to dx (the gradient that went past the branch)
    void *dx;                // act; may be dy or add
    void *dweight, *dbias;   // wide [columns], added to; dbias NULL: none
} NormBackward;

// --- Activations

typedef enum {
    ACTIVATION_SILU_GATED, // y = silu(x[:width]) x[width:]
    ACTIVATION_GELU_GATED, // y = gelu(x[:width]) x[width:], as below
    ACTIVATION_GELU,       // y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    ACTIVATION_RELU,
    NUM_ACTIVATIONS
} ActivationOp;

typedef struct {
    ActivationOp op;
    int64_t rows, width;
    const void *x;  // act [rows][2 width] of gated ones, else [rows][width]
    void *y;        // act [rows][width]: of the forward
    const void *dy; // act [rows][width]: of the backward
    void *dx;       // act, as x; may be x
} Activation;

// --- Attention

// What is done to rotary frequencies for contexts longer than a model was first trained on
// (config/model/model_functions.h).
typedef struct {
    double factor;                          // frequencies are divided by it; 0: as they are
    double low_wavelength, high_wavelength; // tokens: longer waves than low_wavelength wholly,
                                            // shorter ones than high_wavelength not at all,
                                            // others in part; both 0: all waves
} RopeScaling;

// Rotates the two halves of each head by the token's position, in place. The pair (a, b) at column
// i of the halves becomes (a cos - b sin, a sin + b cos) of angle position frequency_i, where
// frequency_i is theta^(-2 i / head_dim), scaled (backend/rope_scaling.h).
typedef struct {
    int64_t tokens;
    int heads, head_dim;
    void *x;                  // act; head h of token t begins at x + t stride + h head_dim
    int64_t stride;           // elements from token to token
    const int32_t *positions; // [tokens], on the device
    double theta;
    RopeScaling scaling;
    bool inverse; // by the negative angle: the backward
} Rope;

// Softmax(scale q k^T + mask) v of `batch` sequences. Element d of head h of token t of sequence b
// is at b batch_stride + t stride + h head_dim + d. Query head h reads head h / (heads / kv_heads)
// of keys and values. Causal: query t sees keys up to t + query_first; where a query sees no key,
// its output is 0 and its lse -infinity.
typedef struct {
    int batch, heads, kv_heads, head_dim;
    int64_t num_queries, num_keys;
    bool causal;
    int64_t query_first; // position of query 0 less that of key 0
    int64_t window;      // a query sees so many keys up to its own position; 0: all
    double scale;
    const void *q, *k, *v;              // act
    int64_t q_stride, q_batch_stride;   // also of dq
    int64_t kv_stride, kv_batch_stride; // of k and v, dk and dv
    void *o;                            // act: written by the forward, read by the backward
    int64_t o_stride, o_batch_stride;   // also of dout
    void *lse;                          // wide [batch][heads][lse_stride]: log of the sum of exp
    int64_t lse_stride;                 // >= num_queries
    // Of the backward. With parts of the keys, o and lse are those over all keys.
    const void *dout;
    void *dq, *dk, *dv; // act, written
} Attention;

// Joins the attention of some queries over two sets of keys: (o_sum, lse_sum) takes in (o, lse).
typedef struct {
    int batch, heads, head_dim;
    int64_t num_queries;
    bool first;    // o_sum and lse_sum hold nothing yet
    const void *o; // act, with strides as of Attention
    int64_t o_stride, o_batch_stride;
    const void *lse; // wide [batch][heads][lse_stride]
    void *o_sum;     // wide [batch][num_queries][heads][head_dim], distances as below
    int64_t sum_stride, sum_batch_stride;
    void *lse_sum; // wide [batch][heads][lse_stride]
    int64_t lse_stride;
} AttentionMerge;

// --- Vocabulary

typedef struct {
    int64_t rows, columns;
    const int32_t *tokens; // [rows]
    const void *table;     // act [num_rows][columns]: rows first_row .. of the word table
    int64_t first_row, num_rows;
    const void *positions_table;     // act [..][columns], added; NULL: none
    const int32_t *positions;        // [rows], of that table
    void *y;                         // act [rows][columns]: of the forward; 0 for rows of others
    const void *dy;                  // act: of the backward
    void *dtable, *dpositions_table; // wide, added to; dpositions_table NULL: none
} Embedding;

// Cross entropy of a target among the columns of all ranks, of which this one has num_columns from
// first_column on, each row `stride` apart (columns beyond are padding: their gradient is 0).
// Alone: cross_entropy. Shared: row_max; all-reduce of max; row_sums; all-reduce of sums;
// cross_entropy_shared.
typedef struct {
    int64_t rows, num_columns, stride, first_column;
    void *logits;           // act [rows][stride]; cross_entropy leaves the gradient here
    const int32_t *targets; // [rows], among all columns; negative: this row counts nothing
    double scale;           // of the gradient: 1 / tokens of the step
    void *max;              // wide [rows]
    void *sums;             // wide [2][rows]: sum of exp(x - max); the target's logit or 0
    void *loss;             // wide [1]: the sum of -log p of the rows is added
} CrossEntropy;

// --- Optimizers, element by element; g = gradient gradient_scale

typedef struct {
    int64_t count;
    const void *gradient; // wide
    double gradient_scale;
    void *master;            // wide
    void *weight;            // act: a copy of the new master; NULL or master: none
    void *moment, *variance; // wide
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    int64_t step; // from 1: both moments are divided by 1 - beta^step
} AdamW;

typedef struct {
    int64_t count;
    const void *gradient;
    double gradient_scale;
    void *master, *weight;
    void *momentum; // wide; NULL: none
    double learning_rate, momentum_frac, weight_decay;
} Sgd;

// --- Routing to experts

// The num_chosen largest of each row's softmax (ties: the first), largest first; normalised: their
// weights are divided by their sum. The backward gives the gradient of the logits.
//
// The backward takes each weight times its gradient, g = w dw. Whoever has the weighted row and its
// gradient knows g without the weight. With dw it would be dlogits = w (dw - sum(w dw)) where
// normalised, so g - w sum(g); else g - p sum(g).
typedef struct {
    int64_t rows;
    int num_experts, num_chosen;
    bool normalised;
    bool chosen_given;       // `chosen` is read: whoever calls has chosen, all different in a row
    const void *logits;      // wide [rows][num_experts]
    void *probabilities;     // wide [rows][num_experts]: kept for the backward
    int32_t *chosen;         // [rows][num_chosen]
    void *weights;           // wide [rows][num_chosen]: kept for the backward
    const void *weighted_dw; // wide [rows][num_chosen]: weights times their gradients
    void *dlogits;           // wide [rows][num_experts]
} Router;

// dots[r] = a[r] . b[r], rows of columns.
typedef struct {
    int64_t rows, columns;
    const void *a, *b; // act [rows][columns]
    void *dots;        // wide [rows]
} RowDots;

// y[r] = x[index[r]], rows of columns; index < 0: a row of zeros.
typedef struct {
    int64_t rows, columns;
    bool wide; // the format of x and y; else act
    const void *x;
    const int32_t *index; // [rows]
    void *y;
} GatherRows;

// y[t] = sum over j of weights[t][j] x[index[t][j]]; index < 0: nothing.
// Backward: dx[index[t][j]] = weights[t][j] dy[t], dweights[t][j] = dy[t] . x[index[t][j]].
typedef struct {
    int64_t rows, columns;
    int num_chosen;
    const void *x;
    const int32_t *index; // [rows][num_chosen]
    const void *weights;  // wide [rows][num_chosen]; NULL: all 1
    void *y;
    const void *dy;
    void *dx, *dweights; // dweights NULL: not wanted
} CombineRows;

// --- The table. stream: of this backend. Counts are elements.

struct BackendTable {
    uint32_t abi; // BACKEND_ABI
    void (*close)(Backend *backend);

    void *(*alloc)(Backend *backend, size_t bytes); // 256-byte aligned, not cleared
    void (*release)(Backend *backend, void *array,
                    size_t bytes); // once work that uses it is queued
    void (*upload)(Backend *, void *to, const void *from_host, size_t bytes, BackendStream *);
    Status (*download)(Backend *, void *to_host, const void *from, size_t bytes, BackendStream *);
    void (*copy)(Backend *, void *to, const void *from, size_t bytes, BackendStream *);
    void (*zero)(Backend *, void *to, size_t bytes, BackendStream *);

    BackendStream *(*stream_create)(Backend *backend); // NULL after a failure
    void (*stream_free)(Backend *backend, BackendStream *stream);
    Status (*sync)(Backend *backend); // waits for all streams

    BackendEvent *(*event_create)(Backend *backend, bool timed); // NULL after a failure
    void (*event_free)(Backend *backend, BackendEvent *event);
    void (*event_record)(Backend *, BackendEvent *event, BackendStream *stream);
    void (*event_await)(Backend *, BackendEvent *event, BackendStream *stream);
    // Seconds between two that were recorded and passed.
    double (*event_interval_s)(Backend *, BackendEvent *from, BackendEvent *to);

    void (*product)(Backend *, const Product *call, BackendStream *);
    void (*norm_forward)(Backend *, const NormForward *call, BackendStream *);
    void (*norm_backward)(Backend *, const NormBackward *call, BackendStream *);
    void (*activation_forward)(Backend *, const Activation *call, BackendStream *);
    void (*activation_backward)(Backend *, const Activation *call, BackendStream *);
    void (*rope)(Backend *, const Rope *call, BackendStream *);
    void (*attention_forward)(Backend *, const Attention *call, BackendStream *);
    void (*attention_backward)(Backend *, const Attention *call, BackendStream *);
    void (*attention_merge)(Backend *, const AttentionMerge *call, BackendStream *);
    void (*embedding_forward)(Backend *, const Embedding *call, BackendStream *);
    void (*embedding_backward)(Backend *, const Embedding *call, BackendStream *);
    void (*cross_entropy)(Backend *, const CrossEntropy *call, BackendStream *);
    void (*row_max)(Backend *, const CrossEntropy *call, BackendStream *);
    void (*row_sums)(Backend *, const CrossEntropy *call, BackendStream *);
    void (*cross_entropy_shared)(Backend *, const CrossEntropy *call, BackendStream *);
    void (*adamw)(Backend *, const AdamW *call, BackendStream *);
    void (*sgd)(Backend *, const Sgd *call, BackendStream *);
    void (*router_forward)(Backend *, const Router *call, BackendStream *);
    void (*router_backward)(Backend *, const Router *call, BackendStream *);
    void (*row_dots)(Backend *, const RowDots *call, BackendStream *);
    void (*gather_rows)(Backend *, const GatherRows *call, BackendStream *);
    void (*combine_forward)(Backend *, const CombineRows *call, BackendStream *);
    void (*combine_backward)(Backend *, const CombineRows *call, BackendStream *);

    // y = a + b, act; y may be a or b.
    void (*add)(Backend *, void *y, const void *a, const void *b, int64_t count, BackendStream *);
    // y = scale y, of a format.
    void (*scale)(Backend *, void *y, double scale, Dtype dtype, int64_t count, BackendStream *);
    // Between act and wide; accumulate: adds to `to`, which is then wide.
    void (*cast)(Backend *, void *to, Dtype to_dtype, const void *from, Dtype from_dtype,
                 bool accumulate, int64_t count, BackendStream *);
    // sum[0] += sum of squares; x and sum wide.
    void (*sum_squares)(Backend *, void *sum, const void *x, int64_t count, BackendStream *);
    // sums[columns] += sums over rows of act x [rows][columns]; sums wide.
    void (*sum_rows)(Backend *, void *sums, const void *x, int64_t rows, int64_t columns,
                     BackendStream *);
    // Rows of `bytes` each, to_stride and from_stride bytes apart.
    void (*copy_rows)(Backend *, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                      int64_t rows, int64_t bytes, BackendStream *);
};

// Waits for all that was queued; the first failure since the device was opened.
static inline Status backend_sync(Backend *backend) {
    return backend->table->sync(backend);
}

static inline void backend_reset_peak(Backend *backend) {
    backend->peak_bytes = backend->allocated_bytes;
}
