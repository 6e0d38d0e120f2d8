#include "planner/miss.h"

#include "planner/relax.h"

enum { MAX_TIMES_GPUS = 1024, MAX_GPUS = 1 << 20 };

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
        .recompute = (int)plan->recompute,
        .recompute_layers = plan->recompute_layers,
        .schedule = (int)plan->schedule,
        .cp_method = (int)plan->cp_method,
    };
    if (constraint->kind == CONSTRAINT_STAGES) return "the default stages";
    if (!constraint_is_given(constraint, &spec)) return "the default";
    return constraint_text(constraint, &spec, arena);
}

static bool change_fits(const Scenario *changed, const PlannerOptions *options, Arena *arena,
                        Plan *plan) {
    if (options->progress)
        options->progress(options->progress_context, "what would fit, on GPUs",
                          changed->cluster.num_gpus, 0);
    return relax_reaches(changed, HARVEST_FIT, arena, plan);
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

// dp and zero_group follow the number of GPUs.
static const char *more_gpus(const Scenario *scenario, const PlannerOptions *options,
                             bool constrained, Arena *arena) {
    Scenario changed = *scenario;
    changed.parallel.dp = changed.parallel.zero_group = ABSENT;
    if (!constrained) constraints_drop_all(&changed.parallel);
    for (int times = 2; times <= MAX_TIMES_GPUS; times *= 2) {
        int64_t num_gpus = (int64_t)scenario->cluster.num_gpus * times;
        if (num_gpus > MAX_GPUS) return NULL;
        changed.cluster = cluster_with_gpus(&scenario->cluster, (int)num_gpus);
        Plan plan;
        if (!change_fits(&changed, options, arena, &plan)) continue;
        return arena_printf(arena, "on %d GPUs%s (%s)", (int)num_gpus,
                            constrained ? "" : " without constraints", plan_describe(&plan, arena));
    }
    return NULL;
}

const char *miss_would_fit_if(const Scenario *scenario, const PlannerOptions *options,
                              Arena *arena) {
    const char *text = one_given_up(scenario, options, arena);
    if (!text) text = all_given_up(scenario, options, arena);
    if (!text) text = more_gpus(scenario, options, true, arena);
    if (!text) text = more_gpus(scenario, options, false, arena);
    return text;
}
