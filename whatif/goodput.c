#include "whatif/goodput.h"

#include "base/share.h"
#include "costmodel/memory/memory.h"

#include <math.h>

GoodputOptions goodput_defaults(void) {
    return (GoodputOptions){.failures_per_gpu_hour = -1,
                            .hardware_frac = -1,
                            .storage_bytes_per_s = -1,
                            .restart_s = -1,
                            .repair_s = -1,
                            .checkpoint_bytes = -1,
                            .num_tokens = -1,
                            .num_spares = -1};
}

static void default_take(double *value, double otherwise) {
    if (*value < 0) *value = otherwise;
}

// --- The checkpoint

// One GPU that held everything that is trained, each parameter once: nothing is split or sharded.
Status goodput_checkpoint_bytes(const Scenario *scenario, Arena *arena, double *out) {
    Scenario whole = *scenario;
    const Pool one = pool_with_gpus(&scenario->cluster.pools[0], 1);
    whole.cluster = cluster_of_pools(NULL, &one, 1, &(ClusterNetwork){0});
    const JsonNode nothing = {.file = scenario->file};
    TRY(parallel_load(&nothing, arena, &whole.parallel));
    Plan plan;
    TRY(plan_resolve(&whole, arena, &plan));
    const Workload workload = workload_build(&whole, &plan, arena);
    const RankMemory memory = memory_closed_form(&whole, &plan, &workload, 0);
    *out = memory.weights_bytes - memory.frozen_bytes + memory.optimizer_bytes;
    return status_ok();
}

// --- Intervals

typedef struct {
    Goodput *goodput;
    FailureModel model;
} Played;

static void interval_play(void *context, int worker, int item) {
    Played *played = context;
    Goodput *g = played->goodput;
    GoodputInterval *interval = &g->intervals[item];
    (void)worker;
    interval->runs = failures_repeat(&played->model, (int64_t)g->num_steps, interval->num_steps,
                                     g->used.seed, g->used.num_runs);
}

// Whole steps around the better of what the formulas say, four times as many and as few, equally
// spaced in their logarithm.
static void intervals_choose(Goodput *g) {
    static const double MOST = 4;
    const double middle = g->daly_s / g->step_time_s;
    int64_t last = 0;
    g->num_intervals = 0;
    for (int i = 0; i < GOODPUT_MAX_INTERVALS; i++) {
        const double place = 2.0 * i / (GOODPUT_MAX_INTERVALS - 1) - 1;
        int64_t steps = llround(fmin(middle * pow(MOST, place), g->num_steps));
        if (steps < 1) steps = 1;
        if (steps == last) continue;
        last = steps;
        GoodputInterval *interval = &g->intervals[g->num_intervals++];
        *interval =
            (GoodputInterval){.num_steps = steps, .interval_s = (double)steps * g->step_time_s};
        interval->formula_frac =
            daly_goodput_frac(interval->interval_s, g->write_s, g->restart_s, g->mtbf_s);
    }
}

static int interval_best(const Goodput *g) {
    int best = 0;
    for (int i = 1; i < g->num_intervals; i++)
        if (g->intervals[i].runs.goodput_frac > g->intervals[best].runs.goodput_frac) best = i;
    return best;
}

static FailureModel model_of(const Goodput *g, int num_spares) {
    return (FailureModel){.step_s = g->step_time_s,
                          .write_s = g->write_s,
                          .restart_s = g->restart_s,
                          .mtbf_s = g->mtbf_s,
                          .hardware_frac = g->used.hardware_frac,
                          .repair_s = g->used.repair_s,
                          .num_spares = num_spares};
}

static void intervals_play(Goodput *g) {
    Played played = {.goodput = g, .model = model_of(g, -1)};
    intervals_choose(g);
    share_work(g->num_intervals, g->used.num_threads, interval_play, &played);
    g->best = interval_best(g);
}

// --- Spares

static void spares_choose(Goodput *g) {
    const double failures_per_s = 1 / g->mtbf_s;
    g->load = failures_per_s * g->used.hardware_frac * g->used.repair_s;
    g->best_spares = spares_best(g->num_nodes, g->load);
    if (g->used.num_spares < 0) g->used.num_spares = g->best_spares;
    g->available_frac = spares_available_frac(g->used.num_spares, g->load);
    g->without_spares_frac = spares_available_frac(0, g->load);
}

// --- All

static int runs_enough(double failures_per_run) {
    return (int)fmin(GOODPUT_MAX_RUNS,
                     fmax(GOODPUT_MIN_RUNS, ceil(GOODPUT_FAILURES / failures_per_run)));
}

static Status inputs_set(const Scenario *scenario, const Estimate *estimate, Goodput *g) {
    GoodputOptions *used = &g->used;
    Arena arena = {0};
    g->num_gpus = scenario->cluster.num_gpus;
    g->num_nodes = scenario->cluster.num_nodes;
    g->step_time_s = estimate->step_time_s;
    Status status = status_ok();
    if (used->checkpoint_bytes < 0)
        status = goodput_checkpoint_bytes(scenario, &arena, &used->checkpoint_bytes);
    arena_free(&arena);
    TRY(status);
    default_take(&used->failures_per_gpu_hour, GOODPUT_FAILURES_PER_GPU_HOUR);
    default_take(&used->hardware_frac, GOODPUT_HARDWARE_FRAC);
    default_take(&used->storage_bytes_per_s, GOODPUT_STORAGE_BYTES_PER_S_PER_GPU * g->num_gpus);
    default_take(&used->restart_s, GOODPUT_RESTART_S);
    default_take(&used->repair_s, GOODPUT_REPAIR_S);
    const double step_tokens = estimate->tokens_per_s * estimate->step_time_s;
    const double step_s = estimate->step_time_s;
    default_take(&used->num_tokens, ceil(GOODPUT_DAYS * 86400 / step_s) * step_tokens);
    g->num_steps = ceil(used->num_tokens / step_tokens * (1 - 1e-12));
    g->mtbf_s = 3600 / (used->failures_per_gpu_hour * g->num_gpus);
    if (used->num_runs < 1) used->num_runs = runs_enough(g->num_steps * g->step_time_s / g->mtbf_s);
    g->checkpoint_bytes = used->checkpoint_bytes;
    g->write_s = g->checkpoint_bytes / used->storage_bytes_per_s;
    g->restart_s = used->restart_s + g->write_s; // it is read as fast as it was written
    return status_ok();
}

Status goodput_run(const Scenario *scenario, const Estimate *estimate,
                   const GoodputOptions *options, Goodput *out) {
    *out = (Goodput){.used = *options};
    TRY(inputs_set(scenario, estimate, out));
    out->young_s = young_interval_s(out->write_s, out->mtbf_s);
    out->daly_s = daly_interval_s(out->write_s, out->mtbf_s);
    out->daly = daly_shares(out->daly_s, out->write_s, out->restart_s, out->mtbf_s);
    intervals_play(out);
    spares_choose(out);
    const FailureModel model = model_of(out, out->used.num_spares);
    const GoodputInterval *best = &out->intervals[out->best];
    out->whole = failures_repeat(&model, (int64_t)out->num_steps, best->num_steps, out->used.seed,
                                 out->used.num_runs);
    out->goodput_frac = best->formula_frac * out->available_frac;
    return status_ok();
}
