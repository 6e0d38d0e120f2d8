#include "plan/plan_orders.h"

#include "plan/schedule/schedule_vocab.h"

ScheduleTraits plan_schedule_traits(const Plan *plan) {
    const ScheduleFile *file = plan->schedule_file;
    if (file)
        return (ScheduleTraits){file->splits_backward, file->mixes_backwards, file->receives_ahead};
    const Schedule *row = schedule_find(plan->schedule);
    return (ScheduleTraits){row->splits_backward, row->mixes_backwards, row->receives_ahead};
}

const RankOrder *plan_chunk_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena) {
    if (plan->schedule_file) return plan->schedule_file->orders;
    return schedule_chunk_orders(schedule_find(plan->schedule), shape, arena);
}

const RankOrder *plan_orders(const Plan *plan, const ScheduleShape *shape, Arena *arena) {
    const RankOrder *orders = plan_chunk_orders(plan, shape, arena);
    if (!shape->vocab.barriers) return orders;
    return vocab_orders(shape, orders, plan_is_dual(plan) ? 2 : 1, arena);
}
