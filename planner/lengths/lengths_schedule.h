// planner/lengths/lengths_schedule.h - a whole step: which sequences run together, and on which
// groups.
//
// Method: the sequences, longest first, are cut into rounds, so that those of like length run
//         together (FlexSP's "sequence blaster", Wang et al. 2025, section 4.2). Rounds with as
//         many tokens each, or as much work each, are tried for one round more at a time, until
//         more rounds no longer help; then the cuts of the best are moved, and then sequences from
//         any round to any other. The layout of a round starts from its linear program
//         (planner/lengths/lengths_bound.h), rounded, and from groups of one size, and is improved
//         (planner/lengths/lengths_round.h). The moves end when none helps, or after a number of
//         steps that depends on nothing but the problem.
#pragma once

#include "planner/lengths/lengths_problem.h"

enum { LENGTHS_ANY_SIZE = -1 };

// The best schedule found.
//   size     index of the one size that all groups have (the static plan), or LENGTHS_ANY_SIZE
//   limit_s  of another schedule; one that is far above it is not improved further; INFINITY
//   from     a schedule of the problem that the moves start from as well; NULL
//   returns  num_rounds 0 where some sequence fits on no such group
LengthsSchedule lengths_schedule(const LengthsProblem *problem, int size, double limit_s,
                                 const LengthsSchedule *from, Arena *arena);
