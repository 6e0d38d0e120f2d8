// sim/meeting.h - which replicas of a pipeline rank meet inside its computations.
//
// The price of a computation holds the collectives inside its layers: those of tensor, context and
// expert parallelism and, with ZeRO 3, those that gather and scatter the shards. Replicas that
// these join cannot run apart: a computation begins when all of them are there, and lasts as long
// as on the slowest.
#pragma once

#include "base/arena.h"
#include "plan/plan.h"

// The first replica of those that replica i meets, itself where it meets none: [period].
//   multiplicity  tp x cp x dp
//   period        replicas whose numbers differ by multiples of it are one (sim/rotation.h), and
//                 there are so many; multiplicity: all are their own
const int *meeting_firsts(const Plan *plan, int multiplicity, int period, Arena *arena);
