#include "planner/space_text.h"

#include "planner/space.h"

#include <math.h>

// Where fewer GPUs were looked at, or ruled out, the answer lists them (IdleAnswer).
static bool idle_is_left_out(const Scenario *scenario, const PlannerResult *result) {
    const ParallelSpec *spec = &scenario->parallel;
    const bool open = spec->idle_gpus == ABSENT && !parallel_degrees_stated(spec);
    return open && result->idle.num_looks == 0 && cluster_total_gpus(&scenario->cluster) > 1;
}

// Chunks of which not every split is in the space.
static const char *chunks_text(const Scenario *scenario) {
    if (space_splits_any(&scenario->model, 2) || scenario->parallel.vpp == 1) return "";
    return ", and with several chunks a rank, as the layers differ, the default split and a "
           "balanced one";
}

static const char *splits_text(const Scenario *scenario, const SearchStats *stats, Arena *arena) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->stages) return "Searched of splits of the layers: the one that is stated";
    if (spec->pp == 1) return "Searched without a pipeline, as pp 1 is stated";
    if (scenario->cluster.groups)
        return "Searched of splits of the layers: with one chunk a rank all that may be the best, "
               "with several the default one and that of the least busiest rank";
    if (!stats->any_split)
        return "Searched of splits of the layers: the default one, and one with balanced stages";
    const char *left = "";
    if (stats->splits_gap_frac > 0)
        left = arena_printf(arena, " (those that were not priced are at most %.1f %% faster)",
                            ceil(stats->splits_gap_frac * 1000) / 10);
    return arena_printf(arena,
                        "Searched with each: splits of whole layers over the stages, of which the "
                        "one whose busiest GPU has least to do, and those near it%s%s",
                        left, chunks_text(scenario));
}

const char *space_text(const Scenario *scenario, const PlannerResult *result, Arena *arena) {
    return arena_printf(arena, "%s; not: offload to the host%s.",
                        splits_text(scenario, &result->stats, arena),
                        idle_is_left_out(scenario, result) ? ", GPUs left idle" : "");
}

const char *space_text_of_layers(void) {
    return "Searched with a strategy a layer: one chunk a rank, with the default split of the "
           "layers and a balanced one; not: offload to the host, GPUs left idle.";
}
