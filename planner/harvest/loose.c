#include "planner/harvest/loose.h"

#include "base/share.h"
#include "costmodel/pass/price.h"
#include "planner/harvest/loose_entry.h"
#include "workload/pass/block.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// One for several entries: while a price is worked out, for all that two threads ask for at once.
enum { NUM_LOCKS = 64 };

struct LooseLocks {
    pthread_mutex_t mutexes[NUM_LOCKS];
};

// --- The table

static LooseShape shape_of(const Plan *plan) {
    // Where only some layers of each rank are recomputed, none is a bound.
    bool whole = plan->recompute_layers == ABSENT;
    return (LooseShape){plan->tp,
                        plan->cp,
                        plan->ep,
                        plan->etp,
                        plan->micro_batch,
                        whole ? (int)plan->recompute : (int)RECOMPUTE_NONE,
                        (int)plan->cp_method};
}

// FNV-1a over the fields.
static size_t shape_hash(const LooseShape *shape) {
    const int fields[] = {shape->tp,          shape->cp,        shape->ep,       shape->etp,
                          shape->micro_batch, shape->recompute, shape->cp_method};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        hash = (hash ^ (uint64_t)(unsigned)fields[i]) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

// The slot of a shape, or the free one where it belongs.
static int *slot_find(const LooseCosts *costs, const LooseShape *shape) {
    size_t i = shape_hash(shape) & (costs->num_slots - 1);
    while (costs->slots[i] != 0 &&
           memcmp(&costs->entries[costs->slots[i] - 1].shape, shape, sizeof *shape) != 0)
        i = (i + 1) & (costs->num_slots - 1);
    return &costs->slots[i];
}

// Keeps half of the slots free.
static void table_grow(LooseCosts *costs) {
    if (costs->num_entries < costs->entry_capacity) return;
    costs->entry_capacity = costs->entry_capacity ? 2 * costs->entry_capacity : 256;
    LooseEntry *grown = ARENA_ARRAY(&costs->arena, costs->entry_capacity, LooseEntry);
    if (costs->num_entries)
        memcpy(grown, costs->entries, (size_t)costs->num_entries * sizeof *grown);
    costs->entries = grown;
    costs->num_slots = 2 * (size_t)costs->entry_capacity;
    costs->slots = ARENA_ARRAY(&costs->arena, costs->num_slots, int);
    for (int i = 0; i < costs->num_entries; i++)
        *slot_find(costs, &costs->entries[i].shape) = i + 1;
}

static Gradients gradients_of(const Scenario *scenario, const Plan *plan) {
    const bool plain = scenario->execution.stack.training.sharding == SHARDING_PLAIN;
    if (!plan_scatters_gradients(plan)) return GRADIENTS_ADDED;
    return plan->zero_stage == 3 || !plain ? GRADIENTS_SCATTERED : GRADIENTS_ADDED;
}

static void shape_add(void *context, const SpaceShape *open) {
    LooseCosts *costs = context;
    table_grow(costs);
    LooseShape shape = shape_of(open->plan);
    int *slot = slot_find(costs, &shape);
    if (*slot == 0) {
        costs->entries[costs->num_entries++] = (LooseEntry){.shape = shape, .plan = *open->plan};
        *slot = costs->num_entries;
    }
    for (int level = 0; level < NUM_ZERO_LEVELS; level++) {
        if (!(open->zero_levels & 1u << level)) continue;
        Plan plan = *open->plan;
        plan_set_zero_level(&plan, level);
        costs->entries[*slot - 1].wanted[plan.pp > 1][gradients_of(costs->scenario, &plan)] = true;
    }
}

// --- Prices

typedef struct {
    LooseCosts *costs;
    const Deadline *deadline;
    Arena scratch[SHARE_MAX_WORKERS];
} Pricing;

// The whole model as one chunk, without a vocabulary that is spread: its parts on many ranks may
// take less time than the whole. What ZeRO 2 and 3 gather and scatter is left out. Where the host
// sets the pace of one chunk of several, it does so for longer: the sum of the larger is at least
// the larger sum.
static void gradients_price(const Scenario *scenario, LooseEntry *entry, Gradients gradients,
                            Arena *scratch) {
    Plan whole = entry->plan;
    whole.pp = whole.vpp = whole.num_chunks = 1;
    whole.zero_stage = gradients == GRADIENTS_SCATTERED ? 3 : 0;
    // Among those that add their gradients up there may be some that gather weights.
    whole.reduces_once =
        gradients == GRADIENTS_ADDED && scenario->execution.grad_reduce != GRAD_REDUCE_MICRO_BATCH;
    whole.zero_group = whole.expert_dp = 1;
    if (whole.recompute_layers != ABSENT) whole.recompute = RECOMPUTE_NONE;
    if (plan_default_chunks(&scenario->model, 1, scratch, &whole.chunks).code != STATUS_OK) return;
    const PlanChunk layers = {.num_layers = scenario->model.num_layers};
    if (scenario->parallel.vocab_parallel == 1) whole.chunks = &layers;
    whole.vocab_barriers = 0;
    const Workload workload = workload_build(scenario, &whole, scratch);
    BlockPrices *blocks = block_prices_new(&scenario->cluster, scratch);
    const Prices prices = chunks_price_shared(scenario, &whole, &workload, blocks, scratch);
    LoosePrice *price = &entry->prices[gradients];
    price->microbatch_s = prices.forward[0].time_s + prices.backward[0].time_s -
                          sketch_host_less_s(scenario, &whole, &workload);
    if (scenario->cluster.num_pools == 1)
        sketch_blocks(scenario, &whole, &workload, blocks, price->blocks);
    atomic_store_explicit(&entry->known[gradients], true, memory_order_release);
}

// The shape that recomputes nothing, which takes no longer; the entry itself where there is none.
static LooseEntry *entry_without(const LooseCosts *costs, LooseEntry *entry) {
    LooseShape shape = entry->shape;
    shape.recompute = RECOMPUTE_NONE;
    const int slot = *slot_find(costs, &shape);
    return slot > 0 ? &costs->entries[slot - 1] : entry;
}

static void entry_price(void *context, int worker, int item) {
    Pricing *pricing = context;
    LooseEntry *entry = &pricing->costs->entries[item];
    Arena *scratch = &pricing->scratch[worker];
    if (entry_without(pricing->costs, entry) != entry) return; // when it is asked for
    for (int i = 0; i < NUM_GRADIENTS; i++) {
        if (pricing->deadline && deadline_is_past(pricing->deadline)) return;
        arena_reset(scratch);
        if ((entry->wanted[0][i] || entry->wanted[1][i]) && !entry->known[i])
            gradients_price(pricing->costs->scenario, entry, (Gradients)i, scratch);
    }
}

static void entries_price(LooseCosts *costs, int num_threads, const Deadline *deadline,
                          const PriceSource *source) {
    LoosePrice *all = ARENA_ARRAY(&costs->arena, costs->num_entries * NUM_GRADIENTS, LoosePrice);
    for (int i = 0; i < costs->num_entries; i++) costs->entries[i].prices = all + i * NUM_GRADIENTS;
    const bool shared = source && price_shelf_take(source, costs->entries, costs->num_entries);
    Pricing pricing = {.costs = costs, .deadline = deadline};
    share_work(costs->num_entries, num_threads, entry_price, &pricing);
    for (int i = 0; i < SHARE_MAX_WORKERS; i++) arena_free(&pricing.scratch[i]);
    costs->source = shared ? source : NULL;
    if (shared) price_shelf_lay(source, costs->entries, costs->num_entries, true);
}

bool loose_has(const LooseCosts *costs, const Plan *plan) {
    const LooseShape shape = shape_of(plan);
    return costs->num_slots > 0 && *slot_find(costs, &shape) != 0;
}

// A price, worked out where nobody has yet. Called from any thread.
static const LoosePrice *price_of(const LooseCosts *costs, LooseEntry *entry, Gradients gradients) {
    if (atomic_load_explicit(&entry->known[gradients], memory_order_acquire) ||
        (costs->deadline && deadline_is_past(costs->deadline)))
        return &entry->prices[gradients];
    pthread_mutex_t *mutex = &costs->locks->mutexes[(size_t)(entry - costs->entries) % NUM_LOCKS];
    pthread_mutex_lock(mutex);
    if (!entry->known[gradients]) {
        Arena scratch = {0};
        gradients_price(costs->scenario, entry, gradients, &scratch);
        arena_free(&scratch);
    }
    pthread_mutex_unlock(mutex);
    return &entry->prices[gradients];
}

static double entry_bound_s(const LooseCosts *costs, LooseEntry *entry, const Plan *plan) {
    double least_s = INFINITY;
    for (int i = 0; i < NUM_GRADIENTS; i++)
        if (entry->wanted[plan->pp > 1][i])
            least_s = fmin(least_s, price_of(costs, entry, (Gradients)i)->microbatch_s);
    return least_s / plan->pp * (double)plan->num_microbatches;
}

double loose_bound_s(const LooseCosts *costs, const Plan *plan) {
    LooseShape shape = shape_of(plan);
    return entry_bound_s(costs, &costs->entries[*slot_find(costs, &shape) - 1], plan);
}

double loose_first_bound_s(const LooseCosts *costs, const Plan *plan) {
    LooseShape shape = shape_of(plan);
    LooseEntry *entry = &costs->entries[*slot_find(costs, &shape) - 1];
    return entry_bound_s(costs, entry_without(costs, entry), plan);
}

bool loose_sketch(const LooseCosts *costs, const Plan *plan, SketchShape *out) {
    LooseShape shape = shape_of(plan);
    const Gradients own = gradients_of(costs->scenario, plan);
    int slot = *slot_find(costs, &shape);
    if (slot == 0) return false;
    const SketchBlock *kept = price_of(costs, &costs->entries[slot - 1], own)->blocks;
    *out = (SketchShape){kept, kept, kept};
    if (plan->recompute_layers == ABSENT) return true;
    shape.recompute = (int)plan->recompute;
    slot = *slot_find(costs, &shape);
    if (slot > 0) out->recomputed = price_of(costs, &costs->entries[slot - 1], own)->blocks;
    return slot > 0;
}

typedef struct {
    const LooseCosts *costs;
    double least_s;
} SplitBound;

static void shape_bound(void *context, const SpaceShape *shape) {
    SplitBound *bound = context;
    bound->least_s = fmin(bound->least_s, loose_first_bound_s(bound->costs, shape->plan));
}

void loose_build(const Space *space, int num_threads, const Deadline *deadline,
                 const PriceSource *source, LooseCosts *out, double *split_bound_s) {
    *out = (LooseCosts){.scenario = space->scenario};
    for (int i = 0; i < space->num_splits; i++) space_visit_shapes(space, i, shape_add, out);
    out->locks = ARENA_NEW(&out->arena, struct LooseLocks);
    out->deadline = deadline;
    for (int i = 0; i < NUM_LOCKS; i++) pthread_mutex_init(&out->locks->mutexes[i], NULL);
    entries_price(out, num_threads, deadline, source);
    for (int i = 0; i < space->num_splits; i++) {
        SplitBound bound = {.costs = out, .least_s = INFINITY};
        space_visit_shapes(space, i, shape_bound, &bound);
        split_bound_s[i] = bound.least_s;
    }
}

void loose_free(LooseCosts *costs) {
    if (costs->source) price_shelf_lay(costs->source, costs->entries, costs->num_entries, false);
    for (int i = 0; costs->locks && i < NUM_LOCKS; i++)
        pthread_mutex_destroy(&costs->locks->mutexes[i]);
    arena_free(&costs->arena);
    *costs = (LooseCosts){0};
}

typedef struct {
    double bound_s;
    int split;
} SplitRank;

static int compare_splits(const void *a, const void *b) {
    const SplitRank *x = a, *y = b;
    if (x->bound_s != y->bound_s) return x->bound_s < y->bound_s ? -1 : 1;
    return x->split - y->split;
}

int *loose_order(const double *split_bound_s, int num_splits, Arena *arena) {
    SplitRank *ranks = ARENA_ARRAY(arena, num_splits, SplitRank);
    for (int i = 0; i < num_splits; i++) ranks[i] = (SplitRank){split_bound_s[i], i};
    if (num_splits > 1) qsort(ranks, (size_t)num_splits, sizeof *ranks, compare_splits);
    int *order = ARENA_ARRAY(arena, num_splits, int);
    for (int i = 0; i < num_splits; i++) order[i] = ranks[i].split;
    return order;
}
