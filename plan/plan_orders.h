// plan/plan_orders.h - the pipeline order of a plan: of its schedule, or of its file.
#pragma once

#include "plan/plan.h"
#include "plan/schedule/schedule.h"

// What the schedule of a plan does, a row's or a file's; the fields are those of Schedule.
typedef struct {
    bool splits_backward, mixes_backwards, receives_ahead;
} ScheduleTraits;

ScheduleTraits plan_schedule_traits(const Plan *plan);

// The orders of all ranks of a plan: [pp].
//   shape  schedule_shape of it; where its vocabulary is spread, program_shape
const RankOrder *plan_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena);

// The orders without the passes over a spread vocabulary: of the shape's `vocab` only the barriers
// count. A file's order is as it was read.
const RankOrder *plan_chunk_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena);
