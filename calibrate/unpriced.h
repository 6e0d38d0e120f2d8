// calibrate/unpriced.h - why a row of a table has no price.
#pragma once

#include "calibrate/kinds.h"

// A sentence for a row whose price is NAN: a name that its column does not have ("gemm_dtype
// \"bf16\" is unknown; known are bfloat16, ..."), or that the profile has no such kernel.
const char *unpriced_reason(const Kind *kind, const KernelTable *table, int row, Arena *arena);
