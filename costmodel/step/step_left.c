#include "costmodel/step/step_left.h"

static double work_left(const StepRun *run, int rank, double left_out) {
    const double all = run->num_microbatches + left_out;
    double sum = 0;
    for (int k = 0; k < run->plan->vpp; k++) {
        const StepChunk *chunk = &run->chunks[plan_rank_chunk(run->plan, rank, k)];
        sum += (all - chunk->num_done[COUNT_FORWARD]) * (double)chunk->items[WORK_FORWARD].work +
               (all - chunk->num_done[COUNT_GRADIENT]) * (double)chunk->items[WORK_BACKWARD].work;
    }
    return sum;
}

// Whether the last that a rank does is a backward of its first chunk, which those before it wait
// for.
static bool ends_with_gradient(const StepRun *run, int rank) {
    const StepRank *r = &run->ranks[rank];
    const WorkItem *last = &r->items[r->num_items - 1];
    return last->kind == WORK_BACKWARD && last->chunk == plan_rank_chunk(run->plan, rank, 0);
}

double step_least_ticks(const StepRun *run, double left_out) {
    double least = 0, way_back = 0;
    for (int r = 0; r < run->plan->pp; r++) {
        double end = (double)run->ranks[r].compute + work_left(run, r, left_out);
        if (ends_with_gradient(run, r)) end += way_back;
        if (end > least) least = end;
        const ItemCost *back = &run->chunks[plan_rank_chunk(run->plan, r, 0)].items[WORK_BACKWARD];
        way_back += (double)(back->work + back->in_message);
    }
    return least;
}
