// tests/planner/group_case.h - small jobs on groups of different machines, the same in every run.
#pragma once

#include "config/job/scenario.h"

// Scenario number `number` of an endless list: small models (dense, with experts, uneven), two or
// three groups of H100, A100 and V100 with few GPUs, several stacks.
Status group_case(int number, Arena *arena, Scenario *out);

// A limit of memory at which some of the configurations fit; differs from case to case.
double group_case_memory_bytes(int number, const Scenario *scenario);
