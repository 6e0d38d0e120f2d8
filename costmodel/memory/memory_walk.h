// costmodel/memory/memory_walk.h - most bytes that a rank's chunks and what is on its way between
// them hold, along the order of its work (closed form) and along its Program (the running sum): the
// same.
#pragma once

#include "costmodel/memory/held_messages.h"
#include "plan/work_item.h"
#include "workload/step/program.h"

//   messages  at the start (costmodel/memory/held_messages.h), used up; NULL: they are counted
//   elsewhere
double memory_order_peak(const Workload *workload, const RankOrder *order, HeldMessages *messages);
double memory_program_peak(const Workload *workload, const RankProgram *program,
                           HeldMessages *messages);
