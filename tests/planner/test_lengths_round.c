#include "planner/lengths/lengths_round.h"

#include "planner/lengths/lengths_bound.h"
#include "tests/planner/lengths_case.h"

#include <CUnit/CUnit.h>
#include <glpk.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUM_CASES = 200, MOST_SEQUENCES = 7, MOST_GROUPS = 7, REFEREE_SECONDS = 20 };

// --- The least round by trying everything

typedef struct {
    const LengthsProblem *problem;
    int size[MOST_GROUPS];
    double tokens[MOST_GROUPS], work_s[MOST_GROUPS];
    int num_groups;
} Brute;

// Sequence `k` of bucket `i` and all after it.
static double brute_sequences(Brute *b, int i, int k) {
    const LengthsProblem *p = b->problem;
    if (i == p->num_buckets) {
        double time_s = 0;
        for (int g = 0; g < b->num_groups; g++)
            if (b->tokens[g] > 0)
                time_s = fmax(time_s, fmax(p->sizes[b->size[g]].floor_s,
                                           p->sizes[b->size[g]].fixed_s + b->work_s[g]));
        return time_s;
    }
    if (k == p->buckets[i].num_sequences) return brute_sequences(b, i + 1, 0);
    double best_s = INFINITY;
    for (int g = 0; g < b->num_groups; g++) {
        const LengthsSize *size = &p->sizes[b->size[g]];
        const double tokens = b->tokens[g], work_s = b->work_s[g];
        if (tokens + size->tokens[i] > size->capacity_tokens) continue;
        b->tokens[g] += size->tokens[i];
        b->work_s[g] += size->sequence_s[i];
        best_s = fmin(best_s, brute_sequences(b, i, k + 1));
        b->tokens[g] = tokens;
        b->work_s[g] = work_s;
    }
    return best_s;
}

// Over all layouts of the places that are left.
static double brute_layouts(Brute *b, int size, int places) {
    if (size < 0) return places == 0 ? brute_sequences(b, 0, 0) : INFINITY;
    double best_s = brute_layouts(b, size - 1, places);
    const int width = b->problem->sizes[size].size;
    for (int k = 1; k * width <= places; k++) {
        b->size[b->num_groups++] = size;
        best_s = fmin(best_s, brute_layouts(b, size - 1, places - k * width));
    }
    b->num_groups -= places / width;
    return best_s;
}

static double brute_force(const LengthsProblem *p) {
    Brute brute = {.problem = p};
    return brute_layouts(&brute, p->num_sizes - 1, p->num_places);
}

// --- The referee: FlexSP's integer program, solved by GLPK in a child process

// Wang et al. 2025, section 4.1: group j of all that could stand, 4 of 1 place, 2 of 2, 1 of 4.
//   minimise C
//   sum over j of A[i][j]                                 = n[i]
//   sum over i of tokens[i][j] A[i][j]                   <= capacity[j] m[j]
//   fixed[j] m[j] + sum over i of sequence[i][j] A[i][j] <= C,   floor[j] m[j] <= C
//   sum over j of size[j] m[j]                           <= places
// A are whole numbers, m is 0 or 1.
typedef struct {
    glp_prob *lp;
    int size[MOST_GROUPS], num_groups;
} Referee;

static int column_of(const Referee *r, int bucket, int group) {
    return 2 + r->num_groups + bucket * r->num_groups + group;
}

static void row_add(const Referee *r, int type, double bound, int length, const int *columns,
                    const double *values) {
    const int row = glp_add_rows(r->lp, 1);
    glp_set_row_bnds(r->lp, row, type, bound, bound);
    glp_set_mat_row(r->lp, row, length, columns, values);
}

static void referee_group(const Referee *r, const LengthsProblem *p, int group) {
    const LengthsSize *size = &p->sizes[r->size[group]];
    int columns[3 + LENGTHS_CASE_BUCKETS] = {0, 2 + group}, length = 1;
    double values[3 + LENGTHS_CASE_BUCKETS] = {0, -size->capacity_tokens};
    for (int i = 0; i < p->num_buckets; i++) {
        columns[++length] = column_of(r, i, group);
        values[length] = size->tokens[i];
    }
    row_add(r, GLP_UP, 0, length, columns, values);
    values[1] = size->fixed_s;
    for (int i = 0; i < p->num_buckets; i++)
        values[2 + i] = isfinite(size->sequence_s[i]) ? size->sequence_s[i] : 0;
    columns[++length] = 1;
    values[length] = -1;
    row_add(r, GLP_UP, 0, length, columns, values);
    row_add(r, GLP_UP, 0, 2, (int[]){0, 2 + group, 1}, (double[]){0, size->floor_s, -1});
}

static double referee_solve(const LengthsProblem *p) {
    glp_term_out(GLP_OFF);
    Referee r = {.lp = glp_create_prob()};
    for (int d = 0; d < p->num_sizes; d++)
        for (int k = 0; k < p->num_places / p->sizes[d].size; k++) r.size[r.num_groups++] = d;
    glp_add_cols(r.lp, 1 + r.num_groups * (1 + p->num_buckets));
    glp_set_obj_coef(r.lp, 1, 1);
    glp_set_col_bnds(r.lp, 1, GLP_LO, 0, 0);
    int columns[1 + MOST_GROUPS];
    double values[1 + MOST_GROUPS];
    for (int g = 0; g < r.num_groups; g++) {
        columns[1 + g] = 2 + g;
        values[1 + g] = p->sizes[r.size[g]].size;
        glp_set_col_kind(r.lp, 2 + g, GLP_BV);
        for (int i = 0; i < p->num_buckets; i++) {
            const bool fits = isfinite(p->sizes[r.size[g]].sequence_s[i]);
            glp_set_col_kind(r.lp, column_of(&r, i, g), GLP_IV);
            glp_set_col_bnds(r.lp, column_of(&r, i, g), fits ? GLP_LO : GLP_FX, 0, 0);
        }
        referee_group(&r, p, g);
    }
    row_add(&r, GLP_UP, p->num_places, r.num_groups, columns, values);
    for (int i = 0; i < p->num_buckets; i++) {
        for (int g = 0; g < r.num_groups; g++) {
            columns[1 + g] = column_of(&r, i, g);
            values[1 + g] = 1;
        }
        row_add(&r, GLP_FX, p->buckets[i].num_sequences, r.num_groups, columns, values);
    }
    glp_iocp options;
    glp_init_iocp(&options);
    options.presolve = GLP_ON;
    const int failed = glp_intopt(r.lp, &options);
    const int status = glp_mip_status(r.lp);
    double least_s = failed == 0 && status == GLP_OPT ? glp_mip_obj_val(r.lp) : -1;
    if (failed == GLP_ENOPFS || (failed == 0 && status == GLP_NOFEAS)) least_s = INFINITY;
    glp_delete_prob(r.lp);
    glp_free_env();
    return least_s;
}

// GLPK's own time limit is not reliable, so the child has an alarm.
//   returns  the least round, INFINITY for none; below 0 where the referee does not know
static double referee(const LengthsProblem *p) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        alarm(REFEREE_SECONDS);
        const double least_s = referee_solve(p);
        _exit(write(ends[1], &least_s, sizeof least_s) == (ssize_t)sizeof least_s ? 0 : 1);
    }
    close(ends[1]);
    double least_s = -1;
    if (read(ends[0], &least_s, sizeof least_s) != (ssize_t)sizeof least_s) least_s = -1;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return least_s;
}

static void flexsps_integer_program_is_the_least_round_of_all(void) {
    int num_fit = 0;
    for (int number = 0; number < NUM_CASES / 5; number++) {
        Arena arena = {0};
        const LengthsProblem p = lengths_case(number, MOST_SEQUENCES, &arena);
        const double least_s = brute_force(&p), referee_s = referee(&p);
        if (isfinite(least_s)) {
            CU_ASSERT_DOUBLE_EQUAL(referee_s, least_s, 1e-6);
            num_fit++;
        } else {
            CU_ASSERT_EQUAL(referee_s, INFINITY);
        }
        arena_free(&arena);
    }
    CU_ASSERT_TRUE(num_fit >= NUM_CASES / 10);
}

// --- Rounds as the planner finds them

// From the layout of the largest groups, and of the smallest.
static double found(const LengthsProblem *p, Arena *arena, int *layout) {
    LengthsRounder rounder = lengths_rounder(p, arena);
    const int *counts = lengths_case_counts(p, arena);
    double best_s = INFINITY;
    for (int d = 0; d < p->num_sizes; d++) {
        int start[LENGTHS_CASE_SIZES] = {0};
        start[d] = p->num_places / p->sizes[d].size;
        const double start_s = lengths_layout_s(&rounder, start, counts);
        const double time_s = lengths_layout_improve(&rounder, counts, start);
        CU_ASSERT_TRUE(time_s <= start_s);
        CU_ASSERT_EQUAL(time_s, lengths_layout_s(&rounder, start, counts));
        if (time_s >= best_s && d > 0) continue;
        best_s = time_s;
        memcpy(layout, start, sizeof start);
    }
    return best_s;
}

static void rounds_found_are_mostly_the_least_and_never_far_from_it(void) {
    int num_fit = 0, num_least = 0;
    for (int number = 0; number < NUM_CASES; number++) {
        Arena arena = {0};
        const LengthsProblem p = lengths_case(number, MOST_SEQUENCES, &arena);
        int layout[LENGTHS_CASE_SIZES];
        const double least_s = brute_force(&p), found_s = found(&p, &arena, layout);
        CU_ASSERT_TRUE(found_s >= least_s * (1 - 1e-9));
        if (isfinite(least_s)) {
            CU_ASSERT_TRUE(found_s <= least_s * 4 / 3);
            num_fit++;
            num_least += found_s <= least_s * (1 + 1e-9);
        }
        arena_free(&arena);
    }
    CU_ASSERT_TRUE(num_fit >= NUM_CASES / 2);
    CU_ASSERT_TRUE(num_least >= 0.95 * num_fit);
}

static void packs_are_those_that_were_priced(void) {
    for (int number = 0; number < NUM_CASES; number++) {
        Arena arena = {0};
        const LengthsProblem p = lengths_case(number, MOST_SEQUENCES, &arena);
        int layout[LENGTHS_CASE_SIZES];
        const double time_s = found(&p, &arena, layout);
        if (isfinite(time_s)) {
            LengthsRounder rounder = lengths_rounder(&p, &arena);
            const LengthsRound round =
                lengths_round_build(&rounder, layout, lengths_case_counts(&p, &arena), &arena);
            CU_ASSERT_EQUAL(round.time_s, time_s);
            const LengthsSchedule schedule = {
                .rounds = &round, .num_rounds = 1, .step_time_s = time_s};
            lengths_case_check(&p, &schedule);
        }
        arena_free(&arena);
    }
}

static void no_round_is_below_the_linear_program(void) {
    double most_frac = 0;
    for (int number = 0; number < NUM_CASES; number++) {
        Arena arena = {0};
        const LengthsProblem p = lengths_case(number, MOST_SEQUENCES, &arena);
        const double bound_s =
            lengths_bound(&p, lengths_case_counts(&p, &arena), &arena).step_time_s;
        const double least_s = brute_force(&p);
        CU_ASSERT_TRUE(bound_s > 0);
        CU_ASSERT_TRUE(bound_s <= least_s);
        if (isfinite(least_s)) most_frac = fmax(most_frac, bound_s / least_s);
        arena_free(&arena);
    }
    CU_ASSERT_TRUE(most_frac > 0.999); // of one of them it says all
}

CU_TestInfo lengths_round_tests[] = {
    {"flexsps_integer_program_is_the_least_round_of_all",
     flexsps_integer_program_is_the_least_round_of_all},
    {"rounds_found_are_mostly_the_least_and_never_far_from_it",
     rounds_found_are_mostly_the_least_and_never_far_from_it},
    {"packs_are_those_that_were_priced", packs_are_those_that_were_priced},
    {"no_round_is_below_the_linear_program", no_round_is_below_the_linear_program},
    CU_TEST_INFO_NULL,
};
