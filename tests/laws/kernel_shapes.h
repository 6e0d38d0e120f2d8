// tests/laws/kernel_shapes.h - random rows of kernel tables, and the tables that they make.
#pragma once

#include "calibrate/kinds.h"
#include "tests/laws/draw.h"

#include <cjson/cJSON.h>

// The dimensions of a kind that the law speaks of, ending with NULL: what there is more or less of.
// Head sizes, windows, experts and how they share are which kernel it is.
const char *const *kernel_dimensions(const Kind *kind);

// A row of a kind: {column: number or text}; the caller frees it.
//   profile  whose expert layers are drawn, if there are some
cJSON *kernel_shape_draw(const Kind *kind, const KernelProfile *profile, Draw *draw);

// The table of such rows, as a file holds it.
KernelTable kernel_shapes_table(const Kind *kind, cJSON *const *shapes, int num_shapes,
                                Arena *arena);
