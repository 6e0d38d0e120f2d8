// cuBLASLt of the fake CUDA runtime: products at one rate (fp8 that accumulates fast at twice it);
// of small ones, which checks ask for, also the result. What cuBLASLt does not multiply it refuses:
// operands of two formats but for fp8, and of fp8 what cuBLAS's guide says of cublasLtMatmul.
#include "profiler/number.h"
#include "tests/profiler/fake_cuda.h"

#include <cublasLt.h>

#include <stdlib.h>

// What is kept of a description, in units of its data, and of a matrix.
enum { DESC_A, DESC_B, DESC_COMPUTE, DESC_A_SCALE, DESC_B_SCALE, DESC_FAST };
enum { MATRIX_ROWS, MATRIX_COLUMNS, MATRIX_TYPE, MATRIX_LD };

// More multiplications are only timed.
#define MOST_MULTIPLIED 4e7

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    (void)status;
    return "a failure";
}

size_t cublasLtGetVersion(void) {
    return 130000;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    (void)scale;
    *out = calloc(1, sizeof **out);
    (*out)->data[DESC_COMPUTE] = (uint64_t)compute;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
    (void)bytes;
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        desc->data[DESC_A] = (uint64_t) * (const int32_t *)value;
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        desc->data[DESC_B] = (uint64_t) * (const int32_t *)value;
        break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        desc->data[DESC_A_SCALE] = *(const void *const *)value != NULL;
        break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        desc->data[DESC_B_SCALE] = *(const void *const *)value != NULL;
        break;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        desc->data[DESC_FAST] = (uint64_t) * (const int8_t *)value;
        break;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    *out = calloc(1, sizeof **out);
    (*out)->data[MATRIX_ROWS] = rows;
    (*out)->data[MATRIX_COLUMNS] = columns;
    (*out)->data[MATRIX_TYPE] = (uint64_t)type;
    (*out)->data[MATRIX_LD] = (uint64_t)ld;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    *out = calloc(1, sizeof **out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes) {
    (void)preference, (void)name, (void)value, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

// --- What there are products of

static Number number_of(cublasLtMatrixLayout_t matrix) {
    switch ((int)matrix->data[MATRIX_TYPE]) {
    case CUDA_R_16BF:
        return NUMBER_BFLOAT16;
    case CUDA_R_16F:
        return NUMBER_FLOAT16;
    case CUDA_R_8F_E4M3:
        return NUMBER_FP8;
    case CUDA_R_8F_E5M2:
        return NUMBER_FP8_E5M2;
    default:
        return NUMBER_FLOAT32;
    }
}

static bool rows_are_16_bytes(cublasLtMatrixLayout_t matrix) {
    return matrix->data[MATRIX_LD] * number_bytes(number_of(matrix)) % 16 == 0;
}

// Guide of cuBLAS 13.0, cublasLtMatmul, fp8 on devices of compute capability 8.9 to 12.x: format
// TN, rows of 16 bytes, scales of both operands, not E5M2 twice, a 16-bit or float32 output.
static bool has_fp8(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                    cublasLtMatrixLayout_t d) {
    return fake_value("fp8") != 0 && desc->data[DESC_A] == CUBLAS_OP_T &&
           desc->data[DESC_B] == CUBLAS_OP_N && desc->data[DESC_COMPUTE] == CUBLAS_COMPUTE_32F &&
           desc->data[DESC_A_SCALE] && desc->data[DESC_B_SCALE] && rows_are_16_bytes(a) &&
           rows_are_16_bytes(b) && rows_are_16_bytes(d) && number_bytes(number_of(b)) == 1 &&
           !(number_of(a) == NUMBER_FP8_E5M2 && number_of(b) == NUMBER_FP8_E5M2) &&
           number_bytes(number_of(d)) > 1;
}

static bool has_product(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
    Number in = number_of(a), out = number_of(d);
    if (number_bytes(in) == 1) return has_fp8(desc, a, b, d);
    bool fits = desc->data[DESC_COMPUTE] == CUBLAS_COMPUTE_32F || in == NUMBER_FLOAT32;
    return fits && number_of(b) == in && (out == in || out == NUMBER_FLOAT32) &&
           !desc->data[DESC_FAST];
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *out,
                                              int *num_results) {
    (void)handle, (void)c, (void)preference, (void)most;
    *num_results = 0;
    if (!has_product(desc, a, b, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
    *out = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS};
    *num_results = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// --- Products

typedef struct {
    const void *array;
    Number dtype;
    size_t along, across; // elements from one of the sum to the next, and to the next sum
} Operand;

static Operand operand_of(const void *array, cublasLtMatrixLayout_t matrix, bool sum_in_column) {
    size_t ld = (size_t)matrix->data[MATRIX_LD];
    return (Operand){array, number_of(matrix), sum_in_column ? 1 : ld, sum_in_column ? ld : 1};
}

static void multiply(const Operand *a, const Operand *b, size_t k, float beta, void *D,
                     cublasLtMatrixLayout_t d) {
    Number out = number_of(d);
    for (size_t column = 0; column < d->data[MATRIX_COLUMNS]; column++) {
        for (size_t row = 0; row < d->data[MATRIX_ROWS]; row++) {
            size_t at = row + column * d->data[MATRIX_LD];
            double sum = beta != 0 ? (double)beta * number_read(out, D, at) : 0;
            for (size_t i = 0; i < k; i++)
                sum += number_read(a->dtype, a->array, i * a->along + row * a->across) *
                       number_read(b->dtype, b->array, i * b->along + column * b->across);
            number_write(out, D, at, sum);
        }
    }
}

// d is n x m; a is k x n where it is transposed, else n x k; b k x m, transposed m x k.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    (void)handle, (void)alpha, (void)C, (void)c, (void)algo, (void)workspace, (void)workspace_bytes;
    bool a_turned = desc->data[DESC_A] == CUBLAS_OP_T, b_turned = desc->data[DESC_B] == CUBLAS_OP_T;
    size_t k = (size_t)a->data[a_turned ? MATRIX_ROWS : MATRIX_COLUMNS];
    if (k != b->data[b_turned ? MATRIX_COLUMNS : MATRIX_ROWS]) return CUBLAS_STATUS_INVALID_VALUE;
    double products = (double)k * (double)d->data[MATRIX_ROWS] * (double)d->data[MATRIX_COLUMNS];
    if (products <= MOST_MULTIPLIED) {
        Operand left = operand_of(A, a, a_turned), right = operand_of(B, b, !b_turned);
        multiply(&left, &right, k, *(const float *)beta, D, d);
    }
    double flops_per_s = desc->data[DESC_FAST] ? 2 * FAKE_FLOPS_PER_S : FAKE_FLOPS_PER_S;
    const double work_s = FAKE_CALL_S + 2 * products / flops_per_s;
    const cudaError_t error = fake_product(stream, work_s, (int)d->data[MATRIX_COLUMNS]);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
