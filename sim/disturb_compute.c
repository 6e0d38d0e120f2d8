#include "sim/disturb_compute.h"

#include "base/random.h"
#include "config/cluster/node_order.h"
#include "sim/lower_inner.h"
#include "sim/meeting.h"

#include <math.h>

// The entries that take effect, each worked out once.
typedef struct {
    uint64_t seed;
    double sigma; // of the logarithm
    uint32_t ordinal;
} Jitter;

typedef struct {
    const LowerInput *input;
    const int *first_replica; // [multiplicity]
    double *slow_factor;      // [num_gpus]
    Jitter *jitters;
    int num_jitters;
    uint32_t repetition;
} ComputeDisturb;

static bool is_in(DisturbKind kind, unsigned kinds) {
    return kinds >> kind & 1;
}

static ComputeDisturb compute_disturb(const LowerInput *input, const Disturb *disturb,
                                      int num_disturb, unsigned kinds, Arena *arena) {
    ComputeDisturb out = {
        .input = input,
        .first_replica = meeting_firsts(input->plan, input->program->multiplicity,
                                        input->program->multiplicity, arena),
        .slow_factor = ARENA_ARRAY(arena, input->cluster->num_gpus, double),
        .jitters = ARENA_ARRAY(arena, num_disturb, Jitter),
    };
    for (int gpu = 0; gpu < input->cluster->num_gpus; gpu++) out.slow_factor[gpu] = 1;
    for (int i = 0; i < num_disturb; i++) {
        const Disturb *entry = &disturb[i];
        if (!is_in(entry->kind, kinds)) continue;
        if (entry->kind == DISTURB_SLOW_GPU) out.slow_factor[entry->gpu] *= entry->factor;
        if (entry->kind != DISTURB_JITTER || entry->jitter_frac == 0) continue;
        out.jitters[out.num_jitters++] = (Jitter){
            .seed = (uint64_t)entry->seed,
            .sigma = sqrt(log1p(entry->jitter_frac * entry->jitter_frac)),
            .ordinal = (uint32_t)entry->ordinal,
        };
    }
    return out;
}

static double gpu_factor(const ComputeDisturb *disturb, int gpu, int instruction) {
    double factor = disturb->slow_factor[gpu];
    for (int i = 0; i < disturb->num_jitters; i++) {
        const Jitter *jitter = &disturb->jitters[i];
        const uint32_t counter[RANDOM_WORDS] = {disturb->repetition, (uint32_t)gpu,
                                                (uint32_t)instruction, jitter->ordinal};
        double z = random_normal(jitter->seed, counter);
        factor *= exp(jitter->sigma * (z - jitter->sigma / 2));
    }
    return factor;
}

// The seconds of a computation in which the GPU itself works.
static double own_s(const Prices *prices, const Instruction *instruction, int rank) {
    const Price *price = instruction_price(prices, instruction);
    if (!price) return prices->optimizer_s[rank];
    int parts = instruction->num_parts > 0 ? instruction->num_parts : 1;
    return price->term_s[TERM_COMPUTE] / parts;
}

static bool is_computation(const Instruction *instruction) {
    return instruction->kind != INSTRUCTION_SEND && instruction->kind != INSTRUCTION_RECV &&
           instruction->kind != INSTRUCTION_COLLECTIVE;
}

// The factors of all replicas that meet are multiplied out; the largest goes to where they meet.
static void instruction_disturb(const ComputeDisturb *disturb, int rank, int i, double *factors,
                                Lowered *lowered) {
    const Program *program = disturb->input->program;
    const RankProgram *instructions = &program->ranks[rank];
    const int *firsts = disturb->first_replica;
    for (int replica = 0; replica < program->multiplicity; replica++) {
        const int64_t gpu =
            cluster_gpu_of_rank(disturb->input->cluster, program_gpu(program, rank, replica));
        double factor = gpu_factor(disturb, (int)gpu, i);
        int first = firsts[replica];
        if (first == replica || factors[first] < factor) factors[first] = factor;
    }
    const Instruction *instruction = &instructions->instructions[i];
    double gpu_s = own_s(disturb->input->prices, instruction, rank);
    int num_folded = lowered->network.num_folded;
    for (int lane = 0; lane < lowered->num_lanes; lane++) {
        if (firsts[lane * num_folded] != lane * num_folded) continue;
        int slot = lane * instructions->num_instructions + i;
        int node =
            computation_timer(lowered->begin_node[rank][slot], lowered->end_node[rank][slot]);
        double timer_s = computation_timer_s(disturb->input, lowered, rank, lane, instruction);
        lowered->dag.nodes[node].delay_s = timer_s + (factors[lane * num_folded] - 1) * gpu_s;
    }
}

void computations_disturb(const LowerInput *input, const Disturb *disturb, int num_disturb,
                          unsigned kinds, int repetition, Arena *arena, Lowered *lowered) {
    const Program *program = input->program;
    ComputeDisturb compute = compute_disturb(input, disturb, num_disturb, kinds, arena);
    compute.repetition = (uint32_t)repetition;
    double *factors = ARENA_ARRAY(arena, program->multiplicity, double);
    for (int rank = 0; rank < program->num_ranks; rank++) {
        for (int i = 0; i < program->ranks[rank].num_instructions; i++) {
            if (!is_computation(&program->ranks[rank].instructions[i])) continue;
            instruction_disturb(&compute, rank, i, factors, lowered);
        }
    }
}

bool disturb_is_random(const Disturb *disturb, int num_disturb, unsigned kinds) {
    for (int i = 0; i < num_disturb; i++) {
        if (!is_in(disturb[i].kind, kinds)) continue;
        if (disturb[i].kind == DISTURB_JITTER && disturb[i].jitter_frac > 0) return true;
        if (disturb[i].kind == DISTURB_FLAP && disturb[i].down_frac > 0) return true;
    }
    return false;
}
