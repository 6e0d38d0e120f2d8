// backend/cuda/cudnn_attention.c - attention by cuDNN, where it is installed and knows the shape;
// attention.cu has the kernels for all else.
//
// Its backward adds up dq in an order of its own: two runs differ in the last bits. A plan is made
// at the first call of a shape and takes about half a second.
//   MESHWRIGHT_CUDNN=0        never
//   MESHWRIGHT_CUDNN=forward  the forward alone: what our kernels compute is the same in each run
//   MESHWRIGHT_CUDNN_LOG=1    tells on stderr what is planned, and what is not and why
#include "backend/cuda/cudnn_attention.h"

#ifndef MESHWRIGHT_WITH_CUDNN

int64_t cudnn_attention_version(void) {
    return 0;
}

void cudnn_attention_close(CudaBackend *cuda) {
    (void)cuda;
}

bool cudnn_attention(Backend *backend, const Attention *call, bool backward,
                     BackendStream *stream) {
    (void)backend, (void)call, (void)backward, (void)stream;
    return false;
}

#else

#include "backend/cuda/cudnn_attention_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 256, MAX_HEAD = 128 };

typedef struct {
    CudnnAttention key;
    CudnnNode plan; // NULL: cuDNN has none
    int64_t workspace_bytes;
} Plan;

struct CudaAttention {
    const Cudnn *cudnn; // NULL: not to be used
    cudnnHandle_t handle;
    bool log, only_forward;
    int num_plans, num_failed;
    Plan plans[MAX_PLANS];
};

// --- Plans

static bool is_set(const char *name, const char *value) {
    const char *found = getenv(name);
    return found && strcmp(found, value) == 0;
}

// NULL, with why: there is none, or it is not to be used. [300]
static const Cudnn *library_open(char *why) {
    if (!is_set("MESHWRIGHT_CUDNN", "0")) return cudnn_open(why);
    strcpy(why, "MESHWRIGHT_CUDNN=0");
    return NULL;
}

int64_t cudnn_attention_version(void) {
    char why[300];
    const Cudnn *cudnn = library_open(why);
    return cudnn ? (int64_t)cudnn->cudnnGetVersion() : 0;
}

static CudaAttention *attention_open(void) {
    CudaAttention *attention = calloc(1, sizeof *attention);
    if (!attention) return NULL;
    attention->log = is_set("MESHWRIGHT_CUDNN_LOG", "1");
    attention->only_forward = is_set("MESHWRIGHT_CUDNN", "forward");
    char why[300];
    attention->cudnn = library_open(why);
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
    const CudnnAttention *key = &plan->key;
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
    cudnn_attention_graph(graph, &plan->key);
    plan->plan = cudnn_plan(graph, &plan->workspace_bytes);
    if (!plan->plan) attention->num_failed++;
    if (attention->log) plan_tell(plan, graph);
    cudnn_graph_free(graph);
    free(graph);
}

// NULL: there is none, or no room for more.
static Plan *plan_find(CudaAttention *attention, const Attention *call, bool backward) {
    CudnnAttention key;
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

enum { MAX_ARRAYS = 16 };

// The arrays of one call, with the scalars that some of them are.
typedef struct {
    float scale, hidden, one;
    int64_t count, uids[MAX_ARRAYS];
    const void *arrays[MAX_ARRAYS];
} Pack;

static void pack_add(Pack *pack, Uid uid, const void *array) {
    pack->uids[pack->count] = uid;
    pack->arrays[pack->count++] = array;
}

static void pack_fill(Pack *pack, const Plan *plan, const Attention *call, const char *scratch) {
    size_t rows = (size_t)call->batch * (size_t)call->heads * (size_t)call->num_queries;
    const char *delta = scratch + rounded_up((size_t)plan->workspace_bytes);
    *pack = (Pack){.scale = (float)call->scale, .hidden = -INFINITY, .one = 1};
    pack_add(pack, UID_Q, call->q);
    pack_add(pack, UID_K, call->k);
    pack_add(pack, UID_V, call->v);
    pack_add(pack, UID_O, call->o);
    pack_add(pack, UID_LSE, call->lse);
    pack_add(pack, UID_SCALE, &pack->scale);
    if (call->causal) pack_add(pack, UID_HIDDEN, &pack->hidden);
    if (!plan->key.backward) return;
    pack_add(pack, UID_ONE, &pack->one);
    pack_add(pack, UID_DOUT, call->dout);
    pack_add(pack, UID_DQ, call->dq);
    pack_add(pack, UID_DK, call->dk);
    pack_add(pack, UID_DV, call->dv);
    pack_add(pack, UID_DELTA, delta);
    pack_add(pack, UID_DQ_SUM, delta + rounded_up(rows * sizeof(float)));
}

// Limit: a pack is made for each call, some microseconds of the host, which shows where a step has
// so many short attentions that the host is what they wait for.
static cudnnStatus_t pack_describe(const Cudnn *cudnn, const Pack *pack, char *scratch,
                                   CudnnNode node) {
    cudnnStatus_t status = cudnn->cudnnBackendSetAttribute(
        node, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, pack->count, pack->uids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendSetAttribute(node, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                 CUDNN_TYPE_VOID_PTR, pack->count, pack->arrays);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendSetAttribute(node, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                                 CUDNN_TYPE_VOID_PTR, 1, &scratch);
    return status == CUDNN_STATUS_SUCCESS ? cudnn->cudnnBackendFinalize(node) : status;
}

static cudnnStatus_t plan_execute(const CudaAttention *attention, const Plan *plan,
                                  const Attention *call, char *scratch, cudaStream_t stream) {
    const Cudnn *cudnn = attention->cudnn;
    Pack pack;
    pack_fill(&pack, plan, call, scratch);
    CudnnNode node = NULL;
    cudnnStatus_t status = cudnn->cudnnSetStream(attention->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &node);
    if (status == CUDNN_STATUS_SUCCESS) status = pack_describe(cudnn, &pack, scratch, node);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->cudnnBackendExecute(attention->handle, plan->plan, node);
    if (node) cudnn->cudnnBackendDestroyDescriptor(node);
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
    if (!attention || !attention->cudnn || (backward && attention->only_forward)) return false;
    Plan *plan = plan_find(attention, call, backward);
    if (!plan) return false;
    char *scratch = cuda_scratch_try(backend, stream, scratch_bytes(plan, call));
    if (!scratch) return false; // our kernels need hardly any
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
