// cli/plan/named_plan.h - a plan as `plan --compare tp=4,pp=8` names it.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"

// The scenario with these values of `parallel` as further constraints. They take the place of its
// own; what follows from them (dp from tp, stages from pp: whatif/whatif.h) is free again.
//   text     "KEY=VALUE,..." with the contract's keys of parallel
//   returns  STATUS_INVALID with "--compare: ...": no such key or value, a key twice
Status named_scenario(const Scenario *scenario, const char *text, Arena *arena, Scenario *out);
