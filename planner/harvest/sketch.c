#include "planner/harvest/sketch.h"

#include "plan/layer_plans.h"
#include "plan/plan_orders.h"
#include "planner/harvest/sketch_held.h"
#include "workload/technique/technique.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// Sums in another order: a floor counts as a miss only beyond their rounding.
static const double ROUNDING_FRAC = 1e-9;

// --- Blocks of a shape

// A block that gathers its weights has operators of that in its forward: of these, gather and copy
// of both kinds of weights at most. The host then counts what it launches again as a smaller part
// of a pass (costmodel/pass/list_price.c).
static double host_less_s(const Scenario *scenario, const Plan *plan, const Block *block) {
    static const double MOST_GATHERING = 4;
    const bool gathers = plan->zero_stage >= 2 || plan->reduces_once;
    if (!gathers || plan->recompute == RECOMPUTE_NONE) return 0;
    return MOST_GATHERING / (block->num_forward + MOST_GATHERING) *
           scenario->execution.stack.launch.host_layer_s *
           part_factor(scenario->calibration, PART_HOST);
}

double sketch_host_less_s(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    double less_s = 0;
    for (int i = 0; i < workload->num_blocks; i++)
        if (workload->chunks[0].num_blocks[i] > 0)
            less_s += workload->chunks[0].num_blocks[i] *
                      host_less_s(scenario, plan, &workload->blocks[i]);
    return less_s;
}

void sketch_blocks(const Scenario *scenario, const Plan *plan, const Workload *workload,
                   BlockPrices *blocks, SketchBlock *out) {
    static const int ENDS[] = {BLOCK_EMBEDDING, BLOCK_MTP, BLOCK_HEAD};
    const int num_blocks = SKETCH_FIRST_LAYER + scenario->model.num_kinds;
    const PricingContext context = pricing_context(scenario, plan, 0, NULL);
    for (int i = 0; i < num_blocks; i++) {
        const Block *b = i < SKETCH_FIRST_LAYER
                             ? &workload->blocks[ENDS[i]]
                             : workload_layer_block(workload, i - SKETCH_FIRST_LAYER, PLAN_OWN);
        const int block = (int)(b - workload->blocks);
        const PassPrice forward = block_pass_price(&context, workload, blocks, WORK_FORWARD, block);
        const PassPrice backward =
            block_pass_price(&context, workload, blocks, WORK_BACKWARD, block);
        const double host_s = fmax(0, backward.host_s - host_less_s(scenario, plan, b));
        out[i] = (SketchBlock){{forward.device_s, backward.device_s, forward.host_s, host_s,
                                b->saved_bytes, b->dense_parameters, b->expert_parameters},
                               b->backward_peak_bytes};
    }
}

// --- Layouts

// Blocks of one chunk, or of several.
typedef struct {
    int num[SKETCH_MAX_BLOCKS];
    int num_layers;
} Counts;

// Neighbouring ranks that hold the same: the last has the longest way to and from it, the first
// holds most.
typedef struct {
    int first, last;
    const Counts *chunks; // [vpp]
    Counts all;           // of these together
    Counts before;        // of the chunks that a micro-batch passes on its way to `last`
} Ranks;

struct SketchLayout {
    int vpp, num_blocks;
    int num_classes; // of ranks
    const Ranks *classes;
};

static void counts_add(Counts *sum, const Counts *part) {
    for (int i = 0; i < SKETCH_MAX_BLOCKS; i++) sum->num[i] += part->num[i];
    sum->num_layers += part->num_layers;
}

static Counts chunk_counts(const Model *model, const PlanChunk *chunk) {
    Counts c = {.num_layers = chunk->num_layers};
    c.num[SKETCH_EMBEDDING] = chunk->embedding;
    c.num[SKETCH_MTP] = chunk->num_mtp;
    c.num[SKETCH_HEAD] = chunk->loss;
    if (model->num_kinds == 1) c.num[SKETCH_FIRST_LAYER] = chunk->num_layers;
    for (int i = 0; model->num_kinds > 1 && i < chunk->num_layers; i++)
        c.num[SKETCH_FIRST_LAYER + model->layer_kind[chunk->first_layer + i]]++;
    return c;
}

static Counts counts_sum(const Counts *chunks, int num_chunks) {
    Counts sum = {{0}, 0};
    for (int k = 0; k < num_chunks; k++) counts_add(&sum, &chunks[k]);
    return sum;
}

const SketchLayout *sketch_layout(const Scenario *scenario, const Plan *plan, Arena *arena) {
    if (plan->vocab_barriers || plan_is_dual(plan)) return NULL;
    SketchLayout *layout = ARENA_NEW(arena, SketchLayout);
    Ranks *classes = ARENA_ARRAY(arena, plan->pp, Ranks);
    Counts *chunks = ARENA_ARRAY(arena, plan->pp * plan->vpp, Counts), before = {{0}, 0};
    const size_t size = (size_t)plan->vpp * sizeof *chunks;
    int n = 0;
    for (int r = 0; r < plan->pp; r++) {
        Counts *own = chunks + r * plan->vpp;
        for (int k = 0; k < plan->vpp; k++)
            own[k] = chunk_counts(&scenario->model, &plan->chunks[plan_rank_chunk(plan, r, k)]);
        if (r == 0 || memcmp(own, own - plan->vpp, size) != 0)
            classes[n++] = (Ranks){.first = r, .chunks = own, .all = counts_sum(own, plan->vpp)};
        classes[n - 1].last = r;
        classes[n - 1].before = before;
        counts_add(&before, &own[0]);
    }
    *layout = (SketchLayout){plan->vpp, SKETCH_FIRST_LAYER + scenario->model.num_kinds, n, classes};
    return layout;
}

// --- Sums

typedef struct {
    double of[NUM_SKETCH_SUMS];
} Sums;

static void block_add(Sums *sums, int count, const SketchBlock *block) {
    for (int f = 0; f < NUM_SKETCH_SUMS; f++) sums->of[f] += count * block->sums[f];
}

// Where some layers are recomputed, whichever these are: what it adds least, or takes away most.
static void recomputed_add(const SketchLayout *layout, const SketchShape *shape,
                           const Counts *counts, int num, Sums *sums) {
    if (num > counts->num_layers) num = counts->num_layers;
    for (int f = 0; f < NUM_SKETCH_SUMS; f++) {
        double least = INFINITY;
        for (int i = SKETCH_FIRST_LAYER; i < layout->num_blocks; i++)
            if (counts->num[i] > 0)
                least = fmin(least, shape->recomputed[i].sums[f] - shape->kept[i].sums[f]);
        sums->of[f] += num * least;
    }
}

// Of chunks of whose first layers `num` are recomputed, at least; of all with INT_MAX.
static Sums counts_sums(const SketchLayout *layout, const SketchShape *shape, const Counts *counts,
                        int num) {
    const SketchBlock *layers = num == INT_MAX ? shape->recomputed : shape->kept;
    Sums sums = {{0}};
    for (int i = 0; i < SKETCH_FIRST_LAYER; i++)
        if (counts->num[i] > 0) block_add(&sums, counts->num[i], &shape->ends[i]);
    for (int i = SKETCH_FIRST_LAYER; i < layout->num_blocks; i++)
        if (counts->num[i] > 0) block_add(&sums, counts->num[i], &layers[i]);
    if (num > 0 && num < INT_MAX && counts->num_layers > 0)
        recomputed_add(layout, shape, counts, num, &sums);
    return sums;
}

// How many layers of each rank a plan recomputes; more than any has for all.
static int recomputed_layers(const Plan *plan) {
    if (plan->recompute == RECOMPUTE_NONE) return 0;
    return plan->recompute_layers == ABSENT ? INT_MAX : plan->recompute_layers;
}

// --- Time

// Of a micro-batch forth and back through `num_chunks` chunks.
static double way_s(const Sums *sums, int num_chunks, double host_s) {
    return fmax(sums->of[SKETCH_FORWARD_S], sums->of[SKETCH_FORWARD_HOST_S] + num_chunks * host_s) +
           fmax(sums->of[SKETCH_BACKWARD_S],
                sums->of[SKETCH_BACKWARD_HOST_S] + num_chunks * host_s);
}

double sketch_bound_s(const Scenario *scenario, const Plan *plan, const SketchLayout *layout,
                      const SketchShape *shape) {
    const bool together = step_traits(&scenario->execution).begins_together &&
                          !schedule_find(plan->schedule)->splits_backward;
    const double host_s = pass_host_s(&scenario->execution, scenario->calibration),
                 step_s = scenario->execution.stack.launch.host_step_s;
    const int num = recomputed_layers(plan), before = num == INT_MAX ? num : 0;
    double bound_s = 0;
    for (int i = 0; i < layout->num_classes; i++) {
        const Ranks *ranks = &layout->classes[i];
        Sums sums = counts_sums(layout, shape, &ranks->all, num);
        double rank_s = way_s(&sums, layout->vpp, host_s) * (double)plan->num_microbatches;
        if (together && ranks->last > 0) {
            sums = counts_sums(layout, shape, &ranks->before, before);
            rank_s += way_s(&sums, ranks->last, host_s);
        }
        bound_s = fmax(bound_s, rank_s);
    }
    return bound_s + step_s * part_factor(scenario->calibration, PART_HOST);
}

// --- Memory

// The peak of what a rank's last chunk runs back first. Its layers count where not all of them may
// be recomputed: what these hold then does not fall with their number.
static double first_peak_bytes(const SketchLayout *layout, const SketchShape *shape,
                               const Counts *last, int num) {
    if (last->num[SKETCH_HEAD]) return shape->ends[SKETCH_HEAD].backward_peak_bytes;
    if (last->num[SKETCH_MTP]) return shape->ends[SKETCH_MTP].backward_peak_bytes;
    const bool all = num == INT_MAX;
    if (!all && num >= last->num_layers) return 0;
    for (int i = layout->num_blocks - 1; i >= SKETCH_FIRST_LAYER; i--)
        if (last->num[i]) return (all ? shape->recomputed : shape->kept)[i].backward_peak_bytes;
    return 0;
}

static double activation_bytes_of(const Plan *plan, const SketchLayout *layout,
                                  const SketchShape *shape, const Ranks *ranks) {
    int few[16], *units = few, left = recomputed_layers(plan);
    Arena scratch = {0};
    if (layout->vpp > (int)(sizeof few / sizeof *few))
        units = ARENA_ARRAY(&scratch, layout->vpp, int);
    const bool known = sketch_units_held(plan, ranks->first, units);
    double bytes = 0;
    for (int k = 0; k < layout->vpp; k++) {
        const Counts *counts = &ranks->chunks[k];
        const Sums sums = counts_sums(layout, shape, counts, left);
        bytes += units[k] * sums.of[SKETCH_SAVED_BYTES];
        if (known && k == layout->vpp - 1) bytes += first_peak_bytes(layout, shape, counts, left);
        if (left != INT_MAX) left -= left < counts->num_layers ? left : counts->num_layers;
    }
    arena_free(&scratch);
    return bytes;
}

double sketch_missing_bytes(const Scenario *scenario, const Plan *plan, const SketchLayout *layout,
                            const SketchShape *shape) {
    const double available_bytes = cluster_most_memory_bytes(&scenario->cluster);
    if (scenario->fit_deviates < 0) return 0; // what is more uneven is then counted as less
    const SketchHeld held = sketch_held(scenario, plan);
    double most_bytes = 0;
    for (int i = 0; i < layout->num_classes; i++) {
        const Ranks *ranks = &layout->classes[i];
        const Sums sums = counts_sums(layout, shape, &ranks->all, 0);
        const double bytes = sketch_held_bytes(scenario, &held, sums.of[SKETCH_DENSE_PARAMETERS],
                                               sums.of[SKETCH_EXPERT_PARAMETERS],
                                               activation_bytes_of(plan, layout, shape, ranks));
        most_bytes = fmax(most_bytes, bytes);
    }
    const double missing_bytes = most_bytes - available_bytes;
    return missing_bytes > ROUNDING_FRAC * most_bytes ? missing_bytes : 0;
}

bool sketch_falls(const Scenario *scenario, const SketchShape *shape) {
    for (int k = 0; k < scenario->model.num_kinds; k++) {
        const int i = SKETCH_FIRST_LAYER + k;
        if (shape->recomputed[i].sums[SKETCH_SAVED_BYTES] > shape->kept[i].sums[SKETCH_SAVED_BYTES])
            return false;
    }
    return true;
}
