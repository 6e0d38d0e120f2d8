// report/lengths_report.h - plans for sequences of many lengths as text for people.
#pragma once

#include "config/job/scenario.h"
#include "planner/lengths/lengths.h"

#include <stdio.h>

// "32, 16, 2 x 8": the groups of a round.
const char *lengths_layout_text(const LengthsProblem *problem, const LengthsRound *round,
                                Arena *arena);

// The best plan with groups of one size and with several, the gain, and what is proven.
void report_lengths(const Scenario *scenario, const LengthsResult *result, FILE *stream);
