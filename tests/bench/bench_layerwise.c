// bench_layerwise - how fast layer-wise strategies are chosen, with the proof. Median of 5 runs and
// their range, after one to warm up, over the limits of memory from where the leanest strategy just
// fits to where the fastest does; one thread.
#include "planner/layerwise/layerwise.h"
#include "tests/bench/measure.h"

#include <math.h>

enum { NUM_RUNS = 5, NUM_LIMITS = 9, MAX_LAYERS = 96, MAX_STRATEGIES = 40, MAX_LAYOUTS = 16 };

typedef struct {
    const char *title;
    int num_layers, num_strategies;
    int num_kinds; // of layers, in runs; 0: every layer is its own
} Job;

static const Job JOBS[] = {
    {"32 layers x 22 strategies x 8 GPUs, alike", 32, 22, 1},
    {"32 layers x 22 strategies x 8 GPUs, 3 kinds", 32, 22, 3},
    {"32 layers x 22 strategies x 8 GPUs, all different", 32, 22, 0},
    {"96 layers x 40 strategies x 64 GPUs, alike", 96, 40, 1},
    {"96 layers x 40 strategies x 64 GPUs, 3 kinds", 96, 40, 3},
    {"96 layers x 40 strategies x 64 GPUs, all different", 96, 40, 0},
};

typedef struct {
    LayerwiseProblem problem;
    double time_s[MAX_LAYERS * MAX_STRATEGIES], lasts[MAX_LAYERS * MAX_STRATEGIES];
    double saved[MAX_LAYERS * MAX_STRATEGIES], peak[MAX_LAYERS * MAX_STRATEGIES];
    int level[MAX_LAYERS * MAX_STRATEGIES], layout[MAX_STRATEGIES];
    double reshard_s[MAX_LAYOUTS * MAX_LAYOUTS], reshard_bytes[MAX_LAYOUTS * MAX_LAYOUTS];
    double level_s[3], level_bytes[3];
} Case;

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

// A transformer layer of `size` under layout (tp) x ZeRO stage x recomputation, in the proportions
// of a large model: tp costs communication, ZeRO 3 gathers, full recomputation a third of the time.
static void row_fill(Case *c, int layer, double size, uint64_t *state) {
    static const double RECOMPUTE_S[] = {1, 1.06, 1.31}, SAVED[] = {34, 24, 2},
                        PEAK[] = {50, 54, 64};
    const LayerwiseProblem *p = &c->problem;
    for (int s = 0; s < p->num_strategies; s++) {
        const int i = layer * p->num_strategies + s, recompute = s % 3;
        const int layout = c->layout[s], zero = s / 3 % 3 + 1;
        const double noise = 1 + 0.02 * draw(state), tp = ldexp(1, layout);
        c->time_s[i] = 0.1 * size * RECOMPUTE_S[recompute] * (1 + 0.03 * log2(tp)) *
                       (zero == 3   ? 1.04
                        : zero == 2 ? 1.005
                                    : 1) *
                       noise;
        const double state_bytes = zero == 3 ? 4e7 : zero == 2 ? 2.5e8 / tp : 5e8 / tp;
        c->lasts[i] = floor(size * (state_bytes + 1e7));
        c->saved[i] = floor(size * SAVED[recompute] * 1.5e7 * (1 + 0.05 * layout));
        c->peak[i] = floor(size * PEAK[recompute] * 1.5e7);
        c->level[i] = zero == 3 ? 1 : 0;
    }
}

static void case_fill(const Job *job, Case *c) {
    uint64_t state = 20221;
    LayerwiseProblem *p = &c->problem;
    *c = (Case){0};
    p->num_layers = job->num_layers;
    p->num_strategies = job->num_strategies;
    p->num_levels = 2;
    // Nine strategies a layout: 3 ZeRO stages x 3 recomputations.
    p->num_layouts = (job->num_strategies + 8) / 9;
    for (int s = 0; s < p->num_strategies; s++) c->layout[s] = s / 9;
    uint64_t first = state;
    for (int l = 0; l < p->num_layers; l++) {
        const int kinds = job->num_kinds > 0 ? job->num_kinds : p->num_layers;
        const int kind = l * kinds / p->num_layers;
        uint64_t of_kind = first + (uint64_t)kind * 7777;
        row_fill(c, l, 1 + 0.3 * kind / kinds, &of_kind);
    }
    for (int a = 0; a < p->num_layouts; a++)
        for (int b = 0; b < p->num_layouts; b++) {
            c->reshard_s[a * p->num_layouts + b] = a == b ? 0 : 0.002 + 0.0005 * abs(a - b);
            c->reshard_bytes[a * p->num_layouts + b] = a == b ? 0 : 3e7;
        }
    c->level_s[1] = 0.01;
    c->level_bytes[1] = 1.5e9;
    p->time_s = c->time_s;
    p->lasts_bytes = c->lasts;
    p->saved_bytes = c->saved;
    p->peak_bytes = c->peak;
    p->level = c->level;
    p->layout = c->layout;
    p->reshard_s = c->reshard_s;
    p->reshard_bytes = c->reshard_bytes;
    p->level_s = c->level_s;
    p->level_bytes = c->level_bytes;
}

// What the fastest plan needs, or the one that holds least.
static double needed_bytes(const Case *c, bool least) {
    Arena arena = {0};
    LayerwiseProblem p = c->problem;
    p.limit_bytes = 1e15;
    double *bytes = ARENA_ARRAY(&arena, p.num_layers * p.num_strategies, double);
    for (int i = 0; i < p.num_layers * p.num_strategies; i++)
        bytes[i] = 1e-9 * (c->lasts[i] + c->saved[i]);
    if (least) p.time_s = bytes;
    const double needed = layerwise_solve(&p, 0, &arena).memory_bytes;
    arena_free(&arena);
    return needed;
}

static void job_measure(const Job *job, Case *c) {
    case_fill(job, c);
    const double low = needed_bytes(c, true), high = needed_bytes(c, false);
    double worst_s = 0, worst_low = 0, worst_high = 0;
    int64_t worst_states = 0;
    bool proven = true;
    for (int i = 0; i < NUM_LIMITS; i++) {
        c->problem.limit_bytes = low + (high - low) * (i + 0.5) / NUM_LIMITS;
        double figures[NUM_RUNS];
        int64_t num_states = 0;
        for (int run = -1; run < NUM_RUNS; run++) {
            Arena arena = {0};
            const double start_s = measure_now_s();
            const LayerwiseAnswer answer = layerwise_solve(&c->problem, 0, &arena);
            if (run >= 0) figures[run] = measure_now_s() - start_s;
            proven &= answer.feasible && answer.optimal;
            num_states = answer.num_states;
            arena_free(&arena);
        }
        const Spread spread = measure_spread(figures, NUM_RUNS);
        if (spread.median <= worst_s) continue;
        worst_s = spread.median;
        worst_low = spread.least;
        worst_high = spread.most;
        worst_states = num_states;
    }
    printf("%-52s %.4f s (%.4f-%.4f), %lld states%s\n", job->title, worst_s, worst_low, worst_high,
           (long long)worst_states, proven ? "" : ", NOT PROVEN");
}

int main(void) {
    static Case c;
    measure_print_machine();
    printf("the slowest of %d limits of memory, median of %d runs (range)\n", NUM_LIMITS, NUM_RUNS);
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) job_measure(&JOBS[i], &c);
    return 0;
}
