// workload/pass/bytes.h - how many bytes one number takes, by what it is.
#pragma once

#include "config/job/training.h"

// Whether products read inputs that were quantized to 8 bits or less.
bool precision_is_quantized(int precision);

// Of products that are never quantized (router, head, attention scores): the training's own
// precision, bf16 where that is quantized.
int unquantized_precision(const Execution *execution);

double activation_bytes(const Execution *execution);       // of one activation
double weight_read_bytes(const Execution *execution);      // of one weight as a product reads it
double reduced_gradient_bytes(const Execution *execution); // of one gradient while it is reduced
double gathered_weight_bytes(const Execution *execution);  // of one weight while it is gathered

// Bytes that are gathered of frozen weights over those that they are stored in.
//   tuning  NULL: nothing is frozen
double frozen_gathered_frac(const Execution *execution, const FineTuning *tuning);

// Whether backwards add up partial gradients (workload/pass/block.h) over tp before they scatter
// them. And what a rank adds up at the end of a step, of so many parameters of its own. Of shards
// that backwards have scattered it is as much as its share is on average.
//   num_scattered  split_num_scattered (workload/pass/split.h)
bool sums_partial_in_blocks(const Execution *execution, int num_scattered);
double partial_sum_bytes(const Execution *execution, int num_scattered, double partial_parameters);

// What is stored for one parameter. Mixed precision as the stack has it (Micikevicius et al. 2018,
// arXiv:1710.03740; Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1); training in fp32, tf32
// or fp64 keeps one copy of the weights, in that format.
typedef struct {
    double weight;         // the weights that are read
    double master;         // copy in the optimizer, 0 where there is none
    double moments;        // all moments together
    double gradient;       // gradient buffer
    double gradient_copy;  // Stack.grad_copy_bytes_per_param
    double whole_gradient; // of ZeRO-2 and -3, where whole ones are added up over a step
} StateBytes;

//   optimizer  Optimizer
StateBytes state_bytes(const Execution *execution, int optimizer);

// StateBytes.gradient, whatever the optimizer.
double kept_gradient_bytes(const Execution *execution);
