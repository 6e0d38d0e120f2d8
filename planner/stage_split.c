#include "planner/stage_split.h"

#include <math.h>
#include <stdlib.h>

// --- Costs

// fmax is a call.
static inline double larger(double a, double b) {
    return a > b ? a : b;
}

double stage_pass_s(const StageProblem *problem, int stage, StagePass pass, int from, int to) {
    const StageMachine *machine = problem->machines[stage];
    const double *device_s = machine->device_s[pass], *host_s = machine->host_s[pass];
    if (!device_s) return 0;
    double time_s = device_s[to] - device_s[from], launch_s = host_s[to] - host_s[from];
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

// From the first micro-batch's arrival to the last gradient's departure.
static double load_s(const StageProblem *problem, int stage, double work_s) {
    const double n = problem->num_microbatches;
    double sum_s = n * work_s;
    if (problem->blocking) sum_s += n * message_s(problem, stage);
    if (problem->blocking && stage > 0) sum_s += (n - 1) * message_s(problem, stage - 1);
    return sum_s;
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
        const double own_s = load_s(problem, r, stage_work_s(problem, r, from, to));
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
    const double own_s = load_s(problem, r, stage_work_s(problem, r, from, to));
    const double behind_s = way_s(problem, r, from, to) + row_of(problem, rest_s, r + 1)[to];
    return larger(own_s, behind_s) + (r == 0 ? tail_s(problem, to) : 0);
}

static double rest_bound_s(const StageProblem *problem, double *rest_s, int r, int from) {
    double least_s = INFINITY;
    const int end = most_end(problem, r, from);
    for (int to = from; to <= end; to++) {
        // Work grows with the layers.
        if (load_s(problem, r, stage_work_s(problem, r, from, to)) >= least_s) break;
        const double bound_s = step_bound_s(problem, rest_s, r, from, to);
        if (bound_s < least_s) least_s = bound_s;
    }
    return least_s;
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
    for (int l = 0; l < num_layers; l++) row_of(problem, rest_s, num_stages)[l] = INFINITY;
    for (int r = num_stages - 1; r >= 0; r--)
        for (int from = r > 0 ? num_layers : 0; from >= 0; from--)
            row_of(problem, rest_s, r)[from] = rest_bound_s(problem, rest_s, r, from);
    return (StageBounds){
        .problem = problem, .rest_s = rest_s, .bound_s = rest_s[0], .even_s = even_work_s(problem)};
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
            const double own_s = load_s(problem, r, stage_work_s(problem, r, from, to));
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
