#include "costmodel/memory/memory_static.h"

#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"

#include <assert.h>
#include <math.h>

// Which kinds of blocks a rank holds.
//   held  [workload->num_blocks] all false
static void blocks_hold(const Plan *plan, const Workload *workload, int rank, bool *held) {
    const int num_chunks = plan_rank_chunks(plan);
    for (int k = 0; k < num_chunks; k++) {
        const int *num_blocks = workload->chunks[plan_rank_chunk(plan, rank, k)].num_blocks;
        for (int i = 0; i < workload->num_blocks; i++) held[i] |= num_blocks[i] > 0;
    }
}

// What ZeRO 3 gathers of weights that a strategy holds.
static double gathered_parameters(const Plan *own, double dense, double expert) {
    return own->zero_stage < 3 ? 0 : plan_sharded_parameters(own, dense, expert);
}

static bool gathers_weights(const Plan *plan) {
    for (int s = 0; s < plan_num_shardings(plan); s++)
        if (plan_sharding(plan, s)->zero_stage >= 3) return true;
    return false;
}

// What is gathered of a block: weights, and gradients before they are scattered.
typedef struct {
    double weights_bytes, gradients_bytes;
} Gathered;

static Gathered gathered_most(Gathered a, Gathered b) {
    return (Gathered){fmax(a.weights_bytes, b.weights_bytes),
                      fmax(a.gradients_bytes, b.gradients_bytes)};
}

static double gathered_weights_bytes(const Scenario *scenario, const Plan *own,
                                     const HeldParameters *held) {
    const double frozen = gathered_parameters(own, held->frozen.dense, held->frozen.expert);
    return gathered_parameters(own, held->dense, held->expert) *
               gathered_weight_bytes(&scenario->execution) +
           frozen * frozen_gathered_frac(&scenario->execution, &scenario->training.tuning);
}

// Largest of the held blocks in [first, end).
static Gathered largest_gathered(const Scenario *scenario, const Plan *plan,
                                 const Workload *workload, const bool *held, int first, int end) {
    Gathered most = {0};
    for (int i = first; i < end; i++) {
        const Block *b = &workload->blocks[i];
        const Plan *own = plan_sharding(plan, b->sharding);
        if (!held[i]) continue;
        const HeldParameters all = {b->dense_parameters, b->expert_parameters, 0, b->frozen};
        const double trained = gathered_parameters(own, all.dense, all.expert);
        most =
            gathered_most(most, (Gathered){gathered_weights_bytes(scenario, own, &all),
                                           trained * reduced_gradient_bytes(&scenario->execution)});
    }
    return most;
}

// What the rank holds of its weights under one sharding.
static HeldParameters rank_parameters(const Plan *plan, const Workload *workload, int rank,
                                      int sharding) {
    HeldParameters sum = {0};
    for (int k = 0; k < plan_rank_chunks(plan); k++) {
        const HeldParameters own =
            chunk_held(&workload->chunks[plan_rank_chunk(plan, rank, k)], sharding);
        sum.dense += own.dense;
        sum.expert += own.expert;
        sum.frozen.dense += own.frozen.dense;
        sum.frozen.expert += own.frozen.expert;
    }
    return sum;
}

// ZeRO-3 holds two blocks gathered (this one and the next, prefetched) and one block's gradients
// before they are scattered; without resharding all blocks of the rank stay gathered. Of a stack
// that gathers nothing ahead the block that runs is in the peaks of its chunk.
static double gathered_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                             int rank, const bool *held) {
    if (!scenario->execution.stack.training.gathers_ahead || !gathers_weights(plan)) return 0;
    const Gathered layer = gathered_most(
        largest_gathered(scenario, plan, workload, held, BLOCK_FIRST_LAYER, BLOCK_MTP + 1),
        largest_gathered(scenario, plan, workload, held, MAX_BLOCKS, workload->num_blocks));
    const Gathered edge = gathered_most(
        largest_gathered(scenario, plan, workload, held, BLOCK_EMBEDDING, BLOCK_EMBEDDING + 1),
        largest_gathered(scenario, plan, workload, held, BLOCK_HEAD, BLOCK_VOCAB_OUTPUT + 1));
    double gathered = fmax(2 * layer.weights_bytes, layer.weights_bytes + edge.weights_bytes);
    double all = 0;
    for (int s = 0; s < plan_num_shardings(plan); s++) {
        const HeldParameters own = rank_parameters(plan, workload, rank, s);
        all += gathered_weights_bytes(scenario, plan_sharding(plan, s), &own);
    }
    if (!plan->reshard_after_forward) gathered = fmax(gathered, all);
    return gathered + fmax(layer.gradients_bytes, edge.gradients_bytes);
}

enum { MAX_SHAPES = 128 }; // of layers that have one sharding

// Shapes of weights met so far, each with one placeholder.
typedef struct {
    double (*shapes)[2]; // [num] m, n
    double bytes;
    int num, capacity;
} Shapes;

static void shape_add(Shapes *shapes, const Op *op) {
    for (int i = 0; i < shapes->num; i++)
        if (shapes->shapes[i][0] == op->gemm.m && shapes->shapes[i][1] == op->gemm.n) return;
    assert(shapes->num < shapes->capacity);
    shapes->shapes[shapes->num][0] = op->gemm.m;
    shapes->shapes[shapes->num++][1] = op->gemm.n;
    shapes->bytes += op->placeholder_bytes;
}

// Placeholders of the gradients of all weights on a rank.
static double placeholder_bytes(const Scenario *scenario, const Plan *plan,
                                const Workload *workload, const bool *held) {
    if (scenario->execution.stack.training.weight_gradient != WEIGHT_GRADIENT_PLACEHOLDER) return 0;
    Arena scratch = {0};
    double few[MAX_SHAPES][2];
    const int num_shardings = plan_num_shardings(plan);
    Shapes shapes = {.shapes = few, .capacity = MAX_SHAPES * num_shardings};
    if (num_shardings > 1)
        shapes.shapes = arena_alloc(&scratch, (size_t)shapes.capacity * sizeof *shapes.shapes);
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (!held[i]) continue;
        for (int k = 0; k < b->num_backward; k++)
            if (b->backward[k].placeholder_bytes > 0) shape_add(&shapes, &b->backward[k]);
    }
    arena_free(&scratch);
    return shapes.bytes;
}

// The largest buffer among those that are never freed once they were needed.
static double lasting_bytes(const Workload *workload, const bool *held) {
    double most = 0;
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (!held[i]) continue;
        for (int k = 0; k < b->num_forward; k++) most = fmax(most, b->forward[k].lasting_bytes);
    }
    return most;
}

// Messages are counted where the work is walked (costmodel/memory/held_messages.h), but beside
// passes over a spread vocabulary, which drift through the order: there one message that arrives
// and one that leaves count throughout, and with the passes four more: the output of the last
// chunk, arriving; the gradient of it that is summed up; the rows that were looked up and wait for
// the first chunk; and the gradient of its input, arriving. Dual pipelines have these six each.
static double message_bytes(const Plan *plan, const Workload *workload) {
    if (plan->pp == 1 || !plan->vocab_barriers) return 0;
    return (plan_is_dual(plan) ? 2 : 1) * 6 * workload->boundary_bytes;
}

static double workspace_bytes(const Scenario *scenario, double expert_parameters) {
    const Stack *stack = &scenario->execution.stack;
    return stack->residency.workspace_bytes +
           (expert_parameters > 0 ? stack->residency.grouped_workspace_bytes : 0);
}

double held_gradients_bytes(const Plan *plan, const StateBytes *state, double all, double shard) {
    const int num_copies = plan->dp * plan->cp > 1 ? 2 : 1;
    const double copies = num_copies * all * state->gradient_copy;
    if (plan->zero_stage < 2) return all * state->gradient + copies;
    return (plan_scatters_gradients(plan) ? shard * state->gradient : all * state->whole_gradient) +
           copies;
}

// Weights, gradients and optimizer of the layers that have one sharding.
static void states_add(const Plan *own, const StateBytes *state, const HeldParameters *held,
                       RankMemory *m) {
    const double all = held->dense + held->expert;
    const double shard = held->dense / plan_group(own, GROUP_ZERO).size +
                         held->expert / plan_group(own, GROUP_EZERO).size;
    const FrozenBytes frozen = held->frozen;
    const double frozen_bytes = own->zero_stage >= 3
                                    ? frozen.dense / plan_group(own, GROUP_ZERO).size +
                                          frozen.expert / plan_group(own, GROUP_EZERO).size
                                    : frozen.dense + frozen.expert;
    m->frozen_bytes += frozen_bytes;
    m->weights_bytes += (own->zero_stage >= 3 ? shard : all) * state->weight + frozen_bytes;
    m->gradients_bytes += held_gradients_bytes(own, state, all, shard);
    m->optimizer_bytes += (own->zero_stage >= 1 ? shard : all) * (state->master + state->moments);
}

void memory_static_account(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, RankMemory *m) {
    const StateBytes state = state_bytes(&scenario->execution, scenario->training.optimizer);
    double expert = 0;
    for (int s = 0; s < plan_num_shardings(plan); s++) {
        const HeldParameters held = rank_parameters(plan, workload, rank, s);
        states_add(plan_sharding(plan, s), &state, &held, m);
        expert += held.expert + held.frozen.expert;
    }
    Arena scratch = {0};
    bool few[MAX_BLOCKS] = {false};
    bool *held =
        workload->num_blocks > MAX_BLOCKS ? ARENA_ARRAY(&scratch, workload->num_blocks, bool) : few;
    blocks_hold(plan, workload, rank, held);
    m->buffers_bytes = gathered_bytes(scenario, plan, workload, rank, held) +
                       placeholder_bytes(scenario, plan, workload, held) +
                       lasting_bytes(workload, held) + message_bytes(plan, workload) +
                       workspace_bytes(scenario, expert);
    arena_free(&scratch);
}

RankMemory memory_static_states(const Scenario *scenario, const Plan *plan,
                                const Workload *workload) {
    const StateBytes state = state_bytes(&scenario->execution, scenario->training.optimizer);
    HeldParameters held = {0};
    RankMemory m = {0};
    for (int c = 0; c < plan->num_chunks; c++) {
        held.dense += workload->chunks[c].dense_parameters;
        held.expert += workload->chunks[c].expert_parameters;
        held.frozen.dense += workload->chunks[c].frozen.dense;
        held.frozen.expert += workload->chunks[c].frozen.expert;
    }
    states_add(plan, &state, &held, &m);
    return m;
}

static const GroupKind COMMUNICATORS[] = {GROUP_TP, GROUP_CP,  GROUP_DP,
                                          GROUP_EP, GROUP_EDP, GROUP_PP};
enum { NUM_COMMUNICATORS = sizeof COMMUNICATORS / sizeof *COMMUNICATORS };

// The group of a change of layout: where one way is a copy, the other is a collective.
static GroupKind change_group(const Block *change) {
    const Op *op = change->forward->kind == OP_COLLECTIVE ? change->forward : change->backward;
    return op->collective.group;
}

// Groups of layers with shardings of their own, and of changes of layout, that the plan's own are
// not.
static int num_layer_communicators(const Plan *plan, const Workload *workload, int rank) {
    Arena scratch = {0};
    bool *seen = ARENA_ARRAY(&scratch, plan_num_group_kinds(plan), bool);
    bool *held = ARENA_ARRAY(&scratch, workload->num_blocks, bool);
    int n = 0;
    blocks_hold(plan, workload, rank, held);
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        const bool change = i >= workload->first_change;
        for (int k = 0; held[i] && k < (change ? 1 : NUM_COMMUNICATORS); k++) {
            const GroupKind kind =
                change ? change_group(b) : sharding_group_kind(plan, b->sharding, COMMUNICATORS[k]);
            n += (int)kind >= NUM_GROUPS && plan_group(plan, kind).size > 1 && !seen[kind];
            seen[kind] = true;
        }
    }
    arena_free(&scratch);
    return n;
}

int memory_num_communicators(const Plan *plan, const Workload *workload, int rank) {
    int n = plan_num_shardings(plan) > 1 ? num_layer_communicators(plan, workload, rank) : 0;
    for (int i = 0; i < NUM_COMMUNICATORS; i++) n += plan_group(plan, COMMUNICATORS[i]).size > 1;
    return n;
}
