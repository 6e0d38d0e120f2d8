// backend/cpu/real_fp64.c - the operations of the CPU in fp64.
#include <cblas.h>

typedef double Real;
typedef double Wide;
#define REAL_DTYPE DTYPE_FP64
#define WIDE_DTYPE DTYPE_FP64
#define REAL_GEMM cblas_dgemm
#define REAL_TABLE CPU_TABLE_FP64

#include "backend/cpu/real_table.h"
