#include "plan/schedule/schedule_rows.h"
#include "plan/schedule/schedule_vocab.h"

#include <stddef.h>

static const Schedule *const ROWS[NUM_SCHEDULES] = {
#define X(kind, name) [SCHEDULE_##kind] = &SCHEDULE_ROW_##kind,
#include "config/job/schedules.def"
#undef X
};

const Schedule *schedule_find(ScheduleKind kind) {
    return (int)kind >= 0 && kind < NUM_SCHEDULES ? ROWS[kind] : NULL;
}

ScheduleKind schedule_with_chunks(ScheduleKind kind, int vpp) {
    const Schedule *row = schedule_find(kind);
    const Schedule *other = !row ? NULL : vpp == 1 ? row->with_one_chunk : row->with_more_chunks;
    return other ? other->kind : kind;
}

ScheduleKind schedule_default(int vpp) {
    return schedule_with_chunks(SCHEDULE_1F1B, vpp);
}

const RankOrder *schedule_chunk_orders(const Schedule *schedule, const ScheduleShape *shape,
                                       Arena *arena) {
    RankOrder *orders = ARENA_ARRAY(arena, shape->pp, RankOrder);
    for (int rank = 0; rank < shape->pp; rank++) {
        const int num_items = schedule->num_items(shape, rank);
        orders[rank] = (RankOrder){ARENA_ARRAY(arena, num_items, WorkItem), num_items};
        if (!schedule->orders) schedule->order(shape, rank, orders[rank].items);
    }
    if (schedule->orders) schedule->orders(shape, arena, orders);
    return orders;
}

const RankOrder *schedule_orders(const Schedule *schedule, const ScheduleShape *shape,
                                 Arena *arena) {
    const RankOrder *orders = schedule_chunk_orders(schedule, shape, arena);
    if (!shape->vocab.barriers) return orders;
    return vocab_orders(shape, orders, schedule->placement == PLACEMENT_DUAL ? 2 : 1, arena);
}

int schedule_num_items_fb(const ScheduleShape *shape, int rank) {
    (void)rank;
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

int schedule_num_items_split(const ScheduleShape *shape, int rank) {
    (void)rank;
    return 3 * shape->vpp * shape->num_microbatches;
}

void schedule_order_local_split(const ScheduleShape *shape, WorkItem *items) {
    for (int m = 0; m < shape->num_microbatches; m++) {
        for (int c = 0; c < shape->vpp; c++)
            *items++ = (WorkItem){.kind = WORK_FORWARD, .chunk = (int16_t)c, .microbatch = m};
        for (int c = shape->vpp - 1; c >= 0; c--)
            for (int kind = WORK_BACKWARD_INPUT; kind <= WORK_BACKWARD_WEIGHT; kind++)
                *items++ = (WorkItem){.kind = (uint8_t)kind, .chunk = (int16_t)c, .microbatch = m};
    }
}

void schedule_order_split(const ScheduleShape *shape, int rank, int ahead, int delay,
                          WorkItem *items) {
    if (shape->pp == 1) {
        schedule_order_local_split(shape, items);
        return;
    }
    const int num_microbatches = shape->num_microbatches;
    ahead += shape->vocab.barriers;
    WorkItem forward = {.kind = WORK_FORWARD, .chunk = (int16_t)rank};
    WorkItem input = {.kind = WORK_BACKWARD_INPUT, .chunk = (int16_t)rank};
    WorkItem weight = {.kind = WORK_BACKWARD_WEIGHT, .chunk = (int16_t)rank};
    while (weight.microbatch < num_microbatches) {
        if (forward.microbatch < num_microbatches) {
            *items++ = forward;
            if (++forward.microbatch <= ahead) continue;
        }
        if (input.microbatch < num_microbatches) {
            *items++ = input;
            input.microbatch++;
        }
        const bool draining = forward.microbatch == num_microbatches;
        if (!draining && input.microbatch - weight.microbatch <= delay) continue;
        *items++ = weight;
        weight.microbatch++;
    }
}
