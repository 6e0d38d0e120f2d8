// backend/cuda/cudnn_graph.c - left out where cuDNN's headers are not installed.
#ifdef MESHWRIGHT_WITH_CUDNN

#include "backend/cuda/cudnn_graph.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// --- The library

// Before it, keys whose number is no multiple of 128 need a mask of their own in the backward
// (NVIDIA/cudnn-frontend, CompositeSDPABackwardNode).
enum { LEAST_VERSION = 91600 };

// Written once, by load, under ONCE.
static Cudnn functions;
static bool loaded;
static char missing[300];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool symbol_find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); // a pointer to a function
    if (!symbol) snprintf(missing, sizeof missing, "libcudnn.so.9 has no %s", name);
    return symbol != NULL;
}

static void load(void) {
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
#ifdef MESHWRIGHT_CUDNN
    if (!library) library = dlopen(MESHWRIGHT_CUDNN, RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library) {
        const char *error = dlerror();
        snprintf(missing, sizeof missing, "%.250s", error ? error : "libcudnn.so.9");
        return;
    }
#define LOAD(name)                                                                                 \
    if (!symbol_find(library, #name, &functions.name)) return;
    CUDNN_FUNCTIONS(LOAD)
#undef LOAD
    if (functions.cudnnGetVersion() < LEAST_VERSION) {
        snprintf(missing, sizeof missing, "cuDNN %zu; expected %d or later",
                 functions.cudnnGetVersion(), LEAST_VERSION);
        return;
    }
    loaded = true;
}

const Cudnn *cudnn_open(char *why) {
    pthread_once(&once, load);
    if (!loaded) memcpy(why, missing, sizeof missing);
    return loaded ? &functions : NULL;
}

// --- Descriptors

static bool well(const CudnnGraph *graph) {
    return graph->status == CUDNN_STATUS_SUCCESS;
}

static void note(CudnnGraph *graph, cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS || !well(graph)) return;
    graph->status = status;
    char last[480] = "";
    graph->cudnn->cudnnGetLastErrorString(last, sizeof last);
    snprintf(graph->failure, sizeof graph->failure, "%s: %s: %.450s", what,
             graph->cudnn->cudnnGetErrorString(status), last);
}

void cudnn_graph_begin(CudnnGraph *graph, const Cudnn *cudnn, cudnnHandle_t handle) {
    memset(graph, 0, sizeof *graph);
    graph->cudnn = cudnn;
    graph->handle = handle;
    graph->last_uid = CUDNN_FIRST_VIRTUAL_UID;
}

void cudnn_graph_free(CudnnGraph *graph) {
    while (graph->num_descriptors > 0)
        graph->cudnn->cudnnBackendDestroyDescriptor(graph->descriptors[--graph->num_descriptors]);
}

static CudnnNode make(CudnnGraph *graph, cudnnBackendDescriptorType_t type) {
    if (well(graph) && graph->num_descriptors == CUDNN_MAX_DESCRIPTORS)
        note(graph, CUDNN_STATUS_INTERNAL_ERROR, "CUDNN_MAX_DESCRIPTORS");
    if (!well(graph)) return NULL;
    CudnnNode node = NULL;
    note(graph, graph->cudnn->cudnnBackendCreateDescriptor(type, &node), "a descriptor");
    if (!well(graph)) return NULL;
    graph->descriptors[graph->num_descriptors++] = node;
    return node;
}

static void set(CudnnGraph *graph, CudnnNode node, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    if (!well(graph)) return;
    cudnnStatus_t status = graph->cudnn->cudnnBackendSetAttribute(node, name, type, count, values);
    char what[40];
    snprintf(what, sizeof what, "attribute %d", (int)name);
    note(graph, status, what);
}

static void set_node(CudnnGraph *graph, CudnnNode node, cudnnBackendAttributeName_t name,
                     CudnnNode value) {
    if (value) set(graph, node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(CudnnGraph *graph, CudnnNode node, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type) {
    set(graph, node, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void finish(CudnnGraph *graph, CudnnNode node, const char *what) {
    if (well(graph)) note(graph, graph->cudnn->cudnnBackendFinalize(node), what);
}

// --- Tensors

static CudnnNode tensor_make(CudnnGraph *graph, int64_t uid, cudnnDataType_t type, CudnnShape shape,
                             bool is_virtual, bool by_value) {
    CudnnNode node = make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = 16;
    set_type(graph, node, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(graph, node, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape.dims);
    set(graph, node, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape.strides);
    set(graph, node, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(graph, node, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(graph, node, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    set(graph, node, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(graph, node, "a tensor");
    return node;
}

CudnnNode cudnn_tensor(CudnnGraph *graph, int64_t uid, cudnnDataType_t type, CudnnShape shape) {
    return tensor_make(graph, uid, type, shape, false, false);
}

CudnnNode cudnn_scalar(CudnnGraph *graph, int64_t uid) {
    CudnnShape shape = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return tensor_make(graph, uid, CUDNN_DATA_FLOAT, shape, false, true);
}

CudnnNode cudnn_virtual(CudnnGraph *graph, cudnnDataType_t type, CudnnShape shape) {
    return tensor_make(graph, ++graph->last_uid, type, shape, true, false);
}

// --- Operations

static void operation_end(CudnnGraph *graph, CudnnNode node, const char *what) {
    finish(graph, node, what);
    if (well(graph) && graph->num_operations == CUDNN_MAX_OPERATIONS)
        note(graph, CUDNN_STATUS_INTERNAL_ERROR, "CUDNN_MAX_OPERATIONS");
    if (well(graph)) graph->operations[graph->num_operations++] = node;
}

// axis < 0: the mode has none.
static CudnnNode pointwise_make(CudnnGraph *graph, cudnnPointwiseMode_t mode,
                                cudnnDataType_t precision, int64_t axis) {
    CudnnNode node = make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, node, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(graph, node, CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis >= 0) set(graph, node, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(graph, node, "a pointwise mode");
    return node;
}

static void pointwise_add(CudnnGraph *graph, CudnnNode mode, CudnnNode x, CudnnNode b,
                          CudnnNode select, CudnnNode y) {
    CudnnNode node = make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_node(graph, node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    set_node(graph, node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_node(graph, node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_node(graph, node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, select);
    set_node(graph, node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    operation_end(graph, node, "a pointwise operation");
}

void cudnn_pointwise(CudnnGraph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t precision,
                     CudnnNode x, CudnnNode b, CudnnNode select, CudnnNode y) {
    pointwise_add(graph, pointwise_make(graph, mode, precision, -1), x, b, select, y);
}

void cudnn_index(CudnnGraph *graph, int64_t axis, CudnnNode x, CudnnNode y) {
    CudnnNode mode = pointwise_make(graph, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis);
    pointwise_add(graph, mode, x, NULL, NULL, y);
}

void cudnn_matmul(CudnnGraph *graph, CudnnNode a, CudnnNode b, CudnnNode c) {
    CudnnNode mode = make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(graph, mode, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(graph, mode, "a matmul");
    CudnnNode node = make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_node(graph, node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_node(graph, node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_node(graph, node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_node(graph, node, CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
    operation_end(graph, node, "a matmul operation");
}

void cudnn_reduce(CudnnGraph *graph, cudnnReduceTensorOp_t operator, CudnnNode x, CudnnNode y) {
    CudnnNode mode = make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(graph, mode, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
        &operator);
    set_type(graph, mode, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(graph, mode, "a reduction");
    CudnnNode node = make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_node(graph, node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_node(graph, node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set_node(graph, node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
    operation_end(graph, node, "a reduction operation");
}

void cudnn_reshape(CudnnGraph *graph, CudnnNode x, CudnnNode y) {
    CudnnNode node = make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_node(graph, node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_node(graph, node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    operation_end(graph, node, "a reshape operation");
}

// --- Plans

enum { MAX_CONFIGS = 16 };

// Engines that may run the graph, best first; their number.
static int64_t configs_ask(CudnnGraph *graph, CudnnNode operations, CudnnNode *configs) {
    CudnnNode node = make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    set_node(graph, node, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    set(graph, node, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    set_node(graph, node, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, graph->device);
    finish(graph, node, "the heuristic");
    for (int i = 0; i < MAX_CONFIGS; i++)
        configs[i] = make(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!well(graph)) return 0;
    int64_t count = 0;
    cudnnStatus_t status = graph->cudnn->cudnnBackendGetAttribute(
        node, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, &count,
        configs);
    if (status == CUDNN_STATUS_SUCCESS && count == 0) status = CUDNN_STATUS_NOT_SUPPORTED;
    note(graph, status, "engines");
    return well(graph) ? count < MAX_CONFIGS ? count : MAX_CONFIGS : 0;
}

// NULL where this engine cannot; that is no failure of the graph, but is kept as the last word.
static CudnnNode plan_try(CudnnGraph *graph, CudnnNode config, int64_t *workspace_bytes) {
    CudnnNode plan = NULL;
    const Cudnn *cudnn = graph->cudnn;
    graph->status = CUDNN_STATUS_SUCCESS;
    note(graph, cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan),
         "a plan");
    if (!well(graph)) return NULL;
    if (graph->device)
        set_node(graph, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, graph->device);
    else
        set(graph, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->handle);
    set_node(graph, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finish(graph, plan, "the plan");
    int64_t count = 0;
    if (well(graph))
        note(graph,
             cudnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                             CUDNN_TYPE_INT64, 1, &count, workspace_bytes),
             "the plan's workspace");
    if (well(graph)) return plan;
    cudnn->cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

CudnnNode cudnn_plan(CudnnGraph *graph, int64_t *workspace_bytes) {
    CudnnNode operations = make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, operations, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        graph->num_operations, graph->operations);
    if (!graph->device)
        set(graph, operations, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
            &graph->handle);
    finish(graph, operations, "the graph");
    CudnnNode configs[MAX_CONFIGS], plan = NULL;
    int64_t count = configs_ask(graph, operations, configs);
    for (int64_t i = 0; i < count && !plan; i++)
        plan = plan_try(graph, configs[i], workspace_bytes);
    return plan;
}

#endif

// ISO C wants something in every file.
typedef int cudnn_graph_is_optional;
