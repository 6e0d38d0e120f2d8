#include "costmodel/step/step_parts.h"

#include <math.h>

static void chunk_add(const Price *price, double times, Price *sum) {
    for (int t = 0; t < NUM_TERMS; t++) sum->term_s[t] += times * price->term_s[t];
    for (int k = 0; k < NUM_PARTS; k++) sum->part_s[k] += times * price->part_s[k];
    sum->time_s += times * price->time_s;
}

// How many of its backwards a chunk's rank runs whole; the others are split.
static double num_whole_backwards(const RankProgram *rank, int chunk) {
    int num = 0;
    for (int i = 0; i < rank->num_instructions; i++) {
        const Instruction *one = &rank->instructions[i];
        num += one->kind == INSTRUCTION_BACKWARD && one->chunk == chunk && one->part == 0;
    }
    return num;
}

// All that a rank computes, with what its chunks wait for inside.
static Price rank_busy(const Plan *plan, const Program *program, const Prices *prices, int rank) {
    Price sum = {0};
    for (int k = 0; k < plan_rank_chunks(plan); k++) {
        const int c = plan_rank_chunk(plan, rank, k);
        const double times =
            (double)(c < plan->num_chunks ? plan_chunk_microbatches(plan) : plan->num_microbatches);
        chunk_add(&prices->forward[c], times, &sum);
        // Where all are split, `backward` is both parts.
        const double whole = plan_schedule_traits(plan).mixes_backwards
                                 ? num_whole_backwards(&program->ranks[rank], c)
                                 : times;
        chunk_add(&prices->backward[c], whole, &sum);
        if (whole == times) continue;
        chunk_add(&prices->backward_input[c], times - whole, &sum);
        chunk_add(&prices->backward_weight[c], times - whole, &sum);
    }
    return sum;
}

// Seconds that the rank waits for the Program's collectives, those over tp or the others, by how
// long those of each part take.
static void collectives_add(const Program *program, const Prices *prices, bool over_tp,
                            double time_s, double *part_s) {
    double inside_s = 0, across_s = 0;
    for (int i = 0; i < program->num_collectives; i++) {
        if ((group_base_kind(program->collectives[i].group) == GROUP_TP) != over_tp) continue;
        bool across = prices->collective_part[i] == PART_ACROSS;
        *(across ? &across_s : &inside_s) += prices->collective_s[i];
    }
    double across_frac = inside_s + across_s > 0 ? across_s / (inside_s + across_s) : 0;
    part_s[PART_ACROSS] += time_s * across_frac;
    part_s[PART_INSIDE] += time_s * (1 - across_frac);
}

void step_parts(const Plan *plan, const Program *program, const Prices *prices,
                const Timeline *timeline, double *part_s) {
    const int rank = timeline->slowest_rank;
    const double *term_s = timeline->term_s;
    const Price busy = rank_busy(plan, program, prices, rank);
    for (int k = 0; k < NUM_PARTS; k++)
        part_s[k] =
            busy.part_s[k] * (1 + (busy.time_s > 0 ? term_s[TERM_BUBBLE] / busy.time_s : 0));
    const double messages_s = fmax(0, term_s[TERM_PP] - busy.term_s[TERM_PP]);
    const double collectives_s = fmax(0, term_s[TERM_DP] - busy.term_s[TERM_DP]);
    const double sums_s = fmax(0, term_s[TERM_TP] - busy.term_s[TERM_TP]);
    part_s[prices->message_part[rank]] += messages_s;
    collectives_add(program, prices, false, collectives_s, part_s);
    collectives_add(program, prices, true, sums_s, part_s);
    part_s[PART_HOST] += prices->step_s;
    part_s[PART_OPTIMIZER] += term_s[TERM_OPTIMIZER];
}
