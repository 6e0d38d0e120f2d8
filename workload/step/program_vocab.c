#include "workload/step/program_vocab.h"

#include <math.h>

static const VocabCollective NONE = NUM_VOCAB_COLLECTIVES;

bool vocab_is_broadcast(VocabCollective which) {
    return which == VOCAB_INPUT_BROADCAST || which == VOCAB_ROWS_BROADCAST;
}

// Whether a chunk is the first or the last of its model: of dual pipelines there are two of each.
static bool is_first(const Plan *plan, int chunk) {
    return chunk % plan_num_stages(plan) == 0;
}

static bool is_last(const Plan *plan, int chunk) {
    return (chunk + 1) % plan_num_stages(plan) == 0;
}

int vocab_root(const Plan *plan, VocabCollective which, int microbatch) {
    const int pipeline = microbatch / (int)plan_chunk_microbatches(plan);
    const int first = pipeline * plan_num_stages(plan);
    return plan_chunk_rank(plan, which == VOCAB_INPUT_BROADCAST ? first + plan_num_stages(plan) - 1
                                                                : first);
}

ProgramCollective vocab_collective(const Plan *plan, const Workload *workload,
                                   VocabCollective which) {
    static const char *const NAMES[NUM_VOCAB_COLLECTIVES] = {
        "vocab_lookup_all_reduce",   "vocab_input_broadcast", "vocab_statistics_all_reduce",
        "vocab_gradient_all_reduce", "vocab_rows_broadcast",
    };
    // The gradient is summed up when the statistics have corrected each rank's part of it.
    static const int QUEUES[NUM_VOCAB_COLLECTIVES] = {1, 2, 3, 3, 4};
    // Three fp32 numbers a token, of the sequence-parallel part of them.
    const double tokens =
        workload->tokens_per_microbatch / (plan->sequence_parallel ? plan->tp : 1);
    return (ProgramCollective){
        .kind = vocab_is_broadcast(which) ? COLLECTIVE_BROADCAST : COLLECTIVE_ALL_REDUCE,
        .group = GROUP_PP,
        .message_bytes = which == VOCAB_STATISTICS_SUM ? 3 * 4 * tokens : workload->boundary_bytes,
        .name = NAMES[which],
        .num_calls = 1,
        .pipeline_queue = QUEUES[which],
    };
}

const ProgramCollective *vocab_join_collectives(const Plan *plan, const Workload *workload,
                                                const ProgramCollective *others, int num_others,
                                                Arena *arena) {
    if (!plan->vocab_barriers) return others;
    ProgramCollective *all =
        ARENA_ARRAY(arena, num_others + NUM_VOCAB_COLLECTIVES, ProgramCollective);
    for (int i = 0; i < num_others; i++) all[i] = others[i];
    for (int i = 0; i < NUM_VOCAB_COLLECTIVES; i++)
        all[num_others + i] = vocab_collective(plan, workload, (VocabCollective)i);
    return all;
}

Instruction vocab_instruction(int num_others, VocabCollective which, int microbatch, int wait) {
    return (Instruction){
        .kind = INSTRUCTION_COLLECTIVE,
        .stream = STREAM_PP,
        .num_parts = 1,
        .chunk = -1,
        .peer = -1,
        .microbatch = microbatch,
        .p2p_group = -1,
        .match = -1,
        .collective = num_others + (int)which,
        .waits = {wait, -1},
    };
}

static bool is_output_gradient(const WorkItem *item) {
    return item->kind == WORK_BACKWARD || item->kind == WORK_BACKWARD_INPUT;
}

VocabCollective vocab_awaited(const Plan *plan, const WorkItem *item) {
    const bool forward = item->kind == WORK_FORWARD;
    if (!plan->vocab_barriers) return NONE;
    if (item->chunk == plan->num_chunks + VOCAB_INPUT) return forward ? NONE : VOCAB_ROWS_BROADCAST;
    if (item->chunk == plan->num_chunks + VOCAB_OUTPUT) {
        if (item->kind == WORK_BACKWARD_INPUT) return NONE; // right behind the forward
        return forward ? VOCAB_INPUT_BROADCAST : VOCAB_STATISTICS_SUM;
    }
    if (forward) return is_first(plan, item->chunk) ? VOCAB_LOOKUP_SUM : NONE;
    const bool last = is_last(plan, item->chunk);
    return last && is_output_gradient(item) ? VOCAB_GRADIENT_SUM : NONE;
}

static VocabCollectives one(VocabCollective which) {
    return (VocabCollectives){{which, NONE, NONE}};
}

VocabCollectives vocab_following(const Plan *plan, const WorkItem *item) {
    const bool forward = item->kind == WORK_FORWARD, two = plan->vocab_barriers == 2;
    if (!plan->vocab_barriers) return one(NONE);
    if (item->chunk == plan->num_chunks + VOCAB_INPUT)
        return one(forward ? VOCAB_LOOKUP_SUM : NONE);
    if (item->chunk == plan->num_chunks + VOCAB_OUTPUT) {
        if (two) return one(forward ? VOCAB_STATISTICS_SUM : VOCAB_GRADIENT_SUM);
        if (item->kind != WORK_BACKWARD_INPUT) return one(NONE);
        return (VocabCollectives){{VOCAB_STATISTICS_SUM, VOCAB_GRADIENT_SUM, NONE}};
    }
    if (forward && is_last(plan, item->chunk)) return one(VOCAB_INPUT_BROADCAST);
    const bool first = is_first(plan, item->chunk);
    return one(first && is_output_gradient(item) ? VOCAB_ROWS_BROADCAST : NONE);
}

// --- Durations

// Seconds of the operators of some phases at the GPU's peak rates: only their proportions matter.
static double peak_s(const Gpu *gpu, const Op *ops, int num_ops, int phases) {
    double time_s = 0;
    for (int i = 0; i < num_ops; i++) {
        if (ops[i].kind == OP_COLLECTIVE || !(phases & 1 << ops[i].phase)) continue;
        const double peak = gpu->peak_flops_per_s[ops[i].precision];
        time_s += fmax(peak > 0 ? ops[i].flops / peak : 0,
                       ops[i].bytes / gpu->memory_bandwidth_bytes_per_s);
    }
    return time_s;
}

static double work_s(const Gpu *gpu, const Workload *workload, const Chunk *chunk, WorkKind kind) {
    static const int PHASES[NUM_WORK_KINDS] = {
        [WORK_FORWARD] = 1 << PHASE_FORWARD,
        [WORK_BACKWARD] = 1 << PHASE_BACKWARD_INPUT | 1 << PHASE_BACKWARD_WEIGHT,
        [WORK_BACKWARD_INPUT] = 1 << PHASE_BACKWARD_INPUT,
        [WORK_BACKWARD_WEIGHT] = 1 << PHASE_BACKWARD_WEIGHT,
    };
    double time_s = 0;
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        if (chunk->num_blocks[i] == 0) continue;
        const bool forward = kind == WORK_FORWARD;
        time_s +=
            chunk->num_blocks[i] * peak_s(gpu, forward ? b->forward : b->backward,
                                          forward ? b->num_forward : b->num_backward, PHASES[kind]);
    }
    return time_s;
}

// Of the chunk with the longest forward; nominal ones where chunks have no operators.
static VocabPasses passes_of(const Gpu *gpu, const Plan *plan, const Workload *workload) {
    enum { FORWARD_UNITS = 16 };
    VocabPasses passes = {.barriers = plan->vocab_barriers, .chunk_units = {16, 32, 16, 16}};
    const Chunk *longest = &workload->chunks[0];
    double forward_s = 0;
    for (int c = 0; c < plan->num_chunks; c++) {
        const double time_s = work_s(gpu, workload, &workload->chunks[c], WORK_FORWARD);
        if (time_s <= forward_s) continue;
        forward_s = time_s;
        longest = &workload->chunks[c];
    }
    for (int kind = 0; kind < NUM_WORK_KINDS; kind++) {
        const double unit_s = forward_s / FORWARD_UNITS;
        if (forward_s > 0)
            passes.chunk_units[kind] =
                (int)fmax(1, round(work_s(gpu, workload, longest, (WorkKind)kind) / unit_s));
        for (int v = 0; v < NUM_VOCAB_CHUNKS; v++) {
            const Chunk *chunk = &workload->chunks[plan->num_chunks + v];
            const double time_s = work_s(gpu, workload, chunk, (WorkKind)kind);
            passes.pass_units[v][kind] = forward_s > 0 ? (int)fmax(1, round(time_s / unit_s)) : 1;
        }
    }
    return passes;
}

ScheduleShape program_shape(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    ScheduleShape shape = schedule_shape(plan->pp, plan->vpp, (int)plan->num_microbatches);
    if (plan->vocab_barriers)
        shape.vocab = passes_of(&cluster_only_pool(&scenario->cluster)->gpu, plan, workload);
    return shape;
}
