// backend/cpu/real_fp32.c - the operations of the CPU in fp32.
#include <cblas.h>

typedef float Real;
typedef float Wide;
#define REAL_DTYPE DTYPE_FP32
#define WIDE_DTYPE DTYPE_FP32
#define REAL_GEMM cblas_sgemm
#define REAL_TABLE CPU_TABLE_FP32

#include "backend/cpu/real_table.h"
