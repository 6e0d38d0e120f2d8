#include "planner/stages/stage_split.h"

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

// Seconds of all passes over a stage.
typedef struct {
    double of[NUM_PASSES];
} Passes;

static Passes passes_of(const StageProblem *problem, int stage, int from, int to) {
    Passes passes;
    for (int pass = 0; pass < NUM_PASSES; pass++)
        passes.of[pass] = stage_pass_s(problem, stage, (StagePass)pass, from, to);
    return passes;
}

static double passes_sum_s(const Passes *passes) {
    double sum_s = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++) sum_s += passes->of[pass];
    return sum_s;
}

double stage_work_s(const StageProblem *problem, int stage, int from, int to) {
    const Passes passes = passes_of(problem, stage, from, to);
    return passes_sum_s(&passes);
}

static double message_s(const StageProblem *problem, int stage) {
    return stage < problem->num_stages - 1 ? problem->message_s[stage] : 0;
}

// These stages' work on layers from `from` on, with what is beside the last; their messages.
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
static double back_first_s(const StageProblem *problem, int stage, int to, const Passes *passes) {
    const double n = problem->num_microbatches, most = problem->num_stages - stage;
    const double ahead = most < n ? most : n;
    return behind_s(problem, stage, to) + (1 + n - ahead) * passes->of[PASS_FORWARD] +
           n * passes->of[PASS_BACKWARD];
}

// What a stage does from the first micro-batch's arrival to the last gradient's departure.
static double own_load_s(const StageProblem *problem, int stage, const Passes *passes) {
    const double n = problem->num_microbatches;
    double sum_s = n * passes_sum_s(passes);
    if (problem->blocking) sum_s += n * message_s(problem, stage);
    if (problem->blocking && stage > 0) sum_s += (n - 1) * message_s(problem, stage - 1);
    return sum_s;
}

// How long that takes at least with layers up to `to`.
static double load_s(const StageProblem *problem, int stage, int to, const Passes *passes) {
    const double sum_s = own_load_s(problem, stage, passes);
    if (!problem->one_forward_ahead || stage == problem->num_stages - 1) return sum_s;
    return larger(sum_s, back_first_s(problem, stage, to, passes));
}

// What a stage adds to the way to those behind it, there and back.
static double way_s(const StageProblem *problem, int stage, const Passes *passes) {
    if (!problem->together) return 0;
    const double there_s = passes->of[PASS_FORWARD] + message_s(problem, stage);
    if (problem->machines[stage]->device_s[PASS_WEIGHT]) return there_s;
    return there_s + passes->of[PASS_BACKWARD] + message_s(problem, stage);
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
        const Passes passes = passes_of(problem, r, from, to);
        const double own_s = load_s(problem, r, to, &passes);
        bound_s = larger(bound_s, to_s + own_s);
        to_s += way_s(problem, r, &passes);
        from = to;
    }
    return bound_s + tail_s(problem, layers[0]);
}

// --- The least bound

static double *row_of(const StageProblem *problem, double *rest_s, int stage) {
    return rest_s + (size_t)stage * (size_t)(problem->num_layers + 1);
}

// The bound of stages from r on where r takes layers up to `to`.
static double step_bound_s(const StageProblem *problem, double *rest_s, int r, int to,
                           const Passes *passes) {
    const double own_s = load_s(problem, r, to, passes);
    const double behind_s = way_s(problem, r, passes) + row_of(problem, rest_s, r + 1)[to];
    return larger(own_s, behind_s) + (r == 0 ? tail_s(problem, to) : 0);
}

static double limit_of(const StageProblem *problem) {
    return problem->limit_s > 0 ? problem->limit_s * (1 + ROUNDING_FRAC) : INFINITY;
}

// Whether a stage may hold layers [from, to).
static bool is_open(const StageProblem *problem, int r, int from, int to) {
    if (to > most_end(problem, r, from)) return false;
    const Passes passes = passes_of(problem, r, from, to);
    return own_load_s(problem, r, &passes) <= limit_of(problem);
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

// The least bounds of rows of layers, to pass over many ends of a stage at once: level 0 is the
// bounds of a row of rest_s themselves, each number of the next the least of SPAN of the one below.
enum { SPAN = 8, MAX_LEVELS = 11 }; // 8^11 is more than any int

typedef struct {
    double *level_s[MAX_LEVELS];
    int num[MAX_LEVELS];
    int num_levels;
} RowLeast;

static RowLeast row_least_new(const StageProblem *problem, Arena *arena) {
    RowLeast least = {.num = {problem->num_layers + 1}, .num_levels = 1};
    while (least.num[least.num_levels - 1] > SPAN) {
        const int num = (least.num[least.num_levels - 1] + SPAN - 1) / SPAN;
        least.level_s[least.num_levels] = ARENA_ARRAY(arena, num, double);
        least.num[least.num_levels++] = num;
    }
    return least;
}

static void row_least_set(RowLeast *least, double *row_s) {
    least->level_s[0] = row_s;
    for (int k = 1; k < least->num_levels; k++) {
        const double *below_s = least->level_s[k - 1];
        for (int i = 0; i < least->num[k]; i++) least->level_s[k][i] = INFINITY;
        for (int i = 0; i < least->num[k - 1]; i++)
            if (below_s[i] < least->level_s[k][i / SPAN]) least->level_s[k][i / SPAN] = below_s[i];
    }
}

// The search for the best end of stage r that begins with layer `from`.
typedef struct {
    const StageProblem *problem;
    double *rest_s;
    const RowLeast *behind; // of row r + 1
    int r, from, end;       // it holds at most layers up to `end`
    double least_s;         // so far
    int best;               // the end that it is of; -1: none is below the limit
} EndSearch;

//   returns  false where no end after this one is better: work grows with the layers
static bool end_try(EndSearch *s, int to) {
    const Passes passes = passes_of(s->problem, s->r, s->from, to);
    if (own_load_s(s->problem, s->r, &passes) >= s->least_s) return false;
    const double bound_s = step_bound_s(s->problem, s->rest_s, s->r, to, &passes);
    if (bound_s >= s->least_s) return true;
    s->least_s = bound_s;
    s->best = to;
    return true;
}

// Whether none of the ends from `first` to `last` is better, though the stages behind take no more
// than `behind_least_s`. Work and way grow with the layers, what is left behind falls, and so do
// their sums in floating point: no end that is passed over would have been taken.
//   *over  nor is any end after them
static bool ends_are_out(const EndSearch *s, int first, int last, double behind_least_s,
                         bool *over) {
    const StageProblem *problem = s->problem;
    const Passes passes = passes_of(problem, s->r, s->from, first);
    *over = own_load_s(problem, s->r, &passes) >= s->least_s;
    return *over || way_s(problem, s->r, &passes) + behind_least_s >= s->least_s ||
           load_s(problem, s->r, last, &passes) >= s->least_s;
}

// Tries the ends below number i of a level.
//   returns  false where no end after them is better
static bool ends_search(EndSearch *s, int level, int i, int width) {
    if (s->behind->level_s[level][i] == INFINITY) return true;
    const int begin = i * width, stop = begin + width - 1;
    const int first = begin > s->from ? begin : s->from, last = stop < s->end ? stop : s->end;
    bool over;
    if (first > last) return begin <= s->end;
    if (level == 0) return end_try(s, first);
    if (ends_are_out(s, first, last, s->behind->level_s[level][i], &over)) return !over;
    const int next = i * SPAN + SPAN, num = s->behind->num[level - 1];
    for (int below = i * SPAN; below < next && below < num; below++)
        if (!ends_search(s, level - 1, below, width / SPAN)) return false;
    return true;
}

//   guess  of the best end; set to it
static double rest_bound_s(EndSearch *s, int from, int *guess) {
    s->from = from;
    s->end = most_end(s->problem, s->r, from);
    s->least_s = limit_of(s->problem);
    s->best = -1;
    for (int to = *guess; to >= *guess - 1; to--)
        if (to >= from && to <= s->end) end_try(s, to);
    const int top = s->behind->num_levels - 1;
    int width = 1;
    for (int k = 0; k < top; k++) width *= SPAN;
    for (int i = 0; i < s->behind->num[top] && ends_search(s, top, i, width); i++) {
    }
    if (s->best < 0) return INFINITY;
    *guess = s->best;
    return s->least_s;
}

StageBounds stage_starts(const StageProblem *problem, Arena *arena) {
    int *first = ARENA_ARRAY(arena, problem->num_stages, int);
    int *last = ARENA_ARRAY(arena, problem->num_stages, int);
    starts_find(problem, first, last);
    return (StageBounds){.problem = problem, .first = first, .last = last};
}

StageBounds stage_bounds_solve(const StageProblem *problem, Arena *arena) {
    const int num_layers = problem->num_layers, num_stages = problem->num_stages;
    double *rest_s =
        ARENA_ARRAY(arena, (size_t)(num_stages + 1) * (size_t)(num_layers + 1), double);
    for (int i = 0; i < num_stages * (num_layers + 1) + num_layers; i++) rest_s[i] = INFINITY;
    StageBounds bounds = stage_starts(problem, arena);
    RowLeast behind = row_least_new(problem, arena);
    for (int r = num_stages - 1; r >= 0; r--) {
        EndSearch search = {.problem = problem, .rest_s = rest_s, .behind = &behind, .r = r};
        int guess = num_layers;
        row_least_set(&behind, row_of(problem, rest_s, r + 1));
        for (int from = bounds.last[r]; from >= bounds.first[r]; from--)
            row_of(problem, rest_s, r)[from] = rest_bound_s(&search, from, &guess);
    }
    bounds.rest_s = rest_s;
    bounds.bound_s = rest_s[0];
    bounds.even_s = even_work_s(problem);
    return bounds;
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
    const double *rest_s = row_of(problem, w->bounds->rest_s, r + 1);
    const int end = most_end(problem, r, from);
    const double tail = r > 0 ? tail_s(problem, w->layers[0]) : 0;
    int num = 0;
    for (int to = from; to <= end; to++) {
        if (rest_s[to] == INFINITY) continue;
        const Passes passes = passes_of(problem, r, from, to);
        const double own_s = to_s + tail + step_bound_s(problem, w->bounds->rest_s, r, to, &passes);
        const double bound_s = fmax(own_s, below_s + tail);
        if (bound_s > *w->limit_s) continue;
        const double uneven_s = fabs(passes_sum_s(&passes) - w->bounds->even_s);
        choices[num++] = (Choice){bound_s, uneven_s, to};
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
            const Passes passes = passes_of(problem, r, from, to);
            left_s = stage_walk(w, r + 1, to, to_s + way_s(problem, r, &passes),
                                fmax(below_s, to_s + load_s(problem, r, to, &passes)));
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
