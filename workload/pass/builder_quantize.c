#include "workload/pass/builder_quantize.h"

// 4-bit values have a scale of one byte for 16.
double quantized_input_bytes(const Execution *execution) {
    if (execution->precision == PRECISION_NVFP4) return 0.5 + 1.0 / 16;
    return precision_is_quantized(execution->precision) ? 1 : activation_bytes(execution);
}

// Scales of rows are those of whole rows on one rank and of whole columns on another: such products
// gather 16 bits (pytorch/torchtitan, models/llama3/infra/parallelize.py: float8 all-gather with
// tensorwise recipes only).
double quantized_gathered_bytes(const Execution *execution) {
    if (execution->fp8_recipe == FP8_ROWWISE) return activation_bytes(execution);
    return quantized_input_bytes(execution);
}

static bool sums_along_rows_only(const Builder *b) {
    return b->execution->precision == PRECISION_FP8 && b->gpu->shared->fp8_sums_along_rows_only;
}

QuantizedValues quantized_values(const Builder *b, WeightSplit split, double tokens, double local_n,
                                 double local_k) {
    if (!precision_is_quantized(b->precision)) return (QuantizedValues){0};
    QuantizedValues values = {.input = tokens * local_k, .gradient = tokens * local_n};
    // What is gathered (a column's input, the gradient of a row's output) is quantized before where
    // that is what is gathered.
    const bool before = b->gathered_bytes_per_value == b->input_bytes_per_value;
    if (split == SPLIT_NONE || b->split.tp == 1 || !b->split.sequence_parallel || !before)
        return values;
    double *gathered = split == SPLIT_COLUMN ? &values.input : &values.gradient;
    if (sums_along_rows_only(b)) values.transposed = *gathered;
    *gathered /= b->split.tp;
    return values;
}

// A value is quantized for both its uses, row-wise and column-wise. With a scale known before
// (delayed) or of its own block, one kernel reads 16 bits and writes 8 twice. A scale of the whole
// tensor needs a pass that finds the largest value first; scales of rows and of columns are two
// such pairs of passes. What writes columns takes transpose_overhead_frac longer.
double quantize_bytes(const Builder *b, double values) {
    const Execution *execution = b->execution;
    const Stack *stack = &execution->stack;
    const double plain = 1 + stack->launch.quantize_overhead_frac,
                 transposing = 1 + stack->launch.transpose_overhead_frac;
    switch (execution->fp8_recipe) {
    case FP8_CURRENT:
    case FP8_TENSORWISE:
        return values * (2 * plain + 4 * transposing);
    case FP8_ROWWISE:
        return values * (7 * plain + 3 * transposing);
    default:
        return values * 4 * transposing;
    }
}

double transpose_bytes(const Builder *b, double values) {
    return values * 2 * (1 + b->execution->stack.launch.transpose_overhead_frac);
}

// Products with scales of rows wait for their whole gather: async tensor parallelism joins gathers
// of values with one scale only (pytorch/pytorch issue 149990).
bool runs_in_pieces(const Builder *b, const Op *op) {
    const bool rows = b->execution->fp8_recipe == FP8_ROWWISE &&
                      op_is_collective(op, COLLECTIVE_ALL_GATHER) && op->stream == STREAM_TP;
    return op->pipelined_with >= 0 && !rows;
}
