// costmodel/kernel/core_op.h - seconds of one operator on one core of a CPU (a GPU file with a
// section `core`, config/machine/core.h).
//
// Model:  a core does one thing at a time, without launches beside it:
//   product_s   = groups (call + flops / rate (1 + half_m / m + half_n / n + half_k / k))
//   attention_s = call + flops / rate (1 + half_tokens / tokens + half_head_dim / head_dim)
//   others      = call + bytes / (bytes_per_s of the loop that it is) + angles angle_s
//     A product copies its operands into blocks (m k and k n numbers) and adds up its output (m n)
//     beside the 2 m n k flops. Divided by those they are 1 / n, 1 / m and 1 / k. Attention works
//     on blocks of queries with all keys that one of them sees, masked ones too (as 1 / tokens of
//     the causal flops), and takes an exponential for each score (1 / head_dim). What is bound by
//     memory on a GPU is bound by a loop's arithmetic here, so that each loop has its own rate.
// Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM Trans.
//         Math. Softw. 34(3), 2008 (the copies of both operands, section 4); backend/cpu (the
//         blocks of attention, the loops). Constants: fitted to measurements of the machine with
//         all cores busy (calibrate/core_fit.h).
// Limits: kernels of other generations, sustained power and measured kernels are a GPU's alone.
#pragma once

#include "config/machine/gpu.h"
#include "workload/pass/operator.h"

double core_product_s(const CoreProduct *law, double m, double n, double k);

//   flops  causal ones, of all heads and sequences
double core_attention_s(const CoreAttention *law, double flops, double tokens, double head_dim);

double core_loop_s(const CoreLaws *laws, CoreLoop loop, bool backward, double bytes, double angles);

// The loop that a memory-bound operator of the Program is, by its name.
CoreLoop core_loop(const Op *op);

// Of any operator but a collective; gpu->core is there and has its precision.
double core_op_s(const Gpu *gpu, const Op *op);

// Of the optimizer, bytes as costmodel/pass/price.c counts them.
double core_optimizer_s(const Gpu *gpu, int precision, double bytes);
