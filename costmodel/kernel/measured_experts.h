// costmodel/kernel/measured_experts.h - seconds of an engine's experts by the measured layers of
// its GPU (config/kernels/kernel_moe.h).
//
// Model:  kernel_moe.h of the operator's shape with balanced routing, in the number format of its
//         products. Where several implementations were measured, the fastest. Beyond the measured
//         sizes the formula goes on from the grid's edge: no size makes the price jump.
// Limits: NAN, so that the compact formula (compute.h) prices it: a format or kind of expert that
//         was not measured, profiles of another architecture. An uneven load is one of so many more
//         tokens, evenly spread.
#pragma once

#include "config/kernels/kernels.h"
#include "costmodel/kernel/moe_load.h"
#include "workload/pass/operator.h"

// How the operator's tokens fall on the experts of a rank.
MoeRouting experts_routing(const ExpertsOp *experts);

// Seconds of a short test on the device, launches included, or NAN.
//   kernels  with the section of experts (kernels_load_whole), or NULL
double measured_experts_s(const CalibratedKernels *kernels, const Op *op);
