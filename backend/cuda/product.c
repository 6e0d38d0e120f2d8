// backend/cuda/product.c - matrix products by cuBLASLt; the algorithm of each shape is what its
// heuristic names first, asked once and kept. It takes about 0.1 ms to answer (H200, cuBLAS 13.1),
// longer than an expert's product: where rows vary, one algorithm serves for all of a class of
// sizes.
//
// cuBLASLt's matrices are in column-major order: a row-major [m][n] is its transpose, n x m. So
// out [m][n] is computed as out^T (n x m) = right^T (n x k) left^T (k x m), and
//   forward          right is W [n][k]: k x n to it, transposed; left x [m][k]:  k x m   (TN)
//   backward input   right is W [k][n]: n x k;                   left dy [m][k]: k x m   (NN)
//   backward weight  right is x [k][n]: n x k; left dy [k][m]:   m x k, transposed       (NT)
#include "backend/cuda/cuda_device.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 4096 }; // a power of two

// What a plan is chosen by; its bytes are compared, so it has no gaps and is cleared before.
typedef struct {
    int64_t m, n, k;
    int16_t layout, out_wide, accumulate, bias;
    int16_t a_alignment, b_alignment, out_alignment, rows_vary;
} PlanKey;

typedef struct {
    bool used;
    bool bias_after; // cuBLASLt has no product with this bias: it is added by a kernel
    PlanKey key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t right, left, out;
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
} Plan;

struct CudaProducts {
    cublasLtHandle_t lt;
    Plan *plans; // [MAX_PLANS], by hash
    int num_plans;
};

Status cuda_products_open(CudaBackend *cuda) {
    cuda->products = calloc(1, sizeof *cuda->products);
    if (!cuda->products) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    cuda->products->plans = calloc(MAX_PLANS, sizeof *cuda->products->plans);
    if (!cuda->products->plans) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    CUBLAS_TRY(cublasLtCreate(&cuda->products->lt));
    return status_ok();
}

static void plan_clear(Plan *plan) {
    if (plan->out) cublasLtMatrixLayoutDestroy(plan->out);
    if (plan->left) cublasLtMatrixLayoutDestroy(plan->left);
    if (plan->right) cublasLtMatrixLayoutDestroy(plan->right);
    if (plan->desc) cublasLtMatmulDescDestroy(plan->desc);
    memset(plan, 0, sizeof *plan);
}

static void plans_clear(CudaProducts *products) {
    for (int i = 0; products->plans && i < MAX_PLANS; i++) plan_clear(&products->plans[i]);
    products->num_plans = 0;
}

void cuda_products_close(CudaBackend *cuda) {
    CudaProducts *products = cuda->products;
    if (!products) return;
    for (int i = 0; i < CUDA_MAX_STREAMS; i++) {
        BackendStream *stream = cuda->streams[i];
        if (!stream || !stream->workspace) continue;
        cudaFreeAsync(stream->workspace, stream->handle);
        stream->workspace = NULL;
    }
    plans_clear(products);
    free(products->plans);
    if (products->lt) cublasLtDestroy(products->lt);
    free(products);
    cuda->products = NULL;
}

// --- Failures

static bool is_unsupported(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

static Status product_error(const Backend *backend, const PlanKey *key, cublasStatus_t status) {
    static const char *const LAYOUTS[] = {"forward", "backward input", "backward weight"};
    return status_error(STATUS_MACHINE,
                        "meshwright: cuBLASLt failed: %s product of m %lld, n %lld, k %lld, %s "
                        "into %s%s%s: %s",
                        LAYOUTS[key->layout], (long long)key->m, (long long)key->n,
                        (long long)key->k, dtype_name(backend->act),
                        dtype_name(key->out_wide ? backend->wide : backend->act),
                        key->accumulate ? ", added" : "", key->bias ? ", with bias" : "",
                        cublasLtGetStatusString(status));
}

// --- Making a plan

static cudaDataType_t cuda_type(const Backend *backend, bool wide) {
    return !wide && backend->act == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static Status plan_describe(Plan *plan, const Backend *backend) {
    const PlanKey *key = &plan->key;
    // fp32 as it is: no TF32.
    CUBLAS_TRY(cublasLtMatmulDescCreate(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    int32_t right = key->layout == PRODUCT_FORWARD ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t left = key->layout == PRODUCT_BACKWARD_WEIGHT ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &right,
                                              sizeof right));
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &left,
                                              sizeof left));
    if (key->bias && !plan->bias_after) {
        uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        int32_t bias_type = (int32_t)cuda_type(backend, false);
        CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                  &epilogue, sizeof epilogue));
        CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                  &bias_type, sizeof bias_type));
    }
    uint64_t m = (uint64_t)key->m, n = (uint64_t)key->n, k = (uint64_t)key->k;
    cudaDataType_t act = cuda_type(backend, false);
    uint64_t right_rows = right == CUBLAS_OP_T ? k : n, left_rows = left == CUBLAS_OP_T ? m : k;
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&plan->right, act, right_rows, n * k / right_rows,
                                          (int64_t)right_rows));
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&plan->left, act, left_rows, m * k / left_rows,
                                          (int64_t)left_rows));
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&plan->out, cuda_type(backend, key->out_wide), n, m,
                                          (int64_t)n));
    return status_ok();
}

static Status preference_fill(cublasLtMatmulPreference_t preference, const PlanKey *key) {
    uint64_t workspace = CUDA_WORKSPACE_BYTES;
    CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        int16_t bytes;
    } alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->b_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->a_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->out_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->out_alignment},
    };
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        uint32_t bytes = (uint32_t)alignments[i].bytes;
        CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, alignments[i].name, &bytes,
                                                        sizeof bytes));
    }
    return status_ok();
}

// What cuBLASLt's heuristic says; unsupported is an answer.
static cublasStatus_t plan_ask(Plan *plan, cublasLtHandle_t lt,
                               cublasLtMatmulPreference_t preference) {
    cublasLtMatmulHeuristicResult_t result;
    int num_results = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt, plan->desc, plan->right, plan->left, plan->out,
                                       plan->out, preference, 1, &result, &num_results);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (num_results == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    plan->algo = result.algo;
    plan->workspace_bytes = result.workspaceSize;
    return result.state;
}

static Status plan_choose(Plan *plan, cublasLtHandle_t lt, cublasStatus_t *answer) {
    cublasLtMatmulPreference_t preference;
    CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
    Status status = preference_fill(preference, &plan->key);
    if (status.code == STATUS_OK) *answer = plan_ask(plan, lt, preference);
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

// bias_after: a bias is not to be left to cuBLASLt.
static Status plan_make(Plan *plan, PlanKey key, bool bias_after, const Backend *backend,
                        cublasLtHandle_t lt) {
    // The bias of its epilogue has the format of what is written (cuBLAS 13.0, cublasLtMatmul()).
    if (key.out_wide && backend->act != backend->wide) bias_after = true;
    cublasStatus_t answer = CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = key.bias && !bias_after ? 0 : 1; i < 2 && is_unsupported(answer); i++) {
        plan_clear(plan);
        plan->key = key;
        plan->bias_after = key.bias && i == 1;
        TRY(plan_describe(plan, backend));
        TRY(plan_choose(plan, lt, &answer));
    }
    if (answer != CUBLAS_STATUS_SUCCESS) return product_error(backend, &key, answer);
    plan->used = true;
    return status_ok();
}

// --- Finding a plan

// The largest power of two, up to 256, that divides an address.
static int16_t alignment_of(const void *array) {
    uintptr_t lowest = (uintptr_t)array & (~(uintptr_t)array + 1);
    return lowest == 0 || lowest > 256 ? 256 : (int16_t)lowest;
}

static uint64_t key_hash(const PlanKey *key) {
    uint64_t words[sizeof *key / 8], hash = 0;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / 8; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

// The least size, no smaller than rows, of four bits and zeros behind them: 1 to 16, 18, 20, ...
static int64_t class_of(int64_t rows) {
    int64_t step = 1;
    while (rows > 16 * step) step *= 2;
    return (rows + step - 1) / step * step;
}

static Status plan_find(CudaProducts *products, const Backend *backend, const Product *call,
                        Plan **out) {
    PlanKey key;
    memset(&key, 0, sizeof key);
    key.m = call->m, key.n = call->n, key.k = call->k;
    key.rows_vary = call->rows_vary;
    if (call->rows_vary) {
        int64_t *rows = call->layout == PRODUCT_BACKWARD_WEIGHT ? &key.k : &key.m;
        *rows = class_of(*rows);
    }
    key.layout = (int16_t)call->layout;
    key.out_wide = call->out_wide, key.accumulate = call->accumulate;
    key.bias = call->bias != NULL;
    key.a_alignment = alignment_of(call->a);
    key.b_alignment = alignment_of(call->b);
    key.out_alignment = alignment_of(call->out);
    // Where routing to experts makes ever new shapes, the table begins anew once it is full.
    if (products->num_plans >= MAX_PLANS * 3 / 4) plans_clear(products);
    uint64_t at = key_hash(&key) % MAX_PLANS;
    while (products->plans[at].used && memcmp(&products->plans[at].key, &key, sizeof key) != 0)
        at = (at + 1) % MAX_PLANS;
    *out = &products->plans[at];
    if ((*out)->used) return status_ok();
    products->num_plans++;
    return plan_make(*out, key, false, backend, products->lt);
}

// --- The call

// A plan of a class of sizes describes those of this call. Rows are columns to cuBLASLt, and no
// matrix's stride depends on their number.
static cublasStatus_t plan_fit(const Plan *plan, const Product *call) {
    const bool weight = call->layout == PRODUCT_BACKWARD_WEIGHT;
    const uint64_t rows = (uint64_t)(weight ? call->k : call->m);
    const cublasLtMatrixLayout_t matrices[] = {plan->left, weight ? plan->right : plan->out};
    for (int i = 0; i < 2; i++) {
        cublasStatus_t status = cublasLtMatrixLayoutSetAttribute(
            matrices[i], CUBLASLT_MATRIX_LAYOUT_COLS, &rows, sizeof rows);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t plan_run(const Plan *plan, const CudaProducts *products, const Product *call,
                               const BackendStream *stream) {
    if (call->bias && !plan->bias_after) {
        cublasStatus_t status = cublasLtMatmulDescSetAttribute(
            plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->bias, sizeof call->bias);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    if (call->rows_vary) {
        cublasStatus_t status = plan_fit(plan, call);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    const float one = 1, beta = call->accumulate ? 1 : 0;
    return cublasLtMatmul(products->lt, plan->desc, &one, call->b, plan->right, call->a, plan->left,
                          &beta, call->out, plan->out, call->out, plan->out, &plan->algo,
                          stream->workspace, plan->workspace_bytes, stream->handle);
}

static Status product_run(Backend *backend, const Product *call, BackendStream *stream) {
    CudaProducts *products = ((CudaBackend *)backend)->products;
    Plan *plan;
    TRY(plan_find(products, backend, call, &plan));
    if (!stream->workspace) // not cudaMalloc, which waits for all that is queued
        stream->workspace = cuda_scratch(backend, stream, CUDA_WORKSPACE_BYTES);
    if (!stream->workspace) return backend->failure;
    cublasStatus_t status = plan_run(plan, products, call, stream);
    if (is_unsupported(status) && call->rows_vary) { // not the algorithm of another size
        Product exact = *call;
        exact.rows_vary = false;
        return product_run(backend, &exact, stream);
    }
    if (is_unsupported(status) && call->bias && !plan->bias_after) { // promised, and then not
        TRY(plan_make(plan, plan->key, true, backend, products->lt));
        status = plan_run(plan, products, call, stream);
    }
    if (status != CUBLAS_STATUS_SUCCESS) return product_error(backend, &plan->key, status);
    if (call->bias && plan->bias_after)
        CUDA_TRY(cuda_add_bias(backend, call->out, call->out_wide, call->bias, call->m, call->n,
                               stream));
    return status_ok();
}

void cuda_product(Backend *backend, const Product *call, BackendStream *stream) {
    const void *arrays[] = {call->a, call->b, call->bias, call->out};
    if (call->m == 0 || call->n == 0) return;
    if (call->k == 0 && call->accumulate) return;
    if (!cuda_begin(backend, stream, arrays, 4)) return;
    Status status;
    if (call->k == 0) { // a sum of nothing
        size_t bytes = dtype_bytes(call->out_wide ? backend->wide : backend->act);
        cudaError_t error = cudaMemsetAsync(call->out, 0, (size_t)call->m * (size_t)call->n * bytes,
                                            stream->handle);
        status = error == cudaSuccess ? status_ok() : cuda_error(error, "product");
    } else {
        status = product_run(backend, call, stream);
    }
    if (status.code != STATUS_OK) cuda_fail(backend, status);
    cuda_end(backend, stream, cudaSuccess, "product");
}
