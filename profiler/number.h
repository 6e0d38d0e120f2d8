// profiler/number.h - the number formats of what is measured, and their values on the host.
//
// Source: IEEE 754-2019 (binary16, binary32); Kalamkar et al., "A Study of BFLOAT16 for Deep
//         Learning Training", 2019; Micikevicius et al., "FP8 Formats for Deep Learning",
//         arXiv:2209.05433, 2022, table 1 (E4M3: no infinity, largest 448; E5M2: as IEEE's
//         formats, largest 57344).
#pragma once

#include <stddef.h>

typedef enum {
    NUMBER_BFLOAT16,
    NUMBER_FLOAT16,
    NUMBER_FLOAT32,
    NUMBER_TF32, // float32 in memory
    NUMBER_FP8,  // E4M3
    NUMBER_FP8_E5M2,
    NUMBER_INT32,
    NUMBER_UINT8,
    NUM_NUMBERS
} Number;

const char *number_name(Number dtype); // as gemm_dtype spells it
size_t number_bytes(Number dtype);     // of one element

// Reads and writes element i of an array; writing rounds to nearest, ties to even, and stops at the
// largest number of the format.
double number_read(Number dtype, const void *array, size_t i);
void number_write(Number dtype, void *array, size_t i, double value);
