// What a rank did with its step: a walk over its computations, and what it waited for before each.
#include "costmodel/step/timeline_run.h"

#include <string.h>

// When the message that a wait is for began to move: of a group, the one that ended last.
static double moving_from_s(const Run *run, int r, int index) {
    const RankRun *rank = &run->ranks[r];
    if (rank->list[index].p2p_group < 0) return rank->start_s[index];
    int first = index;
    while (first > 0 && rank->list[first - 1].p2p_group == rank->list[index].p2p_group) first--;
    const int count = group_size(rank, first);
    double latest_s = -1, from_s = 0;
    for (int i = first; i < first + count; i++) {
        const double end_s = rank->start_s[i] + message_s(run, &rank->list[i], r);
        if (end_s <= latest_s) continue;
        latest_s = end_s;
        from_s = rank->start_s[i];
    }
    return from_s;
}

// Moves *from_s up to to_s and adds what it passed to a term.
static void gap_take(double *from_s, double to_s, double *term_s) {
    if (to_s <= *from_s) return;
    *term_s += to_s - *from_s;
    *from_s = to_s;
}

static bool sums_over_tp(const Run *run, const Instruction *instruction) {
    return instruction->kind == INSTRUCTION_COLLECTIVE &&
           group_base_kind(run->program->collectives[instruction->collective].group) == GROUP_TP;
}

// What passes up to the end of the collectives that an instruction waits for: those of dp, and
// sums over tp, which follow each other behind them.
static void collectives_take(const Run *run, const RankRun *rank, const Instruction *instruction,
                             double *from_s, double *term_s) {
    for (int i = 0; i < 2; i++) {
        const int wait = instruction->waits[i];
        if (wait < 0 || rank->list[wait].kind != INSTRUCTION_COLLECTIVE) continue;
        int first = wait + 1;
        while (first > 0 && sums_over_tp(run, &rank->list[first - 1])) first--;
        gap_take(from_s, first > wait ? rank->end_s[wait] : rank->start_s[first], &term_s[TERM_DP]);
        gap_take(from_s, rank->end_s[wait], &term_s[TERM_TP]);
    }
}

// Splits the idle time [from_s, start) before a computation by what it waited for, in this order:
// the collectives a message waited for itself, the other end of the message, the message on its
// way, then the collectives the computation waits for.
static void gap_attribute(const Run *run, int r, int index, double from_s, double *term_s) {
    const RankRun *rank = &run->ranks[r];
    const Instruction *instruction = &rank->list[index];
    for (int i = 0; i < 2; i++) {
        const int wait = instruction->waits[i];
        if (wait < 0 || rank->list[wait].stream != STREAM_PP) continue;
        collectives_take(run, rank, &rank->list[wait], &from_s, term_s);
        gap_take(&from_s, moving_from_s(run, r, wait), &term_s[TERM_BUBBLE]);
        gap_take(&from_s, rank->end_s[wait], &term_s[TERM_PP]);
    }
    collectives_take(run, rank, instruction, &from_s, term_s);
    gap_take(&from_s, rank->start_s[index], &term_s[TERM_BUBBLE]);
}

static void rank_breakdown(const Run *run, int r, double *term_s) {
    const RankRun *rank = &run->ranks[r];
    double now_s = rank->begin_s;
    for (int i = 0; i < rank->num; i++) {
        const Instruction *instruction = &rank->list[i];
        if (instruction->stream != STREAM_COMPUTE) continue;
        if (rank->start_s[i] > now_s) gap_attribute(run, r, i, now_s, term_s);
        now_s = rank->end_s[i];
        const Price *price = instruction_price(run->prices, instruction);
        if (!price) {
            term_s[TERM_OPTIMIZER] += now_s - rank->start_s[i];
            continue;
        }
        for (int t = 0; t < NUM_TERMS; t++) term_s[t] += price->term_s[t] / instruction->num_parts;
        term_s[TERM_DP] += piece_stretch_s(run->prices, instruction);
    }
    gap_take(&now_s, rank->free_s[STREAM_DP], &term_s[TERM_DP]);
    gap_take(&now_s, rank_end_s(rank), &term_s[TERM_PP]);
}

// Breaks all ranks down; what a rank waits at the end of the step is bubble too. The slowest is
// the one with the least bubble: it sets the pace that the others wait for.
void timeline_breakdown(const Run *run, Timeline *out) {
    const int num_ranks = run->program->num_ranks;
    for (int r = 0; r < num_ranks; r++) {
        double term_s[NUM_TERMS] = {0}, span_s = rank_span_s(&run->ranks[r]);
        rank_breakdown(run, r, term_s);
        gap_take(&span_s, out->step_time_s, &term_s[TERM_BUBBLE]);
        out->mean_working_s += (term_s[TERM_COMPUTE] + term_s[TERM_OPTIMIZER]) / num_ranks;
        if (r > 0 && term_s[TERM_BUBBLE] >= out->term_s[TERM_BUBBLE]) continue;
        memcpy(out->term_s, term_s, sizeof term_s);
        out->slowest_rank = r;
    }
}
