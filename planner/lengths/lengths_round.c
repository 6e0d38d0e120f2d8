#include "planner/lengths/lengths_round.h"

#include <math.h>
#include <string.h>

double lengths_alone_s(const LengthsSize *size, int bucket) {
    return fmax(size->floor_s, size->fixed_s + size->sequence_s[bucket]);
}

LengthsRounder lengths_rounder(const LengthsProblem *problem, Arena *arena) {
    return (LengthsRounder){
        .problem = problem,
        .tokens = ARENA_ARRAY(arena, problem->num_places, double),
        .work_s = ARENA_ARRAY(arena, problem->num_places, double),
        .size = ARENA_ARRAY(arena, problem->num_places, int),
        .heap = ARENA_ARRAY(arena, problem->num_places, int),
        .first = ARENA_ARRAY(arena, problem->num_sizes + 1, int),
        .layout = ARENA_ARRAY(arena, problem->num_sizes, int),
        .trial = ARENA_ARRAY(arena, problem->num_sizes, int),
        .end_looks = INFINITY,
    };
}

// Empty groups, largest first.
static int groups_set(LengthsRounder *r, const int *layout) {
    const int num_sizes = r->problem->num_sizes;
    int num_groups = 0;
    for (int s = num_sizes - 1; s >= 0; s--) {
        r->first[num_sizes - 1 - s] = num_groups;
        for (int k = 0; k < layout[s]; k++) {
            r->size[num_groups] = s;
            r->heap[num_groups] = num_groups;
            r->tokens[num_groups] = r->work_s[num_groups] = 0;
            num_groups++;
        }
    }
    r->first[num_sizes] = num_groups;
    return num_groups;
}

static bool holds_more(const LengthsRounder *r, int g, int bucket) {
    const LengthsSize *size = &r->problem->sizes[r->size[g]];
    return r->tokens[g] + size->tokens[bucket] <= size->capacity_tokens;
}

// Of one size's heap the place of the group with the least work that has room; -1 for none. It is
// the top but where memory is nearly full.
static int heap_find(LengthsRounder *r, int first, int end, int bucket) {
    r->num_looks++;
    if (first == end || holds_more(r, r->heap[first], bucket)) return first == end ? -1 : first;
    int best = -1;
    for (int at = first + 1; at < end; at++) {
        if (!holds_more(r, r->heap[at], bucket)) continue;
        const int g = r->heap[at], kept = best < 0 ? g : r->heap[best];
        if (best < 0 || r->work_s[g] < r->work_s[kept] ||
            (r->work_s[g] == r->work_s[kept] && g < kept))
            best = at;
    }
    r->num_looks += end - first;
    return best;
}

static bool comes_first(const LengthsRounder *r, int a, int b) {
    return r->work_s[a] < r->work_s[b] || (r->work_s[a] == r->work_s[b] && a < b);
}

// A group has more work than before: it sinks.
static void heap_sink(LengthsRounder *r, int first, int end, int at) {
    for (;;) {
        int child = first + 2 * (at - first) + 1;
        if (child >= end) return;
        if (child + 1 < end && comes_first(r, r->heap[child + 1], r->heap[child])) child++;
        if (!comes_first(r, r->heap[child], r->heap[at])) return;
        const int g = r->heap[at];
        r->heap[at] = r->heap[child];
        r->heap[child] = g;
        at = child;
    }
}

// Adds a sequence to the group that ends first with it.
//   returns  the group; -1 where none has room for it
static int sequence_add(LengthsRounder *r, int bucket) {
    const LengthsProblem *p = r->problem;
    int best = -1, best_heap = 0;
    double best_s = INFINITY;
    for (int h = 0; h < p->num_sizes; h++) {
        const int at = heap_find(r, r->first[h], r->first[h + 1], bucket);
        if (at < 0) continue;
        const LengthsSize *size = &p->sizes[r->size[r->heap[at]]];
        const double end_s = size->fixed_s + r->work_s[r->heap[at]] + size->sequence_s[bucket];
        if (end_s >= best_s) continue;
        best_s = end_s;
        best = at;
        best_heap = h;
    }
    if (best < 0) return -1;
    const int g = r->heap[best];
    const LengthsSize *size = &p->sizes[r->size[g]];
    r->tokens[g] += size->tokens[bucket];
    r->work_s[g] += size->sequence_s[bucket];
    heap_sink(r, r->first[best_heap], r->first[best_heap + 1], best);
    return g;
}

static double group_s(const LengthsRounder *r, int g) {
    const LengthsSize *size = &r->problem->sizes[r->size[g]];
    return r->tokens[g] > 0 ? fmax(size->floor_s, size->fixed_s + r->work_s[g]) : 0;
}

// Packs the groups; packs[g][bucket] counts them where it is not NULL.
static double groups_pack(LengthsRounder *r, int num_groups, const int *counts, int **packs) {
    const LengthsProblem *p = r->problem;
    for (int i = 0; i < p->num_buckets; i++)
        for (int k = 0; k < counts[i]; k++) {
            const int g = sequence_add(r, i);
            if (g < 0) return INFINITY;
            if (packs) packs[g][i]++;
        }
    double time_s = 0;
    for (int g = 0; g < num_groups; g++) time_s = fmax(time_s, group_s(r, g));
    return time_s;
}

double lengths_layout_s(LengthsRounder *r, const int *layout, const int *counts) {
    return groups_pack(r, groups_set(r, layout), counts, NULL);
}

// Tries `times` groups of size a for as many places of size b; keeps what is shorter.
static bool exchange_try(LengthsRounder *r, const int *counts, int a, int b, int times,
                         double *time_s) {
    const LengthsProblem *p = r->problem;
    const int size_a = p->sizes[a].size, size_b = p->sizes[b].size;
    int give = times, take = times;
    if (size_a > size_b)
        take *= size_a / size_b;
    else
        give *= size_b / size_a;
    if (give > r->layout[a]) return false;
    memcpy(r->trial, r->layout, (size_t)p->num_sizes * sizeof *r->trial);
    r->trial[a] -= give;
    r->trial[b] += take;
    const double trial_s = lengths_layout_s(r, r->trial, counts);
    // A difference in the last digits is no gain, and might never end.
    if (!(trial_s < *time_s * (1 - 1e-12))) return false;
    *time_s = trial_s;
    int *kept = r->layout;
    r->layout = r->trial;
    r->trial = kept;
    return true;
}

static bool divides(int a, int b) {
    return a > b ? a % b == 0 : b % a == 0;
}

double lengths_layout_improve(LengthsRounder *r, const int *counts, int *layout) {
    const LengthsProblem *p = r->problem;
    memcpy(r->layout, layout, (size_t)p->num_sizes * sizeof *layout);
    double time_s = lengths_layout_s(r, r->layout, counts);
    for (bool improved = true; improved && r->num_looks < r->end_looks;) {
        improved = false;
        for (int a = 0; a < p->num_sizes; a++)
            for (int b = 0; b < p->num_sizes && r->num_looks < r->end_looks; b++) {
                if (a == b || !divides(p->sizes[a].size, p->sizes[b].size)) continue;
                for (int times = 1; times <= r->layout[a]; times *= 2)
                    improved |= exchange_try(r, counts, a, b, times, &time_s);
            }
    }
    memcpy(layout, r->layout, (size_t)p->num_sizes * sizeof *layout);
    return time_s;
}

LengthsRound lengths_round_build(LengthsRounder *r, const int *layout, const int *counts,
                                 Arena *arena) {
    const LengthsProblem *p = r->problem;
    const int num_groups = groups_set(r, layout);
    int **packs = ARENA_ARRAY(arena, num_groups, int *);
    for (int g = 0; g < num_groups; g++) packs[g] = ARENA_ARRAY(arena, p->num_buckets, int);
    LengthsGroup *groups = ARENA_ARRAY(arena, num_groups, LengthsGroup);
    const double time_s = groups_pack(r, num_groups, counts, packs);
    for (int g = 0; g < num_groups; g++)
        groups[g] = (LengthsGroup){.size = r->size[g], .counts = packs[g], .time_s = group_s(r, g)};
    return (LengthsRound){.groups = groups, .num_groups = num_groups, .time_s = time_s};
}
