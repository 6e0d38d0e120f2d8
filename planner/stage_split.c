#include "planner/stage_split.h"

#include <math.h>
#include <stdlib.h>

// Sums of the same seconds in another order.
static const double ROUNDING_FRAC = 1e-9;

// --- Costs

// fmax is a call.
static inline double larger(double a, double b) {
    return a > b ? a : b;
}

// Where the layers end that a stage recomputes.
static int again_end(const StageProblem *problem, int from, int to) {
    return problem->num_again < to - from ? from + problem->num_again : to;
}

double stage_pass_s(const StageProblem *problem, int stage, StagePass pass, int from, int to) {
    const StageMachine *machine = problem->machines[stage];
    const double *device_s = machine->device_s[pass], *host_s = machine->host_s[pass];
    if (!device_s) return 0;
    double time_s = device_s[to] - device_s[from], launch_s = host_s[to] - host_s[from];
    if (machine->again_s[pass] && problem->num_again > 0) {
        const int end = again_end(problem, from, to);
        time_s += machine->again_s[pass][end] - machine->again_s[pass][from];
        launch_s += machine->again_host_s[pass][end] - machine->again_host_s[pass][from];
    }
    if (stage == 0) {
        time_s += machine->first_s[pass];
        launch_s += machine->first_host_s[pass];
    }
    if (stage == problem->num_stages - 1) {
        time_s += machine->last_s[pass];
        launch_s += machine->last_host_s[pass];
    }
    if (pass != PASS_WEIGHT) launch_s += machine->pass_host_s;
    return larger(time_s, launch_s);
}

double stage_work_s(const StageProblem *problem, int stage, int from, int to) {
    double sum_s = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++)
        sum_s += stage_pass_s(problem, stage, (StagePass)pass, from, to);
    return sum_s;
}

static double message_s(const StageProblem *problem, int stage) {
    return stage < problem->num_stages - 1 ? problem->message_s[stage] : 0;
}

// The same stages' work on layers from `from` on, with what is beside the last; their messages.
static double behind_s(const StageProblem *problem, int stage, int from) {
    const StageMachine *machine = problem->machines[stage];
    double sum_s = problem->behind_message_s[stage];
    for (int pass = 0; pass < NUM_PASSES; pass++)
        if (machine->device_s[pass])
            sum_s += machine->device_s[pass][problem->num_layers] - machine->device_s[pass][from] +
                     machine->last_s[pass];
    return sum_s;
}

// With 1F1B, from the first micro-batch's arrival: until its gradient is back, and what the stage
// then has still to run.
static double back_first_s(const StageProblem *problem, int stage, int from, int to) {
    const double n = problem->num_microbatches, most = problem->num_stages - stage;
    const double ahead = most < n ? most : n;
    return behind_s(problem, stage, to) +
           (1 + n - ahead) * stage_pass_s(problem, stage, PASS_FORWARD, from, to) +
           n * stage_pass_s(problem, stage, PASS_BACKWARD, from, to);
}

// What a stage does from the first micro-batch's arrival to the last gradient's departure.
static double own_load_s(const StageProblem *problem, int stage, int from, int to) {
    const double n = problem->num_microbatches;
    double sum_s = n * stage_work_s(problem, stage, from, to);
    if (problem->blocking) sum_s += n * message_s(problem, stage);
    if (problem->blocking && stage > 0) sum_s += (n - 1) * message_s(problem, stage - 1);
    return sum_s;
}

// How long that takes at least.
static double load_s(const StageProblem *problem, int stage, int from, int to) {
    const double sum_s = own_load_s(problem, stage, from, to);
    if (!problem->one_forward_ahead || stage == problem->num_stages - 1) return sum_s;
    return larger(sum_s, back_first_s(problem, stage, from, to));
}

// What a stage adds to the way to those behind it, there and back.
static double way_s(const StageProblem *problem, int stage, int from, int to) {
    if (!problem->together) return 0;
    const double there_s =
        stage_pass_s(problem, stage, PASS_FORWARD, from, to) + message_s(problem, stage);
    if (problem->machines[stage]->device_s[PASS_WEIGHT]) return there_s;
    return there_s + stage_pass_s(problem, stage, PASS_BACKWARD, from, to) +
           message_s(problem, stage);
}

static double tail_s(const StageProblem *problem, int layers) {
    return problem->tail_s ? problem->tail_s[layers] : 0;
}

static int most_end(const StageProblem *problem, int stage, int from) {
    return problem->most ? problem->most[stage][from] : problem->num_layers;
}

double stage_split_bound_s(const StageProblem *problem, const int *layers) {
    double bound_s = 0, to_s = 0;
    for (int r = 0, from = 0; r < problem->num_stages; r++) {
        const int to = from + layers[r];
        const double own_s = load_s(problem, r, from, to);
        bound_s = larger(bound_s, to_s + own_s);
        to_s += way_s(problem, r, from, to);
        from = to;
    }
    return bound_s + tail_s(problem, layers[0]);
}

// --- The least bound

static double *row_of(const StageProblem *problem, double *rest_s, int stage) {
    return rest_s + (size_t)stage * (size_t)(problem->num_layers + 1);
}

// The bound of stages from r on where r takes layers [from, to).
static double step_bound_s(const StageProblem *problem, double *rest_s, int r, int from, int to) {
    const double own_s = load_s(problem, r, from, to);
    const double behind_s = way_s(problem, r, from, to) + row_of(problem, rest_s, r + 1)[to];
    return larger(own_s, behind_s) + (r == 0 ? tail_s(problem, to) : 0);
}

static double limit_of(const StageProblem *problem) {
    return problem->limit_s > 0 ? problem->limit_s * (1 + ROUNDING_FRAC) : INFINITY;
}

static double rest_bound_s(const StageProblem *problem, double *rest_s, int r, int from) {
    double least_s = limit_of(problem);
    bool found = false;
    const int end = most_end(problem, r, from);
    for (int to = from; to <= end; to++) {
        // Work grows with the layers.
        if (own_load_s(problem, r, from, to) >= least_s) break;
        const double bound_s = step_bound_s(problem, rest_s, r, from, to);
        if (bound_s < least_s) {
            least_s = bound_s;
            found = true;
        }
    }
    return found ? least_s : INFINITY;
}

// Whether a stage may hold layers [from, to).
static bool is_open(const StageProblem *problem, int r, int from, int to) {
    return to <= most_end(problem, r, from) &&
           own_load_s(problem, r, from, to) <= limit_of(problem);
}

// Where a stage may begin, so that neither those before it nor those from it on hold too much: with
// fewer or more layers before, a stage may end no earlier.
//   first, last  [num_stages]
static void starts_find(const StageProblem *problem, int *first, int *last) {
    const int num_layers = problem->num_layers, num_stages = problem->num_stages;
    last[0] = 0;
    for (int r = 0; r + 1 < num_stages; r++) {
        last[r + 1] = last[r];
        while (last[r + 1] < num_layers && is_open(problem, r, last[r], last[r + 1] + 1))
            last[r + 1]++;
    }
    first[0] = 0;
    for (int r = num_stages - 1, end = num_layers; r > 0; end = first[r--]) {
        first[r] = end < last[r] ? end : last[r]; // of what is beyond, `most` says nothing
        while (first[r] > 0 && is_open(problem, r, first[r] - 1, end)) first[r]--;
    }
}

// Work of each stage where all take equally long and layers may be cut anywhere.
static double even_work_s(const StageProblem *problem) {
    double speed = 0; // models a second, of all stages
    for (int r = 0; r < problem->num_stages; r++)
        speed += 1 / stage_work_s(problem, r, 0, problem->num_layers);
    return speed > 0 ? 1 / speed : 0;
}

StageBounds stage_bounds_solve(const StageProblem *problem, Arena *arena) {
    const int num_layers = problem->num_layers, num_stages = problem->num_stages;
    double *rest_s =
        ARENA_ARRAY(arena, (size_t)(num_stages + 1) * (size_t)(num_layers + 1), double);
    int *first = ARENA_ARRAY(arena, num_stages, int), *last = ARENA_ARRAY(arena, num_stages, int);
    for (int i = 0; i < num_stages * (num_layers + 1) + num_layers; i++) rest_s[i] = INFINITY;
    starts_find(problem, first, last);
    for (int r = num_stages - 1; r >= 0; r--)
        for (int from = last[r]; from >= first[r]; from--)
            row_of(problem, rest_s, r)[from] = rest_bound_s(problem, rest_s, r, from);
    return (StageBounds){.problem = problem,
                         .rest_s = rest_s,
                         .bound_s = rest_s[0],
                         .even_s = even_work_s(problem),
                         .first = first,
                         .last = last};
}

// --- All splits

typedef struct {
    double bound_s, uneven_s;
    int to;
} Choice;

typedef struct {
    const StageBounds *bounds;
    const double *limit_s;
    StageVisit visit;
    void *context;
    Choice *choices; // [num_stages][num_layers + 1]
    int *layers;     // [num_stages]
    bool ended;      // by visit
} Walk;

static int compare_choices(const void *a, const void *b) {
    const Choice *x = a, *y = b;
    if (x->bound_s != y->bound_s) return x->bound_s < y->bound_s ? -1 : 1;
    if (x->uneven_s != y->uneven_s) return x->uneven_s < y->uneven_s ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

//   to_s     the way to stage r
//   below_s  the bound of the stages before it
static int choices_list(const Walk *w, int r, int from, double to_s, double below_s,
                        Choice *choices) {
    const StageProblem *problem = w->bounds->problem;
    const int end = most_end(problem, r, from);
    const double tail = r > 0 ? tail_s(problem, w->layers[0]) : 0;
    int num = 0;
    for (int to = from; to <= end; to++) {
        const double own_s = to_s + tail + step_bound_s(problem, w->bounds->rest_s, r, from, to);
        const double bound_s = fmax(own_s, below_s + tail);
        if (bound_s == INFINITY || bound_s > *w->limit_s) continue;
        const double work_s = stage_work_s(problem, r, from, to);
        choices[num++] = (Choice){bound_s, fabs(work_s - w->bounds->even_s), to};
    }
    if (num > 1) qsort(choices, (size_t)num, sizeof *choices, compare_choices);
    return num;
}

// Returns the least bound of what was left out, once visit has ended the walk.
static double stage_walk(Walk *w, int r, int from, double to_s, double below_s) {
    const StageProblem *problem = w->bounds->problem;
    Choice *choices = w->choices + (size_t)r * (size_t)(problem->num_layers + 1);
    const int num = choices_list(w, r, from, to_s, below_s, choices);
    for (int i = 0; i < num; i++) {
        const int to = choices[i].to;
        double left_s = INFINITY;
        if (choices[i].bound_s > *w->limit_s) break; // it fell
        w->layers[r] = to - from;
        if (r == problem->num_stages - 1) {
            w->ended = !w->visit(w->context, w->layers, choices[i].bound_s);
        } else {
            const double own_s = load_s(problem, r, from, to);
            left_s = stage_walk(w, r + 1, to, to_s + way_s(problem, r, from, to),
                                fmax(below_s, to_s + own_s));
        }
        if (w->ended) return i + 1 < num ? fmin(left_s, choices[i + 1].bound_s) : left_s;
    }
    return INFINITY;
}

double stage_splits_visit(const StageBounds *bounds, const double *limit_s, StageVisit visit,
                          void *context, Arena *arena) {
    const StageProblem *problem = bounds->problem;
    const size_t width = (size_t)problem->num_layers + 1;
    if (bounds->bound_s > *limit_s) return INFINITY;
    Walk w = {.bounds = bounds,
              .limit_s = limit_s,
              .visit = visit,
              .context = context,
              .choices = ARENA_ARRAY(arena, (size_t)problem->num_stages * width, Choice),
              .layers = ARENA_ARRAY(arena, problem->num_stages, int)};
    return stage_walk(&w, 0, 0, 0, 0);
}
