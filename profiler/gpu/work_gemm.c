// profiler/gpu/work_gemm.c - matrix products by cuBLASLt with the algorithm its heuristic names.
//
// cuBLASLt's matrices are in column-major order: a row-major [m][n] is its transpose, n x m. So the
// product is computed as output^T (n x m) = right^T (n x k) left^T (k x m), and
//   forward          right is W [n][k]:   k x n to it, transposed;  left x [m][k]:  k x m   (TN)
//   backward input   right is W [k][n]:   n x k;                    left dy [m][k]: k x m   (NN)
//   backward weight  right is x [k][n]:   n x k;  left dy [k][m]: m x k, transposed         (NT)
// and those of fp8 all as the forward one (gemm_operands).
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"

#include <stdlib.h>

#define MOST_POOL_BYTES 24e9

typedef struct {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d; // right, left, output as cuBLASLt has them
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes; // that the algorithm wants
    size_t left_bytes, right_bytes, output_bytes;
    size_t left_at, right_at, output_at; // in a copy
    float beta;
} GemmWork;

static cudaDataType_t cuda_type(Number dtype) {
    switch (dtype) {
    case NUMBER_BFLOAT16:
        return CUDA_R_16BF;
    case NUMBER_FLOAT16:
        return CUDA_R_16F;
    case NUMBER_FP8:
        return CUDA_R_8F_E4M3;
    case NUMBER_FP8_E5M2:
        return CUDA_R_8F_E5M2;
    default:
        return CUDA_R_32F;
    }
}

static void free_own(GpuWork *work) {
    GemmWork *gemm = work->own;
    if (gemm->d) cublasLtMatrixLayoutDestroy(gemm->d);
    if (gemm->b) cublasLtMatrixLayoutDestroy(gemm->b);
    if (gemm->a) cublasLtMatrixLayoutDestroy(gemm->a);
    if (gemm->desc) cublasLtMatmulDescDestroy(gemm->desc);
    free(gemm);
}

static Status call(GpuWork *work) {
    const GemmWork *gemm = work->own;
    GpuSession *session = work->session;
    char *copy = work->base + (size_t)gpu_next_copy(work) * work->copy_bytes;
    const float alpha = 1;
    void *output = copy + gemm->output_at;
    CUBLAS_TRY(cublasLtMatmul(session->lt, gemm->desc, &alpha, copy + gemm->right_at, gemm->a,
                              copy + gemm->left_at, gemm->b, &gemm->beta, output, gemm->d, output,
                              gemm->d, &gemm->algo, session->workspace, gemm->workspace_bytes,
                              session->stream));
    return status_ok();
}

// --- Description

static Status describe_scales(GemmWork *gemm, const GpuSession *session, GemmLayout layout) {
    const void *one = session->one;
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                              &one, sizeof one));
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                              &one, sizeof one));
    // As Transformer Engine has it: fp8_gemm_fprop does without the split accumulator,
    // fp8_gemm_dgrad and fp8_gemm_wgrad do not.
    int8_t fast = layout == GEMM_FORWARD;
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                              sizeof fast));
    return status_ok();
}

static Status describe(GemmWork *gemm, const GpuSession *session, const GemmRequest *request) {
    cublasComputeType_t compute =
        request->dtype == NUMBER_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    CUBLAS_TRY(cublasLtMatmulDescCreate(&gemm->desc, compute, CUDA_R_32F));
    GemmLayout operands = gemm_operands(request);
    int32_t a = operands == GEMM_FORWARD ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t b = operands == GEMM_BACKWARD_WEIGHT ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_TRY(
        cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a));
    CUBLAS_TRY(
        cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b));
    if (request->dtype == NUMBER_FP8) TRY(describe_scales(gemm, session, request->layout));
    uint64_t m = (uint64_t)request->m, n = (uint64_t)request->n, k = (uint64_t)request->k;
    cudaDataType_t a_type = cuda_type(request->dtype), b_type = cuda_type(gemm_left_dtype(request));
    uint64_t a_rows = a == CUBLAS_OP_T ? k : n, b_rows = b == CUBLAS_OP_T ? m : k;
    CUBLAS_TRY(
        cublasLtMatrixLayoutCreate(&gemm->a, a_type, a_rows, n * k / a_rows, (int64_t)a_rows));
    CUBLAS_TRY(
        cublasLtMatrixLayoutCreate(&gemm->b, b_type, b_rows, m * k / b_rows, (int64_t)b_rows));
    CUBLAS_TRY(
        cublasLtMatrixLayoutCreate(&gemm->d, cuda_type(request->out_dtype), n, m, (int64_t)n));
    return status_ok();
}

static Status choose_with(GemmWork *gemm, const GpuSession *session, const GemmRequest *request,
                          cublasLtMatmulPreference_t preference) {
    uint64_t workspace = GPU_WORKSPACE_BYTES;
    CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    cublasLtMatmulHeuristicResult_t result;
    int num_results = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(session->lt, gemm->desc, gemm->a, gemm->b, gemm->d, gemm->d,
                                       preference, 1, &result, &num_results);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && !num_results))
        return status_error(STATUS_NO, "meshwright: cuBLASLt has no %s product of m %d, n %d, k %d",
                            number_name(request->dtype), request->m, request->n, request->k);
    CUBLAS_TRY(status);
    gemm->algo = result.algo;
    gemm->workspace_bytes = result.workspaceSize;
    return status_ok();
}

static Status choose(GemmWork *gemm, const GpuSession *session, const GemmRequest *request) {
    cublasLtMatmulPreference_t preference;
    CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
    Status status = choose_with(gemm, session, request, preference);
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

// --- Arrays

static Status place(GpuWork *work, int num_copies) {
    GemmWork *gemm = work->own;
    const GemmRequest *request = &work->request.gemm;
    size_t m = (size_t)request->m, n = (size_t)request->n, k = (size_t)request->k;
    gemm->left_bytes = m * k * number_bytes(gemm_left_dtype(request));
    gemm->right_bytes = n * k * number_bytes(request->dtype);
    gemm->output_bytes = m * n * number_bytes(request->out_dtype);
    gemm->right_at = gpu_aligned(gemm->left_bytes);
    gemm->output_at = gemm->right_at + gpu_aligned(gemm->right_bytes);
    work->copy_bytes = gemm->output_at + gpu_aligned(gemm->output_bytes);
    double touched = (double)gemm->left_bytes + (double)gemm->right_bytes;
    work->num_copies =
        num_copies > 0 ? num_copies
                       : gpu_num_copies(work->session, touched, work->copy_bytes, MOST_POOL_BYTES);
    TRY(gpu_pool(work->session, (size_t)work->num_copies * work->copy_bytes));
    work->base = work->session->pool;
    return status_ok();
}

static Status fill(GpuWork *work) {
    const GemmWork *gemm = work->own;
    const GemmRequest *request = &work->request.gemm;
    GpuSession *session = work->session;
    size_t m = (size_t)request->m, n = (size_t)request->n, k = (size_t)request->k;
    for (int i = 0; i < work->num_copies; i++) {
        char *copy = work->base + (size_t)i * work->copy_bytes;
        CUDA_TRY(cudaMemsetAsync(copy, 0, work->copy_bytes, session->stream));
        if (request->zeros) continue;
        uint64_t seed = 2 * (uint64_t)i + 1;
        CUDA_TRY(kernel_fill(copy + gemm->left_at, gemm_left_dtype(request), m * k, FILL_NORMAL, 1,
                             seed, session->stream));
        CUDA_TRY(kernel_fill(copy + gemm->right_at, request->dtype, n * k, FILL_NORMAL, 1, seed + 1,
                             session->stream));
    }
    CUDA_TRY(cudaStreamSynchronize(session->stream));
    return status_ok();
}

Status gpu_gemm_prepare(GpuWork *work, int num_copies) {
    const GemmRequest *request = &work->request.gemm;
    if (request->m < 1 || request->n < 1 || request->k < 1)
        return status_error(STATUS_INVALID, "meshwright: m %d, n %d, k %d; expected at least 1",
                            request->m, request->n, request->k);
    GemmWork *gemm = calloc(1, sizeof *gemm);
    if (!gemm) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    gemm->beta = request->accumulate ? 1 : 0;
    work->own = gemm;
    work->free_own = free_own;
    work->call = call;
    TRY(describe(gemm, work->session, request));
    TRY(choose(gemm, work->session, request));
    TRY(place(work, num_copies));
    return fill(work);
}

Status gpu_gemm_apply(GpuWork *work, const void *left, const void *right, void *output) {
    const GemmWork *gemm = work->own;
    cudaStream_t stream = work->session->stream;
    char *copy = work->base;
    CUDA_TRY(cudaMemcpyAsync(copy + gemm->left_at, left, gemm->left_bytes, cudaMemcpyHostToDevice,
                             stream));
    CUDA_TRY(cudaMemcpyAsync(copy + gemm->right_at, right, gemm->right_bytes,
                             cudaMemcpyHostToDevice, stream));
    CUDA_TRY(cudaMemcpyAsync(copy + gemm->output_at, output, gemm->output_bytes,
                             cudaMemcpyHostToDevice, stream));
    TRY(call(work));
    CUDA_TRY(cudaMemcpyAsync(output, copy + gemm->output_at, gemm->output_bytes,
                             cudaMemcpyDeviceToHost, stream));
    CUDA_TRY(cudaStreamSynchronize(stream));
    return status_ok();
}
