#include "planner/lengths/lengths_schedule.h"

#include "planner/lengths/lengths_bound.h"
#include "planner/lengths/lengths_round.h"

#include <math.h>
#include <string.h>

// More rounds are tried until so many numbers of them, one after the other, did not help.
enum { MOST_VAIN_ROUNDS = 3 };

// Groups looked at for a sequence that improving may cost: of the cuts, then of the moves. About a
// second each.
static const double MOST_LOOKS = 1e8;

// Cuts that are so much slower than another schedule are not worth moves.
static const double HOPELESS = 1.15;

typedef struct {
    const LengthsProblem *problem;
    int only_size; // or LENGTHS_ANY_SIZE
    LengthsRounder rounder;
    int num_sequences;
    int *counts; // [num_buckets] of the round looked at
    int *layout; // [num_sizes] of it
    int *start;  // [num_sizes]
    Arena scratch;
} Scheduler;

static void looks_grant(Scheduler *s) {
    s->rounder.end_looks = s->rounder.num_looks + MOST_LOOKS;
}

static bool may_look(const Scheduler *s) {
    return s->rounder.num_looks < s->rounder.end_looks;
}

// --- One round

// How many of each bucket stand between two places of the list of all sequences, longest first.
static void counts_between(Scheduler *s, int from, int to) {
    int first = 0;
    for (int i = 0; i < s->problem->num_buckets; i++) {
        const int last = first + s->problem->buckets[i].num_sequences;
        const int low = from > first ? from : first, high = to < last ? to : last;
        s->counts[i] = high > low ? high - low : 0;
        first = last;
    }
}

static void layout_of_one_size(const LengthsProblem *p, int size, int *layout) {
    memset(layout, 0, (size_t)p->num_sizes * sizeof *layout);
    layout[size] = p->num_places / p->sizes[size].size;
}

// Rounds the program's packs down, once they fill all places, and fills what is left with the
// largest groups that go into it.
static void layout_of_bound(const LengthsProblem *p, const LengthsBound *bound, int *layout) {
    double places = 0;
    for (int d = 0; d < p->num_sizes; d++) places += p->sizes[d].size * bound->packs[d];
    int left = p->num_places;
    for (int d = 0; d < p->num_sizes; d++) {
        layout[d] = places > 0 ? (int)(bound->packs[d] * p->num_places / places) : 0;
        left -= layout[d] * p->sizes[d].size;
    }
    for (int d = p->num_sizes - 1; d >= 0; d--)
        for (; p->sizes[d].size <= left; left -= p->sizes[d].size) layout[d]++;
}

static void layout_try(Scheduler *s, double *best_s) {
    const double time_s = lengths_layout_improve(&s->rounder, s->counts, s->start);
    if (time_s >= *best_s) return;
    *best_s = time_s;
    memcpy(s->layout, s->start, (size_t)s->problem->num_sizes * sizeof *s->layout);
}

// The best round of what s->counts hold; its layout is left in s->layout.
//   near  a layout to start from; NULL: that of the linear program
static double round_solve(Scheduler *s, const int *near) {
    const LengthsProblem *p = s->problem;
    if (s->only_size != LENGTHS_ANY_SIZE) {
        layout_of_one_size(p, s->only_size, s->layout);
        return lengths_layout_s(&s->rounder, s->layout, s->counts);
    }
    double best_s = INFINITY, even_s = INFINITY;
    int even = p->num_sizes - 1;
    for (int d = 0; d < p->num_sizes; d++) {
        layout_of_one_size(p, d, s->start);
        const double time_s = lengths_layout_s(&s->rounder, s->start, s->counts);
        if (time_s >= even_s) continue;
        even_s = time_s;
        even = d;
    }
    layout_of_one_size(p, even, s->start);
    layout_try(s, &best_s);
    if (near) {
        memcpy(s->start, near, (size_t)p->num_sizes * sizeof *near);
    } else {
        arena_reset(&s->scratch);
        const LengthsBound bound = lengths_bound(p, s->counts, &s->scratch);
        layout_of_bound(p, &bound, s->start);
    }
    layout_try(s, &best_s);
    return best_s;
}

static double round_between(Scheduler *s, int from, int to) {
    if (from == to) return 0;
    counts_between(s, from, to);
    return round_solve(s, NULL);
}

// --- Cuts

// What a round should have an equal share of.
typedef enum { SHARE_TOKENS, SHARE_WORK, NUM_SHARES } Share;

// Of one sequence.
static double share_of(const Scheduler *s, int bucket, Share share) {
    const LengthsProblem *p = s->problem;
    if (share == SHARE_TOKENS) return (double)p->buckets[bucket].length;
    double least_s = INFINITY;
    for (int d = 0; d < p->num_sizes; d++)
        if (s->only_size == LENGTHS_ANY_SIZE || s->only_size == d)
            least_s = fmin(least_s, p->sizes[d].size * p->sizes[d].sequence_s[bucket]);
    return least_s;
}

// Cuts where an equal share of the whole is reached.
//   cuts  [num_rounds + 1]
static void cuts_set(const Scheduler *s, Share share, int num_rounds, int *cuts) {
    const LengthsProblem *p = s->problem;
    double all = 0, sum = 0;
    for (int i = 0; i < p->num_buckets; i++)
        all += p->buckets[i].num_sequences * share_of(s, i, share);
    int sequence = 0, cut = 1;
    cuts[0] = 0;
    for (int i = 0; i < p->num_buckets; i++)
        for (int k = 0; k < p->buckets[i].num_sequences; k++) {
            sum += share_of(s, i, share);
            sequence++;
            while (cut < num_rounds && sum >= all * cut / num_rounds) cuts[cut++] = sequence;
        }
    while (cut <= num_rounds) cuts[cut++] = s->num_sequences;
}

static double cuts_s(Scheduler *s, const int *cuts, int num_rounds) {
    double time_s = 0;
    for (int m = 0; m < num_rounds && isfinite(time_s); m++)
        time_s += round_between(s, cuts[m], cuts[m + 1]);
    return time_s;
}

// Moves cut m by `by` sequences where that makes the two rounds beside it shorter.
static bool cut_move(Scheduler *s, int *cuts, int m, int by, double *pair_s) {
    const int moved = cuts[m] + by;
    if (moved < cuts[m - 1] || moved > cuts[m + 1]) return false;
    const double time_s =
        round_between(s, cuts[m - 1], moved) + round_between(s, moved, cuts[m + 1]);
    if (!(time_s < *pair_s * (1 - 1e-9))) return false;
    *pair_s = time_s;
    cuts[m] = moved;
    return true;
}

static void cuts_improve(Scheduler *s, int *cuts, int num_rounds) {
    for (int by = (s->num_sequences + 3) / 4; by > 0; by /= 2)
        for (int m = 1; m < num_rounds && may_look(s); m++) {
            double pair_s =
                round_between(s, cuts[m - 1], cuts[m]) + round_between(s, cuts[m], cuts[m + 1]);
            while (cut_move(s, cuts, m, by, &pair_s) || cut_move(s, cuts, m, -by, &pair_s)) {
            }
        }
}

// The best cuts found; returns the number of rounds, 0 for none.
static int cuts_search(Scheduler *s, Arena *arena, int **best_cuts, double *cuts_time_s) {
    double best_s = INFINITY;
    int best = 0, vain = 0;
    counts_between(s, 0, s->num_sequences);
    const int fewest = lengths_fewest_rounds(s->problem, s->counts);
    for (int n = fewest; n <= s->num_sequences && vain < MOST_VAIN_ROUNDS; n++) {
        bool improved = false;
        if (best > 0 && !may_look(s)) break;
        for (int share = 0; share < NUM_SHARES; share++) {
            int *cuts = ARENA_ARRAY(arena, n + 1, int);
            cuts_set(s, (Share)share, n, cuts);
            const double time_s = cuts_s(s, cuts, n);
            if (!(time_s < best_s)) continue;
            best_s = time_s;
            best = n;
            *best_cuts = cuts;
            improved = true;
        }
        vain = improved || best == 0 ? 0 : vain + 1;
    }
    *cuts_time_s = best_s;
    return best;
}

// --- Moves between rounds

// One round by what it holds.
typedef struct {
    int *counts; // [num_buckets]
    int *layout; // [num_sizes]
    double time_s;
} Held;

typedef struct {
    Held *held; // [num_rounds]
    int num_rounds;
    Held from, to; // of a move that is tried
} Rounds;

static Held held_new(const LengthsProblem *p, Arena *arena) {
    return (Held){.counts = ARENA_ARRAY(arena, p->num_buckets, int),
                  .layout = ARENA_ARRAY(arena, p->num_sizes, int)};
}

// What the round just solved holds.
static void held_set(const Scheduler *s, double time_s, Held *held) {
    memcpy(held->counts, s->counts, (size_t)s->problem->num_buckets * sizeof *s->counts);
    memcpy(held->layout, s->layout, (size_t)s->problem->num_sizes * sizeof *s->layout);
    held->time_s = time_s;
}

static Rounds rounds_new(const LengthsProblem *p, int num_rounds, Arena *arena) {
    return (Rounds){.held = ARENA_ARRAY(arena, num_rounds, Held),
                    .from = held_new(p, arena),
                    .to = held_new(p, arena)};
}

static Rounds rounds_of(Scheduler *s, const int *cuts, int num_rounds, Arena *arena) {
    const LengthsProblem *p = s->problem;
    Rounds rounds = rounds_new(p, num_rounds, arena);
    for (int m = 0; m < num_rounds; m++) {
        if (cuts[m] == cuts[m + 1]) continue;
        Held *held = &rounds.held[rounds.num_rounds++];
        *held = held_new(p, arena);
        held_set(s, round_between(s, cuts[m], cuts[m + 1]), held);
    }
    return rounds;
}

// The rounds of a schedule, their layouts improved.
static Rounds rounds_from(Scheduler *s, const LengthsSchedule *schedule, Arena *arena) {
    const LengthsProblem *p = s->problem;
    Rounds rounds = rounds_new(p, schedule->num_rounds, arena);
    for (int m = 0; m < schedule->num_rounds; m++) {
        const LengthsRound *round = &schedule->rounds[m];
        Held *held = &rounds.held[rounds.num_rounds++];
        *held = held_new(p, arena);
        memset(s->counts, 0, (size_t)p->num_buckets * sizeof *s->counts);
        for (int g = 0; g < round->num_groups; g++) {
            held->layout[round->groups[g].size]++;
            for (int i = 0; i < p->num_buckets; i++) s->counts[i] += round->groups[g].counts[i];
        }
        held_set(s, round_solve(s, held->layout), held);
    }
    return rounds;
}

// A round with `count` more sequences of a bucket than before.
static void held_change(Scheduler *s, const Held *before, int bucket, int count, Held *out) {
    int num_sequences = 0;
    memcpy(s->counts, before->counts, (size_t)s->problem->num_buckets * sizeof *s->counts);
    s->counts[bucket] += count;
    for (int i = 0; i < s->problem->num_buckets; i++) num_sequences += s->counts[i];
    const double time_s = num_sequences > 0 ? round_solve(s, before->layout) : 0;
    held_set(s, time_s, out);
}

static void held_swap(Held *a, Held *b) {
    const Held kept = *a;
    *a = *b;
    *b = kept;
}

// Moves sequences of a bucket to another round; keeps that where both rounds together get shorter.
static bool sequences_move(Scheduler *s, Rounds *rounds, int from, int to, int bucket, int count) {
    Held *giver = &rounds->held[from], *taker = &rounds->held[to];
    const double limit_s = (giver->time_s + taker->time_s) * (1 - 1e-9);
    held_change(s, taker, bucket, count, &rounds->to);
    if (rounds->to.time_s >= limit_s) return false;
    held_change(s, giver, bucket, -count, &rounds->from);
    if (rounds->to.time_s + rounds->from.time_s >= limit_s) return false;
    held_swap(giver, &rounds->from);
    held_swap(taker, &rounds->to);
    return true;
}

static void rounds_improve(Scheduler *s, Rounds *rounds) {
    for (bool improved = true; improved;) {
        improved = false;
        for (int from = 0; from < rounds->num_rounds; from++)
            for (int to = 0; to < rounds->num_rounds; to++)
                for (int i = 0; i < s->problem->num_buckets && from != to; i++)
                    for (int count = rounds->held[from].counts[i]; count > 0; count /= 2) {
                        if (!may_look(s)) return;
                        if (count <= rounds->held[from].counts[i])
                            improved |= sequences_move(s, rounds, from, to, i, count);
                    }
    }
}

// --- The schedule

static bool fits(const LengthsProblem *p, int only_size) {
    for (int i = 0; i < p->num_buckets; i++) {
        bool any = p->buckets[i].num_sequences == 0;
        for (int d = 0; d < p->num_sizes; d++)
            if (only_size == LENGTHS_ANY_SIZE || only_size == d)
                any |= isfinite(p->sizes[d].sequence_s[i]);
        if (!any) return false;
    }
    return true;
}

// Groups of different sizes meet at the end of the step: the slowest end counts.
static double schedule_step_s(const LengthsProblem *p, const LengthsSchedule *schedule) {
    double step_s = 0, rounds_s = 0;
    for (int m = 0; m < schedule->num_rounds; m++) {
        const LengthsRound *round = &schedule->rounds[m];
        rounds_s += round->time_s;
        for (int g = 0; g < round->num_groups; g++)
            step_s = fmax(step_s, p->sizes[round->groups[g].size].step_s);
    }
    return rounds_s + step_s;
}

static LengthsSchedule schedule_build(Scheduler *s, const Rounds *from, Arena *arena) {
    LengthsRound *rounds = ARENA_ARRAY(arena, from->num_rounds, LengthsRound);
    LengthsSchedule out = {.rounds = rounds};
    for (int m = 0; m < from->num_rounds; m++) {
        const Held *held = &from->held[m];
        if (held->time_s == 0) continue; // it has given all its sequences away
        rounds[out.num_rounds++] =
            lengths_round_build(&s->rounder, held->layout, held->counts, arena);
    }
    out.step_time_s = schedule_step_s(s->problem, &out);
    return out;
}

static LengthsSchedule rounds_finish(Scheduler *s, Rounds *rounds, Arena *arena) {
    looks_grant(s);
    rounds_improve(s, rounds);
    return schedule_build(s, rounds, arena);
}

// The better of what the cuts and another schedule can be improved to.
static LengthsSchedule cuts_finish(Scheduler *s, int *cuts, int num_rounds,
                                   const LengthsSchedule *from, Arena *arena) {
    Arena work = {0};
    cuts_improve(s, cuts, num_rounds);
    Rounds rounds = rounds_of(s, cuts, num_rounds, &work);
    LengthsSchedule out = rounds_finish(s, &rounds, arena);
    if (from && from->num_rounds > 0) {
        looks_grant(s);
        Rounds others = rounds_from(s, from, &work);
        const LengthsSchedule other = rounds_finish(s, &others, arena);
        if (other.step_time_s < out.step_time_s) out = other;
    }
    arena_free(&work);
    return out;
}

LengthsSchedule lengths_schedule(const LengthsProblem *problem, int size, double limit_s,
                                 const LengthsSchedule *from, Arena *arena) {
    LengthsSchedule out = {.step_time_s = INFINITY};
    if (!fits(problem, size)) return out;
    Arena work = {0};
    Scheduler s = {
        .problem = problem,
        .only_size = size,
        .rounder = lengths_rounder(problem, &work),
        .counts = ARENA_ARRAY(&work, problem->num_buckets, int),
        .layout = ARENA_ARRAY(&work, problem->num_sizes, int),
        .start = ARENA_ARRAY(&work, problem->num_sizes, int),
    };
    for (int i = 0; i < problem->num_buckets; i++)
        s.num_sequences += problem->buckets[i].num_sequences;
    int *cuts = NULL;
    double cuts_time_s;
    looks_grant(&s);
    const int num_rounds = cuts_search(&s, &work, &cuts, &cuts_time_s);
    if (num_rounds > 0 && cuts_time_s < HOPELESS * limit_s) {
        out = cuts_finish(&s, cuts, num_rounds, from, arena);
    } else if (num_rounds > 0) {
        const Rounds rounds = rounds_of(&s, cuts, num_rounds, &work);
        out = schedule_build(&s, &rounds, arena);
    }
    arena_free(&s.scratch);
    arena_free(&work);
    return out;
}
