#include "cli/plan/plan_lengths.h"

#include "planner/lengths/lengths.h"

Status plan_lengths_check(const PlanOptions *options) {
    const PlannerOptions *planner = &options->planner;
    const struct {
        bool given;
        const char *name;
    } parts[] = {
        {options->has_top, "top"},
        {planner->objective != OBJECTIVE_THROUGHPUT, "objective"},
        {planner->robust, "robust"},
        {options->pareto, "pareto"},
        {options->compare != NULL, "compare"},
        {options->min_tokens_per_s > 0, "min-gpus-for"},
        {options->deadline_tokens > 0, "deadline"},
        {options->layerwise, "layerwise"},
        {options->placement.num_moves > 0, "placement-moves"},
        {options->has_seed, "seed"},
        {planner->budget_s > 0, "budget"},
        {planner->exhaustive, "exhaustive"},
        {options->has_variants, "variants"},
        {options->folder != NULL, "output"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].given)
            return usage_error("plan: --%s is legal, but not supported with "
                               "training.sequence_lengths yet",
                               parts[i].name);
    return status_ok();
}

Status plan_lengths_search(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    const PlannerOptions *planner = &options->planner;
    const LengthsOptions lengths = {.max_memory_bytes = planner->max_memory_bytes,
                                    .fit_probability_frac = planner->fit_probability_frac,
                                    .num_threads = planner->num_threads,
                                    .progress = planner->progress,
                                    .progress_context = planner->progress_context,
                                    .end_soon = planner->end_soon};
    LengthsResult *result = ARENA_NEW(arena, LengthsResult);
    TRY(lengths_search(answer->scenario, &lengths, arena, result));
    answer->lengths = result;
    return status_ok();
}
