// workload/schedule_rows.h - the rows of workload/schedules.c. Included by schedule*.c only.
#pragma once

#include "workload/schedule.h"

extern const Schedule SCHEDULE_ROW_GPIPE, SCHEDULE_ROW_1F1B, SCHEDULE_ROW_INTERLEAVED;
extern const Schedule SCHEDULE_ROW_ZB_H1, SCHEDULE_ROW_ZB_H2, SCHEDULE_ROW_BREADTH_FIRST;
extern const Schedule SCHEDULE_ROW_ZB_V, SCHEDULE_ROW_V_HALF, SCHEDULE_ROW_V_MIN,
    SCHEDULE_ROW_DUALPIPE;

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
