// costmodel/step/step_parts.h - how much of a step each part takes on its critical path.
//
// The slowest rank's computations are those of its chunks, once per micro-batch: exact. What it
// waits for messages and for the Program's collectives beyond that is of the part of its messages
// and, where collectives are of both, of each by its seconds. The bubble is the other ranks' time:
// it is split as the busy time is, which is exact where the stages are equal and within a percent
// of the step elsewhere.
#pragma once

#include "costmodel/step/timeline.h"
#include "plan/plan.h"

// part_s [NUM_PARTS] receives seconds that add up to the timeline's step_time_s.
void step_parts(const Plan *plan, const Program *program, const Prices *prices,
                const Timeline *timeline, double *part_s);
