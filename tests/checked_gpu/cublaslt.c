// tests/checked_gpu/cublaslt.c - products in fp32 by OpenBLAS, in column-major order as cuBLASLt's,
// and what cuBLASLt asks of whoever calls it: an algorithm is one of these matrices, arrays
// lie as was promised when it was asked for, descriptions are still there.
//
// As cuBLASLt may, it has no product with a bias for some shapes (n not a multiple of 8), and of
// some that it promised (k not one of 4) says only when it is called that there is none. An
// algorithm of more rows (columns to it) serves for fewer, but not for some numbers of them (3 more
// than a multiple of 4).
#include "tests/checked_gpu/checked_gpu.h"

#include <cblas.h>
#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t kind; // of the three below
    int32_t right_transposed, left_transposed;
    uint32_t epilogue;
    const float *bias;
} Desc;

typedef struct {
    uint32_t kind;
    uint64_t rows, columns;
    int64_t stride;
} Matrix;

typedef struct {
    uint32_t kind;
    uint64_t workspace_bytes;
    uint32_t alignment[4]; // of A, B, C, D
} Preference;

// What an algorithm was chosen for, in the 64 bytes that cuBLASLt gives it.
typedef struct {
    uint64_t magic;
    int32_t m, n, k, epilogue;
    int32_t right_transposed, left_transposed;
    uint16_t alignment[4];
    uint64_t workspace_bytes;
} Choice;

_Static_assert(sizeof(Choice) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm holds a choice");

enum { DESC = 0x44455343, MATRIX = 0x4d415458, PREFERENCE = 0x50524546, WORKSPACE_BYTES = 4096 };
#define MAGIC UINT64_C(0x6d65736877726967)

static int num_alive; // descriptions
static int num_asked;

int checked_num_asked(void) {
    return num_asked;
}

static cublasStatus_t make(void *out, uint32_t kind, size_t bytes) {
    uint32_t *made = calloc(1, bytes);
    if (!made) return CUBLAS_STATUS_ALLOC_FAILED;
    *made = kind;
    num_alive++;
    memcpy(out, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

static void *checked(const void *described, uint32_t kind) {
    uint32_t found;
    memcpy(&found, described, sizeof found);
    if (found != kind) checked_find("cuBLASLt is given something else than it expects");
    return (void *)(uintptr_t)described;
}

static cublasStatus_t unmake(void *described, uint32_t kind) {
    *(uint32_t *)checked(described, kind) = 0;
    free(described);
    num_alive--;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
    static char handle;
    *out = (cublasLtHandle_t)(void *)&handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    (void)handle;
    if (num_alive > 0) checked_find("%d descriptions of cuBLASLt are left", num_alive);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "a status of cuBLAS";
}

// --- Descriptions

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        checked_find("a product that is not computed in fp32");
    return make(out, DESC, sizeof(Desc));
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t described,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
    Desc *desc = checked(described, DESC);
    if (name == CUBLASLT_MATMUL_DESC_TRANSA)
        memcpy(&desc->right_transposed, value, bytes);
    else if (name == CUBLASLT_MATMUL_DESC_TRANSB)
        memcpy(&desc->left_transposed, value, bytes);
    else if (name == CUBLASLT_MATMUL_DESC_EPILOGUE)
        memcpy(&desc->epilogue, value, bytes);
    else if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
        memcpy(&desc->bias, value, bytes);
    else if (name != CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    return unmake(desc, DESC);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
    if (type != CUDA_R_32F) checked_find("a matrix that is not fp32");
    if (stride < (int64_t)rows) checked_find("a matrix whose columns overlap");
    cublasStatus_t status = make(out, MATRIX, sizeof(Matrix));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    Matrix *matrix = checked(*out, MATRIX);
    *matrix = (Matrix){MATRIX, rows, columns, stride};
    return status;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t described,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes) {
    Matrix *matrix = checked(described, MATRIX);
    if (name != CUBLASLT_MATRIX_LAYOUT_COLS) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&matrix->columns, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
    return unmake(matrix, MATRIX);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    return make(out, PREFERENCE, sizeof(Preference));
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return unmake(preference, PREFERENCE);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t described,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes) {
    Preference *preference = checked(described, PREFERENCE);
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        memcpy(&preference->workspace_bytes, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    const int which = (int)name - (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (which < 0 || which > 3) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&preference->alignment[which], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

// --- Choosing

static Choice choice_of(const Desc *desc, const Matrix *right, const Matrix *left,
                        const Matrix *out) {
    const Choice choice = {.magic = MAGIC,
                           .m = (int32_t)out->columns,
                           .n = (int32_t)out->rows,
                           .k = (int32_t)(desc->right_transposed ? right->rows : right->columns),
                           .epilogue = (int32_t)desc->epilogue,
                           .right_transposed = desc->right_transposed,
                           .left_transposed = desc->left_transposed,
                           .workspace_bytes = WORKSPACE_BYTES};
    const uint64_t left_k = desc->left_transposed ? left->columns : left->rows;
    const uint64_t left_m = desc->left_transposed ? left->rows : left->columns;
    const uint64_t right_n = desc->right_transposed ? right->columns : right->rows;
    if (left_k != (uint64_t)choice.k || left_m != out->columns || right_n != out->rows)
        checked_find("a product of matrices that do not fit each other");
    return choice;
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                               cublasLtMatrixLayout_t right, cublasLtMatrixLayout_t left,
                               cublasLtMatrixLayout_t before, cublasLtMatrixLayout_t out,
                               cublasLtMatmulPreference_t preferred, int num_wanted,
                               cublasLtMatmulHeuristicResult_t *results, int *num_results) {
    (void)handle, (void)before, (void)num_wanted;
    const Preference *preference = checked(preferred, PREFERENCE);
    Choice choice = choice_of(checked(desc, DESC), checked(right, MATRIX), checked(left, MATRIX),
                              checked(out, MATRIX));
    for (int i = 0; i < 4; i++) choice.alignment[i] = (uint16_t)preference->alignment[i];
    *num_results = 0;
    num_asked++;
    if (choice.epilogue == CUBLASLT_EPILOGUE_BIAS && choice.n % 8 != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (preference->workspace_bytes < WORKSPACE_BYTES) return CUBLAS_STATUS_NOT_SUPPORTED;
    *num_results = 1;
    results[0].workspaceSize = WORKSPACE_BYTES;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    memset(&results[0].algo, 0, sizeof results[0].algo);
    memcpy(&results[0].algo, &choice, sizeof choice);
    return CUBLAS_STATUS_SUCCESS;
}

// --- Products

typedef struct {
    Choice choice;
    float beta;
    const float *right, *left, *bias;
    float *out;
    int64_t right_stride, left_stride;
} Multiply;

// The bias is there before the product is added to it, as on the CPU: so sums are the same bits.
static void run_multiply(void *arguments) {
    const Multiply *p = arguments;
    const Choice *c = &p->choice;
    for (int64_t i = 0; p->bias && i < (int64_t)c->m * c->n; i++)
        p->out[i] = (p->beta == 0 ? 0 : p->out[i]) + p->bias[i % c->n];
    cblas_sgemm(CblasColMajor, c->right_transposed ? CblasTrans : CblasNoTrans,
                c->left_transposed ? CblasTrans : CblasNoTrans, c->n, c->m, c->k, 1, p->right,
                (int)p->right_stride, p->left, (int)p->left_stride, p->bias ? 1 : p->beta, p->out,
                c->n);
}

// Whether the algorithm is one of these very sizes.
static bool check_choice(const Choice *is, const Choice *asked) {
    const bool weight = asked->left_transposed; // its rows are summed over
    const int32_t rows = weight ? asked->k : asked->m, most = weight ? is->k : is->m;
    if (is->magic != MAGIC || (weight ? is->m != asked->m : is->k != asked->k) || most < rows ||
        is->n != asked->n || is->epilogue != asked->epilogue ||
        is->right_transposed != asked->right_transposed ||
        is->left_transposed != asked->left_transposed)
        checked_find("a product of m %d, n %d, k %d with the algorithm of another", asked->m,
                     asked->n, asked->k);
    return most == rows;
}

static void check_alignment(const Choice *choice, int which, const void *array) {
    if ((uintptr_t)array % choice->alignment[which] != 0)
        checked_find("a product whose matrix %c lies at no multiple of %u bytes, as was promised",
                     'A' + which, choice->alignment[which]);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t described,
                              const void *alpha, const void *right, cublasLtMatrixLayout_t rights,
                              const void *left, cublasLtMatrixLayout_t lefts, const void *beta,
                              const void *before, cublasLtMatrixLayout_t befores, void *out,
                              cublasLtMatrixLayout_t outs, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    (void)handle, (void)befores;
    const Desc *desc = checked(described, DESC);
    const Matrix *r = checked(rights, MATRIX), *l = checked(lefts, MATRIX);
    Choice choice;
    memcpy(&choice, algo, sizeof choice);
    const Choice asked = choice_of(desc, r, l, checked(outs, MATRIX));
    const int32_t rows = asked.left_transposed ? asked.k : asked.m;
    if (!check_choice(&choice, &asked) && rows % 4 == 3) return CUBLAS_STATUS_NOT_SUPPORTED;
    choice.m = asked.m, choice.k = asked.k;
    const void *const arrays[] = {right, left, before, out};
    for (int i = 0; i < 4; i++) check_alignment(&choice, i, arrays[i]);
    const bool bias = choice.epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (bias && choice.k % 4 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (*(const float *)alpha != 1 || before != out || workspace_bytes < choice.workspace_bytes)
        checked_find("a product that is scaled, has another C than D, or too little workspace");
    const Multiply multiply = {.choice = choice,
                               .beta = *(const float *)beta,
                               .right = right,
                               .left = left,
                               .bias = bias ? desc->bias : NULL,
                               .out = out,
                               .right_stride = r->stride,
                               .left_stride = l->stride};
    Call call = {
        .what = "a product", .run = run_multiply, .arguments = &multiply, .bytes = sizeof multiply};
    Accesses *a = &call.accesses;
    reads(a, right, (int64_t)(r->stride * (int64_t)r->columns) * 4);
    reads(a, left, (int64_t)(l->stride * (int64_t)l->columns) * 4);
    reads(a, multiply.bias, (int64_t)choice.n * 4);
    if (multiply.beta != 0) reads(a, out, (int64_t)choice.m * choice.n * 4);
    writes(a, out, (int64_t)choice.m * choice.n * 4);
    writes(a, workspace, (int64_t)choice.workspace_bytes);
    return checked_queue(stream, &call) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_EXECUTION_FAILED;
}
