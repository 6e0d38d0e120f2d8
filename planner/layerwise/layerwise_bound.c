#include "planner/layerwise/layerwise_bound.h"

#include <math.h>
#include <string.h>

enum { NUM_HALVINGS = 48 };

// fmin is a call; neither is ever NAN here.
static inline double lesser(double a, double b) {
    return a < b ? a : b;
}

// Cost of a layer in the account of what is held.
static double held_bytes(const LayerwiseProblem *p, int layer, int s, int peak_at) {
    const int i = layer * p->num_strategies + s;
    double bytes = p->lasts_bytes[i];
    if (layer < peak_at) bytes += p->saved_bytes[i];
    if (layer == peak_at) bytes += p->peak_bytes[i];
    return bytes;
}

static bool is_open(const LayerwiseProblem *p, int layer, int s, int level) {
    const int i = layer * p->num_strategies + s;
    return p->level[i] <= level && isfinite(p->time_s[i]);
}

// The cheapest strategy of a layer in each layout, with what follows.
static void layer_best(const LayerwiseProblem *p, int level, const LayerwiseRest *rest, int layer,
                       double *held, double *most, int *which) {
    for (int c = 0; c < p->num_layouts; c++) held[c] = most[c] = INFINITY;
    for (int s = 0; s < p->num_strategies; s++) {
        if (!is_open(p, layer, s, level)) continue;
        const int i = layer * p->num_strategies + s, c = p->layout[s];
        const int after = (layer + 1) * p->num_layouts + c;
        // A plan's time is not asked for where its weight is 0.
        const double time = rest->time_weight * p->time_s[i];
        const double h =
            time + rest->bytes_weight * held_bytes(p, layer, s, rest->peak_at) + rest->held[after];
        const double m = time + rest->bytes_weight * p->lasts_bytes[i] + rest->most[after];
        if (h < held[c] && which) which[c] = s;
        held[c] = lesser(held[c], h);
        most[c] = lesser(most[c], m);
    }
}

static double change_cost(const LayerwiseProblem *p, const LayerwiseRest *rest, int from, int to) {
    const int i = from * p->num_layouts + to;
    return rest->time_weight * p->reshard_s[i] + rest->bytes_weight * p->reshard_bytes[i];
}

LayerwiseRest layerwise_rest(const LayerwiseProblem *p, int level, double time_weight,
                             double bytes_weight, int peak_at, Arena *arena) {
    const int num = p->num_layouts;
    LayerwiseRest rest = {
        .time_weight = time_weight, .bytes_weight = bytes_weight, .peak_at = peak_at};
    rest.held = ARENA_ARRAY(arena, (p->num_layers + 1) * num, double);
    rest.most = ARENA_ARRAY(arena, (p->num_layers + 1) * num, double);
    rest.held_in = ARENA_ARRAY(arena, p->num_layers * num, double);
    rest.most_in = ARENA_ARRAY(arena, p->num_layers * num, double);
    for (int layer = p->num_layers - 1; layer >= 0; layer--) {
        double *held = &rest.held_in[layer * num], *most = &rest.most_in[layer * num];
        layer_best(p, level, &rest, layer, held, most, NULL);
        for (int from = 0; from < num; from++) {
            double *h = &rest.held[layer * num + from], *m = &rest.most[layer * num + from];
            *h = *m = INFINITY;
            for (int to = 0; to < num; to++) {
                const double cost = layer > 0 ? change_cost(p, &rest, from, to) : 0;
                *h = lesser(*h, cost + held[to]);
                *m = lesser(*m, cost + most[to]);
            }
        }
    }
    return rest;
}

void layerwise_rest_path(const LayerwiseProblem *p, int level, const LayerwiseRest *rest,
                         int *strategy) {
    Arena scratch = {0};
    double *held = ARENA_ARRAY(&scratch, p->num_layouts, double);
    double *most = ARENA_ARRAY(&scratch, p->num_layouts, double);
    int *which = ARENA_ARRAY(&scratch, p->num_layouts, int);
    for (int layer = 0, from = 0; layer < p->num_layers; layer++) {
        layer_best(p, level, rest, layer, held, most, which);
        double least = INFINITY;
        for (int to = 0; to < p->num_layouts; to++) {
            const double cost = (layer > 0 ? change_cost(p, rest, from, to) : 0) + held[to];
            if (cost >= least) continue;
            least = cost;
            strategy[layer] = which[to];
        }
        from = p->layout[strategy[layer]];
    }
    arena_free(&scratch);
}

// Bytes of a path in the relaxed account.
static double path_bytes(const LayerwiseProblem *p, const int *strategy, int peak_at) {
    double bytes = 0;
    for (int l = 0; l < p->num_layers; l++) {
        bytes += held_bytes(p, l, strategy[l], peak_at);
        if (l > 0)
            bytes += p->reshard_bytes[p->layout[strategy[l - 1]] * p->num_layouts +
                                      p->layout[strategy[l]]];
    }
    return bytes;
}

// The layer at which a path needs the most.
static int path_peak_at(const LayerwiseProblem *p, const int *strategy) {
    double before = 0, most = -1;
    int at = p->num_layers - 1;
    for (int l = 0; l < p->num_layers; l++) {
        const int i = l * p->num_strategies + strategy[l];
        if (before + p->peak_bytes[i] >= most) {
            most = before + p->peak_bytes[i];
            at = l;
        }
        before += p->saved_bytes[i];
    }
    return at;
}

typedef struct {
    const LayerwiseProblem *problem;
    int level;
    double limit_bytes; // without that of the level
    int *path;          // [num_layers] scratch
    int *strategy;      // the fastest path that fits
    double strategy_s;
    LayerwiseDual *out;
} DualSearch;

// Bound of one multiplier; what its path needs of the relaxed memory.
static void multiplier_try(DualSearch *d, double multiplier, double *needed_bytes) {
    const LayerwiseProblem *p = d->problem;
    Arena scratch = {0};
    const LayerwiseRest rest =
        layerwise_rest(p, d->level, 1, multiplier, d->out->peak_at, &scratch);
    const double bound_s = rest.held[0] - multiplier * d->limit_bytes;
    if (isfinite(bound_s)) layerwise_rest_path(p, d->level, &rest, d->path);
    arena_free(&scratch);
    *needed_bytes = INFINITY;
    if (!isfinite(bound_s)) return;
    *needed_bytes = path_bytes(p, d->path, d->out->peak_at);
    if (bound_s > d->out->bound_s) {
        d->out->bound_s = bound_s;
        d->out->multiplier_s_per_byte = multiplier;
    }
    const double time_s = layerwise_time_s(p, d->path);
    if (time_s < d->strategy_s && layerwise_memory_bytes(p, d->path) <= p->limit_bytes) {
        d->strategy_s = time_s;
        d->out->fits = true;
        memcpy(d->strategy, d->path, (size_t)p->num_layers * sizeof *d->path);
    }
}

// The bound is concave in the multiplier, and the path's memory over the limit is its slope.
static void multiplier_search(DualSearch *d) {
    double needed, low = 0, high;
    multiplier_try(d, 0, &needed);
    if (needed <= d->limit_bytes || !isfinite(needed)) return;
    // One at which the whole time weighs as much as a thousandth of the limit.
    high = fmax(1e-30, d->out->bound_s / d->problem->limit_bytes * 1e-3);
    for (int i = 0; i < NUM_HALVINGS; i++, high *= 4) {
        multiplier_try(d, high, &needed);
        if (needed <= d->limit_bytes) break;
        low = high;
    }
    for (int i = 0; i < NUM_HALVINGS && high - low > 1e-6 * high; i++) {
        const double middle = (low + high) / 2;
        multiplier_try(d, middle, &needed);
        if (needed <= d->limit_bytes)
            high = middle;
        else
            low = middle;
    }
}

LayerwiseDual layerwise_dual(const LayerwiseProblem *p, int level, Arena *arena, int *strategy) {
    LayerwiseDual best = {0};
    DualSearch d = {.problem = p,
                    .level = level,
                    .limit_bytes = p->limit_bytes - p->level_bytes[level],
                    .path = ARENA_ARRAY(arena, p->num_layers, int),
                    .strategy = strategy,
                    .strategy_s = INFINITY};
    int peak_at = p->num_layers - 1;
    for (int round = 0; round < 2; round++) {
        LayerwiseDual dual = {.bound_s = -INFINITY, .peak_at = peak_at, .fits = best.fits};
        d.out = &dual;
        multiplier_search(&d);
        if (!isfinite(dual.bound_s)) dual.bound_s = INFINITY; // no strategy for some layer
        if (round == 0 || dual.bound_s > best.bound_s) best = dual;
        best.fits = dual.fits;
        const int at = isfinite(dual.bound_s) ? path_peak_at(p, d.path) : peak_at;
        if (at == peak_at) break;
        peak_at = at;
    }
    return best;
}

double layerwise_bound_s(const LayerwiseProblem *p, int level, const LayerwiseDual *dual) {
    Arena scratch = {0};
    const LayerwiseRest rest =
        layerwise_rest(p, level, 1, dual->multiplier_s_per_byte, dual->peak_at, &scratch);
    const double bound_s =
        rest.held[0] - dual->multiplier_s_per_byte * (p->limit_bytes - p->level_bytes[level]);
    arena_free(&scratch);
    return bound_s;
}
