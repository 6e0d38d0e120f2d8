#include "planner/questions/nondominated.h"

#include <math.h>
#include <string.h>

static const double ROUNDING_FRAC = 1e-9;

void nondominated_free(Nondominated *set) {
    arena_free(&set->arena);
    *set = (Nondominated){0};
}

static bool point_covers(const Point *a, const Point *b, int num_axes) {
    for (int k = 0; k < num_axes; k++)
        if (a->value[k] > b->value[k] * (1 + ROUNDING_FRAC)) return false;
    return true;
}

bool nondominated_covers(const Nondominated *set, const Point *point) {
    for (int i = 0; i < set->num_items; i++)
        if (point_covers(&set->items[i].point, point, set->num_axes)) return true;
    return false;
}

static void set_grow(Nondominated *set) {
    if (set->num_items < set->capacity) return;
    set->capacity = set->capacity ? 2 * set->capacity : 64;
    FrontierItem *grown = ARENA_ARRAY(&set->arena, set->capacity, FrontierItem);
    if (set->num_items) memcpy(grown, set->items, (size_t)set->num_items * sizeof *grown);
    set->items = grown;
}

bool nondominated_add(Nondominated *set, const FrontierItem *item) {
    if (nondominated_covers(set, &item->point)) return false;
    int kept = 0;
    for (int i = 0; i < set->num_items; i++)
        if (!point_covers(&item->point, &set->items[i].point, set->num_axes))
            set->items[kept++] = set->items[i];
    set->num_items = kept;
    set_grow(set);
    set->items[set->num_items++] = *item;
    return true;
}

double nondominated_gap_frac(const Nondominated *set, const Point *point) {
    double least = 1;
    for (int i = 0; i < set->num_items; i++) {
        double most = 0;
        for (int k = 0; k < set->num_axes; k++)
            most = fmax(most, 1 - point->value[k] / set->items[i].point.value[k]);
        least = fmin(least, most);
    }
    return least;
}
