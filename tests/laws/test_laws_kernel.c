// Law of measured kernels: one per cent more of a dimension is neither faster nor more than 30 %
// slower, but at an edge that the answer names.
#include "tests/laws/kernel_shapes.h"
#include "tests/laws/law.h"
#include "tests/laws/shrink.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

// A thousandth is what an edge has to fall by; beyond it are the sums' last digits.
static const double LEAST_RATIO = 0.999 - 1e-9, MOST_RATIO = 1.3 + 1e-9;
static const double MORE_FRAC = 0.01, MOST_EDGES_FRAC = 0.02;
enum { MAX_DIMENSIONS = 3, MAX_SHOWN = 8, MAX_TRIES = 100 };

typedef struct {
    const Gpu *gpu;
    const KernelProfile *profile;
    const Kind *kind;
} Profiled;

// A shape, each dimension of it with more (NULL: none is one per cent more), and what they take.
typedef struct {
    cJSON *shapes[1 + MAX_DIMENSIONS];
    double seconds[1 + MAX_DIMENSIONS];
    RowEdges edges; // of the first
} LawCase;

typedef struct {
    int num_cases, num_steps, num_edges, num_broken;
} Tally;

static double size_of(const cJSON *shape, const char *dimension) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(shape, dimension);
    return item ? item->valuedouble : 0;
}

// One per cent more in whole numbers, at least one; from 50 on one is no more than 2 %.
static LawCase case_of(const Kind *kind, cJSON *shape) {
    static const double LEAST_SIZE = 50;
    const char *const *dimensions = kernel_dimensions(kind);
    LawCase c = {.shapes = {shape}};
    for (int d = 0; dimensions[d]; d++) {
        const double size = size_of(shape, dimensions[d]);
        if (size < LEAST_SIZE) continue;
        c.shapes[1 + d] = cJSON_Duplicate(shape, true);
        cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(c.shapes[1 + d], dimensions[d]),
                             size + fmax(1, floor(MORE_FRAC * size)));
    }
    return c;
}

static void case_free(LawCase *c) {
    for (int i = 0; i <= MAX_DIMENSIONS; i++) cJSON_Delete(c->shapes[i]);
}

static void cases_price(const Profiled *profiled, LawCase *cases, int num_cases, Arena *arena) {
    const int most = num_cases * (1 + MAX_DIMENSIONS);
    cJSON **rows = ARENA_ARRAY(arena, most, cJSON *);
    double *seconds = ARENA_ARRAY(arena, most, double);
    RowEdges *edges = ARENA_ARRAY(arena, most, RowEdges);
    int num_rows = 0;
    for (int c = 0; c < num_cases; c++)
        for (int i = 0; i <= MAX_DIMENSIONS; i++)
            if (cases[c].shapes[i]) rows[num_rows++] = cases[c].shapes[i];
    const KernelTable table = kernel_shapes_table(profiled->kind, rows, num_rows, arena);
    const Status status =
        profiled->kind->price(&table, profiled->gpu, profiled->profile, arena, seconds, edges);
    for (int c = 0, row = 0; c < num_cases; c++) {
        cases[c].edges = edges[row];
        for (int i = 0; i <= MAX_DIMENSIONS; i++)
            cases[c].seconds[i] =
                cases[c].shapes[i] && status.code == STATUS_OK ? seconds[row++] : NAN;
    }
}

// The time of one per cent more over that of the shape, without the edges between.
static double step_ratio(const LawCase *c, const char *dimension, int i, int *num_edges) {
    const double from = size_of(c->shapes[0], dimension), to = size_of(c->shapes[i], dimension);
    double ratio = c->seconds[i] / c->seconds[0];
    *num_edges = 0;
    for (int e = 0; e < c->edges.num_edges; e++) {
        const KernelEdge *edge = &c->edges.edges[e];
        if (strcmp(edge->dimension, dimension) != 0 || edge->at <= from || edge->at > to) continue;
        ratio /= edge->ratio;
        ++*num_edges;
    }
    return ratio;
}

// What breaks the law; NULL: nothing.
static const char *case_says(const Kind *kind, const LawCase *c, Tally *tally, Arena *arena) {
    const char *const *dimensions = kernel_dimensions(kind), *says = NULL;
    for (int d = 0; dimensions[d]; d++) {
        int num_edges;
        if (isnan(c->seconds[0]) || isnan(c->seconds[1 + d])) continue;
        const double ratio = step_ratio(c, dimensions[d], 1 + d, &num_edges);
        tally->num_steps++;
        tally->num_edges += num_edges > 0;
        if (ratio < LEAST_RATIO || ratio > MOST_RATIO)
            says = arena_printf(arena, "%s %.0f takes %.9g s, %.0f %.9g s; %d edges between",
                                dimensions[d], size_of(c->shapes[0], dimensions[d]), c->seconds[0],
                                size_of(c->shapes[1 + d], dimensions[d]), c->seconds[1 + d],
                                num_edges);
    }
    return says;
}

static bool shape_breaks(const cJSON *shape, void *context) {
    const Profiled *profiled = context;
    Arena arena = {0};
    Tally tally = {0};
    LawCase c = case_of(profiled->kind, cJSON_Duplicate(shape, true));
    cases_price(profiled, &c, 1, &arena);
    const bool breaks = case_says(profiled->kind, &c, &tally, &arena) != NULL;
    case_free(&c);
    arena_free(&arena);
    return breaks;
}

static void failure_print(Profiled *profiled, const LawCase *c, uint64_t seed, uint32_t number,
                          const char *says) {
    cJSON *small = document_shrink(c->shapes[0], shape_breaks, profiled, MAX_TRIES);
    char *text = cJSON_PrintUnformatted(c->shapes[0]), *shrunk = cJSON_PrintUnformatted(small);
    printf("\nkernels: MESHWRIGHT_LAW_SEED=%llu MESHWRIGHT_LAW_NUMBER=%u\n%s, %s: %s\n%s\n"
           "shrunk: %s\n",
           (unsigned long long)seed, number, profiled->gpu->name, profiled->kind->name, says, text,
           shrunk);
    fflush(stdout);
    cJSON_free(text);
    cJSON_free(shrunk);
    cJSON_Delete(small);
}

// The cases of one kind on one GPU: every num_parts-th number from first on.
typedef struct {
    uint64_t seed;
    uint32_t first, num_parts, end;
} Numbers;

static void cases_run(Profiled *profiled, const Numbers *numbers, Tally *tally) {
    Arena arena = {0};
    int num_cases = 0;
    const int most = (int)((numbers->end - numbers->first) / numbers->num_parts) + 1;
    LawCase *cases = ARENA_ARRAY(&arena, most, LawCase);
    for (uint32_t n = numbers->first; n < numbers->end; n += numbers->num_parts) {
        Draw draw = draw_start(numbers->seed, n, 0);
        cases[num_cases++] =
            case_of(profiled->kind, kernel_shape_draw(profiled->kind, profiled->profile, &draw));
    }
    cases_price(profiled, cases, num_cases, &arena);
    for (int i = 0; i < num_cases; i++) {
        const char *says = case_says(profiled->kind, &cases[i], tally, &arena);
        tally->num_cases += !isnan(cases[i].seconds[0]);
        if (says && tally->num_broken++ < MAX_SHOWN)
            failure_print(profiled, &cases[i], numbers->seed,
                          numbers->first + (uint32_t)i * numbers->num_parts, says);
        case_free(&cases[i]);
    }
    arena_free(&arena);
}

// All GPUs with kernels, each kind: numbers go round them.
static void one_per_cent_more_is_neither_faster_nor_much_slower(void) {
    const LawNumbers asked = law_numbers(500, 8000);
    Arena arena = {0};
    Gpu *gpus;
    int num_gpus;
    Tally tally = {0};
    CU_ASSERT_EQUAL_FATAL(gpu_list(&arena, &gpus, &num_gpus).code, STATUS_OK);
    const uint32_t num_parts = (uint32_t)(num_gpus * NUM_KINDS);
    for (uint32_t part = 0; part < num_parts; part++) {
        const Gpu *gpu = &gpus[part / (uint32_t)NUM_KINDS];
        const CalibratedKernels *kernels;
        const uint32_t first =
            asked.first + (part + num_parts - asked.first % num_parts) % num_parts;
        if (gpu->core || first >= asked.end) continue;
        CU_ASSERT_EQUAL_FATAL(kernels_load_whole(gpu, &arena, &kernels).code, STATUS_OK);
        Profiled profiled = {&kernels->gpu, &kernels->profile, &KINDS[part % (uint32_t)NUM_KINDS]};
        const Numbers numbers = {asked.seed, first, num_parts, asked.end};
        cases_run(&profiled, &numbers, &tally);
    }
    printf(
        "\nkernels: seed %llu, %d shapes, %d steps of one per cent, %d over an edge, %d broken\n",
        (unsigned long long)asked.seed, tally.num_cases, tally.num_steps, tally.num_edges,
        tally.num_broken);
    CU_ASSERT_EQUAL(tally.num_broken, 0);
    CU_ASSERT(tally.num_edges <= MOST_EDGES_FRAC * tally.num_steps);
    arena_free(&arena);
}

CU_TestInfo laws_kernel_tests[] = {
    {"one per cent more is neither faster nor much slower",
     one_per_cent_more_is_neither_faster_nor_much_slower},
    CU_TEST_INFO_NULL,
};
