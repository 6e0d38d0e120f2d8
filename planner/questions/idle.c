#include "planner/questions/idle.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/numbers.h"
#include "planner/harvest/loose.h"
#include "planner/space/space.h"
#include "planner/why/miss.h"
#include "planner/why/robust.h"

#include <math.h>
#include <string.h>

enum { IDLE_SMALL_GPUS = 128 }; // up to here each number is searched, whatever it takes

// --- Numbers that divide well

static int64_t odd_part(int64_t number) {
    while (number > 1 && number % 2 == 0) number /= 2;
    return number > 0 ? number : 1;
}

// What of a number is left after each of these factors has divided what it can.
static int64_t rest_of(int64_t number, const int64_t *factors, int num_factors) {
    for (int i = 0; i < num_factors; i++) number /= common_divisor(number, factors[i]);
    return number;
}

static int64_t stated_product(const ParallelSpec *spec) {
    const int stated[] = {spec->tp, spec->cp, spec->dp, spec->pp};
    int64_t product = 1;
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
        if (stated[i] != ABSENT) product *= stated[i];
    return product;
}

static bool divides_well(const Scenario *scenario, int num_gpus) {
    const int64_t product = stated_product(&scenario->parallel);
    if (num_gpus % product != 0) return false;
    const int64_t factors[] = {
        3, odd_part(scenario->training.global_batch), odd_part(model_own_layers(&scenario->model)),
        odd_part(model_mixer(&scenario->model)->num_heads), odd_part(scenario->training.seq_len)};
    return rest_of(odd_part(num_gpus / product), factors, sizeof factors / sizeof *factors) == 1;
}

static bool divides_evenly(const Scenario *scenario, int num_gpus) {
    const int64_t product = stated_product(&scenario->parallel);
    if (num_gpus % product != 0) return false;
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    const int64_t heads =
        common_divisor(model_mixer(&scenario->model)->num_heads, pool->whole_domain_gpus);
    const int64_t factors[] = {scenario->training.global_batch, model_own_layers(&scenario->model),
                               heads};
    return rest_of(num_gpus / product, factors, sizeof factors / sizeof *factors) == 1;
}

// --- The look at one number

static const char LATE[] = "nothing: the time given ended";
static const char BOUND[] = "bound";

typedef struct {
    const Scenario *scenario; // with all GPUs
    const PlannerOptions *options;
    Arena *arena;
    double end_s;
    Scenario *used;
    PlannerResult *out; // the best so far; num_entries 0: none
    bool legal;         // there is a plan on some number, whether it fits or not
} Look;

static double value_of(const PlannerResult *result) {
    const Estimate *estimate = &result->entries[0].estimate;
    return estimate->step_time_s * (result->robust ? robust_raise(estimate) : 1);
}

// Whether the loose bounds alone say that nothing on these GPUs is better than the best so far.
static bool is_bounded(const Look *look, const Scenario *fewer) {
    if (look->out->num_entries == 0) return false;
    Arena scratch = {0};
    Space space;
    LooseCosts costs;
    space_build(fewer, &scratch, &space);
    double *bound_s = ARENA_ARRAY(&scratch, space.num_splits, double);
    loose_build(&space, look->options->num_threads, NULL, NULL, &costs, bound_s);
    loose_free(&costs);
    double least_s = INFINITY;
    for (int i = 0; i < space.num_splits; i++) least_s = fmin(least_s, bound_s[i]);
    arena_free(&scratch);
    if (look->options->robust) least_s *= robust_least_raise(fewer->calibration);
    return least_s >= value_of(look->out);
}

static bool is_late(const Look *look) {
    const atomic_bool *end_soon = look->options->end_soon;
    return (end_soon && atomic_load(end_soon)) || clock_now_s() > look->end_s;
}

static PlannerOptions options_left(const Look *look) {
    PlannerOptions options = *look->options;
    if (options.budget_s > 0) options.budget_s = fmax(1e-9, look->end_s - clock_now_s());
    options.standing = NULL;
    options.progress = NULL;
    options.brief = true;
    options.extra = look->out->num_entries > 0;
    return options;
}

// Searches one number; what beats the best so far takes its place.
static Status number_search(Look *look, const Scenario *fewer, IdleLook *entry) {
    static const double ROUNDING = 1e-9;
    PlannerResult found;
    PlannerOptions options = options_left(look);
    const bool any = look->out->num_entries == 0;
    if (!any) {
        options.top = 1;
        options.worst_value = value_of(look->out) * (1 - ROUNDING);
        if (options.objective == OBJECTIVE_COST)
            options.worst_value =
                look->out->entries[0].estimate.usd_per_1e9_tokens * (1 - ROUNDING);
    }
    Status status = planner_search(fewer, &options, look->arena, &found);
    entry->ruled_out_by = "no legal plan";
    if (status.code == STATUS_INVALID) return status_ok();
    TRY(status);
    const bool first = !look->legal;
    look->legal = true;
    entry->is_open = found.stats.stopped_early;
    entry->ruled_out_by = entry->is_open ? LATE : "search";
    if (found.num_entries == 0 && !(any && first)) return status_ok();
    if (found.num_entries > 0 && !any && (look->options->top == 0 || look->options->top > 1)) {
        options = options_left(look); // now with all that are wanted
        TRY(planner_search(fewer, &options, look->arena, &found));
    }
    entry->ruled_out_by = NULL;
    entry->is_open = false;
    *look->used = *fewer;
    const IdleAnswer idle = look->out->idle;
    const double spent_s = look->out->stats.wall_s;
    *look->out = found;
    look->out->idle = idle;
    look->out->stats.wall_s += spent_s;
    return status_ok();
}

// --- All numbers

static bool may_leave_idle(const Scenario *scenario, const PlannerOptions *options, bool legal,
                           bool fits) {
    const ParallelSpec *spec = &scenario->parallel;
    const bool all_stated = parallel_degrees_stated(spec);
    if (scenario->cluster.network.sites || scenario->cluster.network.order) return false;
    if (spec->idle_gpus != ABSENT || (all_stated && legal)) return false;
    if (legal && !fits && divides_well(scenario, scenario->cluster.num_gpus)) return false;
    const bool by_time =
        options->objective == OBJECTIVE_THROUGHPUT || options->objective == OBJECTIVE_COST;
    return by_time || !legal;
}

static Status number_look(Look *look, const Scenario *fewer, IdleLook *entry) {
    *entry = (IdleLook){.num_gpus = fewer->cluster.num_gpus, .ruled_out_by = BOUND};
    if (look->out->num_entries > 0 && is_late(look)) {
        entry->ruled_out_by = LATE;
        entry->is_open = true;
    } else if (!is_bounded(look, fewer)) {
        TRY(number_search(look, fewer, entry));
    }
    IdleAnswer *idle = &look->out->idle;
    idle->looks[idle->num_looks++] = *entry;
    return status_ok();
}

// Of the step time: a best plan whose loose bound is so near uses its GPUs well.
static const double NEAR_BOUND_FRAC = 0.7;

static bool is_near_bound(const PlannerResult *result) {
    return result->num_entries > 0 &&
           result->stats.loose_bound_s >= NEAR_BOUND_FRAC * result->entries[0].estimate.step_time_s;
}

static Status fewer_look(Look *look) {
    const Cluster *cluster = &look->scenario->cluster;
    const bool near = is_near_bound(look->out);
    const bool evenly = (near || cluster->num_gpus > IDLE_SMALL_GPUS) &&
                        divides_evenly(look->scenario, cluster->num_gpus);
    // No bound would rule fewer out, each would be searched as long as all, and all are well used.
    if (evenly && !near && cluster->num_gpus > IDLE_SMALL_GPUS) return status_ok();
    const double least_s = look->out->stats.loose_bound_s * cluster->num_gpus; // with one GPU
    const IdleAnswer *idle = &look->out->idle;
    // Where no number of each node gives all, all are those of whole nodes, and more may be used.
    for (int n = cluster_total_gpus(cluster) - 1; n > 0 && idle->num_looks < IDLE_MAX_NUMBERS;
         n--) {
        if (n == cluster->num_gpus) continue;
        Scenario fewer = *look->scenario;
        IdleLook entry;
        if (near && least_s / n >= look->out->entries[0].estimate.step_time_s) return status_ok();
        if (!divides_well(look->scenario, n)) continue;
        if (evenly && !divides_evenly(look->scenario, n)) continue;
        const int last = idle->num_looks > 0 ? idle->looks[idle->num_looks - 1].num_gpus : 0;
        if (idle->num_looks >= IDLE_NEAR_NUMBERS && 2 * n > last) continue;
        if (!cluster_use(cluster, n, look->arena, &fewer.cluster)) continue;
        TRY(number_look(look, &fewer, &entry));
        if (entry.is_open || (near && entry.ruled_out_by && strcmp(entry.ruled_out_by, BOUND) == 0))
            return status_ok();
    }
    return status_ok();
}

static Status numbers_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                             Scenario *used, PlannerResult *out) {
    Scenario all = *scenario;
    if (scenario->parallel.idle_gpus == ABSENT && !scenario->cluster.network.sites)
        all.cluster =
            cluster_with_gpus(&scenario->cluster, cluster_total_gpus(&scenario->cluster), arena);
    *used = all;
    *out = (PlannerResult){0};
    Look look = {.scenario = &all,
                 .options = options,
                 .arena = arena,
                 .used = used,
                 .out = out,
                 .end_s = options->budget_s > 0 ? clock_now_s() + options->budget_s : INFINITY};
    Status status = planner_search(&all, options, arena, out);
    if (status.code != STATUS_OK && status.code != STATUS_INVALID) return status;
    look.legal = status.code == STATUS_OK;
    if (!look.legal) *out = (PlannerResult){0};
    out->idle = (IdleAnswer){.total_gpus = cluster_total_gpus(&all.cluster),
                             .all_gpus = all.cluster.num_gpus,
                             .all_are_legal = look.legal};
    if (!may_leave_idle(&all, options, look.legal, out->num_entries > 0)) return status;
    const double start_s = clock_now_s();
    Status looked = fewer_look(&look);
    if (looked.code != STATUS_OK) return looked;
    if (look.legal) out->stats.wall_s += clock_now_s() - start_s;
    return look.legal ? status_ok() : status;
}

Status planner_search_idle(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                           Scenario *used, PlannerResult *out) {
    TRY(numbers_search(scenario, options, arena, used, out));
    if (out->num_entries == 0 && out->miss.missing_bytes > 0 && !options->brief)
        miss_narrow(used, options, arena, &out->miss);
    return status_ok();
}
