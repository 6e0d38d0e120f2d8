// cli/plan/plan_lengths.h - `plan` of a scenario with training.sequence_lengths.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "cli/plan/plan_answer.h"
#include "cli/plan/plan_options.h"

// Refuses (STATUS_INVALID) options that this question does not have.
Status plan_lengths_check(const PlanOptions *options);

// Sets answer->lengths.
Status plan_lengths_search(const PlanOptions *options, Arena *arena, PlanAnswer *answer);
