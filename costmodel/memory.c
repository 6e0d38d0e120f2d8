#include "costmodel/memory.h"

#include "plan/layer_plans.h"
#include "workload/bytes.h"
#include "workload/program_vocab.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Blocks of one kind that the rank holds.
static int num_blocks(const Plan *plan, const Workload *workload, int rank, int block) {
    int count = 0;
    for (int k = 0; k < plan_rank_chunks(plan); k++)
        count += workload->chunks[plan_rank_chunk(plan, rank, k)].num_blocks[block];
    return count;
}

// What ZeRO 3 gathers of weights that a strategy holds.
static double gathered_parameters(const Plan *own, double dense, double expert) {
    if (own->zero_stage < 3) return 0;
    return (plan_group(own, GROUP_ZERO).size > 1 ? dense : 0) +
           (plan_group(own, GROUP_EZERO).size > 1 ? expert : 0);
}

static bool gathers_weights(const Plan *plan) {
    for (int s = 0; s < plan_num_strategies(plan); s++)
        if (plan_strategy(plan, s)->zero_stage >= 3) return true;
    return false;
}

// Largest of the blocks in [first, end) that the rank holds: parameters that are gathered.
static double largest_gathered(const Plan *plan, const Workload *workload, int rank, int first,
                               int end) {
    double most = 0;
    for (int i = first; i < end; i++) {
        const Block *b = &workload->blocks[i];
        if (num_blocks(plan, workload, rank, i) > 0)
            most = fmax(most, gathered_parameters(plan_strategy(plan, b->strategy),
                                                  b->dense_parameters, b->expert_parameters));
    }
    return most;
}

// What the rank holds of its weights under one strategy.
static HeldParameters rank_parameters(const Plan *plan, const Workload *workload, int rank,
                                      int strategy) {
    HeldParameters sum = {0};
    for (int k = 0; k < plan_rank_chunks(plan); k++) {
        const HeldParameters own =
            chunk_held(&workload->chunks[plan_rank_chunk(plan, rank, k)], strategy);
        sum.dense += own.dense;
        sum.expert += own.expert;
    }
    return sum;
}

static double most_whole_block_bytes(const Plan *plan, const Workload *workload, int rank) {
    double most = 0;
    for (int k = 0; k < plan_rank_chunks(plan); k++)
        most = fmax(most, workload->chunks[plan_rank_chunk(plan, rank, k)].whole_block_bytes);
    return most;
}

// ZeRO-3 holds two blocks gathered (this one and the next, prefetched) and one block's gradients
// before they are scattered; without resharding all blocks of the rank stay gathered. A stack that
// gathers nothing ahead holds the block that runs.
static double gathered_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                             int rank) {
    if (!scenario->training.stack.gathers_ahead)
        return most_whole_block_bytes(plan, workload, rank);
    if (!gathers_weights(plan)) return 0;
    const double layer =
        fmax(largest_gathered(plan, workload, rank, BLOCK_FIRST_LAYER, BLOCK_MTP + 1),
             largest_gathered(plan, workload, rank, MAX_BLOCKS, workload->num_blocks));
    const double edge =
        fmax(largest_gathered(plan, workload, rank, BLOCK_EMBEDDING, BLOCK_EMBEDDING + 1),
             largest_gathered(plan, workload, rank, BLOCK_HEAD, BLOCK_VOCAB_OUTPUT + 1));
    double gathered = fmax(2 * layer, layer + edge), all = 0;
    for (int s = 0; s < plan_num_strategies(plan); s++) {
        const HeldParameters held = rank_parameters(plan, workload, rank, s);
        all += gathered_parameters(plan_strategy(plan, s), held.dense, held.expert);
    }
    if (!plan->reshard_after_forward) gathered = fmax(gathered, all);
    return gathered * gathered_weight_bytes(&scenario->training) +
           fmax(layer, edge) * reduced_gradient_bytes(&scenario->training);
}

enum { MAX_SHAPES = 128 }; // of layers that have one strategy

// Shapes of weights met so far, each with one placeholder.
typedef struct {
    double (*shapes)[2]; // [num] m, n
    double bytes;
    int num, capacity;
} Shapes;

static void shape_add(Shapes *shapes, const Op *op) {
    for (int i = 0; i < shapes->num; i++)
        if (shapes->shapes[i][0] == op->m && shapes->shapes[i][1] == op->n) return;
    assert(shapes->num < shapes->capacity);
    shapes->shapes[shapes->num][0] = op->m;
    shapes->shapes[shapes->num++][1] = op->n;
    shapes->bytes += op->placeholder_bytes;
}

// Placeholders of the gradients of all weights on a rank.
static double placeholder_bytes(const Scenario *scenario, const Plan *plan,
                                const Workload *workload, int rank) {
    if (scenario->training.stack.weight_gradient != WEIGHT_GRADIENT_PLACEHOLDER) return 0;
    Arena scratch = {0};
    double few[MAX_SHAPES][2];
    const int num_strategies = plan_num_strategies(plan);
    Shapes shapes = {.shapes = few, .capacity = MAX_SHAPES * num_strategies};
    if (num_strategies > 1)
        shapes.shapes = arena_alloc(&scratch, (size_t)shapes.capacity * sizeof *shapes.shapes);
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (num_blocks(plan, workload, rank, i) == 0) continue;
        for (int k = 0; k < b->num_backward; k++)
            if (b->backward[k].placeholder_bytes > 0) shape_add(&shapes, &b->backward[k]);
    }
    arena_free(&scratch);
    return shapes.bytes;
}

// The largest buffer among those that are never freed once they were needed.
static double lasting_bytes(const Plan *plan, const Workload *workload, int rank) {
    double most = 0;
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (num_blocks(plan, workload, rank, i) == 0) continue;
        for (int k = 0; k < b->num_forward; k++) most = fmax(most, b->forward[k].lasting_bytes);
    }
    return most;
}

// A message that was received is the first operator's input, which that keeps, or the gradient that
// the backward starts with; one that was sent is given back as soon as that is done. Where messages
// run beside the compute, one more of each kind is there: arriving and leaving; of the forward and
// the backward that dual pipelines run together one each.
//
// Passes over a spread vocabulary hold four more: the output of the last chunk, arriving; the
// gradient of it that is summed up; the rows that were looked up and wait for the first chunk; and
// the gradient of its input, arriving. Dual pipelines have these four each.
static double message_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    if (plan->pp == 1 || !program_hides_messages(scenario, plan)) return 0;
    const int num_pipelines = plan_is_dual(plan) ? 2 : 1;
    return num_pipelines * (plan->vocab_barriers ? 6 : 2) * workload->boundary_bytes;
}

static double workspace_bytes(const Scenario *scenario, double expert_parameters) {
    const Stack *stack = &scenario->training.stack;
    return stack->workspace_bytes + (expert_parameters > 0 ? stack->grouped_workspace_bytes : 0);
}

// Weights, gradients and optimizer of the layers that have one strategy.
static void states_add(const Plan *own, const StateBytes *state, const HeldParameters *held,
                       RankMemory *m) {
    const double all = held->dense + held->expert;
    const double shard = held->dense / plan_group(own, GROUP_ZERO).size +
                         held->expert / plan_group(own, GROUP_EZERO).size;
    m->weights_bytes += (own->zero_stage >= 3 ? shard : all) * state->weight;
    m->gradients_bytes += (own->zero_stage >= 2 ? shard : all) * state->gradient;
    m->optimizer_bytes += (own->zero_stage >= 1 ? shard : all) * (state->master + state->moments);
}

static void static_account(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, RankMemory *m) {
    const StateBytes state = state_bytes(&scenario->training);
    double expert = 0;
    for (int s = 0; s < plan_num_strategies(plan); s++) {
        const HeldParameters held = rank_parameters(plan, workload, rank, s);
        states_add(plan_strategy(plan, s), &state, &held, m);
        expert += held.expert;
    }
    m->buffers_bytes = gathered_bytes(scenario, plan, workload, rank) +
                       placeholder_bytes(scenario, plan, workload, rank) +
                       lasting_bytes(plan, workload, rank) +
                       message_bytes(scenario, plan, workload) + workspace_bytes(scenario, expert);
}

static const GroupKind COMMUNICATORS[] = {GROUP_TP, GROUP_CP,  GROUP_DP,
                                          GROUP_EP, GROUP_EDP, GROUP_PP};
enum { NUM_COMMUNICATORS = sizeof COMMUNICATORS / sizeof *COMMUNICATORS };

static bool rank_has_strategy(const Plan *plan, int rank, int strategy) {
    if (strategy == PLAN_OWN) return true; // messages, embedding, head
    for (int k = 0; k < plan->vpp; k++) {
        const PlanChunk *chunk = &plan->chunks[plan_rank_chunk(plan, rank, k)];
        for (int l = 0; l < chunk->num_layers; l++)
            if (plan_layer_strategy(plan, chunk->first_layer + l) == strategy) return true;
    }
    return false;
}

// Groups of layers with strategies of their own that the plan's own are not.
static int num_layer_communicators(const Plan *plan, const Workload *workload, int rank) {
    Arena scratch = {0};
    bool *seen = ARENA_ARRAY(&scratch, plan_num_group_kinds(plan), bool);
    int n = 0;
    for (int s = PLAN_OWN + 1; s < plan_num_strategies(plan); s++)
        for (int i = 0; i < NUM_COMMUNICATORS && rank_has_strategy(plan, rank, s); i++) {
            const GroupKind kind = strategy_group_kind(plan, s, COMMUNICATORS[i]);
            n += (int)kind >= NUM_GROUPS && plan_group(plan, kind).size > 1 && !seen[kind];
            seen[kind] = true;
        }
    for (int i = MAX_BLOCKS; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (b->strategy != PLAN_OWN || num_blocks(plan, workload, rank, i) == 0) continue;
        const GroupKind kind = b->forward->group; // of a change of layout
        n += !seen[kind];
        seen[kind] = true;
    }
    arena_free(&scratch);
    return n;
}

static int num_communicators(const Plan *plan, const Workload *workload, int rank) {
    int n = plan->layers ? num_layer_communicators(plan, workload, rank) : 0;
    for (int i = 0; i < NUM_COMMUNICATORS; i++) n += plan_group(plan, COMMUNICATORS[i]).size > 1;
    return n;
}

// What the peak leaves free and cannot use: that of the head, less what another block of its chunk
// needs more than it.
static double unusable_bytes(const Plan *plan, const Workload *workload, int rank) {
    const Block *head = &workload->blocks[BLOCK_HEAD];
    double most = 0;
    for (int k = 0; k < plan->vpp; k++) {
        const Chunk *chunk = &workload->chunks[plan_rank_chunk(plan, rank, k)];
        if (chunk->num_blocks[BLOCK_HEAD] > 0)
            most = fmax(most, head->unusable_bytes + head->backward_peak_bytes -
                                  chunk->backward_peak_bytes);
    }
    return most;
}

double memory_lasting_bytes(const Scenario *scenario, const RankMemory *account) {
    const bool kept = scenario->training.stack.keeps_gradients;
    return account->peak_bytes - account->activations_bytes - (kept ? 0 : account->gradients_bytes);
}

double rank_memory_available_bytes(const Scenario *scenario, const Plan *plan, int rank) {
    return plan_rank_cluster(&scenario->cluster, plan, rank)->gpu.memory_available_bytes;
}

// Gradients that the step's only backward makes come as what it reads goes: of the two the larger
// is held at the peak.
static void make_gradients_anew(const Scenario *scenario, const Plan *plan, RankMemory *m) {
    if (scenario->training.stack.keeps_gradients || plan->num_microbatches * plan->vpp > 1) return;
    if (m->activations_bytes >= m->gradients_bytes)
        m->gradients_bytes = 0;
    else
        m->activations_bytes = 0;
}

static void account_finish(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, RankMemory *m) {
    const Stack *stack = &scenario->training.stack;
    make_gradients_anew(scenario, plan, m);
    double outside = stack->context_bytes +
                     num_communicators(plan, workload, rank) * stack->comm_bytes_per_group;
    m->peak_bytes = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                    m->activations_bytes + m->buffers_bytes;
    // What is cached and not used goes back to the device before an allocation fails
    // (pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks).
    const double cached =
        (m->peak_bytes + unusable_bytes(plan, workload, rank)) * (1 + stack->allocator_slack_frac);
    const double available = scenario->keeps_cached_blocks
                                 ? INFINITY
                                 : rank_memory_available_bytes(scenario, plan, rank);
    m->device_bytes = fmax(m->peak_bytes + outside, fmin(cached + outside, available));
    m->reserved_bytes = m->device_bytes - outside;
}

// Adds one unit of work to what is held and to the peak.
static inline void activations_step(const Chunk *chunk, WorkKind kind, double *held, double *peak) {
    double most = 0, kept = 0;
    switch (kind) {
    case WORK_FORWARD:
        most = chunk->forward_peak_bytes;
        kept = chunk->saved_bytes;
        break;
    case WORK_BACKWARD:
        most = chunk->backward_peak_bytes;
        kept = -chunk->saved_bytes;
        break;
    case WORK_BACKWARD_INPUT:
        most = chunk->input_peak_bytes;
        kept = chunk->deferred_bytes - chunk->saved_bytes;
        break;
    case WORK_BACKWARD_WEIGHT:
        most = chunk->weight_peak_bytes;
        kept = -chunk->deferred_bytes;
        break;
    case NUM_WORK_KINDS:
        break;
    }
    if (*held + most > *peak) *peak = *held + most; // fmax is a call
    *held += kept;
}

// The work of an instruction that computes.
static WorkKind work_of(const Instruction *instruction) {
    static const WorkKind WORK[] = {
        [INSTRUCTION_FORWARD] = WORK_FORWARD,
        [INSTRUCTION_BACKWARD] = WORK_BACKWARD,
        [INSTRUCTION_BACKWARD_INPUT] = WORK_BACKWARD_INPUT,
        [INSTRUCTION_BACKWARD_WEIGHT] = WORK_BACKWARD_WEIGHT,
    };
    return WORK[instruction->kind];
}

// The first micro-batches of a plan: every schedule that does not hold all of them is periodic
// after its warm-up, which is shorter than 4 pp micro-batches, but for one with passes over the
// vocabulary: they may drift through it for long. With one chunk a rank, whole
// backwards and no passes over the vocabulary, what is in flight is equal, and the schedule's count
// says it all.
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
                    !first.schedule->mixes_backwards && !plan->vocab_barriers;
    if (first.counted) return first;
    const int bound = 4 * plan->pp;
    const bool holds_all =
        first.schedule->in_flight(shape, 0) == plan->vpp * shape->num_microbatches;
    if (!holds_all && !plan->vocab_barriers && shape->num_microbatches > bound)
        shape->num_microbatches = bound + shape->num_microbatches % plan->pp;
    // What is held is the same after each period.
    if (first.schedule->steady && !plan->vocab_barriers) {
        const SteadyOrder steady = first.schedule->steady(shape, 0);
        if (steady.num_periods > 1)
            shape->num_microbatches -= (steady.num_periods - 1) * steady.num_microbatches;
    }
    if (first.schedule->orders || plan->vocab_barriers)
        first.orders = schedule_orders(first.schedule, shape, scratch);
    return first;
}

static double activations_closed_form(const Plan *plan, const Workload *workload,
                                      const FirstItems *first, int rank, Arena *scratch) {
    if (first->counted) {
        const Chunk *chunk = &workload->chunks[plan_rank_chunk(plan, rank, 0)];
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
    double held = 0, peak = 0;
    for (int i = 0; i < order.num_items; i++)
        activations_step(&workload->chunks[order.items[i].chunk], (WorkKind)order.items[i].kind,
                         &held, &peak);
    return peak;
}

// Whether two ranks hold the same.
static bool ranks_hold_alike(const Plan *plan, const Workload *workload, int a, int b) {
    for (int k = 0; k < plan->vpp; k++) {
        const Chunk *x = &workload->chunks[plan_rank_chunk(plan, a, k)];
        const Chunk *y = &workload->chunks[plan_rank_chunk(plan, b, k)];
        if (memcmp(x->num_blocks, y->num_blocks,
                   (size_t)workload->num_blocks * sizeof *x->num_blocks) != 0 ||
            x->dense_parameters != y->dense_parameters ||
            x->expert_parameters != y->expert_parameters)
            return false;
    }
    return true;
}

// Whether a rank that holds what the one before it does (ranks_hold_alike) needs no larger part of
// its memory.
static bool needs_no_more(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          const FirstItems *first, int rank) {
    if (!first->schedule || !first->schedule->first_holds_most || first->orders) return false;
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
    static_account(scenario, plan, workload, rank, &m);
    m.activations_bytes = activations_closed_form(plan, workload, &first, rank, &scratch);
    account_finish(scenario, plan, workload, rank, &m);
    arena_free(&scratch);
    return m;
}

RankMemory memory_running_sum(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Program *program, int rank) {
    RankMemory m = {0};
    static_account(scenario, plan, workload, rank, &m);
    const RankProgram *r = &program->ranks[rank];
    double held = 0, peak = 0;
    for (int i = 0; i < r->num_instructions; i++) {
        const Instruction *in = &r->instructions[i];
        bool last_part = in->part + 1 >= in->num_parts;
        if (in->kind > INSTRUCTION_BACKWARD_WEIGHT || !last_part) continue;
        activations_step(&workload->chunks[in->chunk], work_of(in), &held, &peak);
    }
    m.activations_bytes = peak;
    account_finish(scenario, plan, workload, rank, &m);
    return m;
}

const double *memory_activations(const Scenario *scenario, const Plan *plan,
                                 const Workload *workload, Arena *arena) {
    Arena scratch = {0};
    const FirstItems first = first_items(scenario, plan, workload, &scratch);
    double *bytes = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        const bool alike = r > 0 && ranks_hold_alike(plan, workload, r - 1, r);
        bytes[r] = alike && needs_no_more(scenario, plan, workload, &first, r)
                       ? MEMORY_NO_MORE
                       : activations_closed_form(plan, workload, &first, r, &scratch);
    }
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
            static_account(scenario, plan, workload, r, &statics);
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

RankMemory memory_worst_rank(const Scenario *scenario, const Plan *plan, const Workload *workload,
                             int *rank) {
    Arena scratch = {0};
    const double *activations = memory_activations(scenario, plan, workload, &scratch);
    const RankMemory worst = memory_worst_of(scenario, plan, workload, activations, rank);
    arena_free(&scratch);
    return worst;
}
