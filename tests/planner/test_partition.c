#include "planner/stages/partition.h"

#include <CUnit/CUnit.h>
#include <glpk.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LAYERS = 16, MAX_CHUNKS = 8, REFEREE_SECONDS = 20 };

typedef struct {
    PartitionCosts costs;
    double layer_s[MAX_LAYERS];
} Chain;

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

static void chain_draw(int number, Chain *out) {
    uint64_t state = (uint64_t)number * 977 + 5;
    int num_layers = 1 + (int)(draw(&state) * MAX_LAYERS);
    bool alike = draw(&state) < 0.3;
    for (int i = 0; i < num_layers; i++) out->layer_s[i] = alike ? 1 : 0.5 + draw(&state);
    out->costs = (PartitionCosts){.layer_s = out->layer_s,
                                  .num_layers = num_layers,
                                  .first_s = draw(&state),
                                  .last_s = 2 * draw(&state)};
}

static double chunk_cost(const PartitionCosts *costs, int num_chunks, int c, int from, int to) {
    double cost = (c == 0 ? costs->first_s : 0) + (c == num_chunks - 1 ? costs->last_s : 0);
    for (int i = from; i < to; i++) cost += costs->layer_s[i];
    return cost;
}

// The least largest chunk by trying every split.
static double brute_force(const PartitionCosts *costs, int num_chunks, int c, int from) {
    if (c == num_chunks - 1) return chunk_cost(costs, num_chunks, c, from, costs->num_layers);
    double best = INFINITY;
    for (int to = from; to <= costs->num_layers; to++)
        best = fmin(best, fmax(chunk_cost(costs, num_chunks, c, from, to),
                               brute_force(costs, num_chunks, c + 1, to)));
    return best;
}

static int sum(const int *layers, int num_chunks) {
    int total = 0;
    for (int c = 0; c < num_chunks; c++) total += layers[c];
    return total;
}

static void no_split_has_a_smaller_largest_chunk(void) {
    for (int number = 0; number < 300; number++) {
        Arena arena = {0};
        Chain chain;
        chain_draw(number, &chain);
        int num_chunks = 1 + number % 5, layers[MAX_CHUNKS];
        double largest = partition_chunks(&chain.costs, num_chunks, &arena, layers);
        CU_ASSERT_EQUAL(sum(layers, num_chunks), chain.costs.num_layers);
        CU_ASSERT_DOUBLE_EQUAL(largest, brute_force(&chain.costs, num_chunks, 0, 0), 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(largest, partition_cost(&chain.costs, num_chunks, 1, layers), 1e-9);
        arena_free(&arena);
    }
}

// --- The referee: an integer program in interval form, solved by GLPK in a child process

// Columns: one binary per (chunk, from, to), and the largest chunk T.
//   minimise T;  each chunk takes one interval;  cost of chunk c's interval <= T;
//   the interval of chunk c ends where that of c + 1 begins: for every cut l,
//   sum of (c, *, l) = sum of (c + 1, l, *).
typedef struct {
    int num_entries;
    int row[4 * MAX_CHUNKS * MAX_LAYERS * MAX_LAYERS];
    int column[4 * MAX_CHUNKS * MAX_LAYERS * MAX_LAYERS];
    double value[4 * MAX_CHUNKS * MAX_LAYERS * MAX_LAYERS];
} Matrix;

static void entry_add(Matrix *m, int row, int column, double value) {
    m->num_entries++; // GLPK counts from 1
    m->row[m->num_entries] = row;
    m->column[m->num_entries] = column;
    m->value[m->num_entries] = value;
}

static void columns_add(glp_prob *problem, const PartitionCosts *costs, int num_chunks, Matrix *m) {
    const int num_layers = costs->num_layers;
    const int take_rows = 1, cost_rows = take_rows + num_chunks;
    const int cut_rows = cost_rows + num_chunks; // [chunk][cut], cuts 0 .. num_layers
    glp_add_rows(problem, cut_rows - 1 + (num_chunks - 1) * (num_layers + 1));
    int largest = glp_add_cols(problem, 1);
    glp_set_obj_coef(problem, largest, 1);
    glp_set_col_bnds(problem, largest, GLP_LO, 0, 0);
    for (int c = 0; c < num_chunks; c++) {
        glp_set_row_bnds(problem, take_rows + c, GLP_FX, 1, 1);
        glp_set_row_bnds(problem, cost_rows + c, GLP_UP, 0, 0);
        entry_add(m, cost_rows + c, largest, -1);
        for (int l = 0; c < num_chunks - 1 && l <= num_layers; l++)
            glp_set_row_bnds(problem, cut_rows + c * (num_layers + 1) + l, GLP_FX, 0, 0);
        for (int from = 0; from <= num_layers; from++)
            for (int to = from; to <= num_layers; to++) {
                if (c == 0 && from != 0) continue;
                if (c == num_chunks - 1 && to != num_layers) continue;
                int column = glp_add_cols(problem, 1);
                glp_set_col_kind(problem, column, GLP_BV);
                entry_add(m, take_rows + c, column, 1);
                entry_add(m, cost_rows + c, column, chunk_cost(costs, num_chunks, c, from, to));
                if (c < num_chunks - 1)
                    entry_add(m, cut_rows + c * (num_layers + 1) + to, column, 1);
                if (c > 0) entry_add(m, cut_rows + (c - 1) * (num_layers + 1) + from, column, -1);
            }
    }
}

static double referee_solve(const PartitionCosts *costs, int num_chunks) {
    glp_term_out(GLP_OFF);
    glp_prob *problem = glp_create_prob();
    Matrix *m = calloc(1, sizeof *m);
    if (!m) return -1;
    columns_add(problem, costs, num_chunks, m);
    glp_load_matrix(problem, m->num_entries, m->row, m->column, m->value);
    glp_iocp options;
    glp_init_iocp(&options);
    options.presolve = GLP_ON;
    int failed = glp_intopt(problem, &options);
    double largest = failed || glp_mip_status(problem) != GLP_OPT ? -1 : glp_mip_obj_val(problem);
    free(m);
    glp_delete_prob(problem);
    glp_free_env();
    return largest;
}

// GLPK's own time limit is not reliable, so the child has an alarm.
//   returns  the optimum; below 0 where the referee gave none
static double referee(const PartitionCosts *costs, int num_chunks) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(REFEREE_SECONDS);
        double largest = referee_solve(costs, num_chunks);
        bool written = write(ends[1], &largest, sizeof largest) == (ssize_t)sizeof largest;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    double largest = -1;
    if (read(ends[0], &largest, sizeof largest) != (ssize_t)sizeof largest) largest = -1;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return largest;
}

static void an_integer_program_agrees(void) {
    for (int number = 0; number < 12; number++) {
        Arena arena = {0};
        Chain chain;
        chain_draw(number, &chain);
        if (chain.costs.num_layers > 10) chain.costs.num_layers = 10;
        int num_chunks = 2 + number % 3, layers[MAX_CHUNKS];
        double largest = partition_chunks(&chain.costs, num_chunks, &arena, layers);
        CU_ASSERT_DOUBLE_EQUAL(referee(&chain.costs, num_chunks), largest, 1e-6);
        arena_free(&arena);
    }
}

// --- Interleaved

// The least busiest rank of equal layers, by trying every number of layers of every rank.
static double brute_ranks(const PartitionCosts *costs, int pp, int rank, int left) {
    double extra = (rank == 0 ? costs->first_s : 0) + (rank == pp - 1 ? costs->last_s : 0);
    if (rank == pp - 1) return extra + left * costs->layer_s[0];
    double best = INFINITY;
    for (int n = 0; n <= left; n++)
        best = fmin(
            best, fmax(extra + n * costs->layer_s[0], brute_ranks(costs, pp, rank + 1, left - n)));
    return best;
}

static void no_interleaved_split_of_equal_layers_has_a_less_busy_rank(void) {
    for (int number = 0; number < 100; number++) {
        Arena arena = {0};
        Chain chain;
        chain_draw(number, &chain);
        for (int i = 0; i < chain.costs.num_layers; i++) chain.layer_s[i] = 1;
        int pp = 2 + number % 3, vpp = 2, layers[MAX_CHUNKS];
        double busiest = partition_interleaved(&chain.costs, pp, vpp, &arena, layers);
        CU_ASSERT_EQUAL(sum(layers, pp * vpp), chain.costs.num_layers);
        CU_ASSERT_DOUBLE_EQUAL(busiest, brute_ranks(&chain.costs, pp, 0, chain.costs.num_layers),
                               1e-9);
        arena_free(&arena);
    }
}

// 10 layers of 1 s, a head of 2 s, 4 chunks: 12 s in all, so 3 s each and 1 layer beside the head.
static void the_rank_with_the_head_gets_fewer_layers(void) {
    Arena arena = {0};
    double layer_s[10];
    for (int i = 0; i < 10; i++) layer_s[i] = 1;
    PartitionCosts costs = {.layer_s = layer_s, .num_layers = 10, .last_s = 2};
    int layers[4];
    CU_ASSERT_DOUBLE_EQUAL(partition_chunks(&costs, 4, &arena, layers), 3, 1e-12);
    CU_ASSERT(layers[0] == 3 && layers[1] == 3 && layers[2] == 3 && layers[3] == 1);
    arena_free(&arena);
}

// 5 layers of 1 s over 3 chunks: the largest is 2 s whatever is done; 2, 2, 1 in any order has the
// least sum of squares, 2, 2, 1 is the first found. Never 2, 1, 2 and 0.
static void among_equals_the_evenest_is_taken(void) {
    Arena arena = {0};
    double layer_s[] = {1, 1, 1, 1, 1};
    PartitionCosts costs = {.layer_s = layer_s, .num_layers = 5};
    int layers[3];
    partition_chunks(&costs, 3, &arena, layers);
    int squares = 0;
    for (int c = 0; c < 3; c++) squares += layers[c] * layers[c];
    CU_ASSERT_EQUAL(squares, 9);
    arena_free(&arena);
}

CU_TestInfo partition_tests[] = {
    {"no_split_has_a_smaller_largest_chunk", no_split_has_a_smaller_largest_chunk},
    {"an_integer_program_agrees", an_integer_program_agrees},
    {"no_interleaved_split_of_equal_layers_has_a_less_busy_rank",
     no_interleaved_split_of_equal_layers_has_a_less_busy_rank},
    {"the_rank_with_the_head_gets_fewer_layers", the_rank_with_the_head_gets_fewer_layers},
    {"among_equals_the_evenest_is_taken", among_equals_the_evenest_is_taken},
    CU_TEST_INFO_NULL,
};
