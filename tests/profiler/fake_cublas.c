// cuBLASLt of the fake CUDA runtime: products of any shape at one rate.
#include "tests/profiler/fake_cuda.h"

#include <cublasLt.h>

#include <stdlib.h>

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
    (void)compute, (void)scale;
    *out = calloc(1, sizeof **out);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
    (void)bytes;
    if (name == CUBLASLT_MATMUL_DESC_TRANSA) desc->data[0] = (uint64_t) * (const int32_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    (void)type, (void)ld;
    *out = calloc(1, sizeof **out);
    (*out)->data[0] = rows;
    (*out)->data[1] = columns;
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

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *out,
                                              int *num_results) {
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)most;
    *out = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS};
    *num_results = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// d is n x m, and a k x n where it is transposed, else n x k.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    (void)handle, (void)alpha, (void)A, (void)B, (void)b, (void)beta, (void)C, (void)c, (void)D;
    (void)algo, (void)workspace, (void)workspace_bytes;
    double k = (double)a->data[desc->data[0] == CUBLAS_OP_T ? 0 : 1];
    double flops = 2 * k * (double)d->data[0] * (double)d->data[1];
    fake_work(stream, FAKE_CALL_S + flops / FAKE_FLOPS_PER_S, true);
    return CUBLAS_STATUS_SUCCESS;
}
