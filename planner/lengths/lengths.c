#include "planner/lengths/lengths.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/share.h"
#include "base/student.h"
#include "config/job/scenario_front.h"
#include "planner/lengths/lengths_bound.h"
#include "planner/lengths/lengths_schedule.h"
#include "planner/lengths/lengths_shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- The sequences of a step

static int compare_buckets(const void *a, const void *b) {
    const LengthBucket *x = a, *y = b;
    return x->length == y->length ? 0 : x->length < y->length ? 1 : -1;
}

typedef struct {
    double remainder;
    int share;
} Remainder;

static int compare_remainders(const void *a, const void *b) {
    const Remainder *x = a, *y = b;
    if (x->remainder != y->remainder) return x->remainder < y->remainder ? 1 : -1;
    return x->share - y->share;
}

// Whole numbers of sequences that add up to the batch: the largest remainders are rounded up.
static void buckets_set(const TrainingJob *training, Arena *arena, LengthsResult *out) {
    const int n = training->num_sequence_lengths;
    LengthBucket *buckets = ARENA_ARRAY(arena, n, LengthBucket);
    Remainder *remainders = ARENA_ARRAY(arena, n, Remainder);
    int64_t left = training->global_batch;
    for (int i = 0; i < n; i++) {
        const LengthShare *share = &training->sequence_lengths[i];
        const double wanted = share->frac * (double)training->global_batch;
        const double whole = floor(wanted + 1e-9);
        buckets[i] = (LengthBucket){.length = share->length, .num_sequences = (int)whole};
        remainders[i] = (Remainder){wanted - whole, i};
        left -= (int64_t)whole;
    }
    qsort(remainders, (size_t)n, sizeof *remainders, compare_remainders);
    for (int i = 0; i < n && left > 0; i++, left--) buckets[remainders[i].share].num_sequences++;
    int64_t *left_out = ARENA_ARRAY(arena, n, int64_t);
    for (int i = 0; i < n; i++) {
        if (buckets[i].num_sequences > 0)
            buckets[out->num_buckets++] = buckets[i];
        else if (training->sequence_lengths[i].frac > 0)
            left_out[out->num_left_out++] = buckets[i].length;
    }
    out->left_out = left_out;
    qsort(buckets, (size_t)out->num_buckets, sizeof *buckets, compare_buckets);
    out->buckets = buckets;
    for (int i = 0; i < out->num_buckets; i++)
        out->num_tokens += (double)buckets[i].length * buckets[i].num_sequences;
}

// --- What cannot be kept

static Status not_yet(const Scenario *scenario, const char *path, const char *found) {
    return status_at(STATUS_INVALID, scenario->file, path,
                     "%s with training.sequence_lengths is legal, but not supported yet", found);
}

static Status constraints_check(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    const Execution *execution = &scenario->execution;
    const TrainingJob *training = &scenario->training;
    const struct {
        bool stated;
        const char *path, *found;
    } parts[] = {
        {spec->pp > 1, "parallel.pp", "more than 1"},
        {spec->vpp > 1, "parallel.vpp", "more than 1"},
        {spec->schedule == SCHEDULE_FILE, "parallel.schedule", "a file"},
        {spec->ep > 1, "parallel.ep", "more than 1"},
        {spec->etp > 1, "parallel.etp", "more than 1"},
        {spec->micro_batch != ABSENT, "parallel.micro_batch", "a number of sequences"},
        {spec->num_layer_overrides > 0, "parallel.layers", "a list"},
        {spec->num_placement > 0, "parallel.placement", "a list"},
        {spec->order && strcmp(spec->order, "tp-cp-ep-dp-pp") != 0, "parallel.order",
         "another order than tp-cp-ep-dp-pp"},
        {scenario->num_disturb > 0, "disturb", "a disturbance"},
        {execution->attention == ATTENTION_UNFUSED, "training.attention", "unfused"},
        {training->global_batch > 1000000, "training.global_batch", "more than 1000000"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].stated) return not_yet(scenario, parts[i].path, parts[i].found);
    if (training->num_sequence_lengths > LENGTHS_MAX_BUCKETS)
        return status_at(STATUS_INVALID, scenario->file, "training.sequence_lengths",
                         "%d lengths; expected at most %d, the longer ones of like length taken "
                         "together",
                         training->num_sequence_lengths, LENGTHS_MAX_BUCKETS);
    // A short sequence has as many images, or as long an input, as one of seq_len.
    TRY(scenario_refuse_front(scenario, "plan with training.sequence_lengths"));
    return scenario_refuse_unlike_groups(scenario, "plan with training.sequence_lengths");
}

// --- The search

typedef struct {
    LengthsAnswer answer; // of this shape, its schedule not worked out
    double bound_s;       // INFINITY where it does not hold all sequences
    double longest_tokens;
    Arena arena;
} Bounded;

typedef struct {
    const Scenario *job;
    const LengthsShape *shapes;
    const LengthsResult *result;
    Bounded *bounded; // [num_shapes]
} Pricing;

static bool problem_holds(const LengthsProblem *p, int bucket) {
    for (int d = 0; d < p->num_sizes; d++)
        if (isfinite(p->sizes[d].sequence_s[bucket])) return true;
    return false;
}

static void shape_price(void *context, int worker, int item) {
    Pricing *pricing = context;
    (void)worker;
    const LengthsShape *shape = &pricing->shapes[item];
    const LengthsResult *result = pricing->result;
    Bounded *bounded = &pricing->bounded[item];
    const Plan **plans = ARENA_ARRAY(&bounded->arena, shape->num_plans, const Plan *);
    LengthsProblem *p = &bounded->answer.problem;
    *p = lengths_price(pricing->job, shape, result->buckets, result->num_buckets, &bounded->arena,
                       plans);
    bounded->answer.plans = plans;
    for (int d = 0; d < p->num_sizes; d++)
        bounded->longest_tokens = fmax(bounded->longest_tokens, p->sizes[d].capacity_tokens);
}

// GLPK is asked by one thread.
static void shapes_bound(const LengthsResult *result, Bounded *bounded, Arena *arena) {
    int *counts = ARENA_ARRAY(arena, result->num_buckets, int);
    for (int i = 0; i < result->num_buckets; i++) counts[i] = result->buckets[i].num_sequences;
    for (int i = 0; i < result->num_shapes; i++) {
        const LengthsProblem *p = &bounded[i].answer.problem;
        bounded[i].bound_s = INFINITY;
        if (p->num_sizes > 0 && problem_holds(p, 0))
            bounded[i].bound_s = lengths_bound(p, counts, arena).step_time_s;
    }
}

static int compare_bounded(const void *a, const void *b) {
    const Bounded *const *x = a, *const *y = b;
    if ((*x)->bound_s != (*y)->bound_s) return (*x)->bound_s < (*y)->bound_s ? -1 : 1;
    return *x < *y ? -1 : 1;
}

static void answer_keep(LengthsAnswer *best, const LengthsAnswer *shape, LengthsSchedule schedule) {
    if (schedule.num_rounds == 0) return;
    if (best->schedule.num_rounds > 0 && best->schedule.step_time_s <= schedule.step_time_s) return;
    *best = *shape;
    best->schedule = schedule;
}

static double best_s(const LengthsAnswer *best) {
    return best->schedule.num_rounds > 0 ? best->schedule.step_time_s : INFINITY;
}

static void shape_schedule(LengthsResult *out, const Bounded *bounded, Arena *arena) {
    const LengthsAnswer *answer = &bounded->answer;
    const LengthsProblem *p = &answer->problem;
    LengthsSchedule best = {.step_time_s = INFINITY}; // of one size, for this shape
    for (int d = 0; d < p->num_sizes; d++) {
        const LengthsSchedule one = lengths_schedule(p, d, best_s(&out->one_size), NULL, arena);
        if (one.step_time_s < best.step_time_s) best = one;
    }
    answer_keep(&out->one_size, answer, best);
    answer_keep(&out->many_sizes, answer,
                lengths_schedule(p, LENGTHS_ANY_SIZE, best_s(&out->many_sizes), &best, arena));
    out->num_scheduled++;
}

static bool ends_soon(const LengthsOptions *options) {
    return options->end_soon && atomic_load_explicit(options->end_soon, memory_order_relaxed);
}

// One size is a case of many. A shape is passed over where it can give neither a better answer of
// one size nor one of many: no schedule beats its bound.
static void shapes_schedule(LengthsResult *out, const LengthsOptions *options, Bounded *bounded,
                            Arena *arena) {
    const Bounded **order = ARENA_ARRAY(arena, out->num_shapes, const Bounded *);
    for (int i = 0; i < out->num_shapes; i++) {
        order[i] = &bounded[i];
        out->longest_tokens = fmax(out->longest_tokens, bounded[i].longest_tokens);
        if (isfinite(bounded[i].bound_s)) out->num_bounded++;
    }
    qsort(order, (size_t)out->num_shapes, sizeof *order, compare_bounded);
    for (int i = 0; i < out->num_bounded; i++) {
        if (order[i]->bound_s >= best_s(&out->one_size)) break;
        if (ends_soon(options) && lengths_fits(out)) {
            out->stopped_early = true;
            break;
        }
        if (options->progress)
            options->progress(options->progress_context, "shapes", i, out->num_bounded);
        shape_schedule(out, order[i], arena);
    }
    if (out->num_bounded == 0) return;
    answer_keep(&out->many_sizes, &out->one_size, out->one_size.schedule);
    out->bound_s = fmin(order[0]->bound_s, out->many_sizes.schedule.step_time_s);
    out->gap_frac = out->many_sizes.schedule.step_time_s / out->bound_s - 1;
}

static void bounded_free(void *memory) {
    arena_free(&((Bounded *)memory)->arena);
}

static void search_once(const Scenario *job, const LengthsOptions *options, Arena *arena,
                        LengthsResult *out) {
    LengthsShape *shapes = lengths_shapes(job, arena, &out->num_shapes);
    Bounded *bounded = ARENA_ARRAY(arena, out->num_shapes, Bounded);
    for (int i = 0; i < out->num_shapes; i++) arena_own(arena, bounded_free, &bounded[i]);
    Pricing pricing = {.job = job, .shapes = shapes, .result = out, .bounded = bounded};
    share_work(out->num_shapes, options->num_threads, shape_price, &pricing);
    shapes_bound(out, bounded, arena);
    shapes_schedule(out, options, bounded, arena);
}

bool lengths_fits(const LengthsResult *result) {
    return result->many_sizes.schedule.num_rounds > 0;
}

double lengths_gain_frac(const LengthsResult *result) {
    if (result->one_size.schedule.num_rounds == 0) return 0;
    return result->one_size.schedule.step_time_s / result->many_sizes.schedule.step_time_s - 1;
}

Status lengths_search(const Scenario *scenario, const LengthsOptions *options, Arena *arena,
                      LengthsResult *out) {
    TRY(constraints_check(scenario));
    const double start_s = clock_now_s();
    LengthsResult result = {0};
    buckets_set(&scenario->training, arena, &result);
    Scenario job = lengths_job(scenario, &result.buckets[0]);
    double *available = &cluster_own_pools(&job.cluster, arena)->gpu.memory_available_bytes;
    if (options->max_memory_bytes > 0) *available = fmin(*available, options->max_memory_bytes);
    job.fit_deviates =
        student_quantile(options->fit_probability_frac > 0 ? options->fit_probability_frac
                                                           : FIT_PROBABILITY_DEFAULT_FRAC);
    *out = result;
    search_once(&job, options, arena, out);
    if (out->num_shapes == 0)
        return status_at(STATUS_INVALID, scenario->file, "parallel",
                         "leaves no legal plan for training.sequence_lengths on %d GPUs without a "
                         "pipeline; expected fewer constraints",
                         scenario->cluster.num_gpus);
    out->wall_s = clock_now_s() - start_s;
    return status_ok();
}

Status lengths_refuse(const Scenario *scenario, const LengthsResult *result) {
    const long long length = (long long)result->buckets[0].length;
    if (result->longest_tokens <= 0)
        return status_at(STATUS_NO, scenario->file, "training.sequence_lengths",
                         "nothing fits: without a pipeline not even length %lld does",
                         (long long)result->buckets[result->num_buckets - 1].length);
    return status_at(STATUS_NO, scenario->file, "training.sequence_lengths",
                     "length %lld fits on no group of up to %d GPUs that %s can run; at most %.0f "
                     "tokens do",
                     length, scenario->cluster.num_gpus, scenario->execution.stack.name,
                     result->longest_tokens);
}
