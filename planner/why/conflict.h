// planner/why/conflict.h - which constraints leave nothing to search.
#pragma once

#include "base/status.h"
#include "planner/planner.h"

// The refusal of a scenario whose space is empty: names the rule of the software without which it
// would not be; else the constraint, or the two, without which
// it would not be; else what the number of GPUs or the batch rules out. Always STATUS_INVALID.
Status conflict_explain(const Scenario *scenario);
