// sim/not_played.h - exchanges that stay in the timers of computations (sim/lower_inner.h), and
// when the answer has to say so.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

// Whether collectives inside layers are flows where they leave a scale-up domain: not where links
// inside domains are uneven, or groups of machines differ.
bool inner_is_played(const Cluster *cluster);

// Sentences for those who disturb links and might expect more to be slower.
//   returns how many, in *out
int not_played_list(const Scenario *scenario, const Plan *plan, Arena *arena,
                    const char *const **out);
