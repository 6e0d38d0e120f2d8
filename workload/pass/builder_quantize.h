// workload/pass/builder_quantize.h - what products of 8 bits and less add to a linear layer: passes
// over memory that quantize its input and the gradient of its output.
#pragma once

#include "workload/pass/builder.h"

double quantized_input_bytes(const Execution *execution); // of a product's input as it is kept
double
quantized_gathered_bytes(const Execution *execution); // of it as tensor parallelism gathers it

// Values of one linear layer on one rank; all 0 where its product is not quantized.
typedef struct {
    double input;      // quantized before the product
    double gradient;   // of its output: quantized before the products of the backward
    double transposed; // gathered quantized, then laid out anew for the product of the weight
                       // gradient, by GPUs whose 8-bit products sum along rows only
} QuantizedValues;
QuantizedValues quantized_values(const Builder *b, WeightSplit split, double tokens, double local_n,
                                 double local_k);

// Bytes moved, those of slower kernels counted as more.
double quantize_bytes(const Builder *b, double values);
double transpose_bytes(const Builder *b, double values);

// Whether a collective runs piece by piece beside the product that it is pipelined_with.
bool runs_in_pieces(const Builder *b, const Op *op);
