#include "workload/schedule_rows.h"

#include <stddef.h>

static const Schedule *const ROWS[] = {
    &SCHEDULE_ROW_GPIPE,
    &SCHEDULE_ROW_1F1B,
    &SCHEDULE_ROW_INTERLEAVED,
};

const Schedule *schedule_find(ScheduleKind kind) {
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i]->kind == kind) return ROWS[i];
    return NULL;
}

int schedule_num_items_fb(const ScheduleShape *shape) {
    return 2 * shape->vpp * shape->num_microbatches;
}

void schedule_order_local(const ScheduleShape *shape, WorkItem *items) {
    for (int m = 0; m < shape->num_microbatches; m++) {
        for (int c = 0; c < shape->vpp; c++)
            *items++ = (WorkItem){.kind = WORK_FORWARD, .chunk = (int16_t)c, .microbatch = m};
        for (int c = shape->vpp - 1; c >= 0; c--)
            *items++ = (WorkItem){.kind = WORK_BACKWARD, .chunk = (int16_t)c, .microbatch = m};
    }
}
