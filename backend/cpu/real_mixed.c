// backend/cpu/real_mixed.c - the operations of the CPU with act in fp32 and wide in fp64: two
// sizes, as a GPU's bf16 and fp32 are, for tests of what works with both.
#include <cblas.h>

typedef float Real;
typedef double Wide;
#define REAL_DTYPE DTYPE_FP32
#define WIDE_DTYPE DTYPE_FP64
#define REAL_GEMM cblas_sgemm
#define REAL_TABLE CPU_TABLE_MIXED

#include "backend/cpu/real_table.h"
