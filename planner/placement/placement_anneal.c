#include "planner/placement/placement_anneal.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

// The temperature at the end, of that at the start; and the share of moves that then only go down.
static const double COOLING = 1e-4, LAST_SHARE = 0.1;

enum { NUM_TRIALS = 256, REFRESH_MOVES = 1 << 16, MAX_RUN = 8 };

typedef struct {
    const AnnealOptions *options;
    PlacementState *state;
    uint32_t words[RANDOM_WORDS]; // of the move at hand
} Chain;

static int pick(uint32_t word, int num) {
    return (int)((uint64_t)word * (uint64_t)num >> 32);
}

static void swap_blocks(PlacementState *state, int a, int b) {
    const int node = state->node_of_block[a];
    placement_put(state, a, state->node_of_block[b]);
    placement_put(state, b, node);
}

// Of some traffics the one that the step loses most by, and a block at its slowest edge.
static int critical_block(const Chain *chain) {
    const PlacementState *state = chain->state;
    const PlacementModel *model = state->model;
    int plane = 0, worst = 0;
    for (int k = 1; k < model->num_planes; k++)
        if (state->step_s[k] > state->step_s[plane]) plane = k;
    double worst_s = -1;
    for (int i = 0; i < 3; i++) {
        const int traffic =
            pick(chain->words[3] * (uint32_t)(2 * i + 1) + chain->words[1], model->num_traffics);
        const double loss_s =
            model->slope_s[plane][traffic] *
            (state->most[traffic] - state->links->traffics[traffic].least_slowdown);
        if (loss_s <= worst_s) continue;
        worst = traffic;
        worst_s = loss_s;
    }
    const BlockEdge *edge = &state->links->edges[state->worst[worst]];
    return chain->words[0] & 1 ? edge->from : edge->to;
}

static void swap_move(const Chain *chain, bool critical) {
    const int n = chain->state->links->num_blocks;
    const int a = critical ? critical_block(chain) : pick(chain->words[1], n);
    const int b = (a + 1 + pick(chain->words[2], n - 1)) % n;
    swap_blocks(chain->state, a, b);
}

// A run of blocks of one stage.
typedef struct {
    int first, num;
} Run;

static Run run_pick(const Chain *chain, int most) {
    const int size = chain->options->stage_blocks;
    const int stages = chain->state->links->num_blocks / size;
    const int stage = pick(chain->words[1], stages);
    const int longest = size < most ? size : most;
    const int num = 2 + pick(chain->words[2], longest - 1);
    return (Run){stage * size + pick(chain->words[3], size - num + 1), num};
}

static void reverse_move(const Chain *chain) {
    const Run run = run_pick(chain, chain->options->stage_blocks);
    for (int i = 0; i < run.num / 2; i++)
        swap_blocks(chain->state, run.first + i, run.first + run.num - 1 - i);
}

static void rotate_move(const Chain *chain) {
    const Run run = run_pick(chain, chain->options->stage_blocks);
    PlacementState *state = chain->state;
    const bool on = chain->words[0] & 1;
    const int carried = state->node_of_block[on ? run.first + run.num - 1 : run.first];
    for (int i = 0; i < run.num - 1; i++) {
        const int to = on ? run.first + run.num - 1 - i : run.first + i;
        placement_put(state, to, state->node_of_block[on ? to - 1 : to + 1]);
    }
    placement_put(state, on ? run.first : run.first + run.num - 1, carried);
}

// Runs of two stages, or where there is one stage, of two parts of it.
static void runs_move(const Chain *chain) {
    const int n = chain->state->links->num_blocks, size = chain->options->stage_blocks;
    const Run run = run_pick(chain, size < n ? size : size / 2 < MAX_RUN ? size / 2 : MAX_RUN);
    const int most = n - 2 * run.num; // starts of another that does not overlap
    if (most < 0) return;
    int other = size < n ? (run.first + size * (1 + pick(chain->words[0] << 8, n / size - 1))) % n
                         : (run.first + run.num + pick(chain->words[0] << 8, most + 1)) % n;
    for (int i = 0; i < run.num; i++) swap_blocks(chain->state, run.first + i, (other + i) % n);
}

static void columns_move(const Chain *chain) {
    const int n = chain->state->links->num_blocks, size = chain->options->stage_blocks;
    const int a = pick(chain->words[1], size), b = (a + 1 + pick(chain->words[2], size - 1)) % size;
    for (int first = 0; first < n; first += size) swap_blocks(chain->state, first + a, first + b);
}

static void move_make(Chain *chain, uint32_t number) {
    const uint32_t counter[RANDOM_WORDS] = {number, chain->options->chain, chain->options->round,
                                            1};
    random_words(chain->options->seed, counter, chain->words);
    const int kind = (int)(chain->words[0] >> 24);
    placement_begin(chain->state);
    if (chain->options->stage_blocks < 2 || kind < 144)
        swap_move(chain, kind < 96);
    else if (kind < 176)
        reverse_move(chain);
    else if (kind < 208)
        rotate_move(chain);
    else if (kind < 232)
        runs_move(chain);
    else
        columns_move(chain);
    placement_end(chain->state);
}

// The mean loss of the moves from here that lose.
static double mean_loss_s(Chain *chain) {
    const double here_s = placement_cost(chain->state).guide_s;
    double sum_s = 0;
    int num = 0;
    for (uint32_t i = 0; i < NUM_TRIALS; i++) {
        move_make(chain, UINT32_MAX - i);
        const double loss_s = placement_cost(chain->state).guide_s - here_s;
        placement_undo(chain->state);
        if (loss_s <= 0) continue;
        sum_s += loss_s;
        num++;
    }
    return num ? sum_s / num : 0;
}

static bool is_better(PlacementCost a, PlacementCost b) {
    return a.step_s < b.step_s || (a.step_s == b.step_s && a.guide_s < b.guide_s);
}

int64_t placement_anneal(const AnnealOptions *options, PlacementState *state, int *best,
                         PlacementCost *cost) {
    Chain chain = {.options = options, .state = state};
    const size_t size = (size_t)state->links->num_blocks * sizeof *best;
    const double heat_s = options->heat * mean_loss_s(&chain);
    const double last = (1 - LAST_SHARE) * (double)options->num_moves;
    PlacementCost here = *cost = placement_cost(state);
    memcpy(best, state->node_of_block, size);
    double temperature_s = 0;
    int64_t i = 0;
    for (; i < options->num_moves && cost->step_s > options->enough_s; i++) {
        if (i % 64 == 0)
            temperature_s = (double)i < last ? heat_s * pow(COOLING, (double)i / last) : 0;
        move_make(&chain, (uint32_t)i);
        const PlacementCost there = placement_cost(state);
        const double loss_s = there.guide_s - here.guide_s;
        const double chance = (chain.words[3] ^ chain.words[1]) * 0x1p-32;
        if (loss_s > 0 && (temperature_s == 0 || chance >= exp(-loss_s / temperature_s))) {
            placement_undo(state);
            continue;
        }
        here = there;
        if (is_better(here, *cost)) {
            *cost = here;
            memcpy(best, state->node_of_block, size);
        }
        if (i % REFRESH_MOVES == 0) { // sums forget their rounding
            placement_state_reset(state, state->model, state->node_of_block);
            here = placement_cost(state);
        }
    }
    placement_state_reset(state, state->model, best);
    return i;
}
