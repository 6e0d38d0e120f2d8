// plan/schedule/schedule_rows.h - the rows of plan/schedule/schedules.c. Included by schedule*.c
// only.
#pragma once

#include "plan/schedule/schedule.h"

#define X(kind, name) extern const Schedule SCHEDULE_ROW_##kind;
#include "config/job/schedules.def"
#undef X

// Items of a schedule with undivided backwards: one forward and one backward for each chunk of a
// rank and micro-batch.
int schedule_num_items_fb(const ScheduleShape *shape, int rank);

// The order at pp 1, whatever the schedule: there is no pipeline, gradients are accumulated over
// one micro-batch after the other.
void schedule_order_local(const ScheduleShape *shape, WorkItem *items);

// Items of a schedule with split backwards, one chunk a rank: F, B and W of each micro-batch.
int schedule_num_items_split(const ScheduleShape *shape, int rank);

// As schedule_order_local, with split backwards.
void schedule_order_local_split(const ScheduleShape *shape, WorkItem *items);

// F, B, W in turn, after `ahead` forwards alone; W begins when more than `delay` of them wait, or
// when all forwards are done. At pp 1 F, B, W of one micro-batch after the other.
void schedule_order_split(const ScheduleShape *shape, int rank, int ahead, int delay,
                          WorkItem *items);
