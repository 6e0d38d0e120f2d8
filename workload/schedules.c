#include "workload/schedule_rows.h"
#include "workload/schedule_vocab.h"

#include <stddef.h>

static const Schedule *const ROWS[] = {
    &SCHEDULE_ROW_GPIPE,    &SCHEDULE_ROW_1F1B,   &SCHEDULE_ROW_INTERLEAVED,
    &SCHEDULE_ROW_ZB_H1,    &SCHEDULE_ROW_ZB_H2,  &SCHEDULE_ROW_BREADTH_FIRST,
    &SCHEDULE_ROW_ZB_V,     &SCHEDULE_ROW_V_HALF, &SCHEDULE_ROW_V_MIN,
    &SCHEDULE_ROW_DUALPIPE,
};

const Schedule *schedule_find(ScheduleKind kind) {
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i]->kind == kind) return ROWS[i];
    return NULL;
}

// The work of the chunks alone.
static const RankOrder *chunk_orders(const Schedule *schedule, const ScheduleShape *shape,
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
    const RankOrder *orders = chunk_orders(schedule, shape, arena);
    if (!shape->vocab.barriers) return orders;
    return vocab_orders(shape, orders, schedule->num_pipelines == 2 ? 2 : 1, arena);
}

ScheduleTraits plan_schedule_traits(const Plan *plan) {
    const ScheduleFile *file = plan->schedule_file;
    if (file)
        return (ScheduleTraits){file->splits_backward, file->mixes_backwards, file->receives_ahead};
    const Schedule *row = schedule_find(plan->schedule);
    return (ScheduleTraits){row->splits_backward, row->mixes_backwards, row->receives_ahead};
}

const RankOrder *plan_chunk_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena) {
    if (plan->schedule_file) return plan->schedule_file->orders;
    return chunk_orders(schedule_find(plan->schedule), shape, arena);
}

const RankOrder *plan_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena) {
    const RankOrder *orders = plan_chunk_orders(plan, shape, arena);
    if (!shape->vocab.barriers) return orders;
    return vocab_orders(shape, orders, plan_is_dual(plan) ? 2 : 1, arena);
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
