#include "costmodel/memory/memory.h"

#include "costmodel/memory/memory_interval.h"
#include "costmodel/memory/memory_static.h"
#include "costmodel/memory/memory_walk.h"
#include "workload/step/program_vocab.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// What the peak leaves free and cannot use.
static double unusable_bytes(const Plan *plan, const Workload *workload, int rank) {
    double most = 0;
    for (int k = 0; k < plan->vpp; k++)
        most = fmax(most, workload->chunks[plan_rank_chunk(plan, rank, k)].unusable_bytes);
    return most;
}

double memory_lasting_bytes(const Scenario *scenario, const RankMemory *account) {
    const Stack *stack = &scenario->execution.stack;
    const double gradients = stack->training.keeps_gradients ? 0 : account->gradients_bytes;
    return account->peak_bytes - account->activations_bytes - gradients;
}

double memory_lasting_counted_bytes(const Scenario *scenario, const Plan *plan,
                                    const RankMemory *account) {
    const double slack =
        scenario->execution.stack.residency.allocator_slack_frac * CACHED_NEEDED_FRAC;
    const double outside = account->device_bytes - account->reserved_bytes;
    return (memory_lasting_bytes(scenario, account) * (1 + slack) + outside) *
           exp(scenario->fit_deviates * memory_spread(scenario, plan));
}

double rank_memory_available_bytes(const Scenario *scenario, const Plan *plan, int rank) {
    return plan_rank_machines(&scenario->cluster, plan, rank).pool->gpu.memory_available_bytes;
}

// Gradients that the step's only backward makes come as what it reads goes: of the two the larger
// is held at the peak.
static void make_gradients_anew(const Scenario *scenario, const Plan *plan, RankMemory *m) {
    if (scenario->execution.stack.training.keeps_gradients ||
        plan->num_microbatches * plan->vpp > 1)
        return;
    if (m->activations_bytes >= m->gradients_bytes)
        m->gradients_bytes = 0;
    else
        m->activations_bytes = 0;
}

static void account_finish(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, RankMemory *m) {
    const Stack *stack = &scenario->execution.stack;
    make_gradients_anew(scenario, plan, m);
    double outside =
        stack->residency.context_bytes +
        memory_num_communicators(plan, workload, rank) * stack->residency.comm_bytes_per_group;
    m->peak_bytes = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                    m->activations_bytes + m->buffers_bytes;
    const double cached = (m->peak_bytes + unusable_bytes(plan, workload, rank)) *
                          (1 + stack->residency.allocator_slack_frac);
    const double available = rank_memory_available_bytes(scenario, plan, rank);
    m->cached_bytes = cached + outside;
    m->needs_bytes = m->peak_bytes + (cached - m->peak_bytes) * CACHED_NEEDED_FRAC + outside;
    m->spread = memory_spread(scenario, plan);
    if (m->spread > 0)
        m->spread = hypot(m->spread,
                          memory_uneven_bytes(scenario, plan, workload, rank, m) / m->needs_bytes);
    m->counted_bytes = m->needs_bytes * exp(scenario->fit_deviates * m->spread);
    m->device_bytes = fmax(m->needs_bytes, fmin(m->cached_bytes, available));
    m->reserved_bytes = m->device_bytes - outside;
}

// The first micro-batches of a plan: every schedule that does not hold all of them is periodic
// after its warm-up, which is shorter than 4 pp micro-batches, but for one with passes over the
// vocabulary: they may drift through it for long. With one chunk a rank, whole backwards, no passes
// over the vocabulary and no messages beside the compute, what is in flight is equal, nothing is on
// its way meanwhile, and the schedule's count says it all.
typedef struct {
    const Schedule *schedule; // NULL of a file's
    ScheduleShape shape;
    bool counted;
    const RankOrder *orders; // [pp] where the schedule orders all ranks at once, or NULL
} FirstItems;

static FirstItems first_items(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              Arena *scratch) {
    FirstItems first = {.schedule = schedule_find(plan->schedule),
                        .shape = program_shape(scenario, plan, workload)};
    ScheduleShape *shape = &first.shape;
    if (plan->schedule_file) {
        first.orders = plan_orders(plan, shape, scratch);
        return first;
    }
    first.counted = plan->vpp == 1 && !first.schedule->splits_backward &&
                    !first.schedule->mixes_backwards && !program_hides_messages(scenario, plan);
    if (first.counted) return first;
    const int bound = 4 * plan->pp;
    const bool holds_all =
        first.schedule->in_flight(shape, 0) == plan->vpp * shape->num_microbatches;
    if (!holds_all && !plan->vocab_barriers && shape->num_microbatches > bound)
        shape->num_microbatches = bound + shape->num_microbatches % plan->pp;
    if (first.schedule->orders || plan->vocab_barriers)
        first.orders = schedule_orders(first.schedule, shape, scratch);
    return first;
}

// What goes and what comes between two steps is less than what either of them holds; a chunk
// without layers may have nothing else.
static bool outweighs_messages(const Chunk *chunk, double each_bytes) {
    return chunk->forward_peak_bytes >= 2 * each_bytes &&
           chunk->backward_peak_bytes >= 2 * each_bytes;
}

static double activations_closed_form(const Scenario *scenario, const Plan *plan,
                                      const Workload *workload, const FirstItems *first, int rank,
                                      Arena *scratch) {
    const Chunk *chunk = &workload->chunks[plan_rank_chunk(plan, rank, 0)];
    if (first->counted && outweighs_messages(chunk, workload->boundary_bytes)) {
        double n = first->schedule->in_flight(&first->shape, rank);
        return fmax((n - 1) * chunk->saved_bytes + chunk->forward_peak_bytes,
                    n * chunk->saved_bytes + chunk->backward_peak_bytes);
    }
    RankOrder order;
    if (first->orders) {
        order = first->orders[rank];
    } else {
        order.num_items = first->schedule->num_items(&first->shape, rank);
        order.items = ARENA_ARRAY(scratch, order.num_items, WorkItem);
        first->schedule->order(&first->shape, rank, order.items);
    }
    HeldMessages messages;
    return memory_order_peak(workload, &order,
                             held_messages(scenario, plan, workload, rank, scratch, &messages));
}

// Whether two ranks hold the same.
static bool ranks_hold_alike(const Plan *plan, const Workload *workload, int a, int b) {
    for (int k = 0; k < plan->vpp; k++) {
        const Chunk *x = &workload->chunks[plan_rank_chunk(plan, a, k)];
        const Chunk *y = &workload->chunks[plan_rank_chunk(plan, b, k)];
        if (memcmp(x->num_blocks, y->num_blocks,
                   (size_t)workload->num_blocks * sizeof *x->num_blocks) != 0 ||
            x->dense_parameters != y->dense_parameters ||
            x->expert_parameters != y->expert_parameters || x->frozen.dense != y->frozen.dense ||
            x->frozen.expert != y->frozen.expert)
            return false;
    }
    return true;
}

// Whether a rank that holds what the one before it does (ranks_hold_alike) needs no larger part of
// its memory. Where messages run beside the compute, as many are on their way on one rank as on the
// other between the first and the last; where they block, a rank whose forward runs joined to a
// backward holds one that its neighbour does not.
static bool needs_no_more(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          const FirstItems *first, int rank) {
    if (!first->schedule || !first->schedule->first_holds_most || first->orders) return false;
    const bool inner = rank > 1 && rank < plan->pp - 1;
    if (!first->counted && !(inner && program_hides_messages(scenario, plan))) return false;
    for (int k = 0; k < plan->vpp; k++) {
        const Chunk *before = &workload->chunks[plan_rank_chunk(plan, rank - 1, k)];
        const Chunk *chunk = &workload->chunks[plan_rank_chunk(plan, rank, k)];
        if (chunk->saved_bytes != before->saved_bytes ||
            chunk->forward_peak_bytes != before->forward_peak_bytes ||
            chunk->backward_peak_bytes != before->backward_peak_bytes)
            return false;
    }
    return rank_memory_available_bytes(scenario, plan, rank) >=
           rank_memory_available_bytes(scenario, plan, rank - 1);
}

RankMemory memory_closed_form(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              int rank) {
    Arena scratch = {0};
    const FirstItems first = first_items(scenario, plan, workload, &scratch);
    RankMemory m = {0};
    memory_static_account(scenario, plan, workload, rank, &m);
    m.activations_bytes = activations_closed_form(scenario, plan, workload, &first, rank, &scratch);
    account_finish(scenario, plan, workload, rank, &m);
    arena_free(&scratch);
    return m;
}

RankMemory memory_running_sum(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Program *program, int rank) {
    RankMemory m = {0};
    Arena scratch = {0};
    memory_static_account(scenario, plan, workload, rank, &m);
    HeldMessages messages;
    m.activations_bytes =
        memory_program_peak(workload, &program->ranks[rank],
                            held_messages(scenario, plan, workload, rank, &scratch, &messages));
    account_finish(scenario, plan, workload, rank, &m);
    arena_free(&scratch);
    return m;
}

const double *memory_activations(const Scenario *scenario, const Plan *plan,
                                 const Workload *workload, Arena *arena) {
    Arena scratch = {0}, own = {0}; // own: of one rank
    const FirstItems first = first_items(scenario, plan, workload, &scratch);
    double *bytes = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        const bool alike = r > 0 && ranks_hold_alike(plan, workload, r - 1, r);
        arena_reset(&own);
        bytes[r] = alike && needs_no_more(scenario, plan, workload, &first, r)
                       ? MEMORY_NO_MORE
                       : activations_closed_form(scenario, plan, workload, &first, r, &own);
    }
    arena_free(&own);
    arena_free(&scratch);
    return bytes;
}

RankMemory memory_worst_of(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           const double *activations_bytes, int *rank) {
    RankMemory worst = {0}, statics = {0};
    double worst_available = 0;
    *rank = 0;
    for (int r = 0; r < plan->pp; r++) {
        if (activations_bytes[r] == MEMORY_NO_MORE) continue;
        if (r == 0 || !ranks_hold_alike(plan, workload, r - 1, r)) {
            statics = (RankMemory){0};
            memory_static_account(scenario, plan, workload, r, &statics);
        }
        RankMemory m = statics;
        m.activations_bytes = activations_bytes[r];
        account_finish(scenario, plan, workload, r, &m);
        double available = rank_memory_available_bytes(scenario, plan, r);
        bool worse = available == worst_available
                         ? m.peak_bytes > worst.peak_bytes
                         : m.peak_bytes * worst_available > worst.peak_bytes * available;
        if (r == 0 || worse) {
            worst = m;
            worst_available = available;
            *rank = r;
        }
    }
    return worst;
}

static bool rank_fits(const Scenario *scenario, const Plan *plan, int rank,
                      const RankMemory *account) {
    return account->counted_bytes <= rank_memory_available_bytes(scenario, plan, rank);
}

bool memory_all_miss(const Scenario *scenario, const Plan *plan, const Workload *workload,
                     const double *activations_bytes) {
    for (int r = plan->pp - 1; r >= 0; r--) {
        if (activations_bytes[r] == MEMORY_NO_MORE) continue;
        RankMemory m = {0};
        memory_static_account(scenario, plan, workload, r, &m);
        m.activations_bytes = activations_bytes[r];
        account_finish(scenario, plan, workload, r, &m);
        if (rank_fits(scenario, plan, r, &m)) return false;
    }
    // Of ranks that hold no more than the one before the last of several needs least.
    for (int r = plan->pp - 1; r >= 0; r--) {
        const bool more_follow = r + 1 < plan->pp && activations_bytes[r + 1] == MEMORY_NO_MORE;
        if (activations_bytes[r] != MEMORY_NO_MORE || more_follow) continue;
        const RankMemory m = memory_closed_form(scenario, plan, workload, r);
        if (rank_fits(scenario, plan, r, &m)) return false;
    }
    return true;
}

double memory_states_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    const RankMemory m = memory_static_states(scenario, plan, workload);
    return m.weights_bytes + m.optimizer_bytes +
           (scenario->execution.stack.training.keeps_gradients ? m.gradients_bytes : 0);
}

RankMemory memory_worst_rank(const Scenario *scenario, const Plan *plan, const Workload *workload,
                             int *rank) {
    Arena scratch = {0};
    const double *activations = memory_activations(scenario, plan, workload, &scratch);
    const RankMemory worst = memory_worst_of(scenario, plan, workload, activations, rank);
    arena_free(&scratch);
    return worst;
}
