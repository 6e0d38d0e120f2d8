// calibrate/sustained.h - what the power limit leaves of a board's products, as `profile` measured.
//
// Formula:  sustained_frac = geometric mean of latency_ms / latency_ms_steady
//   of the shapes that both gemm.csv (short calls, at the clocks that they find) and sustained.csv
//   (seconds back to back, on normal numbers) have.
// Boards of one kind differ by up to 13 % in it (profiler/measured/README.md), and the files in
// hw-profiles/ hold published clusters': a GPU file of one's own can hold one's own board's.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/machine/gpu.h"

// *out is NAN where folder has not both tables, or they no shape in common. Refuses what is no
// time.
Status sustained_frac_read(const char *folder, Arena *arena, double *out);

// What products would draw at full rate, so that costmodel/kernel/compute.h has that share of it.
double sustained_full_rate_watts(const Gpu *gpu, double frac);
