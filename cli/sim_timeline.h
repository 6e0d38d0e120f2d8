// cli/sim_timeline.h - a simulation as a timeline of the trace.
#pragma once

#include "report/trace.h"
#include "sim/sim.h"

// Rows are the GPUs of shown[num_gpus]; NULL: of each stage the one in the lane that ends last.
//   result  with times (SimOptions.keep), of this Program
//   host_s  of the step, what follows the last instruction
TraceTimeline sim_timeline(const SimResult *result, const Program *program, double host_s,
                           const bool *shown, Arena *arena);

// Refuses (STATUS_MACHINE) times of another Program.
Status sim_timeline_check(const SimResult *result, const Program *program);
