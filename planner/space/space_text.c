#include "planner/space/space_text.h"

#include "planner/space/space.h"

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
    if (scenario->cluster.num_pools > 1)
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

// --- What no plan of the space has, though a scenario may state it

static bool sequence_is_open(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->sequence_parallel == ABSENT && spec->tp != 1 && scenario->cluster.num_gpus > 1;
}

static bool splits_no_sequence(const Scenario *scenario) {
    return sequence_is_open(scenario) && scenario->execution.stack.defaults.sequence_parallel;
}

static bool splits_sequence(const Scenario *scenario) {
    return sequence_is_open(scenario) && !scenario->execution.stack.defaults.sequence_parallel;
}

static bool spreads_vocabulary(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->vocab_parallel == ABSENT && spec->pp != 1 && scenario->cluster.num_gpus > 1;
}

static bool keeps_gathered(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->reshard_after_forward == ABSENT &&
           (spec->zero_stage == ABSENT || spec->zero_stage == 3) &&
           !stack_keeps_gathered(&scenario->execution.stack); // else it is searched
}

static bool chooses_modules(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->recompute_modules == ABSENT &&
           (spec->recompute == ABSENT || spec->recompute == RECOMPUTE_SELECTIVE);
}

// Recomputation that is stated is searched of all layers (planner/space/space_rules.h).
static bool recomputes_some(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->recompute_layers == ABSENT && spec->recompute != ABSENT &&
           spec->recompute != RECOMPUTE_NONE;
}

static bool orders_beside_cp(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return !spec->order && spec->cp != 1 && spec->pp != 1 && scenario->cluster.num_gpus > 1;
}

static bool chunks_unevenly(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    return spec->vpp == ABSENT && spec->pp != 1 && !spec->stages && scenario->cluster.num_gpus > 1;
}

static bool has_large_batches(const Scenario *scenario) {
    return scenario->parallel.micro_batch == ABSENT &&
           scenario->training.global_batch > SPACE_MAX_MICRO_BATCH;
}

static const struct {
    bool (*is_open)(const Scenario *scenario);
    const char *text; // with the key of `parallel` that states it
} LEFT_OUT[] = {
    {splits_no_sequence, "sequence_parallel false"},
    {splits_sequence, "sequence_parallel true"},
    {spreads_vocabulary, "vocab_parallel"},
    {keeps_gathered, "reshard_after_forward false"},
    {chooses_modules, "other recompute_modules"},
    {recomputes_some, "recompute_layers"},
    {orders_beside_cp, "another order beside cp"},
    {chunks_unevenly, "vpp above 4 with uneven chunks"},
    {has_large_batches, "micro_batch above 64"},
};

static const char *left_out_text(const Scenario *scenario, Arena *arena) {
    const char *text = "";
    for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++)
        if (LEFT_OUT[i].is_open(scenario))
            text = arena_printf(arena, "%s, %s", text, LEFT_OUT[i].text);
    return text;
}

const char *space_text(const Scenario *scenario, const PlannerResult *result, Arena *arena) {
    return arena_printf(arena,
                        "%s; not: offload to the host%s%s, nor what %s lacks; what is stated is "
                        "searched.",
                        splits_text(scenario, &result->stats, arena),
                        idle_is_left_out(scenario, result) ? ", GPUs left idle" : "",
                        left_out_text(scenario, arena), scenario->execution.stack.name);
}

const char *space_text_of_layers(void) {
    return "Searched with a strategy a layer: one chunk a rank, with the default split of the "
           "layers and a balanced one; not: offload to the host, GPUs left idle.";
}
