#include "whatif/rays.h"

#include "base/quantity.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A plan takes so much longer at the slowest point of a segment than at its fastest, at most: the
// wider, the fewer segments, and the more configurations stay open in each.
static const double WIDTH_FRAC = 0.015;

enum { MIN_POINTS = 4 }; // of a ray, and of a segment: a list takes longer than a search

// Paths along which no plan changes but in the time it takes, and that only one way.
static const struct {
    const char *path;
    bool more_is_faster;
} RAY_PATHS[] = {
    {"cluster.scale_out.nic_bytes_per_s", true},
    {"cluster.scale_up.socket_bytes_per_s", true},
    {"cluster.scale_out.oversubscription", false},
    {"cluster.price_usd_per_gpu_hour", true}, // the same time
};

typedef struct Segment {
    struct Segment *next;
    int first, last; // ranks
    Shortlist *list; // NULL: its points are searched
    Arena arena;     // of the scenario of the list
} Segment;

typedef struct {
    Segment *segments;
    bool is_building;
} Ray;

struct Rays {
    const Grid *grid;
    int num_values;
    int64_t stride; // between the points of a ray
    int *rank_of;   // [num_values] the value's place, the fastest first
    int *value_at;  // [num_values] the value at a place
    Ray *rays;      // [num_points / num_values]
    int64_t num_rays;
    pthread_mutex_t mutex; // of the rays
    Arena arena;
};

// --- The axis

// Whether the path of an axis is one of these: with more speed the greater or the smaller values.
static bool path_find(const char *path, bool *more_is_faster) {
    for (size_t i = 0; i < sizeof RAY_PATHS / sizeof *RAY_PATHS; i++) {
        if (strcmp(path, RAY_PATHS[i].path) != 0) continue;
        *more_is_faster = RAY_PATHS[i].more_is_faster;
        return true;
    }
    return false;
}

static bool value_read(const WhatifAxis *axis, int i, double *out) {
    const cJSON *value = axis->values[i];
    char why[512];
    if (cJSON_IsNumber(value)) *out = value->valuedouble;
    if (cJSON_IsNumber(value)) return true;
    const char *text = cJSON_GetStringValue(value), *key = strrchr(axis->path, '.');
    return text && quantity_parse(text, quantity_of_key(key + 1), out, why, sizeof why);
}

// The axis with the most values of those along which links only get slower; -1: there is none.
static int axis_find(const Grid *grid, bool *more_is_faster) {
    int found = -1;
    for (int i = 0; i < grid->num_axes; i++) {
        const WhatifAxis *axis = &grid->axes[i];
        bool more, all = axis->num_values >= MIN_POINTS && path_find(axis->path, &more);
        double value;
        for (int v = 0; v < axis->num_values && all; v++) all = value_read(axis, v, &value);
        if (!all || (found >= 0 && axis->num_values <= grid->axes[found].num_values)) continue;
        found = i;
        *more_is_faster = more;
    }
    return found;
}

typedef struct {
    double slowness;
    int value;
} ValueRank;

static int compare_values(const void *a, const void *b) {
    const ValueRank *x = a, *y = b;
    if (x->slowness != y->slowness) return x->slowness < y->slowness ? -1 : 1;
    return x->value - y->value;
}

static void ranks_set(Rays *rays, const WhatifAxis *axis, bool more_is_faster) {
    const int n = axis->num_values;
    ValueRank *ranks = ARENA_ARRAY(&rays->arena, n, ValueRank);
    for (int i = 0; i < n; i++) {
        double value = 0;
        value_read(axis, i, &value);
        ranks[i] = (ValueRank){more_is_faster ? -value : value, i};
    }
    qsort(ranks, (size_t)n, sizeof *ranks, compare_values);
    rays->num_values = n;
    rays->rank_of = ARENA_ARRAY(&rays->arena, n, int);
    rays->value_at = ARENA_ARRAY(&rays->arena, n, int);
    for (int i = 0; i < n; i++) {
        rays->value_at[i] = ranks[i].value;
        rays->rank_of[ranks[i].value] = i;
    }
}

Rays *rays_new(const Grid *grid, int64_t num_points) {
    const PlannerOptions *planner = &grid->planner;
    bool more_is_faster = true;
    const int axis = axis_find(grid, &more_is_faster);
    if (axis < 0 || !grid->replan || planner->objective != OBJECTIVE_THROUGHPUT ||
        planner->robust || planner->exhaustive || planner->top != 1)
        return NULL;
    Rays *rays = calloc(1, sizeof *rays);
    if (!rays) return NULL;
    rays->grid = grid;
    rays->stride = 1;
    for (int i = axis + 1; i < grid->num_axes; i++) rays->stride *= grid->axes[i].num_values;
    ranks_set(rays, &grid->axes[axis], more_is_faster);
    rays->num_rays = num_points / rays->num_values;
    rays->rays = ARENA_ARRAY(&rays->arena, rays->num_rays, Ray);
    pthread_mutex_init(&rays->mutex, NULL);
    return rays;
}

static void segment_free(Segment *segment) {
    shortlist_free(segment->list);
    arena_free(&segment->arena);
    free(segment);
}

void rays_free(Rays *rays) {
    if (!rays) return;
    for (int64_t i = 0; i < rays->num_rays; i++)
        for (Segment *segment = rays->rays[i].segments, *next; segment; segment = next) {
            next = segment->next;
            segment_free(segment);
        }
    pthread_mutex_destroy(&rays->mutex);
    arena_free(&rays->arena);
    free(rays);
}

// --- A segment

// A point of the ray, and a plan whose time along it is known.
typedef struct {
    const Rays *rays;
    int64_t start; // index of the ray's point with the first value
    const WhatifPoint *like;
    Arena scratch;
} Walk;

static int64_t index_at(const Walk *walk, int rank) {
    return walk->start + walk->rays->value_at[rank] * walk->rays->stride;
}

// What the plan takes at a place; 0 where it cannot run there.
static double step_at(Walk *walk, int rank) {
    const Grid *grid = walk->rays->grid;
    Scenario scenario;
    const char *key;
    arena_reset(&walk->scratch);
    if (point_scenario(grid, index_at(walk, rank), &walk->scratch, &scenario, &key).code !=
        STATUS_OK)
        return 0;
    return point_known_step_s(grid, &scenario, walk->like, &walk->scratch);
}

// From `inside` towards `end`, the last place at which the plan takes at least, or at most, what
// the segment's width allows beside step_s.
static int last_inside(Walk *walk, int inside, int end, double step_s) {
    const bool to_faster = end < inside;
    for (int outside = to_faster ? end - 1 : end + 1; abs(outside - inside) > 1;) {
        const int middle = inside + (outside - inside) / 2;
        const double there_s = step_at(walk, middle);
        const bool is_inside = there_s > 0 && (to_faster ? there_s * (1 + WIDTH_FRAC) >= step_s
                                                         : there_s <= step_s * (1 + WIDTH_FRAC));
        if (is_inside)
            inside = middle;
        else
            outside = middle;
    }
    return inside;
}

static void list_make(const Walk *walk, Segment *segment, double limit_s) {
    const Grid *grid = walk->rays->grid;
    Scenario *scenario = ARENA_NEW(&segment->arena, Scenario);
    PriceSource *prices = ARENA_NEW(&segment->arena, PriceSource);
    PlannerOptions options = grid->planner;
    const int64_t index = index_at(walk, segment->first);
    if (point_scenario(grid, index, &segment->arena, scenario, &prices->key).code != STATUS_OK)
        return;
    scenario->num_disturb = 0;
    prices->shelf = grid->prices;
    prices->num_gpus = scenario->cluster.num_gpus;
    if (scenario->cluster.network.sites || scenario->cluster.network.order ||
        cluster_total_gpus(&scenario->cluster) != scenario->cluster.num_gpus)
        return;
    if (grid->prices) options.prices = prices;
    segment->list = shortlist_new(scenario, &options, limit_s);
}

// The segment around a place, inside of what no other has.
static Segment *segment_make(Walk *walk, int place, int first, int last, double step_s) {
    Segment *segment = calloc(1, sizeof *segment);
    if (!segment) return NULL;
    const int fastest = last_inside(walk, place, first, step_s);
    const double fastest_s = fastest == place ? step_s : step_at(walk, fastest);
    const int slowest = last_inside(walk, place, last, fastest_s);
    const double slowest_s = slowest == place ? step_s : step_at(walk, slowest);
    segment->first = fastest;
    segment->last = slowest;
    if (slowest - fastest + 1 >= MIN_POINTS && slowest_s > 0)
        list_make(walk, segment, fmax(slowest_s, step_s));
    return segment;
}

Shortlist *rays_list(Rays *rays, int64_t index, const WhatifPoint *like, double step_s) {
    const int64_t n = rays->num_values, outer = index / (rays->stride * n);
    const int value = (int)(index / rays->stride % n), place = rays->rank_of[value];
    Walk walk = {.rays = rays, .start = index - value * rays->stride, .like = like};
    Ray *ray = &rays->rays[outer * rays->stride + index % rays->stride];
    int first = 0, last = (int)n - 1;
    pthread_mutex_lock(&rays->mutex);
    for (const Segment *s = ray->segments; s; s = s->next) {
        if (s->first <= place && place <= s->last) {
            pthread_mutex_unlock(&rays->mutex);
            return s->list;
        }
        if (s->last < place && s->last >= first) first = s->last + 1;
        if (s->first > place && s->first <= last) last = s->first - 1;
    }
    const bool is_mine = !ray->is_building && like;
    ray->is_building |= is_mine;
    pthread_mutex_unlock(&rays->mutex);
    if (!is_mine) return NULL;
    Segment *segment = segment_make(&walk, place, first, last, step_s);
    arena_free(&walk.scratch);
    pthread_mutex_lock(&rays->mutex);
    ray->is_building = false;
    if (segment) segment->next = ray->segments;
    if (segment) ray->segments = segment;
    pthread_mutex_unlock(&rays->mutex);
    return segment ? segment->list : NULL;
}
