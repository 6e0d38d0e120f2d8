// backend/cuda/cudnn_attention_graph.c - the graphs are those of NVIDIA/cudnn-frontend
// (CompositeSDPANode, CompositeSDPABackwardNode) for cuDNN before 9.21: it knows them by their
// steps, so none is left out or joined with another.
#ifdef MESHWRIGHT_WITH_CUDNN

#include "backend/cuda/cudnn_attention_graph.h"

// --- Shapes: [batch][head][token][element]

static CudnnShape head_shape(const CudnnAttention *key, int64_t heads, int64_t tokens,
                             int64_t stride, int64_t batch_stride) {
    return (CudnnShape){{key->batch, heads, tokens, key->head_dim},
                        {batch_stride, key->head_dim, stride, 1}};
}

static CudnnShape q_shape(const CudnnAttention *key) {
    return head_shape(key, key->heads, key->num_queries, key->q_stride, key->q_batch_stride);
}

static CudnnShape kv_shape(const CudnnAttention *key) {
    return head_shape(key, key->kv_heads, key->num_keys, key->kv_stride, key->kv_batch_stride);
}

static CudnnShape o_shape(const CudnnAttention *key) {
    return head_shape(key, key->heads, key->num_queries, key->o_stride, key->o_batch_stride);
}

// Without gaps, [batch][heads][rows][columns].
static CudnnShape dense_shape(const CudnnAttention *key, int64_t rows, int64_t columns) {
    return (CudnnShape){{key->batch, key->heads, rows, columns},
                        {key->heads * rows * columns, rows * columns, columns, 1}};
}

static CudnnShape score_shape(const CudnnAttention *key) {
    return dense_shape(key, key->num_queries, key->num_keys);
}

static CudnnShape row_shape(const CudnnAttention *key) {
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
static CudnnNode keys_hide(CudnnGraph *graph, const CudnnAttention *key, CudnnNode scores) {
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

static void forward_graph(CudnnGraph *graph, const CudnnAttention *key) {
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
static void keys_gradient(CudnnGraph *graph, const CudnnAttention *key, CudnnNode scores,
                          CudnnNode right, Uid uid) {
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
static CudnnNode delta_graph(CudnnGraph *graph, const CudnnAttention *key, CudnnNode dout) {
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

static void backward_graph(CudnnGraph *graph, const CudnnAttention *key) {
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

void cudnn_attention_graph(CudnnGraph *graph, const CudnnAttention *key) {
    if (key->backward)
        backward_graph(graph, key);
    else
        forward_graph(graph, key);
}

#endif

// ISO C wants something in every file.
typedef int cudnn_attention_graph_is_optional;
