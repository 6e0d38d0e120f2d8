#include "planner/why/miss.h"

#include "base/deadline.h"
#include "planner/why/relax.h"

#include <string.h>

enum { MAX_TIMES_GPUS = 1024, MAX_GPUS = 1 << 20 };

// The bytes that a plan lacks.
static double missing_of(const Scenario *limited, const Plan *plan, RankMemory *memory) {
    Arena scratch = {0};
    double missing_bytes;
    const Workload workload = workload_build(limited, plan, &scratch);
    *memory = estimate_memory(limited, plan, &workload, &missing_bytes);
    arena_free(&scratch);
    return missing_bytes;
}

void miss_narrow(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                 ClosestMiss *miss) {
    if (scenario->cluster.num_pools > 1) return;
    const Scenario limited = planner_limited(scenario, options, arena);
    Scenario larger = limited;
    Pool *pool = cluster_own_pools(&larger.cluster, arena);
    const double available = pool->gpu.memory_available_bytes;
    Deadline deadline;
    deadline_start(&deadline, options->budget_s, options->end_soon);
    deadline_arm(&deadline);
    for (double low = 0; miss->missing_bytes - low > MISS_CLOSE_FRAC * available;) {
        const double middle = low + (miss->missing_bytes - low) / 2;
        Plan plan;
        RankMemory memory;
        if (deadline_is_over(&deadline)) return;
        pool->gpu.memory_available_bytes = available + middle;
        if (!relax_reaches(&larger, HARVEST_FIT, options->num_threads, arena, &plan)) {
            low = middle;
            continue;
        }
        const double missing_bytes = missing_of(&limited, &plan, &memory);
        if (missing_bytes <= 0 || missing_bytes >= miss->missing_bytes) return;
        miss->plan = plan;
        miss->memory = memory;
        miss->missing_bytes = missing_bytes;
    }
}

// What a plan that fits does in place of a constraint: "recompute full", "tp 8".
static const char *instead_text(const Constraint *constraint, const Plan *plan, Arena *arena) {
    ParallelSpec spec = {
        .tp = plan->tp,
        .pp = plan->pp,
        .dp = plan->dp,
        .cp = plan->cp,
        .ep = plan->ep,
        .etp = plan->etp,
        .vpp = plan->vpp,
        .micro_batch = plan->micro_batch,
        .sequence_parallel = plan->sequence_parallel,
        .zero_stage = plan->zero_stage,
        .zero_group = plan->zero_group,
        .reshard_after_forward = plan->reshard_after_forward,
        .recompute = (int)plan->recompute,
        .recompute_layers = plan->recompute_layers,
        .schedule = (int)plan->schedule,
        .cp_method = (int)plan->cp_method,
        .order = PLAN_ORDER_NAMES[plan->order],
    };
    if (constraint->kind == CONSTRAINT_STAGES) return "the default stages";
    if (!constraint_is_given(constraint, &spec)) return "the default";
    if (strcmp(constraint->key, "recompute") == 0 && plan->recompute_layers != ABSENT)
        return arena_printf(arena, "%s of %d layer%s a stage",
                            constraint_text(constraint, &spec, arena), plan->recompute_layers,
                            plan->recompute_layers == 1 ? "" : "s");
    return constraint_text(constraint, &spec, arena);
}

static bool change_fits(const Scenario *changed, const PlannerOptions *options, Arena *arena,
                        Plan *plan) {
    if (options->end_soon && atomic_load(options->end_soon)) return false;
    if (options->progress)
        options->progress(options->progress_context, "what would fit, on GPUs",
                          changed->cluster.num_gpus, 0);
    return relax_reaches(changed, HARVEST_FIT, options->num_threads, arena, plan);
}

// Where a stated zero_group is given up: the smallest larger one that suffices, for it changes
// least.
//   plan  one that fits without it
static void group_narrow(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                         Plan *plan) {
    const int all = plan->dp * plan->cp;
    for (int group = scenario->parallel.zero_group + 1; group < plan->zero_group; group++) {
        Scenario changed = *scenario;
        Plan found;
        changed.parallel.zero_group = group;
        if (all % group != 0 || !change_fits(&changed, options, arena, &found)) continue;
        *plan = found;
        return;
    }
}

static const char *one_given_up(const Scenario *scenario, const PlannerOptions *options,
                                Arena *arena) {
    for (int i = 0; i < NUM_CONSTRAINTS; i++) {
        const Constraint *constraint = &CONSTRAINTS[i];
        if (!constraint_is_given(constraint, &scenario->parallel)) continue;
        Scenario changed = *scenario;
        constraint_drop(constraint, &changed.parallel);
        Plan plan;
        if (!change_fits(&changed, options, arena, &plan)) continue;
        if (strcmp(constraint->key, "zero_group") == 0)
            group_narrow(scenario, options, arena, &plan);
        return arena_printf(
            arena, "with %s instead of %s (%s)", instead_text(constraint, &plan, arena),
            constraint_text(constraint, &scenario->parallel, arena), plan_describe(&plan, arena));
    }
    return NULL;
}

static const char *all_given_up(const Scenario *scenario, const PlannerOptions *options,
                                Arena *arena) {
    int num_given = 0;
    for (int i = 0; i < NUM_CONSTRAINTS; i++)
        num_given += constraint_is_given(&CONSTRAINTS[i], &scenario->parallel);
    if (num_given < 2) return NULL;
    Scenario changed = *scenario;
    constraints_drop_all(&changed.parallel);
    Plan plan;
    if (!change_fits(&changed, options, arena, &plan)) return NULL;
    return arena_printf(arena, "without constraints (%s)", plan_describe(&plan, arena));
}

// --- More GPUs

typedef struct {
    Scenario changed;
    const PlannerOptions *options;
    Arena *arena;
    int node_gpus; // of a whole node
    Plan plan;     // of the fewest that fit
    Deadline deadline;
} Growth;

static bool nodes_fit(Growth *g, int num_nodes) {
    g->changed.cluster = cluster_with_gpus(&g->changed.cluster, num_nodes * g->node_gpus, g->arena);
    return change_fits(&g->changed, g->options, g->arena, &g->plan);
}

// Doubles the whole nodes there are until something fits; 0 where nothing does.
//   misses  nodes that do not suffice
static int nodes_doubled(Growth *g, int *misses) {
    const int num_gpus = g->changed.cluster.num_gpus;
    const int64_t most =
        (int64_t)num_gpus * MAX_TIMES_GPUS < MAX_GPUS ? num_gpus * MAX_TIMES_GPUS : MAX_GPUS;
    *misses = num_gpus / g->node_gpus; // 0 of a partial node
    for (int nodes = *misses ? 2 * *misses : 1; (int64_t)nodes * g->node_gpus <= most; nodes *= 2) {
        if (nodes_fit(g, nodes)) {
            deadline_arm(&g->deadline);
            return nodes;
        }
        *misses = nodes;
    }
    return 0;
}

// Halves the distance between a number that misses and one that fits. More nodes do not always fit
// where fewer do (they may have no legal factors): the result is the fewest found.
static int nodes_narrowed(Growth *g, int misses, int fits) {
    while (fits - misses > 1 && !deadline_is_over(&g->deadline)) {
        int middle = misses + (fits - misses) / 2;
        Plan smallest = g->plan;
        if (nodes_fit(g, middle)) {
            fits = middle;
        } else {
            misses = middle;
            g->plan = smallest;
        }
    }
    return fits;
}

// dp and zero_group follow the number of GPUs.
static const char *more_gpus(const Scenario *scenario, const PlannerOptions *options,
                             bool constrained, Arena *arena) {
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    Growth g = {.changed = *scenario, .options = options, .arena = arena};
    g.node_gpus = pool->whole_node_gpus > 0 ? pool->whole_node_gpus : pool->gpus_per_node;
    g.changed.parallel.dp = g.changed.parallel.zero_group = ABSENT;
    if (!constrained) constraints_drop_all(&g.changed.parallel);
    deadline_start(&g.deadline, options->budget_s, options->end_soon);
    int misses, fits = nodes_doubled(&g, &misses);
    if (fits == 0) return NULL;
    fits = nodes_narrowed(&g, misses, fits);
    return arena_printf(arena, "on %d GPUs, the fewest found in whole nodes%s (%s)",
                        fits * g.node_gpus, constrained ? "" : ", without constraints",
                        plan_describe(&g.plan, arena));
}

const char *miss_would_fit_if(const Scenario *scenario, const PlannerOptions *options,
                              Arena *arena) {
    const char *text = one_given_up(scenario, options, arena);
    if (!text) text = all_given_up(scenario, options, arena);
    if (!text) text = more_gpus(scenario, options, true, arena);
    if (!text) text = more_gpus(scenario, options, false, arena);
    return text;
}
