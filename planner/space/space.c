#include "planner/space/space.h"

#include "plan/plan_orders.h"
#include "plan/rule_values.h"
#include "planner/space/space_rules.h"
#include "planner/stages/balance.h"

#include <string.h>

// --- Families of one layout

// One way to cut the layers into chunks.
typedef struct {
    int vpp;
    bool dual;               // of dual pipelines: half of the chunks are copies
    const PlanChunk *uneven; // another split; where the software can run it, the choice stands for
                             // all splits. NULL: it stands for itself
    const PlanChunk *chunks;
} ChunkChoice;

typedef struct {
    const Scenario *scenario;
    RuleLevels rules;
    SpaceOpen open; // of the split
    Plan base;      // degrees of the split and what the scenario or the contract fixes
    ChunkChoice chunks[SPACE_MAX_CHUNKINGS];
    int num_chunk_choices;
    bool any_split;
    Plan *family; // [open.num_zeros x NUM_SCHEDULES]
    int *num_layers;
    SpaceFilter filter;
    bool wanted[NUM_RECOMPUTES]; // of the shapes of one cp_method
    SpaceVisit visit;
    void (*visit_shape)(void *context, const SpaceShape *shape); // in place of visit
    void *context;
} Walk;

static Plan base_plan(const Scenario *scenario, const SpaceSplit *split) {
    const ParallelSpec *spec = &scenario->parallel;
    return (Plan){
        .tp = split->tp,
        .pp = split->pp,
        .cp = split->cp,
        .dp = split->dp,
        .ep = split->ep,
        .etp = split->etp,
        .sequence_parallel = plan_splits_sequence(scenario, split->tp),
        .zero_group = plan_zero_group(scenario, split->dp, split->cp),
        .reshard_after_forward = spec->reshard_after_forward != 0,
        .recompute_layers = spec->recompute_layers,
        .vocab_barriers = plan_vocab_barriers(scenario, split->pp),
        .order = split->order,
    };
}

// The chunks of the scenario's own list of stages; NULL where it has not that many entries.
static const PlanChunk *given_chunks(const Scenario *scenario, int num_chunks, Arena *arena) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->num_stages != num_chunks) return NULL;
    PlanChunk *chunks = ARENA_ARRAY(arena, num_chunks, PlanChunk);
    int num_layers = 0, num_mtp = 0, loss = 0;
    for (int c = 0; c < num_chunks; c++) {
        const StageSpec *stage = &spec->stages[c];
        chunks[c] = (PlanChunk){.first_layer = num_layers,
                                .num_layers = stage->layers,
                                .embedding = stage->embedding,
                                .num_mtp = stage->mtp,
                                .loss = stage->loss};
        num_layers += stage->layers;
        num_mtp += stage->mtp;
        if (stage->loss) loss = c;
    }
    if (num_mtp == 0) chunks[loss].num_mtp = scenario->model.num_mtp_layers;
    return num_layers == scenario->model.num_layers ? chunks : NULL;
}

static void chunk_choice_add(Walk *walk, int vpp, const PlanChunk *chunks) {
    if (!chunks || walk->num_chunk_choices == SPACE_MAX_CHUNKINGS) return;
    walk->chunks[walk->num_chunk_choices++] = (ChunkChoice){.vpp = vpp, .chunks = chunks};
}

static void dual_choice_add(Walk *walk, const PlanChunk *stages, Arena *arena) {
    if (!stages || walk->num_chunk_choices == SPACE_MAX_CHUNKINGS) return;
    const PlanChunk *chunks = plan_dual_chunks(stages, walk->base.pp, arena);
    walk->chunks[walk->num_chunk_choices++] =
        (ChunkChoice){.vpp = 2, .dual = true, .chunks = chunks};
}

static bool vpp_is_open(const Scenario *scenario, int pp, int vpp) {
    int given = scenario->parallel.vpp, num_layers = model_own_layers(&scenario->model);
    int num_chunks = pp * vpp;
    if (num_chunks > num_layers + 2) return false;
    if (given != ABSENT) return given == vpp;
    if (vpp == 1) return true;
    if (pp == 1) return false;
    return vpp <= SPACE_MAX_UNEVEN_VPP || num_layers % num_chunks == 0 ||
           (num_layers + 2) % num_chunks == 0;
}

// Two copies of what one chunk a rank can be; a rank holds a stage and its mirror, so that stages
// need not be balanced.
static void dual_choices(Walk *walk, Arena *arena) {
    const Scenario *scenario = walk->scenario;
    const int pp = walk->base.pp, vpp = scenario->parallel.vpp;
    const PlanChunk *stages;
    if (pp == 1 || pp % 2 != 0 || (vpp != ABSENT && vpp != 2)) return;
    if (scenario->parallel.stages)
        dual_choice_add(walk, given_chunks(scenario, pp, arena), arena);
    else if (plan_default_chunks(&scenario->model, pp, arena, &stages).code == STATUS_OK)
        dual_choice_add(walk, stages, arena);
}

bool space_splits_any(const Model *model, int vpp) {
    return vpp == 1 || (model->num_kinds == 1 && model->num_mtp_layers == 0);
}

// A split with one layer more on the first chunk and one less on the last that has any.
static const PlanChunk *chunks_shift(const PlanChunk *even, int num_chunks, Arena *arena) {
    PlanChunk *chunks = ARENA_ARRAY(arena, num_chunks, PlanChunk);
    memcpy(chunks, even, (size_t)num_chunks * sizeof *chunks);
    int last = num_chunks - 1;
    while (last > 0 && chunks[last].num_layers == 0) last--;
    chunks[0].num_layers++;
    chunks[last].num_layers--;
    for (int c = 1; c < num_chunks; c++)
        chunks[c].first_layer = chunks[c - 1].first_layer + chunks[c - 1].num_layers;
    return chunks;
}

static void chunk_choices(Walk *walk, Arena *arena) {
    const Scenario *scenario = walk->scenario;
    const bool any_split = walk->any_split && !walk->base.vocab_barriers;
    int pp = walk->base.pp;
    BalanceCosts costs = {0};
    Arena scratch = {0};
    for (int vpp = 1; vpp <= (model_own_layers(&scenario->model) + 2) / pp; vpp++) {
        if (!vpp_is_open(scenario, pp, vpp)) continue;
        if (scenario->parallel.stages) {
            chunk_choice_add(walk, vpp, given_chunks(scenario, pp * vpp, arena));
            continue;
        }
        const PlanChunk *even;
        if (plan_default_chunks(&scenario->model, pp * vpp, arena, &even).code != STATUS_OK)
            continue;
        chunk_choice_add(walk, vpp, even);
        if (pp == 1 || scenario->cluster.num_pools > 1)
            continue; // planner/groups/group_search.h sizes stages
        if (any_split && space_splits_any(&scenario->model, vpp)) {
            ChunkChoice *choice = &walk->chunks[walk->num_chunk_choices - 1];
            choice->uneven = chunks_shift(even, pp * vpp, arena);
            continue;
        }
        if (!costs.layer_s) costs = balance_costs(scenario, &walk->base, &scratch);
        chunk_choice_add(walk, vpp, balance_chunks(&costs, pp, vpp, even, arena, &scratch));
    }
    arena_free(&scratch);
    if (space_has_dual(&walk->open)) dual_choices(walk, arena);
}

// --- The dimensions inside

// Adds the plans of one ZeRO stage and zero group.
static int family_add(Walk *walk, const Plan *shape, bool dual, int num_plans) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        if (!space_has_schedule(&walk->open, shape, kind)) continue;
        Plan *plan = &walk->family[num_plans];
        *plan = *shape;
        plan->schedule = (ScheduleKind)kind;
        if (plan_is_dual(plan) != dual) continue;
        if (!rule_levels_enter(&walk->rules, walk->scenario, plan, RULE_GROUP_SCHEDULE)) continue;
        if (plan_check(walk->scenario, plan).code != STATUS_OK) continue;
        walk->num_layers[num_plans++] = space_most_layers(&walk->open, &walk->rules, plan);
    }
    return num_plans;
}

Plan space_first_layers(const Plan *plan, int num_layers) {
    Plan some = *plan;
    some.recompute_layers = num_layers;
    return some;
}

// Beyond so many a stage that recomputes not all of its layers has twice as many as another.
static int any_split_most_layers(const Scenario *scenario, const Plan *plan) {
    const int all = model_own_layers(&scenario->model) - 1, most = 2 * plan_fullest_rank(plan) - 1;
    return most < all ? most : all;
}

static bool visit_family(Walk *walk, const Plan *shape, const ChunkChoice *chunks, int series) {
    int num_plans = 0;
    for (int z = 0; z < walk->open.num_zeros; z++) {
        Plan plan = *shape;
        plan_set_zero_level(&plan, walk->open.zeros[z].level);
        plan.zero_group = walk->open.zeros[z].group;
        if (rule_levels_enter(&walk->rules, walk->scenario, &plan, RULE_GROUP_ZERO))
            num_plans = family_add(walk, &plan, chunks->dual, num_plans);
    }
    if (num_plans == 0) return true;
    SpaceFamily family = {.plans = walk->family,
                          .num_plans = num_plans,
                          .any_split = chunks->uneven != NULL,
                          .series = series,
                          .num_layers = walk->num_layers};
    for (int i = 0; i < num_plans; i++) {
        if (family.any_split && walk->num_layers[i] > 0)
            walk->num_layers[i] = any_split_most_layers(walk->scenario, &walk->family[i]);
        if (walk->num_layers[i] > family.most_layers) family.most_layers = walk->num_layers[i];
    }
    return walk->visit(walk->context, &family);
}

static SpaceShape shape_open(const Walk *walk, const Plan *plan, bool any_split) {
    SpaceShape shape = {
        .plan = plan, .some_layers = walk->open.first_layers, .any_split = any_split};
    for (int z = 0; z < walk->open.num_zeros; z++)
        shape.zero_levels |= 1u << walk->open.zeros[z].level;
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        if (walk->open.schedules[kind] &&
            (!any_split || space_has_schedule(&walk->open, plan, kind)))
            shape.schedules |= 1u << kind;
    if (plan->recompute == RECOMPUTE_NONE) shape.some_layers = false;
    return shape;
}

static bool visit_shape(const Walk *walk, Plan *shape) {
    shape->vpp = 1;
    shape->num_chunks = shape->pp;
    shape->schedule = schedule_default(1);
    plan_derive(walk->scenario, shape);
    if (plan_check(walk->scenario, shape).code != STATUS_OK) return true;
    const SpaceShape all = shape_open(walk, shape, false);
    walk->visit_shape(walk->context, &all);
    if (all.some_layers) {
        const Plan plan = space_first_layers(shape, 1);
        SpaceShape some = all;
        some.plan = &plan;
        walk->visit_shape(walk->context, &some);
    }
    return true;
}

static void recompute_set(const Walk *walk, Plan *shape, int recompute) {
    shape->recompute = (Recompute)recompute;
    shape->recompute_modules = space_modules(walk->scenario, recompute);
}

static bool is_skipped(const Walk *walk, const Plan *plan, bool any_split) {
    if (!walk->filter.skips) return false;
    const SpaceShape shape = shape_open(walk, plan, any_split);
    return walk->filter.skips(walk->filter.context, &shape);
}

// All recomputations of one way to cut the layers; of the shape alone where there is none.
static bool visit_recomputes(Walk *walk, Plan *shape, const ChunkChoice *chunks, int series) {
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        if (!walk->open.recomputes[recompute] || !walk->wanted[recompute]) continue;
        recompute_set(walk, shape, recompute);
        if (chunks && is_skipped(walk, shape, chunks->uneven != NULL)) continue;
        if (!rule_levels_enter(&walk->rules, walk->scenario, shape, RULE_GROUP_RECOMPUTE)) continue;
        if (!rule_levels_enter(&walk->rules, walk->scenario, shape, RULE_GROUP_LAYERS)) continue;
        if (!chunks && !visit_shape(walk, shape)) return false;
        if (!chunks) continue;
        const int own = recompute * NUM_CP_METHODS * SPACE_MAX_CHUNKINGS + series;
        if (!visit_family(walk, shape, chunks, own)) return false;
    }
    return true;
}

static bool visit_chunks(Walk *walk, Plan *shape) {
    const int first = (int)shape->cp_method * SPACE_MAX_CHUNKINGS;
    for (int c = 0; c < walk->num_chunk_choices; c++) {
        shape->vpp = walk->chunks[c].vpp;
        shape->num_chunks = shape->pp * shape->vpp;
        ChunkChoice choice = walk->chunks[c];
        if (choice.uneven) {
            shape->chunks = choice.uneven;
            if (!rule_levels_enter(&walk->rules, walk->scenario, shape, RULE_GROUP_CHUNKS))
                choice.uneven = NULL;
        }
        shape->chunks = choice.chunks;
        plan_derive(walk->scenario, shape);
        if (!rule_levels_enter(&walk->rules, walk->scenario, shape, RULE_GROUP_CHUNKS)) continue;
        if (!visit_recomputes(walk, shape, &choice, first + c)) return false;
    }
    return true;
}

// Whether some recomputation of a shape is wanted, however its layers are cut.
static bool some_wanted(Walk *walk, Plan *shape) {
    bool some = false;
    shape->vpp = 1;
    shape->num_chunks = shape->pp;
    shape->chunks = NULL;
    plan_derive(walk->scenario, shape);
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        recompute_set(walk, shape, recompute);
        walk->wanted[recompute] =
            walk->open.recomputes[recompute] && !is_skipped(walk, shape, false);
        some |= walk->wanted[recompute];
    }
    return some;
}

static bool visit_methods(Walk *walk, Plan *shape) {
    for (int method = 0; method < NUM_CP_METHODS; method++) {
        if (!walk->open.methods[method]) continue;
        shape->cp_method = (CpMethod)method;
        if (!rule_levels_enter(&walk->rules, walk->scenario, shape, RULE_GROUP_METHOD)) continue;
        if (!some_wanted(walk, shape)) continue;
        const bool on =
            walk->visit_shape ? visit_recomputes(walk, shape, NULL, 0) : visit_chunks(walk, shape);
        if (!on) return false;
    }
    return true;
}

static bool visit_micro_batches(Walk *walk) {
    const Scenario *scenario = walk->scenario;
    int64_t batch = scenario->training.global_batch / walk->base.dp; // of one replica
    int given = scenario->parallel.micro_batch;
    int most = given == ABSENT ? SPACE_MAX_MICRO_BATCH : given;
    for (int micro_batch = given == ABSENT ? 1 : given; micro_batch <= most; micro_batch++) {
        if (batch % micro_batch != 0) continue;
        Plan shape = walk->base;
        shape.micro_batch = micro_batch;
        if (!rule_levels_enter(&walk->rules, scenario, &shape, RULE_GROUP_BATCH)) continue;
        if (!visit_methods(walk, &shape)) return false;
    }
    return true;
}

static void walk_start(const Space *space, int split, Walk *walk) {
    walk->scenario = space->scenario;
    walk->base = base_plan(space->scenario, &space->splits[split]);
    rule_levels_start(space->rules, &walk->rules);
    for (int group = RULE_GROUP_TP; group <= RULE_GROUP_LAYOUT; group++)
        rule_levels_enter(&walk->rules, walk->scenario, &walk->base, group); // space_build did
    space_open_find(walk->scenario, &walk->rules, &walk->base, &walk->open);
}

bool space_visit(const Space *space, int split, Arena *arena, SpaceVisit visit, void *context) {
    return space_visit_wanted(space, split, arena, &(SpaceFilter){0}, visit, context);
}

bool space_visit_wanted(const Space *space, int split, Arena *arena, const SpaceFilter *filter,
                        SpaceVisit visit, void *context) {
    Arena own = {0};
    Walk *walk = ARENA_NEW(&own, Walk);
    walk_start(space, split, walk);
    walk->visit = visit;
    walk->context = context;
    walk->filter = *filter;
    walk->any_split = space->any_split;
    walk->family = ARENA_ARRAY(&own, walk->open.num_zeros * NUM_SCHEDULES, Plan);
    walk->num_layers = ARENA_ARRAY(&own, walk->open.num_zeros * NUM_SCHEDULES, int);
    chunk_choices(walk, arena);
    const bool walked = visit_micro_batches(walk);
    arena_free(&own);
    return walked;
}

void space_visit_shapes(const Space *space, int split,
                        void (*visit)(void *context, const SpaceShape *), void *context) {
    Arena own = {0};
    Walk *walk = ARENA_NEW(&own, Walk);
    walk_start(space, split, walk);
    walk->visit_shape = visit;
    walk->context = context;
    visit_micro_batches(walk);
    arena_free(&own);
}
