#include "planner/loose.h"

#include "costmodel/price.h"
#include "workload/block.h"

#include <math.h>
#include <string.h>

typedef struct {
    int tp, cp, ep, etp, micro_batch, recompute, cp_method;
} Shape;

struct LooseEntry {
    Shape shape; // tp 0: free
    double microbatch_s;
};

// --- The table

static Shape shape_of(const LooseCosts *costs, const Plan *plan) {
    // Where only some layers of each rank are recomputed, none is a bound.
    bool whole = costs->scenario->parallel.recompute_layers == ABSENT;
    return (Shape){plan->tp,
                   plan->cp,
                   plan->ep,
                   plan->etp,
                   plan->micro_batch,
                   whole ? (int)plan->recompute : (int)RECOMPUTE_NONE,
                   (int)plan->cp_method};
}

// FNV-1a over the fields.
static size_t shape_hash(const Shape *shape) {
    const int fields[] = {shape->tp,          shape->cp,        shape->ep,       shape->etp,
                          shape->micro_batch, shape->recompute, shape->cp_method};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        hash = (hash ^ (uint64_t)(unsigned)fields[i]) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

// The entry of a shape, or the free one where it belongs.
static LooseEntry *entry_find(const LooseCosts *costs, const Shape *shape) {
    size_t i = shape_hash(shape) & (costs->capacity - 1);
    while (costs->entries[i].shape.tp != 0 &&
           memcmp(&costs->entries[i].shape, shape, sizeof *shape) != 0)
        i = (i + 1) & (costs->capacity - 1);
    return &costs->entries[i];
}

static void table_grow(LooseCosts *costs) {
    if (costs->capacity && costs->num_entries < costs->capacity / 2) return;
    LooseCosts grown = *costs;
    grown.capacity = costs->capacity ? 2 * costs->capacity : 256;
    grown.entries = ARENA_ARRAY(&costs->arena, grown.capacity, LooseEntry);
    grown.arena = costs->arena;
    for (size_t i = 0; i < costs->capacity; i++)
        if (costs->entries[i].shape.tp != 0)
            *entry_find(&grown, &costs->entries[i].shape) = costs->entries[i];
    *costs = grown;
}

// --- Prices

// The whole model as one chunk. What ZeRO 3 and the host add once per rank is left out.
static double microbatch_price(LooseCosts *costs, const Plan *plan) {
    const Scenario *scenario = costs->scenario;
    Plan whole = *plan;
    whole.pp = whole.vpp = whole.num_chunks = 1;
    whole.zero_stage = 0;
    if (whole.recompute_layers != ABSENT) whole.recompute = RECOMPUTE_NONE;
    arena_reset(&costs->scratch);
    if (plan_default_chunks(&scenario->model, 1, &costs->scratch, &whole.chunks).code != STATUS_OK)
        return 0;
    Workload workload = workload_build(scenario, &whole, &costs->scratch);
    Prices prices = chunks_price(scenario, &whole, &workload, &costs->scratch);
    double once_s = scenario->training.stack.host_microbatch_s;
    return fmax(0, prices.forward[0].time_s + prices.backward[0].time_s - once_s);
}

static double bound_s(const Plan *plan, double microbatch_s) {
    return microbatch_s / plan->pp * (double)plan->num_microbatches;
}

double loose_bound_s(const LooseCosts *costs, const Plan *plan) {
    Shape shape = shape_of(costs, plan);
    return bound_s(plan, entry_find(costs, &shape)->microbatch_s);
}

typedef struct {
    LooseCosts *costs;
    double least_s;
} SplitBound;

static void shape_visit(void *context, const Plan *plan) {
    SplitBound *bound = context;
    LooseCosts *costs = bound->costs;
    Shape shape = shape_of(costs, plan);
    table_grow(costs);
    LooseEntry *entry = entry_find(costs, &shape);
    if (entry->shape.tp == 0) {
        *entry = (LooseEntry){.shape = shape, .microbatch_s = microbatch_price(costs, plan)};
        costs->num_entries++;
    }
    bound->least_s = fmin(bound->least_s, bound_s(plan, entry->microbatch_s));
}

void loose_build(const Space *space, LooseCosts *out, double *split_bound_s) {
    *out = (LooseCosts){.scenario = space->scenario};
    table_grow(out);
    for (int i = 0; i < space->num_splits; i++) {
        SplitBound bound = {.costs = out, .least_s = INFINITY};
        space_visit_shapes(space, i, shape_visit, &bound);
        split_bound_s[i] = bound.least_s;
    }
}

void loose_free(LooseCosts *costs) {
    arena_free(&costs->arena);
    arena_free(&costs->scratch);
    *costs = (LooseCosts){0};
}
