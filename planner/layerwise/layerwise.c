// The dynamic program and the thresholds it is run with.
#include "planner/layerwise/layerwise.h"

#include "planner/layerwise/layerwise_bound.h"
#include "planner/layerwise/layerwise_frontier.h"

#include <math.h>
#include <string.h>

enum { NUM_RESTS = 5, THRESHOLD_STEPS = 4 };

// The first threshold lies so far above the bound, of the way to the best plan known.
static const double FIRST_STEP_FRAC = 1.0 / 64;
// Bounds are sums of rounded products.
static const double SAME_FRAC = 1e-11;

// --- Plans

static int highest_level(const LayerwiseProblem *p, const int *strategy) {
    int level = 0;
    for (int l = 0; l < p->num_layers; l++) {
        const int of_layer = p->level[l * p->num_strategies + strategy[l]];
        if (of_layer > level) level = of_layer;
    }
    return level;
}

static int change_index(const LayerwiseProblem *p, const int *strategy, int layer) {
    return p->layout[strategy[layer - 1]] * p->num_layouts + p->layout[strategy[layer]];
}

double layerwise_time_s(const LayerwiseProblem *p, const int *strategy) {
    double time_s = p->level_s[highest_level(p, strategy)];
    for (int l = 0; l < p->num_layers; l++) {
        time_s += p->time_s[l * p->num_strategies + strategy[l]];
        if (l > 0) time_s += p->reshard_s[change_index(p, strategy, l)];
    }
    return time_s;
}

double layerwise_memory_bytes(const LayerwiseProblem *p, const int *strategy) {
    double lasts = p->level_bytes[highest_level(p, strategy)], saved = 0, most = 0;
    for (int l = 0; l < p->num_layers; l++) {
        const int i = l * p->num_strategies + strategy[l];
        lasts += p->lasts_bytes[i];
        if (l > 0) lasts += p->reshard_bytes[change_index(p, strategy, l)];
        most = fmax(most, saved + p->peak_bytes[i]);
        saved += p->saved_bytes[i];
    }
    return lasts + most;
}

// --- Rounded figures: sums of the same numbers are equal in every order

static double *rounded_times(const double *time_s, int num, double quantum, Arena *arena) {
    double *out = ARENA_ARRAY(arena, num, double);
    for (int i = 0; i < num; i++)
        out[i] =
            isfinite(time_s[i]) && quantum > 0 ? rint(time_s[i] / quantum) * quantum : time_s[i];
    return out;
}

static double *rounded_bytes(const double *bytes, int num, Arena *arena) {
    double *out = ARENA_ARRAY(arena, num, double);
    for (int i = 0; i < num; i++) out[i] = ceil(bytes[i]);
    return out;
}

static double largest(const double *values, int num) {
    double most = 0;
    for (int i = 0; i < num; i++)
        if (isfinite(values[i])) most = fmax(most, values[i]);
    return most;
}

// Whether strategy a of a layer is in nothing worse than b, and b can be left out.
static bool beats(const LayerwiseProblem *p, int layer, int a, int b) {
    const int i = layer * p->num_strategies + a, j = layer * p->num_strategies + b;
    if (a == b || p->layout[a] != p->layout[b]) return false;
    if (p->time_s[i] > p->time_s[j] || p->lasts_bytes[i] > p->lasts_bytes[j] ||
        p->saved_bytes[i] > p->saved_bytes[j] || p->peak_bytes[i] > p->peak_bytes[j] ||
        p->level[i] > p->level[j])
        return false;
    const bool equal = p->time_s[i] == p->time_s[j] && p->lasts_bytes[i] == p->lasts_bytes[j] &&
                       p->saved_bytes[i] == p->saved_bytes[j] &&
                       p->peak_bytes[i] == p->peak_bytes[j] && p->level[i] == p->level[j];
    return !equal || a < b;
}

// Closes the strategies of each layer that another of the same layout beats.
static void close_beaten(LayerwiseProblem *p, double *time_s, Arena *arena) {
    const int num = p->num_strategies;
    bool *beaten = ARENA_ARRAY(arena, num, bool);
    for (int l = 0; l < p->num_layers; l++) {
        for (int b = 0; b < num; b++) {
            beaten[b] = false;
            for (int a = 0; a < num && !beaten[b]; a++) beaten[b] = beats(p, l, a, b);
        }
        for (int s = 0; s < num; s++)
            if (beaten[s]) time_s[l * num + s] = INFINITY;
    }
}

static LayerwiseProblem rounded(const LayerwiseProblem *p, Arena *arena) {
    const int cells = p->num_layers * p->num_strategies, changes = p->num_layouts * p->num_layouts;
    const double sum_s =
        p->num_layers * (largest(p->time_s, cells) + largest(p->reshard_s, changes));
    const double quantum = sum_s > 0 ? ldexp(1, (int)ceil(log2(sum_s)) - 50) : 0;
    LayerwiseProblem r = *p;
    double *time_s = rounded_times(p->time_s, cells, quantum, arena);
    r.time_s = time_s;
    r.reshard_s = rounded_times(p->reshard_s, changes, quantum, arena);
    r.lasts_bytes = rounded_bytes(p->lasts_bytes, cells, arena);
    r.saved_bytes = rounded_bytes(p->saved_bytes, cells, arena);
    r.peak_bytes = rounded_bytes(p->peak_bytes, cells, arena);
    r.reshard_bytes = rounded_bytes(p->reshard_bytes, changes, arena);
    close_beaten(&r, time_s, arena);
    return r;
}

// --- One pass

typedef struct {
    int32_t before, strategy;
} Node;

typedef struct {
    const LayerwiseProblem *problem;
    int level;                      // strategies up to it
    double limit_bytes;             // without that of the level
    double threshold_s;             // nothing slower is wanted; without level_s
    int64_t max_states;             // of one pass
    LayerwiseRest rests[NUM_RESTS]; // bounds of what follows
    int num_rests;
    double *least_saved; // [num_layers + 1] whatever follows needs so much above what is held
    Node *nodes;
    int64_t num_nodes, node_capacity;
    LayerwiseFrontier *now, *next; // [num_layouts]
    LayerwiseFrontier arrivals, shifted, merged, swap;
    LayerwiseStairs stairs;
    bool gave_up;
    Arena arena;
} Pass;

// Whether nothing within threshold and limit comes of a prefix: before a layer that runs in this
// layout, or (arrived is false) whatever layout that layer has.
static bool is_hopeless(const Pass *pass, const LayerwiseState *state, int layer, int layout,
                        bool arrived) {
    const int at = layer * pass->problem->num_layouts + layout;
    for (int i = 0; i < pass->num_rests; i++) {
        const LayerwiseRest *rest = &pass->rests[i];
        const double *held = arrived ? rest->held_in : rest->held;
        const double *most = arrived ? rest->most_in : rest->most;
        double allowed = rest->bytes_weight * pass->limit_bytes;
        if (rest->time_weight > 0)
            allowed += rest->time_weight * (pass->threshold_s - state->time_s);
        if (layer <= rest->peak_at && rest->bytes_weight * state->held_bytes + held[at] > allowed)
            return true;
        if (rest->bytes_weight * state->most_bytes + most[at] > allowed) return true;
    }
    return false;
}

// Appends a layer to all prefixes that arrive in its layout. What a prefix has needed so far does
// not matter where all that may follow needs more: then it is raised to that, so that fewer differ.
static void layer_shift(Pass *pass, int layer, int strategy) {
    const LayerwiseProblem *p = pass->problem;
    const int i = layer * p->num_strategies + strategy;
    const double lasts = p->lasts_bytes[i], saved = p->saved_bytes[i], peak = p->peak_bytes[i];
    frontier_clear(&pass->shifted);
    for (size_t k = 0; k < pass->arrivals.num_states; k++) {
        LayerwiseState state = pass->arrivals.states[k];
        state.time_s += p->time_s[i];
        if (state.time_s > pass->threshold_s) break;
        state.most_bytes = lasts + fmax(state.most_bytes, state.held_bytes + peak);
        state.held_bytes += lasts + saved;
        state.most_bytes = fmax(state.most_bytes, state.held_bytes + pass->least_saved[layer + 1]);
        state.strategy = strategy;
        if (!is_hopeless(pass, &state, layer + 1, p->layout[strategy], false))
            frontier_append(&pass->shifted, state, &pass->arena);
    }
}

static void frontier_swap(LayerwiseFrontier *a, LayerwiseFrontier *b) {
    const LayerwiseFrontier swap = *a;
    *a = *b;
    *b = swap;
}

// The prefixes of the layer before as they arrive in a layout.
static void arrivals_build(Pass *pass, int layer, int layout) {
    const LayerwiseProblem *p = pass->problem;
    frontier_clear(&pass->arrivals);
    if (layer == 0) {
        frontier_append(&pass->arrivals, (LayerwiseState){.before = -1}, &pass->arena);
        return;
    }
    for (int from = 0; from < p->num_layouts; from++) {
        const LayerwiseFrontier *source = &pass->now[from];
        const int change = from * p->num_layouts + layout;
        frontier_clear(&pass->shifted);
        for (size_t k = 0; k < source->num_states; k++) {
            LayerwiseState state = source->states[k];
            state.time_s += p->reshard_s[change];
            state.held_bytes += p->reshard_bytes[change];
            state.most_bytes += p->reshard_bytes[change];
            if (!is_hopeless(pass, &state, layer, layout, true))
                frontier_append(&pass->shifted, state, &pass->arena);
        }
        if (pass->shifted.num_states == 0) continue;
        frontier_merge(&pass->arrivals, &pass->shifted, &pass->stairs, &pass->swap, &pass->arena);
        frontier_swap(&pass->arrivals, &pass->swap);
    }
}

static int32_t node_add(Pass *pass, const LayerwiseState *state) {
    if (pass->num_nodes == pass->node_capacity) {
        pass->node_capacity = pass->node_capacity ? 2 * pass->node_capacity : 4096;
        pass->nodes = arena_grow(&pass->arena, pass->nodes,
                                 (size_t)pass->node_capacity * sizeof *pass->nodes);
    }
    pass->nodes[pass->num_nodes] = (Node){state->before, state->strategy};
    return (int32_t)pass->num_nodes++;
}

// All prefixes that end in this layer, by the layout of its result.
static void layer_pass(Pass *pass, int layer) {
    const LayerwiseProblem *p = pass->problem;
    for (int layout = 0; layout < p->num_layouts && !pass->gave_up; layout++) {
        frontier_clear(&pass->merged);
        arrivals_build(pass, layer, layout);
        for (int s = 0; s < p->num_strategies; s++) {
            const int i = layer * p->num_strategies + s;
            if (p->layout[s] != layout || p->level[i] > pass->level || !isfinite(p->time_s[i]))
                continue;
            layer_shift(pass, layer, s);
            if (pass->shifted.num_states == 0) continue;
            frontier_merge(&pass->merged, &pass->shifted, &pass->stairs, &pass->swap, &pass->arena);
            frontier_swap(&pass->merged, &pass->swap);
        }
        for (size_t k = 0; k < pass->merged.num_states; k++) {
            LayerwiseState *state = &pass->merged.states[k];
            state->before = node_add(pass, state);
        }
        frontier_swap(&pass->merged, &pass->next[layout]);
        pass->gave_up = pass->num_nodes > pass->max_states;
    }
    LayerwiseFrontier *swap = pass->now;
    pass->now = pass->next;
    pass->next = swap;
}

// The fastest whole chain; false where there is none.
static bool path_take(const Pass *pass, int *strategy) {
    const LayerwiseProblem *p = pass->problem;
    const LayerwiseState *best = NULL;
    for (int c = 0; c < p->num_layouts; c++)
        if (pass->now[c].num_states > 0 && (!best || pass->now[c].states[0].time_s < best->time_s))
            best = &pass->now[c].states[0];
    if (!best) return false;
    int32_t node = best->before;
    for (int l = p->num_layers - 1; l >= 0; l--) {
        strategy[l] = pass->nodes[node].strategy;
        node = pass->nodes[node].before;
    }
    return true;
}

// least_saved[l]: layers from l on need at least so much above what is held before them.
static void least_saved_build(Pass *pass) {
    const LayerwiseProblem *p = pass->problem;
    pass->least_saved = ARENA_ARRAY(&pass->arena, p->num_layers + 1, double);
    for (int l = p->num_layers - 1; l >= 0; l--) {
        double least = INFINITY;
        for (int s = 0; s < p->num_strategies; s++) {
            const int i = l * p->num_strategies + s;
            if (p->level[i] > pass->level || !isfinite(p->time_s[i])) continue;
            least =
                fmin(least, fmax(p->peak_bytes[i], p->saved_bytes[i] + pass->least_saved[l + 1]));
        }
        pass->least_saved[l] = least;
    }
}

static void rest_add(Pass *pass, double time_weight, double bytes_weight, int peak_at) {
    pass->rests[pass->num_rests++] = layerwise_rest(pass->problem, pass->level, time_weight,
                                                    bytes_weight, peak_at, &pass->arena);
}

static void pass_init(Pass *pass, const LayerwiseDual *dual) {
    const int num = pass->problem->num_layouts;
    pass->now = ARENA_ARRAY(&pass->arena, num, LayerwiseFrontier);
    pass->next = ARENA_ARRAY(&pass->arena, num, LayerwiseFrontier);
    least_saved_build(pass);
    const double multiplier = dual->multiplier_s_per_byte;
    if (multiplier > 0) rest_add(pass, 1, multiplier, dual->peak_at);
    rest_add(pass, 0, 1, dual->peak_at);
    if (isinf(pass->threshold_s)) return;
    rest_add(pass, 1, 0, dual->peak_at);
    if (multiplier == 0) return;
    rest_add(pass, 1, multiplier * 1.3, dual->peak_at);
    rest_add(pass, 1, multiplier / 1.3, dual->peak_at);
}

// --- The search of the best plan

typedef struct {
    const LayerwiseProblem *problem; // rounded
    int64_t max_states;
    LayerwiseAnswer answer;
    int *strategy; // the best known
    int *scratch;
    LayerwiseDual dual; // of the last level that was looked into
} Solver;

static void plan_offer(Solver *s, const int *strategy) {
    const double time_s = layerwise_time_s(s->problem, strategy);
    if (s->answer.feasible && time_s >= s->answer.time_s) return;
    if (layerwise_memory_bytes(s->problem, strategy) > s->problem->limit_bytes) return;
    s->answer.feasible = true;
    s->answer.time_s = time_s;
    memcpy(s->strategy, strategy, (size_t)s->problem->num_layers * sizeof *strategy);
}

// Runs the program with one threshold (seconds, without level_s).
//   returns  whether it went through: then a plan within the threshold was offered, or there is
//            none
static bool pass_run(Solver *s, int level, const LayerwiseDual *dual, double threshold_s) {
    Pass pass = {.problem = s->problem, .level = level, .max_states = s->max_states};
    pass.limit_bytes = s->problem->limit_bytes - s->problem->level_bytes[level];
    pass.threshold_s = threshold_s;
    pass_init(&pass, dual);
    for (int l = 0; l < s->problem->num_layers && !pass.gave_up; l++) layer_pass(&pass, l);
    if (!pass.gave_up && path_take(&pass, s->scratch)) plan_offer(s, s->scratch);
    s->answer.num_states += pass.num_nodes;
    const bool whole = !pass.gave_up;
    arena_free(&pass.arena);
    return whole;
}

// A plan that needs the least memory, where one fits: the same program, in which time is nothing.
static void least_memory(Solver *s, int level) {
    const LayerwiseProblem *timed = s->problem;
    const int cells = timed->num_layers * timed->num_strategies;
    Arena scratch = {0};
    LayerwiseProblem timeless = *timed;
    double *time_s = ARENA_ARRAY(&scratch, cells, double);
    for (int i = 0; i < cells; i++) time_s[i] = isfinite(timed->time_s[i]) ? 0 : INFINITY;
    timeless.time_s = time_s;
    timeless.reshard_s = ARENA_ARRAY(&scratch, timed->num_layouts * timed->num_layouts, double);
    Solver memory = {.problem = &timeless, .max_states = s->max_states, .scratch = s->scratch};
    memory.strategy = ARENA_ARRAY(&scratch, timed->num_layers, int);
    const LayerwiseDual any = {.peak_at = timed->num_layers - 1};
    pass_run(&memory, level, &any, INFINITY);
    s->answer.num_states += memory.answer.num_states;
    if (memory.answer.feasible) plan_offer(s, memory.strategy);
    arena_free(&scratch);
}

// The fastest plan of strategies up to a level, if it is faster than the best known.
static void level_solve(Solver *s, int level) {
    const double level_s = s->problem->level_s[level];
    // A multiplier that served another level may already prove that this one has nothing faster.
    const double known_s = layerwise_bound_s(s->problem, level, &s->dual) + level_s;
    if (s->answer.feasible && known_s >= s->answer.time_s * (1 - SAME_FRAC)) return;
    Arena scratch = {0};
    int *path = ARENA_ARRAY(&scratch, s->problem->num_layers, int);
    const LayerwiseDual dual = layerwise_dual(s->problem, level, &scratch, path);
    s->dual = dual;
    if (dual.fits) plan_offer(s, path);
    if (!dual.fits) least_memory(s, level);
    const double bound_s = dual.bound_s + level_s;
    double step_s = s->answer.feasible ? (s->answer.time_s - bound_s) * FIRST_STEP_FRAC : 0;
    // Nothing of this level fits; or it has nothing faster.
    bool proven = !s->answer.feasible || s->answer.time_s <= bound_s * (1 + SAME_FRAC);
    double proven_s = bound_s;
    while (!proven) {
        const double best_s = s->answer.time_s;
        const double goal_s = fmin(best_s, bound_s + fmax(step_s, SAME_FRAC * best_s));
        if (!pass_run(s, level, &dual, (goal_s - level_s) + SAME_FRAC * best_s)) break;
        proven_s = goal_s;
        proven = s->answer.time_s <= goal_s * (1 + SAME_FRAC);
        step_s *= THRESHOLD_STEPS;
    }
    if (!proven) {
        s->answer.optimal = false;
        s->answer.bound_s = fmin(s->answer.bound_s, proven_s);
    }
    arena_free(&scratch);
}

LayerwiseAnswer layerwise_solve(const LayerwiseProblem *problem, int64_t max_states, Arena *arena) {
    Arena scratch = {0};
    const LayerwiseProblem exact = rounded(problem, &scratch);
    Solver s = {.problem = &exact,
                .max_states = max_states > 0 ? max_states : LAYERWISE_MAX_STATES,
                .answer = {.optimal = true, .bound_s = INFINITY}};
    s.strategy = ARENA_ARRAY(arena, problem->num_layers, int);
    s.scratch = ARENA_ARRAY(&scratch, problem->num_layers, int);
    s.dual.peak_at = problem->num_layers - 1;
    for (int level = problem->num_levels - 1; level >= 0; level--) level_solve(&s, level);
    LayerwiseAnswer answer = s.answer;
    answer.strategy = s.strategy;
    if (answer.feasible) {
        answer.time_s = layerwise_time_s(problem, s.strategy);
        answer.memory_bytes = layerwise_memory_bytes(problem, s.strategy);
    }
    answer.bound_s = answer.optimal ? answer.time_s : fmin(answer.bound_s, answer.time_s);
    arena_free(&scratch);
    return answer;
}

// --- Order

// A layer's part of the problem is that of the one before.
static bool layers_are_alike(const LayerwiseProblem *p, int layer) {
    const double *const rows[] = {p->time_s, p->lasts_bytes, p->saved_bytes, p->peak_bytes};
    const size_t n = (size_t)p->num_strategies, from = (size_t)(layer - 1) * n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (memcmp(&rows[i][from], &rows[i][from + n], n * sizeof(double)) != 0) return false;
    return memcmp(&p->level[from], &p->level[from + n], n * sizeof(int)) == 0;
}

// Insertion sort by saved bytes, then by number, of layers in [first, end).
static void run_sort(const LayerwiseProblem *p, int first, int end, int *strategy) {
    const double *saved = &p->saved_bytes[first * p->num_strategies];
    for (int i = first + 1; i < end; i++) {
        const int own = strategy[i];
        int j = i;
        for (; j > first; j--) {
            const int other = strategy[j - 1];
            if (saved[other] < saved[own] || (saved[other] == saved[own] && other <= own)) break;
            strategy[j] = other;
        }
        strategy[j] = own;
    }
}

void layerwise_tidy(const LayerwiseProblem *p, int *strategy) {
    Arena scratch = {0};
    int *tidy = ARENA_ARRAY(&scratch, p->num_layers, int);
    memcpy(tidy, strategy, (size_t)p->num_layers * sizeof *tidy);
    for (int first = 0, end; first < p->num_layers; first = end) {
        for (end = first + 1; end < p->num_layers; end++)
            if (!layers_are_alike(p, end) || p->layout[strategy[end]] != p->layout[strategy[first]])
                break;
        run_sort(p, first, end, tidy);
    }
    if (layerwise_memory_bytes(p, tidy) <=
            fmax(p->limit_bytes, layerwise_memory_bytes(p, strategy)) &&
        layerwise_time_s(p, tidy) <= layerwise_time_s(p, strategy) * (1 + SAME_FRAC))
        memcpy(strategy, tidy, (size_t)p->num_layers * sizeof *tidy);
    arena_free(&scratch);
}
