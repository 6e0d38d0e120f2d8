#include "cli/plan/plan_layers.h"

#include "cli/output.h"
#include "planner/layerwise/layer_search.h"

Status plan_layers_check(const PlanOptions *options, const Scenario *scenario, Arena *arena) {
    if (!options->lp_file) return status_ok();
    TRY(output_check(options->lp_file, arena));
    return output_check_scenario(options->lp_file, scenario, arena);
}

Status plan_layers_search(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    LayerResult *layers = ARENA_NEW(arena, LayerResult);
    TRY(layer_search(answer->scenario, &options->planner, arena, layers));
    answer->layers = layers;
    if (layers->num_entries == 0) return status_ok();
    const LayerChoice *best = &layers->entries[0].choice;
    PlannedEntry *entry = ARENA_NEW(arena, PlannedEntry);
    *entry = (PlannedEntry){.plan = best->plan,
                            .estimate = best->estimate,
                            .within_noise_of_best = true,
                            .variant_of = -1,
                            .why = "layer-wise"};
    answer->result = (PlannerResult){
        .entries = entry, .num_entries = 1, .stats = {.optimal = best->optimal, .wanted = 1}};
    return status_ok();
}

Status plan_layers_finish(const PlanOptions *options, const PlanAnswer *answer) {
    const Scenario *scenario = answer->scenario;
    const LayerResult *layers = answer->layers;
    if (layers->num_entries == 0) return status_ok();
    if (options->lp_file)
        TRY(layer_result_write_lp(scenario, &options->planner, layers, options->lp_file));
    return status_ok();
}

Status plan_layers_refuse(const PlanAnswer *answer) {
    if (answer->layers->num_entries > 0) return status_ok();
    return status_at(STATUS_NO, answer->scenario->file, "",
                     "nothing fits with a strategy a layer and room for what the allocator caches");
}
