// backend/cuda/cudnn_attention.c - attention by cuDNN, where it is installed and knows the shape;
// attention.cu has the kernels for all else.
//
// The graphs are those of NVIDIA/cudnn-frontend (CompositeSDPANode, CompositeSDPABackwardNode):
// cuDNN recognises them by their steps, so none is left out or joined with another. Its backward
// adds up dq in an order of its own: two runs differ in the last bits.
//   MESHWRIGHT_CUDNN=0      never
//   MESHWRIGHT_CUDNN_LOG=1  tells on stderr what is planned, and what is not and why
#include "backend/cuda/cudnn_attention.h"

#ifndef MESHWRIGHT_WITH_CUDNN

void cudnn_attention_close(CudaBackend *cuda) {
    (void)cuda;
}

bool cudnn_attention(Backend *backend, const Attention *call, bool backward,
                     BackendStream *stream) {
    (void)backend, (void)call, (void)backward, (void)stream;
    return false;
}

#else

#include "backend/cuda/cudnn_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 256, MAX_HEAD = 128 };

// What a plan is made for; its bytes are compared, so it has no gaps and is cleared before.
typedef struct {
    int64_t batch, heads, kv_heads, head_dim, num_queries, num_keys;
    int64_t q_stride, q_batch_stride, kv_stride, kv_batch_stride, o_stride, o_batch_stride;
    int64_t causal, backward;
} Key;

typedef struct {
    Key key;
    CudnnNode plan; // NULL: cuDNN has none
    int64_t workspace_bytes;
} Plan;

struct CudaAttention {
    const Cudnn *cudnn; // NULL: not to be used
    cudnnHandle_t handle;
    bool log;
    int num_plans, num_failed;
    Plan plans[MAX_PLANS];
};

typedef enum {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_LSE,
    UID_SCALE,
    UID_HIDDEN,
    UID_ONE,
    UID_DOUT,
    UID_DQ,
    UID_DK,
    UID_DV,
    UID_DELTA,
    UID_DQ_SUM,
} Uid;

// --- Shapes: [batch][head][token][element]

static CudnnShape head_shape(const Key *key, int64_t heads, int64_t tokens, int64_t stride,
                             int64_t batch_stride) {
    return (CudnnShape){{key->batch, heads, tokens, key->head_dim},
                        {batch_stride, key->head_dim, stride, 1}};
}

static CudnnShape q_shape(const Key *key) {
    return head_shape(key, key->heads, key->num_queries, key->q_stride, key->q_batch_stride);
}

static CudnnShape kv_shape(const Key *key) {
    return head_shape(key, key->kv_heads, key->num_keys, key->kv_stride, key->kv_batch_stride);
}

static CudnnShape o_shape(const Key *key) {
    return head_shape(key, key->heads, key->num_queries, key->o_stride, key->o_batch_stride);
}

// Without gaps, [batch][heads][rows][columns].
static CudnnShape dense_shape(const Key *key, int64_t rows, int64_t columns) {
    return (CudnnShape){{key->batch, key->heads, rows, columns},
                        {key->heads * rows * columns, rows * columns, columns, 1}};
}

static CudnnShape score_shape(const Key *key) {
    return dense_shape(key, key->num_queries, key->num_keys);
}

static CudnnShape row_shape(const Key *key) {
    return dense_shape(key, key->num_queries, 1);
}

static CudnnShape transposed(CudnnShape shape) {
    int64_t dim = shape.dims[2], stride = shape.strides[2];
    shape.dims[2] = shape.dims[3], shape.strides[2] = shape.strides[3];
    shape.dims[3] = dim, shape.strides[3] = stride;
    return shape;
}

// --- Graphs

// y = mode(x, b), in floats of a shape.
static CudnnNode step(CudnnGraph *graph, cudnnPointwiseMode_t mode, CudnnNode x, CudnnNode b,
                      CudnnShape shape) {
    CudnnNode y = cudnn_virtual(graph, CUDNN_DATA_FLOAT, shape);
    cudnn_pointwise(graph, mode, CUDNN_DATA_FLOAT, x, b, NULL, y);
    return y;
}

// -infinity where a key comes after its query.
static CudnnNode keys_hide(CudnnGraph *graph, const Key *key, CudnnNode scores) {
    if (!key->causal) return scores;
    CudnnShape shape = score_shape(key);
    CudnnNode query = cudnn_virtual(graph, CUDNN_DATA_INT32, shape);
    CudnnNode position = cudnn_virtual(graph, CUDNN_DATA_INT32, shape);
    cudnn_index(graph, 2, scores, query);
    cudnn_index(graph, 3, scores, position);
    CudnnNode seen = cudnn_virtual(graph, CUDNN_DATA_BOOLEAN, shape);
    cudnn_pointwise(graph, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, query, position, NULL, seen);
    CudnnNode y = cudnn_virtual(graph, CUDNN_DATA_FLOAT, shape);
    cudnn_pointwise(graph, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores,
                    cudnn_scalar(graph, UID_HIDDEN), seen, y);
    return y;
}

static void forward_graph(CudnnGraph *graph, const Key *key) {
    CudnnShape scores = score_shape(key), rows = row_shape(key);
    CudnnNode q = cudnn_tensor(graph, UID_Q, CUDNN_DATA_BFLOAT16, q_shape(key));
    CudnnNode k = cudnn_tensor(graph, UID_K, CUDNN_DATA_BFLOAT16, transposed(kv_shape(key)));
    CudnnNode v = cudnn_tensor(graph, UID_V, CUDNN_DATA_BFLOAT16, kv_shape(key));
    CudnnNode o = cudnn_tensor(graph, UID_O, CUDNN_DATA_BFLOAT16, o_shape(key));
    CudnnNode lse = cudnn_tensor(graph, UID_LSE, CUDNN_DATA_FLOAT, rows);

    CudnnNode s = cudnn_virtual(graph, CUDNN_DATA_FLOAT, scores);
    cudnn_matmul(graph, q, k, s);
    s = step(graph, CUDNN_POINTWISE_MUL, s, cudnn_scalar(graph, UID_SCALE), scores);
    s = keys_hide(graph, key, s);
    CudnnNode max = cudnn_virtual(graph, CUDNN_DATA_FLOAT, rows);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_MAX, s, max);
    s = step(graph, CUDNN_POINTWISE_SUB, s, max, scores);
    s = step(graph, CUDNN_POINTWISE_EXP, s, NULL, scores);
    CudnnNode sum = cudnn_virtual(graph, CUDNN_DATA_FLOAT, rows);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, s, sum);
    CudnnNode log_sum = step(graph, CUDNN_POINTWISE_LOG, sum, NULL, rows);
    cudnn_pointwise(graph, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, max, log_sum, NULL, lse);
    CudnnNode p = cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, scores);
    cudnn_pointwise(graph, CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, s, sum, NULL, p);
    cudnn_matmul(graph, p, v, o);
}

// Gradients of keys or values: (scores)^T right, summed over the query heads of each.
static void keys_gradient(CudnnGraph *graph, const Key *key, CudnnNode scores, CudnnNode right,
                          Uid uid) {
    CudnnNode left = cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, transposed(score_shape(key)));
    cudnn_reshape(graph, scores, left);
    CudnnNode out = cudnn_tensor(graph, uid, CUDNN_DATA_BFLOAT16, kv_shape(key));
    if (key->heads == key->kv_heads) {
        cudnn_matmul(graph, left, right, out);
        return;
    }
    CudnnNode of_heads =
        cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, dense_shape(key, key->num_keys, key->head_dim));
    cudnn_matmul(graph, left, right, of_heads);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, of_heads, out);
}

// delta = sum over the head of dout o.
static CudnnNode delta_graph(CudnnGraph *graph, const Key *key, CudnnNode dout) {
    CudnnShape rows = row_shape(key);
    CudnnNode o = cudnn_tensor(graph, UID_O, CUDNN_DATA_BFLOAT16, o_shape(key));
    CudnnNode products = step(graph, CUDNN_POINTWISE_MUL, dout, o,
                              dense_shape(key, key->num_queries, key->head_dim));
    CudnnNode sum = cudnn_virtual(graph, CUDNN_DATA_FLOAT, rows);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, products, sum);
    CudnnNode delta = cudnn_tensor(graph, UID_DELTA, CUDNN_DATA_FLOAT, rows);
    cudnn_pointwise(graph, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, sum, cudnn_scalar(graph, UID_ONE),
                    NULL, delta);
    return delta;
}

static void backward_graph(CudnnGraph *graph, const Key *key) {
    CudnnShape scores = score_shape(key);
    CudnnShape k_shape = transposed(kv_shape(key));
    CudnnNode q = cudnn_tensor(graph, UID_Q, CUDNN_DATA_BFLOAT16, q_shape(key));
    CudnnNode k = cudnn_tensor(graph, UID_K, CUDNN_DATA_BFLOAT16, k_shape);
    CudnnNode v = cudnn_tensor(graph, UID_V, CUDNN_DATA_BFLOAT16, k_shape);
    CudnnNode dout = cudnn_tensor(graph, UID_DOUT, CUDNN_DATA_BFLOAT16, o_shape(key));
    CudnnNode lse = cudnn_tensor(graph, UID_LSE, CUDNN_DATA_FLOAT, row_shape(key));
    CudnnNode scale = cudnn_scalar(graph, UID_SCALE);
    CudnnNode delta = delta_graph(graph, key, dout);

    CudnnNode p = cudnn_virtual(graph, CUDNN_DATA_FLOAT, scores);
    cudnn_matmul(graph, q, k, p);
    p = step(graph, CUDNN_POINTWISE_MUL, p, scale, scores);
    p = step(graph, CUDNN_POINTWISE_SUB, p, lse, scores);
    p = keys_hide(graph, key, p);
    p = step(graph, CUDNN_POINTWISE_EXP, p, NULL, scores);
    keys_gradient(graph, key, p, dout, UID_DV);

    CudnnNode ds = cudnn_virtual(graph, CUDNN_DATA_FLOAT, scores);
    cudnn_matmul(graph, dout, v, ds);
    ds = step(graph, CUDNN_POINTWISE_SUB, ds, delta, scores);
    ds = step(graph, CUDNN_POINTWISE_MUL, ds, p, scores);
    ds = step(graph, CUDNN_POINTWISE_MUL, ds, scale, scores);
    keys_gradient(graph, key, ds, q, UID_DK);

    CudnnNode keys = cudnn_virtual(graph, CUDNN_DATA_FLOAT, kv_shape(key));
    cudnn_reshape(graph, k, keys);
    CudnnNode dq_sum = cudnn_tensor(graph, UID_DQ_SUM, CUDNN_DATA_FLOAT,
                                    dense_shape(key, key->num_queries, key->head_dim));
    cudnn_matmul(graph, ds, keys, dq_sum);
    CudnnNode dq = cudnn_tensor(graph, UID_DQ, CUDNN_DATA_BFLOAT16, q_shape(key));
    cudnn_pointwise(graph, CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, dq_sum, NULL, NULL, dq);
}

// --- Plans

static bool is_set(const char *name, const char *value) {
    const char *found = getenv(name);
    return found && strcmp(found, value) == 0;
}

static CudaAttention *attention_open(void) {
    CudaAttention *attention = calloc(1, sizeof *attention);
    if (!attention) return NULL;
    attention->log = is_set("MESHWRIGHT_CUDNN_LOG", "1");
    char why[300] = "MESHWRIGHT_CUDNN=0";
    if (!is_set("MESHWRIGHT_CUDNN", "0")) attention->cudnn = cudnn_open(why);
    if (attention->cudnn &&
        attention->cudnn->cudnnCreate(&attention->handle) != CUDNN_STATUS_SUCCESS) {
        attention->cudnn->cudnnGetLastErrorString(why, sizeof why);
        attention->cudnn = NULL;
    }
    if (attention->log && attention->cudnn)
        fprintf(stderr, "meshwright: cuDNN %zu\n", attention->cudnn->cudnnGetVersion());
    if (attention->log && !attention->cudnn)
        fprintf(stderr, "meshwright: attention without cuDNN: %s\n", why);
    return attention;
}

void cudnn_attention_close(CudaBackend *cuda) {
    CudaAttention *attention = cuda->attention;
    if (!attention) return;
    if (attention->log && attention->cudnn)
        fprintf(stderr, "meshwright: cuDNN made %d plans of attention, and no plan for %d shapes\n",
                attention->num_plans - attention->num_failed, attention->num_failed);
    for (int i = 0; i < attention->num_plans; i++)
        if (attention->plans[i].plan)
            attention->cudnn->cudnnBackendDestroyDescriptor(attention->plans[i].plan);
    if (attention->handle) attention->cudnn->cudnnDestroy(attention->handle);
    free(attention);
    cuda->attention = NULL;
}

static void plan_tell(const Plan *plan, const CudnnGraph *graph) {
    const Key *key = &plan->key;
    fprintf(stderr,
            "meshwright: cuDNN, attention %s, %lld of %lld on %lld, %lld/%lld heads of %lld%s: ",
            key->backward ? "backward" : "forward", (long long)key->batch,
            (long long)key->num_queries, (long long)key->num_keys, (long long)key->heads,
            (long long)key->kv_heads, (long long)key->head_dim, key->causal ? ", causal" : "");
    if (plan->plan)
        fprintf(stderr, "workspace of %lld bytes\n", (long long)plan->workspace_bytes);
    else
        fprintf(stderr, "%s\n", graph->failure);
}

static void plan_make(CudaAttention *attention, Plan *plan) {
    CudnnGraph *graph = malloc(sizeof *graph);
    if (!graph) return;
    cudnn_graph_begin(graph, attention->cudnn, attention->handle);
    if (plan->key.backward)
        backward_graph(graph, &plan->key);
    else
        forward_graph(graph, &plan->key);
    plan->plan = cudnn_plan(graph, &plan->workspace_bytes);
    if (!plan->plan) attention->num_failed++;
    if (attention->log) plan_tell(plan, graph);
    cudnn_graph_free(graph);
    free(graph);
}

// NULL: there is none, or no room for more.
static Plan *plan_find(CudaAttention *attention, const Attention *call, bool backward) {
    Key key;
    memset(&key, 0, sizeof key);
    key.batch = call->batch, key.heads = call->heads, key.kv_heads = call->kv_heads;
    key.head_dim = call->head_dim;
    key.num_queries = call->num_queries, key.num_keys = call->num_keys;
    key.q_stride = call->q_stride, key.q_batch_stride = call->q_batch_stride;
    key.kv_stride = call->kv_stride, key.kv_batch_stride = call->kv_batch_stride;
    key.o_stride = call->o_stride, key.o_batch_stride = call->o_batch_stride;
    key.causal = call->causal, key.backward = backward;
    int i = 0;
    while (i < attention->num_plans && memcmp(&attention->plans[i].key, &key, sizeof key) != 0) i++;
    if (i == MAX_PLANS) return NULL;
    Plan *plan = &attention->plans[i];
    if (i == attention->num_plans) {
        attention->num_plans++;
        plan->key = key;
        plan_make(attention, plan);
    }
    return plan->plan ? plan : NULL;
}

// --- The call

static bool is_aligned(const void *array) {
    return (uintptr_t)array % 16 == 0;
}

// What cuDNN can be asked for. Its rows of lse have no gaps (before 9.26, NVIDIA/cudnn-frontend).
static bool is_possible(const Backend *backend, const Attention *call) {
    int64_t strides = call->q_stride | call->kv_stride | call->o_stride | call->q_batch_stride |
                      call->kv_batch_stride | call->o_batch_stride;
    bool plain = !call->causal || (call->query_first == 0 && call->num_queries == call->num_keys);
    return backend->act == DTYPE_BF16 && plain && call->window == 0 &&
           call->lse_stride == call->num_queries && call->num_queries > 1 && call->num_keys > 1 &&
           call->head_dim % 8 == 0 && call->head_dim <= MAX_HEAD && strides % 8 == 0 &&
           is_aligned(call->q) && is_aligned(call->k) && is_aligned(call->v) &&
           is_aligned(call->o) && is_aligned(call->lse);
}

static bool is_possible_backward(const Attention *call) {
    return is_aligned(call->dout) && is_aligned(call->dq) && is_aligned(call->dk) &&
           is_aligned(call->dv);
}

static size_t rounded_up(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static cudnnStatus_t plan_execute(const CudaAttention *attention, const Plan *plan,
                                  const Attention *call, char *scratch, cudaStream_t stream) {
    const Cudnn *cudnn = attention->cudnn;
    size_t rows = (size_t)call->batch * (size_t)call->heads * (size_t)call->num_queries;
    char *delta = scratch + rounded_up((size_t)plan->workspace_bytes);
    char *dq_sum = delta + rounded_up(rows * sizeof(float));
    float scale = (float)call->scale, hidden = -INFINITY, one = 1;
    int64_t uids[] = {UID_Q,   UID_K,    UID_V,  UID_O,  UID_LSE, UID_SCALE, UID_HIDDEN,
                      UID_ONE, UID_DOUT, UID_DQ, UID_DK, UID_DV,  UID_DELTA, UID_DQ_SUM};
    const void *arrays[] = {call->q, call->k,    call->v,  call->o,  call->lse, &scale, &hidden,
                            &one,    call->dout, call->dq, call->dk, call->dv,  delta,  dq_sum};
    int64_t count = plan->key.backward ? UID_DQ_SUM : UID_HIDDEN;
    if (!plan->key.backward && !call->causal) count = UID_SCALE;
    // TODO: this is made anew for each call, some microseconds of the host; keep it where a step
    // has so many short attentions that the host is what they wait for.
    CudnnNode pack = NULL;
    cudnnStatus_t status = cudnn->cudnnSetStream(attention->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                                 CUDNN_TYPE_INT64, count, uids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                 CUDNN_TYPE_VOID_PTR, count, arrays);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                                 CUDNN_TYPE_VOID_PTR, 1, &scratch);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendFinalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendExecute(attention->handle, plan->plan, pack);
    if (pack) cudnn->cudnnBackendDestroyDescriptor(pack);
    return status;
}

static size_t scratch_bytes(const Plan *plan, const Attention *call) {
    size_t bytes = rounded_up((size_t)plan->workspace_bytes);
    if (!plan->key.backward) return bytes > 0 ? bytes : 256;
    size_t rows = (size_t)call->batch * (size_t)call->heads * (size_t)call->num_queries;
    return bytes + rounded_up(rows * sizeof(float)) +
           rounded_up(rows * (size_t)call->head_dim * sizeof(float));
}

bool cudnn_attention(Backend *backend, const Attention *call, bool backward,
                     BackendStream *stream) {
    CudaBackend *cuda = (CudaBackend *)backend;
    if (!is_possible(backend, call) || (backward && !is_possible_backward(call))) return false;
    if (!cuda->attention) cuda->attention = attention_open();
    CudaAttention *attention = cuda->attention;
    if (!attention || !attention->cudnn) return false;
    Plan *plan = plan_find(attention, call, backward);
    if (!plan) return false;
    char *scratch = cuda_scratch(backend, stream, scratch_bytes(plan, call));
    if (!scratch) return false;
    cudnnStatus_t status = plan_execute(attention, plan, call, scratch, stream->handle);
    cuda_scratch_free(backend, stream, scratch);
    if (status == CUDNN_STATUS_SUCCESS) return true;
    if (attention->log) {
        char why[300] = "";
        attention->cudnn->cudnnGetLastErrorString(why, sizeof why);
        fprintf(stderr, "meshwright: cuDNN does not run what it planned: %s\n", why);
    }
    attention->cudnn->cudnnBackendDestroyDescriptor(plan->plan);
    plan->plan = NULL; // our own kernels from now on
    attention->num_failed++;
    return false;
}

#endif
