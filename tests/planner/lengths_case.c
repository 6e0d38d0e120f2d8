#include "tests/planner/lengths_case.h"

#include <CUnit/CUnit.h>
#include <math.h>

// Knuth's linear congruential generator (TAOCP 2, 3.3.4); the high bits.
static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

LengthsProblem lengths_case(int number, int most_sequences, Arena *arena) {
    uint64_t state = (uint64_t)number * 977 + 5;
    draw(&state);
    const int num_buckets = 1 + (int)(draw(&state) * LENGTHS_CASE_BUCKETS);
    LengthBucket *buckets = ARENA_ARRAY(arena, num_buckets, LengthBucket);
    int left = most_sequences;
    for (int i = 0; i < num_buckets; i++) {
        buckets[i].length = (int64_t)((100 + 100 * draw(&state)) / (1 << i));
        buckets[i].num_sequences = 1 + (int)(draw(&state) * (left - num_buckets + i));
        left -= buckets[i].num_sequences;
    }
    LengthsSize *sizes = ARENA_ARRAY(arena, LENGTHS_CASE_SIZES, LengthsSize);
    const double per_place = 120 + 90 * draw(&state), fixed_s = 0.3 * draw(&state);
    for (int d = 0; d < LENGTHS_CASE_SIZES; d++) {
        double *sequence_s = ARENA_ARRAY(arena, num_buckets, double);
        double *tokens = ARENA_ARRAY(arena, num_buckets, double);
        sizes[d] = (LengthsSize){.size = 1 << d,
                                 .fixed_s = fixed_s,
                                 .floor_s = 2 * fixed_s,
                                 .capacity_tokens = per_place * (1 << d),
                                 .sequence_s = sequence_s,
                                 .tokens = tokens};
        for (int i = 0; i < num_buckets; i++) {
            const double length = (double)buckets[i].length / 100;
            tokens[i] = (double)buckets[i].length;
            sequence_s[i] = (length + length * length) / sizes[d].size * (1 + 0.1 * d);
            if (tokens[i] > sizes[d].capacity_tokens) sequence_s[i] = INFINITY;
        }
    }
    return (LengthsProblem){.num_places = 4,
                            .sizes = sizes,
                            .num_sizes = LENGTHS_CASE_SIZES,
                            .buckets = buckets,
                            .num_buckets = num_buckets};
}

const int *lengths_case_counts(const LengthsProblem *p, Arena *arena) {
    int *counts = ARENA_ARRAY(arena, p->num_buckets, int);
    for (int i = 0; i < p->num_buckets; i++) counts[i] = p->buckets[i].num_sequences;
    return counts;
}

static void group_check(const LengthsProblem *p, const LengthsGroup *group, int *left) {
    const LengthsSize *size = &p->sizes[group->size];
    double tokens = 0, time_s = size->fixed_s;
    for (int i = 0; i < p->num_buckets; i++) {
        if (group->counts[i] == 0) continue;
        left[i] -= group->counts[i];
        tokens += group->counts[i] * size->tokens[i];
        time_s += group->counts[i] * size->sequence_s[i];
    }
    CU_ASSERT_TRUE(tokens <= size->capacity_tokens);
    CU_ASSERT_DOUBLE_EQUAL(group->time_s, tokens > 0 ? fmax(size->floor_s, time_s) : 0, 1e-9);
}

void lengths_case_check(const LengthsProblem *p, const LengthsSchedule *schedule) {
    Arena arena = {0};
    int *left = ARENA_ARRAY(&arena, p->num_buckets, int);
    for (int i = 0; i < p->num_buckets; i++) left[i] = p->buckets[i].num_sequences;
    double rounds_s = 0, step_s = 0;
    for (int m = 0; m < schedule->num_rounds; m++) {
        const LengthsRound *round = &schedule->rounds[m];
        int places = 0;
        double longest_s = 0;
        for (int g = 0; g < round->num_groups; g++) {
            const LengthsSize *size = &p->sizes[round->groups[g].size];
            group_check(p, &round->groups[g], left);
            places += size->size;
            longest_s = fmax(longest_s, round->groups[g].time_s);
            step_s = fmax(step_s, size->step_s);
        }
        CU_ASSERT_EQUAL(places, p->num_places);
        CU_ASSERT_DOUBLE_EQUAL(round->time_s, longest_s, 1e-9);
        rounds_s += round->time_s;
    }
    for (int i = 0; i < p->num_buckets; i++) CU_ASSERT_EQUAL(left[i], 0);
    CU_ASSERT_DOUBLE_EQUAL(schedule->step_time_s, rounds_s + step_s, 1e-9);
    arena_free(&arena);
}
