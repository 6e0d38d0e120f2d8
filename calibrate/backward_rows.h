// calibrate/backward_rows.h - backward products among the rows of a table of products.
//
// A backward product is a product of its own shape (profiler/measured/README.md), in other layouts
// of its operands, for which libraries take other kernels: two thirds of what training runs.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/kernel_table.h"

// Columns that a table of backward products has beside those of products; ends with NULL.
extern const char *const BACKWARD_COLUMNS[];

// Adds to products the rows of backward in bfloat16 that write bfloat16 and do not add to what is
// there: what else is read and written is priced by costmodel/kernel/compute.h. Rows of other
// formats are left. The formats float16 and tf32 have no law. Backward products of fp8 are none of
// the kernels that the rows of fp8 in products are (gradients are E5M2, sums are not accumulated
// fast). Both tables have the columns of products and latency_ms; cells of further columns are
// empty.
void backward_rows_add(const KernelTable *backward, KernelTable *products, Arena *arena);
