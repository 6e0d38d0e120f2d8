// costmodel/kernel/measured_attention.h - seconds of an attention operator by the measured kernels
// of its GPU (config/kernels/kernel_attention.h).
//
// The tables are of the kernels that inference engines run, so they price passes that do not train
// (AttentionOp.served). Training software runs others: on an H200 the tables' forward takes 2.4
// times as long as cuDNN's for prompts of 256 tokens, 1.2 times for 16,384
// (tools/figures/measured_serving.py --program).
//
// Model:  whole prompts (every query sees all keys before it) by kernel_context.h, one new token
//         of each sequence by kernel_generation.h. A latent operator is priced by the tables of
//         latent attention. The products of a prompt have the mean of query's and value's size. A
//         new token is multiplied by the compressed keys and values themselves. Beyond the measured
//         sizes the formula goes on from the grid's edge: no size makes the price jump. Heads of a
//         size that was not measured take the nearest kernel.
// Limits: NAN, so that the compact formula (compute.h) prices it: backward, chunks of a prompt
//         behind a cache, steps of a context-parallel ring, profiles of another architecture.
#pragma once

#include "config/kernels/kernels.h"
#include "workload/pass/operator.h"

// Seconds of a short test on the device, launches included, or NAN.
//   kernels  with the sections of attention (kernels_load_whole), or NULL
double measured_attention_s(const CalibratedKernels *kernels, const Op *op);
