#include "planner/lengths/lengths_shapes.h"

#include "costmodel/step/estimate.h"
#include "planner/space/space.h"

#include <math.h>
#include <string.h>

// --- Shapes

Scenario lengths_job(const Scenario *scenario, const LengthBucket *longest) {
    Scenario job = *scenario;
    const int64_t unit = 2 * (int64_t)scenario->cluster.num_gpus;
    job.training.seq_len = (longest->length + unit - 1) / unit * unit;
    job.training.global_batch = unit;
    job.training.num_sequence_lengths = 0;
    job.parallel.pp = job.parallel.vpp = job.parallel.micro_batch = 1;
    job.parallel.ep = job.parallel.etp = 1;
    return job;
}

typedef struct {
    Arena *arena;
    Plan *plans;
    int num_plans, capacity;
} PlanList;

// Recomputation of some layers and hybrid sharding where they are stated only.
static bool plan_collect(void *context, const SpaceFamily *family) {
    PlanList *list = context;
    const Plan *plans = family->plans;
    for (int i = 0; i < family->num_plans; i++) {
        if (plans[i].zero_group != plans[0].zero_group) continue;
        if (list->num_plans == list->capacity) {
            list->capacity = list->capacity ? 2 * list->capacity : 64;
            list->plans =
                arena_grow(list->arena, list->plans, (size_t)list->capacity * sizeof *plans);
        }
        list->plans[list->num_plans++] = plans[i];
    }
    return true;
}

// Whether two plans differ in the size of their groups only. Groups of one place have no method.
static bool is_like(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->recompute == b->recompute &&
           plan_zero_level(a) == plan_zero_level(b) &&
           a->sequence_parallel == b->sequence_parallel &&
           (a->cp == 1 || b->cp == 1 || a->cp_method == b->cp_method);
}

// Whether the plan is the first that its shape is built for: with groups of one place where there
// are no others.
static bool begins_shape(const PlanList *list, int plan) {
    const Plan *first = &list->plans[plan];
    for (int i = 0; i < list->num_plans; i++) {
        const Plan *other = &list->plans[i];
        if (i == plan || !is_like(first, other)) continue;
        if (first->cp == 1 && other->cp > 1) return false;
        if (other->cp > 1 && (other->cp < first->cp || (other->cp == first->cp && i < plan)))
            return false;
    }
    return true;
}

static LengthsShape shape_of(const PlanList *list, const Plan *first, Arena *arena) {
    int num_plans = 0;
    for (int i = 0; i < list->num_plans; i++) num_plans += is_like(first, &list->plans[i]);
    Plan *plans = ARENA_ARRAY(arena, num_plans, Plan);
    LengthsShape shape = {.plans = plans};
    for (int i = 0; i < list->num_plans; i++) {
        if (!is_like(first, &list->plans[i])) continue;
        int at = shape.num_plans++;
        for (; at > 0 && plans[at - 1].cp > list->plans[i].cp; at--) plans[at] = plans[at - 1];
        plans[at] = list->plans[i];
        plans[at].cp_method = first->cp_method;
    }
    return shape;
}

LengthsShape *lengths_shapes(const Scenario *job, Arena *arena, int *num_shapes) {
    Space space;
    Arena collected = {0};
    PlanList list = {.arena = &collected};
    space_build(space_narrow(job, true, arena), arena, &space);
    for (int split = 0; split < space.num_splits; split++)
        space_visit(&space, split, arena, plan_collect, &list);
    LengthsShape *shapes = ARENA_ARRAY(arena, list.num_plans, LengthsShape);
    *num_shapes = 0;
    for (int i = 0; i < list.num_plans; i++)
        if (begins_shape(&list, i))
            shapes[(*num_shapes)++] = shape_of(&list, &list.plans[i], arena);
    arena_free(&collected);
    return shapes;
}

// --- Prices

enum { MOST_BUSY = 1 << 20 };

// A pack of `num_sequences` of one length, as a micro-batch of the job.
typedef struct {
    Scenario job;
    Plan plan;
    Workload workload;
} Pack;

static void pack_set(Pack *pack, const Scenario *job, const Plan *plan, double tokens,
                     int num_sequences, Arena *scratch) {
    arena_reset(scratch);
    pack->job = *job;
    pack->job.training.seq_len = (int64_t)tokens;
    pack->plan = *plan;
    pack->plan.micro_batch = num_sequences;
    pack->workload = workload_build(&pack->job, &pack->plan, scratch);
}

static double pack_s(const Scenario *job, const Plan *plan, double tokens, int num_sequences,
                     Arena *scratch) {
    Pack pack;
    pack_set(&pack, job, plan, tokens, num_sequences, scratch);
    const Prices prices = chunks_price(&pack.job, &pack.plan, &pack.workload, scratch);
    return prices.forward[0].time_s + prices.backward[0].time_s;
}

// Tokens that a group cuts a sequence into multiples of.
static int64_t length_unit(const Scenario *job, const Plan *plan) {
    if (plan->cp == 1 || plan->cp_method == CP_ULYSSES) return 1;
    return job->training.causal ? 2 * plan->cp : plan->cp;
}

static bool tokens_fit(const Scenario *job, const Plan *plan, double tokens, Arena *scratch) {
    Pack pack;
    double missing_bytes;
    pack_set(&pack, job, plan, tokens, 1, scratch);
    estimate_memory(&pack.job, &pack.plan, &pack.workload, &missing_bytes);
    return missing_bytes <= 0;
}

// The most tokens of a pack, in units, up to what a step has.
static double capacity_tokens(const Scenario *job, const Plan *plan, double most, Arena *scratch) {
    const double unit = 2.0 * plan->cp * plan->tp;
    double fits = 0, misses = ceil(most / unit) + 1;
    while (misses - fits > 1) {
        const double middle = floor((fits + misses) / 2);
        if (tokens_fit(job, plan, middle * unit, scratch))
            fits = middle;
        else
            misses = middle;
    }
    return fits * unit;
}

// What a step takes beside its packs, where gradients are summed over two of them.
static double step_s(const Scenario *job, const Plan *plan, double tokens, Arena *scratch) {
    const double two_s = 2 * pack_s(job, plan, tokens, 1, scratch);
    Scenario step = *job;
    Plan two = *plan;
    step.training.seq_len = (int64_t)tokens;
    step.training.global_batch = 2 * plan->dp;
    plan_derive(&step, &two);
    Estimate estimate;
    arena_reset(scratch);
    if (estimate_plan(&step, &two, scratch, &estimate, NULL).code != STATUS_OK) return 0;
    return fmax(0, estimate.step_time_s - two_s);
}

// Enough sequences of one length that their own work, not the floor, is what a pack takes: prices
// know no memory. *time_s is what they take.
static int num_busy(const Scenario *job, const Plan *plan, double tokens, double floor_s,
                    Arena *scratch, double *time_s) {
    int n = 1;
    while ((*time_s = pack_s(job, plan, tokens, n, scratch)) < 2 * floor_s && n < MOST_BUSY) n *= 2;
    return n;
}

// What of a pack does not grow with its sequences, by those of one length.
static double fixed_s(const Scenario *job, const Plan *plan, double tokens, double floor_s,
                      Arena *scratch) {
    double busy_s;
    const int n = num_busy(job, plan, tokens, floor_s, scratch, &busy_s);
    return fmax(0, 2 * busy_s - pack_s(job, plan, tokens, 2 * n, scratch));
}

static LengthsSize size_price(const Scenario *job, const Plan *plan, const LengthBucket *buckets,
                              int num_buckets, Arena *arena, Arena *scratch) {
    double *tokens = ARENA_ARRAY(arena, num_buckets, double);
    double *sequence_s = ARENA_ARRAY(arena, num_buckets, double);
    const double unit = (double)length_unit(job, plan);
    double all_tokens = 0;
    for (int i = 0; i < num_buckets; i++) {
        tokens[i] = ceil((double)buckets[i].length / unit) * unit;
        all_tokens += tokens[i] * buckets[i].num_sequences;
    }
    LengthsSize size = {.size = plan->cp, .tokens = tokens, .sequence_s = sequence_s};
    size.capacity_tokens = capacity_tokens(job, plan, all_tokens, scratch);
    const double least = tokens[num_buckets - 1];
    if (size.capacity_tokens < least) return size;
    size.floor_s = pack_s(job, plan, least, 1, scratch);
    size.fixed_s = fixed_s(job, plan, least, size.floor_s, scratch);
    for (int i = 0; i < num_buckets; i++) {
        sequence_s[i] = INFINITY;
        if (size.capacity_tokens < tokens[i]) continue;
        double busy_s;
        const int n = num_busy(job, plan, tokens[i], size.floor_s, scratch, &busy_s);
        sequence_s[i] = fmax(0, busy_s - size.fixed_s) / n;
        if (size.step_s == 0) size.step_s = step_s(job, plan, tokens[i], scratch);
    }
    return size;
}

LengthsProblem lengths_price(const Scenario *job, const LengthsShape *shape,
                             const LengthBucket *buckets, int num_buckets, Arena *arena,
                             const Plan **plans) {
    LengthsSize *sizes = ARENA_ARRAY(arena, shape->num_plans, LengthsSize);
    LengthsProblem problem = {
        .num_places = job->cluster.num_gpus / shape->plans[0].tp,
        .sizes = sizes,
        .buckets = buckets,
        .num_buckets = num_buckets,
    };
    Arena scratch = {0};
    for (int i = 0; i < shape->num_plans; i++) {
        const Plan *plan = &shape->plans[i];
        sizes[problem.num_sizes] = size_price(job, plan, buckets, num_buckets, arena, &scratch);
        if (sizes[problem.num_sizes].capacity_tokens <
            sizes[problem.num_sizes].tokens[num_buckets - 1])
            continue;
        plans[problem.num_sizes++] = plan;
    }
    arena_free(&scratch);
    return problem;
}
