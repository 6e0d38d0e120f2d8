#include "backend/backend.h"

static const struct {
    const char *name;
    size_t bytes;
} DTYPES[NUM_DTYPES] = {
    [DTYPE_BF16] = {"bf16", 2},
    [DTYPE_FP32] = {"fp32", 4},
    [DTYPE_FP64] = {"fp64", 8},
    [DTYPE_INT32] = {"int32", 4},
};

const char *dtype_name(Dtype dtype) {
    return DTYPES[dtype].name;
}

size_t dtype_bytes(Dtype dtype) {
    return DTYPES[dtype].bytes;
}
