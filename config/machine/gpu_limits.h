// config/machine/gpu_limits.h - what no GPU profile can state: peaks out of order, memory faster
// than any there is, more than the datasheet of the GPU whose name it bears.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "config/machine/gpu.h"

// The fastest memory of one package: 16 stacks of HBM4, each 2048 bits at 8 Gbit/s.
// Source: JEDEC JESD270-4 (April 2025) for a stack; no announced package carries more than 16.
#define MEMORY_MOST_BYTES_PER_S (16 * 2048 / 8 * 8e9)

// Flops at the highest peak for each byte from memory. The bundled profiles have 74 (h20-96g) to
// 1875 (gb300-288g in nvfp4); beyond five times that a unit is wrong. Two cores of a server that
// `profile --device cpu` measured have 0.997, as few cores share the memory of many; below a tenth
// a unit is wrong.
#define RIDGE_LEAST_FLOPS_PER_BYTE 0.1
#define RIDGE_MOST_FLOPS_PER_BYTE 1e4

// What a profile may state above the bundled one of its name: datasheets round, and drivers count
// memory by other units.
#define DATASHEET_TOLERANCE_FRAC 0.02

// Refuses peaks of which a narrower format's is lower than a wider one's. Peaks of fp64 and fp32
// are not compared, as matrix units may have either alone. Also refuses memory beyond
// MEMORY_MOST_BYTES_PER_S and a ridge outside the bounds above. The root is the profile, for the
// message.
Status gpu_check_limits(const JsonNode *root, const Gpu *gpu);

// Refuses peaks, memory and its bandwidth above those of the bundled profile of the same name.
Status gpu_check_datasheet(const JsonNode *root, const Gpu *gpu, const Gpu *bundled);
