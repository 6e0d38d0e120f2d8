#include "planner/stages/group_chunkings.h"

#include "costmodel/step/estimate.h"
#include "planner/stages/last_fit.h"

#include <math.h>

typedef struct {
    GroupPricing *pricing;
    const Plan *plan;
    Arena *arena;
    double *layer_s, *extra_s; // [pp] a layer in the mean, and beside the layers
    int *most;                 // [pp] layers
    Workload like;             // of the plan
} Ranks;

static double sum_s(const double *passes_s) {
    double sum = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++) sum += passes_s[pass];
    return sum;
}

static Ranks ranks_of(GroupPricing *pricing, const Plan *plan, const GroupCosts *costs,
                      Arena *arena) {
    const int num_layers = pricing->scenario->model.num_layers;
    Ranks ranks = {.pricing = pricing,
                   .plan = plan,
                   .arena = arena,
                   .layer_s = ARENA_ARRAY(arena, plan->pp, double),
                   .extra_s = ARENA_ARRAY(arena, plan->pp, double),
                   .most = ARENA_ARRAY(arena, plan->pp, int),
                   .like = pieces_workload(&pricing->pieces, plan, arena)};
    for (int r = 0; r < plan->pp; r++) {
        const StageMachine *machine =
            &costs->machines[plan_rank_pool(&pricing->scenario->cluster, plan, r)];
        for (int pass = 0; pass < NUM_PASSES; pass++)
            if (machine->device_s[pass])
                ranks.layer_s[r] += machine->device_s[pass][num_layers] / num_layers;
        if (plan_chunk_rank(plan, 0) == r) ranks.extra_s[r] += sum_s(machine->first_s);
        if (plan_chunk_rank(plan, plan->num_chunks - 1) == r)
            ranks.extra_s[r] += sum_s(machine->last_s);
        ranks.most[r] = num_layers;
    }
    return ranks;
}

// A rank's layers over its chunks: those beside embedding and head are the shorter ones.
static void layers_spread(const Plan *plan, int rank, int count, int *layers) {
    const int low = count / plan->vpp, longer = count % plan->vpp;
    for (int v = 0; v < plan->vpp; v++) {
        const bool late = rank == 0 ? v >= plan->vpp - longer : v < longer;
        layers[plan_rank_chunk(plan, rank, v)] = low + late;
    }
}

// Gives layer after layer to the rank that it loads least, where that has room.
//   counts   [pp] layers of each
//   returns  the largest load; INFINITY where the ranks have no room for all layers
static double counts_find(const Ranks *ranks, int *counts) {
    const int pp = ranks->plan->pp;
    double largest_s = 0;
    for (int r = 0; r < pp; r++) largest_s = fmax(largest_s, ranks->extra_s[r]);
    for (int i = 0; i < ranks->pricing->scenario->model.num_layers; i++) {
        int least = -1;
        double least_s = INFINITY;
        for (int r = 0; r < pp; r++) {
            const double load_s = ranks->extra_s[r] + (counts[r] + 1) * ranks->layer_s[r];
            if (counts[r] == ranks->most[r] || load_s >= least_s) continue;
            least = r;
            least_s = load_s;
        }
        if (least < 0) return INFINITY;
        counts[least]++;
        largest_s = fmax(largest_s, least_s);
    }
    return largest_s;
}

// NULL where the ranks have no room for all layers.
static const PlanChunk *chunks_size(const Ranks *ranks) {
    const Plan *plan = ranks->plan;
    int *counts = ARENA_ARRAY(ranks->arena, plan->pp, int);
    int *layers = ARENA_ARRAY(ranks->arena, plan->num_chunks, int);
    if (counts_find(ranks, counts) == INFINITY) return NULL;
    for (int r = 0; r < plan->pp; r++) layers_spread(plan, r, counts[r], layers);
    return group_chunks(plan, layers, ranks->arena);
}

double group_chunkings_bound_s(GroupPricing *pricing, const Plan *plan, const GroupCosts *costs,
                               Arena *arena) {
    if (pricing->scenario->model.num_kinds > 1) return 0;
    const Ranks ranks = ranks_of(pricing, plan, costs, arena);
    return counts_find(&ranks, ARENA_ARRAY(arena, plan->pp, int)) *
               (double)plan_chunk_microbatches(plan) +
           group_step_s(pricing->scenario);
}

// Whether a rank has room for so many layers; of a model with several kinds for the first.
static bool has_room(const Ranks *ranks, int rank, int count, Arena *scratch) {
    const Scenario *scenario = ranks->pricing->scenario;
    Plan probe = *ranks->plan;
    arena_reset(scratch);
    int *layers = ARENA_ARRAY(scratch, probe.num_chunks, int);
    layers_spread(&probe, rank, count, layers); // the others' do not matter
    PlanChunk *chunks = ARENA_ARRAY(scratch, probe.num_chunks, PlanChunk);
    for (int c = 0; c < probe.num_chunks; c++) {
        chunks[c] = probe.chunks[c];
        chunks[c].first_layer = 0;
        chunks[c].num_layers = layers[c];
    }
    probe.chunks = chunks;
    const Workload workload = workload_rank_like(scenario, &probe, &ranks->like, rank, scratch);
    return memory_closed_form(scenario, &probe, &workload, rank).counted_bytes <=
           rank_memory_available_bytes(scenario, &probe, rank);
}

typedef struct {
    const Ranks *ranks;
    int rank;
    Arena scratch;
} Room;

static bool room_fits(void *context, int count) {
    Room *room = context;
    return has_room(room->ranks, room->rank, count, &room->scratch);
}

// Most ranks have about as much room as the one before.
static void room_find(Ranks *ranks) {
    Room room = {.ranks = ranks};
    const int num_layers = ranks->pricing->scenario->model.num_layers;
    int guess = num_layers / ranks->plan->pp;
    for (int r = 0; r < ranks->plan->pp; r++) {
        room.rank = r;
        const int most = last_fit(0, num_layers, guess, room_fits, &room);
        guess = ranks->most[r] = most > 0 ? most : 0;
    }
    arena_free(&room.scratch);
}

// Whether no rank has room for as many layers as it has of the plan's own: then none has for more,
// and no split fits.
static bool is_hopeless(const Ranks *ranks) {
    const Plan *plan = ranks->plan;
    const Scenario *scenario = ranks->pricing->scenario;
    Arena scratch = {0};
    const Workload workload = pieces_workload(&ranks->pricing->pieces, plan, &scratch);
    bool hopeless = true;
    for (int r = plan->pp - 1; r >= 0 && hopeless; r--)
        hopeless = memory_closed_form(scenario, plan, &workload, r).counted_bytes >
                   rank_memory_available_bytes(scenario, plan, r);
    arena_free(&scratch);
    return hopeless;
}

static bool plan_fits(const Ranks *ranks, const PlanChunk *chunks) {
    Plan plan = *ranks->plan;
    Arena scratch = {0};
    double missing_bytes;
    plan.chunks = chunks;
    const Workload workload = pieces_workload(&ranks->pricing->pieces, &plan, &scratch);
    estimate_memory(ranks->pricing->scenario, &plan, &workload, &missing_bytes);
    arena_free(&scratch);
    return missing_bytes <= 0;
}

static int chunking_add(const Plan *plan, const PlanChunk *chunks, const PlanChunk **out, int num) {
    if (!chunks) return num;
    for (int i = 0; i < num; i++) {
        int same = 0;
        while (same < plan->num_chunks && out[i][same].num_layers == chunks[same].num_layers)
            same++;
        if (same == plan->num_chunks) return num;
    }
    out[num] = chunks;
    return num + 1;
}

int group_chunkings(GroupPricing *pricing, const Plan *plan, const GroupCosts *costs, Arena *arena,
                    const PlanChunk **out) {
    out[0] = plan->chunks;
    if (pricing->scenario->parallel.stages || plan_is_dual(plan)) return 1;
    Ranks ranks = ranks_of(pricing, plan, costs, arena);
    if (pricing->scenario->model.num_kinds == 1 && is_hopeless(&ranks)) return 1;
    const PlanChunk *sized = chunks_size(&ranks);
    const int num = chunking_add(plan, sized, out, 1);
    if (sized && plan_fits(&ranks, sized)) return num;
    room_find(&ranks);
    return chunking_add(plan, chunks_size(&ranks), out, num);
}
