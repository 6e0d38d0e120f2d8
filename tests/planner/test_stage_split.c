// Layers over stages of different machines: the least bound and the splits below a limit, against
// every split and against an integer program that GLPK solves.
#include "planner/stages/stage_split.h"

#include "tests/planner/lp_referee.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LAYERS = 9, MAX_STAGES = 4, NUM_MACHINES = 2 };

typedef struct {
    StageProblem problem;
    StageMachine machines[NUM_MACHINES];
    double device_s[NUM_MACHINES][NUM_PASSES][MAX_LAYERS + 1];
    double host_s[NUM_MACHINES][NUM_PASSES][MAX_LAYERS + 1];
    const StageMachine *of_stage[MAX_STAGES];
    double message_s[MAX_STAGES];
    double tail_s[MAX_LAYERS + 1];
    int most[MAX_STAGES][MAX_LAYERS + 1];
    const int *rows[MAX_STAGES];
} Case;

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

static void machine_draw(Case *c, int m, bool split, double slow, uint64_t *state) {
    StageMachine *machine = &c->machines[m];
    machine->pass_host_s = 0.2 * draw(state);
    for (int pass = 0; pass < (split ? 3 : 2); pass++) {
        double *device_s = c->device_s[m][pass], *host_s = c->host_s[m][pass];
        for (int l = 0; l < c->problem.num_layers; l++) {
            device_s[l + 1] = device_s[l] + slow * (0.5 + draw(state));
            host_s[l + 1] = host_s[l] + 0.8 * draw(state);
        }
        machine->device_s[pass] = device_s;
        machine->host_s[pass] = host_s;
        machine->first_s[pass] = slow * draw(state);
        machine->last_s[pass] = 2 * slow * draw(state);
        machine->last_host_s[pass] = draw(state);
    }
}

static void room_draw(Case *c, uint64_t *state) {
    const StageProblem *p = &c->problem;
    for (int r = 0; r < p->num_stages; r++) {
        const int room = 1 + (int)(draw(state) * p->num_layers);
        for (int l = 0; l <= p->num_layers; l++)
            c->most[r][l] = l + room < p->num_layers ? l + room : p->num_layers;
        c->rows[r] = c->most[r];
    }
}

static void case_draw(int number, Case *c) {
    uint64_t state = (uint64_t)number * 7919 + 11;
    memset(c, 0, sizeof *c);
    draw(&state);
    StageProblem *p = &c->problem;
    p->num_layers = 1 + (int)(draw(&state) * MAX_LAYERS);
    p->num_stages = 2 + (int)(draw(&state) * (MAX_STAGES - 1));
    p->num_microbatches = 1 + floor(8 * draw(&state));
    p->blocking = draw(&state) < 0.5;
    p->together = draw(&state) < 0.8;
    const bool split = draw(&state) < 0.3;
    for (int m = 0; m < NUM_MACHINES; m++) machine_draw(c, m, split, 1 + 2 * m, &state);
    for (int r = 0; r < p->num_stages; r++) {
        c->of_stage[r] = &c->machines[draw(&state) < 0.5];
        c->message_s[r] = draw(&state);
    }
    for (int l = 0; l < p->num_layers; l++) c->tail_s[l + 1] = c->tail_s[l] + 0.3 * draw(&state);
    p->machines = c->of_stage;
    p->message_s = c->message_s;
    if (draw(&state) < 0.5) p->tail_s = c->tail_s;
    if (draw(&state) < 0.5) {
        room_draw(c, &state);
        p->most = c->rows;
    }
}

// --- Every split

typedef struct {
    int layers[MAX_STAGES];
    double bound_s;
} Split;

enum { MAX_SPLITS = 512 };

typedef struct {
    Split splits[MAX_SPLITS];
    int num;
} Splits;

static void every_split(const StageProblem *p, int r, int from, Split *split, Splits *out) {
    const int most = p->most ? p->most[r][from] : p->num_layers;
    if (r == p->num_stages - 1) {
        if (most < p->num_layers) return;
        split->layers[r] = p->num_layers - from;
        split->bound_s = stage_split_bound_s(p, split->layers);
        out->splits[out->num++] = *split;
        return;
    }
    for (int to = from; to <= most; to++) {
        split->layers[r] = to - from;
        every_split(p, r + 1, to, split, out);
    }
}

static double least_of(const Splits *all) {
    double least_s = INFINITY;
    for (int i = 0; i < all->num; i++) least_s = fmin(least_s, all->splits[i].bound_s);
    return least_s;
}

static bool same(double a, double b) {
    return a == b || fabs(a - b) <= 1e-9 * fabs(b);
}

static void no_split_has_a_lower_bound(void) {
    int num_infeasible = 0, num_with_room = 0;
    for (int number = 0; number < 600; number++) {
        Arena arena = {0};
        Case c;
        Splits all = {.num = 0};
        case_draw(number, &c);
        every_split(&c.problem, 0, 0, &(Split){{0}, 0}, &all);
        const StageBounds bounds = stage_bounds_solve(&c.problem, &arena);
        CU_ASSERT_TRUE(same(bounds.bound_s, least_of(&all)));
        num_infeasible += all.num == 0;
        num_with_room += all.num > 0 && c.problem.most;
        arena_free(&arena);
    }
    CU_ASSERT(num_infeasible > 10 && num_with_room > 100);
}

typedef struct {
    const StageProblem *problem;
    double limit_s; // of the walk
    double first_s; // of the first split visited
    int num, num_wrong, most;
} Visits;

static bool visit_count(void *context, const int *layers, double bound_s) {
    Visits *v = context;
    if (v->num++ == 0) v->first_s = bound_s;
    v->num_wrong += !same(bound_s, stage_split_bound_s(v->problem, layers));
    v->num_wrong += bound_s > v->limit_s;
    return v->num < v->most;
}

// All below the limit once each, the least first; where the walk is cut short nothing that it left
// out is below what it says.
static void the_walk_visits_what_is_below_the_limit(void) {
    int num_cut = 0;
    for (int number = 0; number < 600; number++) {
        Arena arena = {0};
        Case c;
        Splits all = {.num = 0};
        case_draw(number, &c);
        every_split(&c.problem, 0, 0, &(Split){{0}, 0}, &all);
        const StageBounds bounds = stage_bounds_solve(&c.problem, &arena);
        const double limit_s = number % 3 ? least_of(&all) * (1 + 0.1 * (number % 7)) : INFINITY;
        int num_below = 0;
        for (int i = 0; i < all.num; i++)
            num_below += all.splits[i].bound_s <= limit_s * (1 + 1e-12);
        Visits v = {.problem = &c.problem, .limit_s = limit_s * (1 + 1e-12), .most = MAX_SPLITS};
        double left_s = stage_splits_visit(&bounds, &v.limit_s, visit_count, &v, &arena);
        CU_ASSERT_EQUAL(v.num, num_below);
        CU_ASSERT_EQUAL(v.num_wrong, 0);
        CU_ASSERT_EQUAL(left_s, INFINITY);
        if (v.num > 0) CU_ASSERT_TRUE(same(v.first_s, bounds.bound_s));
        Visits cut = {.problem = &c.problem, .limit_s = v.limit_s, .most = 3};
        left_s = stage_splits_visit(&bounds, &cut.limit_s, visit_count, &cut, &arena);
        CU_ASSERT(left_s >= bounds.bound_s);
        num_cut += left_s < INFINITY;
        if (num_below > 3) CU_ASSERT(left_s < INFINITY);
        arena_free(&arena);
    }
    CU_ASSERT(num_cut > 100);
}

// Of where a stage may begin at all the room is known, as planner/stages/stage_split.h allows.
static void a_limit_and_room_where_it_is_asked_lose_no_split(void) {
    int num_below = 0, num_none = 0;
    for (int number = 0; number < 600; number++) {
        Arena arena = {0};
        Case c;
        Splits all = {.num = 0};
        case_draw(number, &c);
        if (!c.problem.most) continue;
        every_split(&c.problem, 0, 0, &(Split){{0}, 0}, &all);
        const double least_s = least_of(&all);
        StageProblem free = c.problem, limited = c.problem;
        free.most = NULL;
        const double free_s = stage_bounds_solve(&free, &arena).bound_s;
        free.limit_s = free_s * (1 + 0.1 * (1 + number % 9));
        const StageBounds bounds = stage_bounds_solve(&free, &arena);
        const int **most = ARENA_ARRAY(&arena, free.num_stages, const int *);
        for (int r = 0; r < free.num_stages; r++) {
            int *row = ARENA_ARRAY(&arena, free.num_layers + 1, int);
            for (int from = bounds.first[r]; from <= bounds.last[r]; from++)
                row[from] = c.problem.most[r][from];
            most[r] = row;
        }
        limited.most = most;
        limited.limit_s = free.limit_s;
        const double found_s = stage_bounds_solve(&limited, &arena).bound_s;
        CU_ASSERT_TRUE(same(found_s, least_s <= free.limit_s ? least_s : INFINITY));
        num_below += least_s <= free.limit_s;
        num_none += least_s > free.limit_s;
        arena_free(&arena);
    }
    CU_ASSERT(num_below > 50 && num_none > 50);
}

// --- The referee: an integer program in interval form

// The terms of the bound as planner/stages/stage_split.h states them.
static double way_of(const StageProblem *p, int r, int from, int to) {
    const double message = r < p->num_stages - 1 ? p->message_s[r] : 0;
    if (!p->together) return 0;
    if (p->machines[r]->device_s[PASS_WEIGHT])
        return stage_pass_s(p, r, PASS_FORWARD, from, to) + message;
    return stage_work_s(p, r, from, to) + 2 * message;
}

static double load_of(const StageProblem *p, int r, int from, int to) {
    const double n = p->num_microbatches;
    double load = n * stage_work_s(p, r, from, to);
    if (p->blocking && r < p->num_stages - 1) load += n * p->message_s[r];
    if (p->blocking && r > 0) load += (n - 1) * p->message_s[r - 1];
    return load;
}

static bool may_take(const StageProblem *p, int r, int from, int to) {
    if (r == 0 && from != 0) return false;
    if (r == p->num_stages - 1 && to != p->num_layers) return false;
    return !p->most || to <= p->most[r][from];
}

static double tail_of(const StageProblem *p, int to) {
    return p->tail_s ? p->tail_s[to] : 0;
}

// What an interval of stage i adds to the bound of stage r.
static double share_of(const StageProblem *p, int r, int i, int from, int to) {
    return (i < r    ? way_of(p, i, from, to)
            : i == r ? load_of(p, i, from, to)
                     : 0) +
           (i == 0 ? tail_of(p, to) : 0);
}

//   r  the row of this stage's bound; -1: every interval counts as one
static void terms_write(FILE *file, const StageProblem *p, int r, int i) {
    for (int from = 0; from <= p->num_layers; from++)
        for (int to = from; to <= p->num_layers; to++)
            if (may_take(p, i, from, to))
                fprintf(file, " + %.17g x_%d_%d_%d\n", r < 0 ? 1 : share_of(p, r, i, from, to), i,
                        from, to);
}

// minimise T;  T >= ways of the stages before + load + tail;  each stage takes one interval;  where
// one ends the next begins. z is nothing: no row is empty.
static void program_write(FILE *file, const StageProblem *p) {
    fprintf(file, "Minimize\n T\nSubject To\n");
    for (int r = 0; r < p->num_stages; r++) {
        fprintf(file, " bound_%d: - T\n", r);
        for (int i = 0; i <= r; i++) terms_write(file, p, r, i);
        fprintf(file, " <= 0\n take_%d: z\n", r);
        terms_write(file, p, -1, r);
        fprintf(file, " = 1\n");
    }
    for (int r = 0; r + 1 < p->num_stages; r++)
        for (int cut = 0; cut <= p->num_layers; cut++) {
            fprintf(file, " cut_%d_%d: z\n", r, cut);
            for (int from = 0; from <= cut; from++)
                if (may_take(p, r, from, cut)) fprintf(file, " + x_%d_%d_%d\n", r, from, cut);
            for (int to = cut; to <= p->num_layers; to++)
                if (may_take(p, r + 1, cut, to)) fprintf(file, " - x_%d_%d_%d\n", r + 1, cut, to);
            fprintf(file, " = 0\n");
        }
    fprintf(file, "Bounds\n z = 0\nBinary\n");
    for (int r = 0; r < p->num_stages; r++)
        for (int from = 0; from <= p->num_layers; from++)
            for (int to = from; to <= p->num_layers; to++)
                if (may_take(p, r, from, to)) fprintf(file, " x_%d_%d_%d\n", r, from, to);
    fprintf(file, "End\n");
}

static void an_integer_program_agrees(void) {
    int num_solved = 0;
    for (int number = 0; number < 60 && num_solved < 12; number++) {
        Arena arena = {0};
        Case c;
        case_draw(number, &c);
        const StageBounds bounds = stage_bounds_solve(&c.problem, &arena);
        char path[] = "/tmp/stage-split-XXXXXX";
        const int handle = mkstemp(path);
        FILE *file = handle >= 0 && c.problem.num_layers > 3 ? fdopen(handle, "w") : NULL;
        if (file) {
            program_write(file, &c.problem);
            fclose(file);
            const double optimum_s = lp_referee(path);
            if (bounds.bound_s < INFINITY)
                CU_ASSERT_DOUBLE_EQUAL(optimum_s, bounds.bound_s, 1e-6 * bounds.bound_s);
            if (bounds.bound_s == INFINITY) CU_ASSERT_EQUAL(optimum_s, INFINITY);
            num_solved++;
        } else if (handle >= 0) {
            close(handle);
        }
        remove(path);
        arena_free(&arena);
    }
    CU_ASSERT_EQUAL(num_solved, 12);
}

// --- By hand

// 12 layers of 1 s forward and 2 s backward on the first machine, twice as long on the second, four
// micro-batches, no messages: 8 and 4 layers are 24 s each. The first stage has 4 x 24 = 96 s, the
// second 24 s of way before it: 120 s. With 9 and 3: 108 s and 27 + 72 = 99 s: 108 s is the least.
static void a_machine_of_half_the_speed_holds_a_third_of_the_layers_or_less(void) {
    Arena arena = {0};
    double device_s[2][NUM_PASSES][13], host_s[13] = {0}, message_s[2] = {0};
    StageMachine machines[2] = {{.pass_host_s = 0}};
    for (int m = 0; m < 2; m++)
        for (int pass = 0; pass < 2; pass++) {
            for (int l = 0; l <= 12; l++) device_s[m][pass][l] = (1 + m) * (1 + pass) * l;
            machines[m].device_s[pass] = device_s[m][pass];
            machines[m].host_s[pass] = host_s;
        }
    const StageMachine *of_stage[] = {&machines[0], &machines[1]};
    const StageProblem problem = {.num_layers = 12,
                                  .num_stages = 2,
                                  .num_microbatches = 4,
                                  .together = true,
                                  .machines = of_stage,
                                  .message_s = message_s};
    CU_ASSERT_EQUAL(stage_split_bound_s(&problem, (int[]){8, 4}), 120);
    CU_ASSERT_EQUAL(stage_split_bound_s(&problem, (int[]){9, 3}), 108);
    CU_ASSERT_EQUAL(stage_bounds_solve(&problem, &arena).bound_s, 108);
    CU_ASSERT_EQUAL(stage_bounds_solve(&problem, &arena).even_s, 24);
    arena_free(&arena);
}

CU_TestInfo stage_split_tests[] = {
    {"no_split_has_a_lower_bound", no_split_has_a_lower_bound},
    {"the_walk_visits_what_is_below_the_limit", the_walk_visits_what_is_below_the_limit},
    {"a_limit_and_room_where_it_is_asked_lose_no_split",
     a_limit_and_room_where_it_is_asked_lose_no_split},
    {"an_integer_program_agrees", an_integer_program_agrees},
    {"a_machine_of_half_the_speed_holds_a_third_of_the_layers_or_less",
     a_machine_of_half_the_speed_holds_a_third_of_the_layers_or_less},
    CU_TEST_INFO_NULL,
};
