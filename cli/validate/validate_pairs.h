// cli/validate/validate_pairs.h - `validate --pairs`.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/published.h"

#include <stdbool.h>

// Calibrates on one case of each pair (calibrate/run_pairs.h), predicts the other, and prints the
// errors before and after. STATUS_NO where the mean of families (of all where
// they are small) did not get better.
Status validate_pairs(const PublishedCase *published, int num_cases, bool json, Arena *arena);
