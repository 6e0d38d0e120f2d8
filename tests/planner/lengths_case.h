// tests/planner/lengths_case.h - small problems of many lengths, the same in every run.
#pragma once

#include "planner/lengths/lengths_problem.h"

enum { LENGTHS_CASE_SIZES = 3, LENGTHS_CASE_BUCKETS = 3 };

// Problem number `number`: 4 places in groups of 1, 2 and 4; up to three lengths, up to
// most_sequences sequences in all; the longer ones do not fit on the smaller groups. Splitting a
// sequence over more places costs more places x seconds.
LengthsProblem lengths_case(int number, int most_sequences, Arena *arena);

// All sequences of a problem.
const int *lengths_case_counts(const LengthsProblem *problem, Arena *arena);

// Claims that a schedule runs every sequence once, on groups that stand side by side and hold them,
// and takes what the model says.
void lengths_case_check(const LengthsProblem *problem, const LengthsSchedule *schedule);
