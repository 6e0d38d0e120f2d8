#include "planner/space.h"

#include "planner/balance.h"
#include "workload/schedule.h"

#include <string.h>

// --- Layouts of the ranks

typedef struct {
    const Scenario *scenario;
    const StackRules *rules;
    Arena *arena;
    SpaceSplit *splits;
    int num_splits, capacity;
} SplitList;

static bool may_be(int given, int value) {
    return given == ABSENT || given == value;
}

static void split_add(SplitList *list, SpaceSplit split) {
    if (list->num_splits == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        SpaceSplit *grown = ARENA_ARRAY(list->arena, capacity, SpaceSplit);
        if (list->num_splits) memcpy(grown, list->splits, (size_t)list->num_splits * sizeof *grown);
        list->splits = grown;
        list->capacity = capacity;
    }
    list->splits[list->num_splits++] = split;
}

static void add_experts(SplitList *list, SpaceSplit split) {
    const Scenario *scenario = list->scenario;
    const ParallelSpec *spec = &scenario->parallel;
    int num_experts = scenario->model.num_experts, domain = scenario->cluster.domain_gpus;
    int64_t ranks = (int64_t)split.tp * split.cp * split.dp;
    int most_ep = num_experts ? num_experts : 1, most_etp = num_experts ? domain : 1;
    if (spec->ep != ABSENT) most_ep = spec->ep;
    if (spec->etp != ABSENT) most_etp = spec->etp;
    for (split.ep = 1; split.ep <= most_ep && split.ep <= ranks; split.ep++) {
        if (!may_be(spec->ep, split.ep) || ranks % split.ep != 0) continue;
        if (num_experts && num_experts % split.ep != 0) continue;
        for (split.etp = 1; split.etp <= most_etp && split.ep * split.etp <= ranks; split.etp++)
            if (may_be(spec->etp, split.etp) && ranks / split.ep % split.etp == 0)
                split_add(list, split);
    }
}

static bool cp_is_open(const SplitList *list, int cp) {
    const Scenario *scenario = list->scenario;
    int given = scenario->parallel.cp;
    if (given != ABSENT) return given == cp;
    if (cp > 1 &&
        (list->rules->data_parallel_only || !stack_has_any_cp(list->rules, &scenario->model)))
        return false;
    return cp == 1 || scenario->training.seq_len / cp >= SPACE_MIN_CP_TOKENS;
}

static bool tp_is_open(const SplitList *list, int tp) {
    const Scenario *scenario = list->scenario;
    int given = scenario->parallel.tp;
    if (given != ABSENT) return given == tp;
    if (tp > 1 && list->rules->data_parallel_only) return false;
    bool whole =
        scenario->model.attention == ATTENTION_MLA || scenario->model.num_kv_heads % tp == 0;
    if (list->rules->whole_kv_heads && !whole) return false;
    return tp <= scenario->cluster.domain_gpus;
}

static bool pp_is_open(const SplitList *list, int pp) {
    int given = list->scenario->parallel.pp;
    if (given != ABSENT) return given == pp;
    return pp == 1 || !list->rules->data_parallel_only;
}

void space_build(const Scenario *scenario, Arena *arena, Space *out) {
    const ParallelSpec *spec = &scenario->parallel;
    const StackRules *rules = stack_rules(scenario);
    SplitList list = {.scenario = scenario, .rules = rules, .arena = arena};
    int num_gpus = scenario->cluster.num_gpus;
    int most_pp = scenario->model.num_layers + 2;
    for (int tp = 1; tp <= num_gpus; tp++) {
        if (num_gpus % tp != 0 || !tp_is_open(&list, tp)) continue;
        for (int pp = 1; pp <= num_gpus / tp && pp <= most_pp; pp++) {
            if (num_gpus / tp % pp != 0 || !pp_is_open(&list, pp)) continue;
            int replicas = num_gpus / tp / pp;
            for (int cp = 1; cp <= replicas; cp++) {
                if (replicas % cp != 0 || !cp_is_open(&list, cp)) continue;
                SpaceSplit split = {.tp = tp, .pp = pp, .cp = cp, .dp = replicas / cp};
                if (!may_be(spec->dp, split.dp)) continue;
                if (scenario->training.global_batch % split.dp == 0) add_experts(&list, split);
            }
        }
    }
    *out = (Space){
        .scenario = scenario, .rules = rules, .splits = list.splits, .num_splits = list.num_splits};
}

// --- Families of one layout

// One way to cut the layers into chunks.
typedef struct {
    int vpp;
    bool dual; // of dual pipelines: half of the chunks are copies
    const PlanChunk *chunks;
} ChunkChoice;

typedef struct {
    const Scenario *scenario;
    const StackRules *rules;
    Plan base; // degrees of the split and what the scenario or the contract fixes
    ChunkChoice chunks[SPACE_MAX_CHUNKINGS];
    int num_chunk_choices;
    SpaceVisit visit;
    void (*visit_shape)(void *context, const Plan *shape); // in place of visit
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
        .sequence_parallel =
            spec->sequence_parallel == ABSENT ? split->tp > 1 : spec->sequence_parallel,
        .zero_group = plan_zero_group(scenario, split->dp, split->cp),
        .reshard_after_forward = spec->reshard_after_forward != 0,
        .recompute_layers = spec->recompute_layers,
        .vocab_barriers = plan_vocab_barriers(scenario, split->pp),
        .order = spec->order ? spec->order : "tp-cp-ep-dp-pp",
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
    int given = scenario->parallel.vpp, num_layers = scenario->model.num_layers;
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

static void chunk_choices(Walk *walk, Arena *arena) {
    const Scenario *scenario = walk->scenario;
    int pp = walk->base.pp;
    BalanceCosts costs = {0};
    Arena scratch = {0};
    for (int vpp = 1; vpp <= (scenario->model.num_layers + 2) / pp; vpp++) {
        if (!vpp_is_open(scenario, pp, vpp)) continue;
        if (scenario->parallel.stages) {
            chunk_choice_add(walk, vpp, given_chunks(scenario, pp * vpp, arena));
            continue;
        }
        const PlanChunk *even;
        if (plan_default_chunks(&scenario->model, pp * vpp, arena, &even).code != STATUS_OK)
            continue;
        chunk_choice_add(walk, vpp, even);
        if (pp == 1) continue;
        if (!costs.layer_s) costs = balance_costs(scenario, &walk->base, &scratch);
        chunk_choice_add(walk, vpp, balance_chunks(&costs, pp, vpp, even, arena, &scratch));
    }
    arena_free(&scratch);
    if (stack_has_schedule(walk->rules, SCHEDULE_DUALPIPE) ||
        scenario->parallel.schedule == SCHEDULE_DUALPIPE)
        dual_choices(walk, arena);
}

// --- The dimensions inside

static int zero_stages(const Walk *walk, const Plan *plan, int *stages) {
    int given = walk->scenario->parallel.zero_stage;
    bool has_experts = walk->scenario->model.num_experts > 0;
    bool alone = plan->dp * plan->cp == 1 && (!has_experts || plan->expert_dp == 1);
    if (given != ABSENT || alone) {
        stages[0] = given != ABSENT ? given : walk->scenario->training.stack.default_zero_stage;
        return 1;
    }
    int num_stages = 0;
    unsigned open = plan->pp > 1 ? walk->rules->zero_stages_pipelined : walk->rules->zero_stages;
    for (int stage = 0; stage <= 3; stage++)
        if (open & 1u << stage) stages[num_stages++] = stage;
    return num_stages;
}

// Whether this schedule is worth its own configuration; its legality is plan_check's.
static bool schedule_is_open(const Walk *walk, const Plan *plan, int kind) {
    int given = walk->scenario->parallel.schedule;
    // The contract runs interleaved with one chunk a rank as 1f1b.
    if (given == SCHEDULE_INTERLEAVED && plan->vpp == 1) given = SCHEDULE_1F1B;
    if (given != ABSENT) return given == kind;
    if (plan->vpp == 1 && (plan->pp == 1 || plan->num_microbatches == 1))
        return kind == SCHEDULE_1F1B;
    if (!stack_has_schedule(walk->rules, (ScheduleKind)kind)) return false;
    if (kind == SCHEDULE_1F1B) return plan->vpp == 1; // else plan_check refuses it, at length
    if (kind == SCHEDULE_BREADTH_FIRST) return plan->vpp > 1;
    if (kind != SCHEDULE_INTERLEAVED) return true;
    bool whole = plan->num_microbatches % plan->pp == 0;
    return plan->vpp > 1 && (whole || !walk->rules->whole_groups);
}

static bool visit_family(const Walk *walk, const Plan *shape, bool dual, int series) {
    Plan family[SPACE_MAX_FAMILY];
    int num_plans = 0, stages[4];
    int num_stages = zero_stages(walk, shape, stages);
    for (int s = 0; s < num_stages; s++) {
        for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
            if (!schedule_is_open(walk, shape, kind) || !schedule_find((ScheduleKind)kind))
                continue;
            Plan *plan = &family[num_plans];
            *plan = *shape;
            plan->zero_stage = stages[s];
            plan->schedule = (ScheduleKind)kind;
            if (plan_is_dual(plan) != dual) continue;
            if (plan_check(walk->scenario, plan).code == STATUS_OK) num_plans++;
        }
    }
    return num_plans == 0 || walk->visit(walk->context, family, num_plans, series);
}

static bool visit_chunks(const Walk *walk, Plan *shape) {
    int first =
        ((int)shape->recompute * NUM_CP_METHODS + (int)shape->cp_method) * SPACE_MAX_CHUNKINGS;
    for (int c = 0; c < walk->num_chunk_choices; c++) {
        shape->vpp = walk->chunks[c].vpp;
        shape->num_chunks = shape->pp * shape->vpp;
        shape->chunks = walk->chunks[c].chunks;
        plan_derive(walk->scenario, shape);
        if (!visit_family(walk, shape, walk->chunks[c].dual, first + c)) return false;
    }
    return true;
}

static bool visit_shape(const Walk *walk, Plan *shape) {
    if (!walk->visit_shape) return visit_chunks(walk, shape);
    shape->vpp = 1;
    shape->num_chunks = shape->pp;
    shape->schedule = SCHEDULE_1F1B;
    plan_derive(walk->scenario, shape);
    if (plan_check(walk->scenario, shape).code == STATUS_OK)
        walk->visit_shape(walk->context, shape);
    return true;
}

static bool method_is_open(const Walk *walk, int cp, int method) {
    int given = walk->scenario->parallel.cp_method;
    if (given != ABSENT) return given == method;
    const Model *model = &walk->scenario->model;
    if (cp == 1 || !stack_has_any_cp(walk->rules, model)) return method == CP_RING; // cp was given
    return stack_has_cp(walk->rules, model, (CpMethod)method);
}

static bool visit_methods(const Walk *walk, Plan *shape) {
    for (int method = 0; method < NUM_CP_METHODS; method++) {
        if (!method_is_open(walk, shape->cp, method)) continue;
        shape->cp_method = (CpMethod)method;
        if (!visit_shape(walk, shape)) return false;
    }
    return true;
}

static bool visit_recomputes(const Walk *walk, Plan *shape) {
    const ParallelSpec *spec = &walk->scenario->parallel;
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        if (!may_be(spec->recompute, recompute)) continue;
        shape->recompute = (Recompute)recompute;
        shape->recompute_modules = 0;
        if (recompute == RECOMPUTE_SELECTIVE)
            shape->recompute_modules = spec->recompute_modules == ABSENT
                                           ? plan_default_modules(walk->scenario)
                                           : spec->recompute_modules;
        if (!visit_methods(walk, shape)) return false;
    }
    return true;
}

static bool visit_micro_batches(const Walk *walk) {
    const Scenario *scenario = walk->scenario;
    int64_t batch = scenario->training.global_batch / walk->base.dp; // of one replica
    int given = scenario->parallel.micro_batch;
    int most = given == ABSENT ? SPACE_MAX_MICRO_BATCH : given;
    for (int micro_batch = given == ABSENT ? 1 : given; micro_batch <= most; micro_batch++) {
        if (batch % micro_batch != 0) continue;
        Plan shape = walk->base;
        shape.micro_batch = micro_batch;
        if (!visit_recomputes(walk, &shape)) return false;
    }
    return true;
}

bool space_visit(const Space *space, int split, Arena *arena, SpaceVisit visit, void *context) {
    Walk walk = {.scenario = space->scenario, .rules = space->rules};
    walk.visit = visit;
    walk.context = context;
    walk.base = base_plan(space->scenario, &space->splits[split]);
    chunk_choices(&walk, arena);
    return visit_micro_batches(&walk);
}

void space_visit_shapes(const Space *space, int split, void (*visit)(void *context, const Plan *),
                        void *context) {
    Walk walk = {.scenario = space->scenario, .rules = space->rules};
    walk.visit_shape = visit;
    walk.context = context;
    walk.base = base_plan(space->scenario, &space->splits[split]);
    visit_micro_batches(&walk);
}
