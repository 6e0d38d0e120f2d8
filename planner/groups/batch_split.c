#include "planner/groups/batch_split.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MORE_TRIES = 2 };

typedef struct {
    const BatchProblem *problem;
    double *known_s;     // [num_groups][num_units + 1] NAN: not asked yet
    int *units, *before; // [num_groups]
} Split;

static Status time_of(Split *split, int group, int units, double *time_s) {
    const BatchProblem *p = split->problem;
    double *known_s = &split->known_s[group * (p->num_units + 1) + units];
    if (isnan(*known_s)) TRY(p->time(p->context, group, units, known_s));
    *time_s = *known_s;
    return status_ok();
}

// One unit to each, the others by speed, what is left over to the fastest.
static void split_begin(Split *split) {
    const BatchProblem *p = split->problem;
    double sum = 0;
    int left = p->num_units, fastest = 0;
    for (int g = 0; g < p->num_groups; g++) sum += p->speed[g];
    for (int g = 0; g < p->num_groups; g++) {
        const double share = (p->num_units - p->num_groups) * p->speed[g] / sum;
        split->units[g] = 1 + (int)floor(share);
        left -= split->units[g];
        if (p->speed[g] > p->speed[fastest]) fastest = g;
    }
    split->units[fastest] += left;
}

static Status slowest_find(Split *split, int *slowest, double *most_s) {
    *slowest = -1;
    for (int g = 0; g < split->problem->num_groups; g++) {
        double time_s;
        TRY(time_of(split, g, split->units[g], &time_s));
        if (*slowest >= 0 && time_s <= *most_s) continue;
        *slowest = g;
        *most_s = time_s;
    }
    return status_ok();
}

// Gives `num` units to groups other than `from` that then all take less than most_s: the fewest
// that one can take at a time, to the one that ends first with them.
static Status units_give(Split *split, int from, int num, double most_s, bool *given) {
    const int num_groups = split->problem->num_groups;
    for (int left = num; left > 0;) {
        int to = -1, size = 0;
        double least_s = most_s;
        for (int step = 1; step <= left && to < 0; step++) {
            for (int g = 0; g < num_groups; g++) {
                double time_s;
                if (g == from) continue;
                TRY(time_of(split, g, split->units[g] + step, &time_s));
                if (time_s >= least_s) continue;
                to = g;
                size = step;
                least_s = time_s;
            }
        }
        *given = to >= 0;
        if (!*given) return status_ok();
        split->units[to] += size;
        left -= size;
    }
    return status_ok();
}

// Takes as many units from the slowest group as it must lose to take less, or some more.
static Status slowest_relieve(Split *split, int slowest, double most_s, bool *relieved) {
    const int num_groups = split->problem->num_groups, had = split->units[slowest];
    *relieved = false;
    for (int num = 1, tries = 0; num < had && tries <= MORE_TRIES; num++) {
        double left_s;
        TRY(time_of(split, slowest, had - num, &left_s));
        if (!(left_s < most_s)) continue;
        tries++;
        memcpy(split->before, split->units, (size_t)num_groups * sizeof *split->before);
        TRY(units_give(split, slowest, num, most_s, relieved));
        if (*relieved) {
            split->units[slowest] -= num;
            return status_ok();
        }
        memcpy(split->units, split->before, (size_t)num_groups * sizeof *split->before);
    }
    return status_ok();
}

// Gives the slowest group a few units of another, where it takes less for more.
static Status slowest_load(Split *split, int slowest, double most_s, bool *relieved) {
    const BatchProblem *p = split->problem;
    *relieved = false;
    for (int num = 1; num <= MORE_TRIES; num++) {
        double more_s, left_s;
        if (split->units[slowest] + num > p->num_units) break;
        TRY(time_of(split, slowest, split->units[slowest] + num, &more_s));
        if (!(more_s < most_s)) continue;
        for (int g = 0; g < p->num_groups; g++) {
            if (g == slowest || split->units[g] <= num) continue;
            TRY(time_of(split, g, split->units[g] - num, &left_s));
            if (!(left_s < most_s)) continue;
            split->units[slowest] += num;
            split->units[g] -= num;
            *relieved = true;
            return status_ok();
        }
    }
    return status_ok();
}

Status batch_split(const BatchProblem *problem, Arena *arena, const int **units, double *time_s) {
    const int num_known = problem->num_groups * (problem->num_units + 1);
    Split split = {problem, ARENA_ARRAY(arena, num_known, double),
                   ARENA_ARRAY(arena, problem->num_groups, int),
                   ARENA_ARRAY(arena, problem->num_groups, int)};
    for (int i = 0; i < num_known; i++) split.known_s[i] = NAN;
    split_begin(&split);
    for (bool relieved = true; relieved;) {
        int slowest;
        TRY(slowest_find(&split, &slowest, time_s));
        TRY(slowest_relieve(&split, slowest, *time_s, &relieved));
        if (!relieved) TRY(slowest_load(&split, slowest, *time_s, &relieved));
    }
    *units = split.units;
    return status_ok();
}
