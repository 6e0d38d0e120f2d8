#include "costmodel/price.h"

#include "costmodel/collective.h"
#include "costmodel/compute.h"
#include "costmodel/exchange.h"
#include "costmodel/site_links.h"
#include "workload/bytes.h"
#include "workload/program_vocab.h"

#include <math.h>
#include <string.h>

const char *const TERM_NAMES[NUM_TERMS] = {
    "compute",    "tp_exposed", "cp_exposed", "ep_exposed", "dp_exposed",
    "pp_exposed", "bubble",     "optimizer",  "other",
};

static const Term STREAM_TERM[NUM_STREAMS] = {TERM_COMPUTE, TERM_TP, TERM_CP,
                                              TERM_EP,      TERM_DP, TERM_PP};

enum { MAX_LIST_OPS = 512 };

// The streams of one rank while it runs a list of operators.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    double free_s[NUM_STREAMS]; // when each stream is done with what it has
    double end_s[MAX_LIST_OPS]; // of each operator
    double term_s[NUM_TERMS];   // of the compute stream: busy, and idle by what it waited for
    double part_s[NUM_PARTS];   // the same seconds
    StepPart part[NUM_STREAMS]; // of what ran last on each stream
    double communication_s;     // of collectives in the flow of data
    double hidden_s;            // of those beside another micro-batch's compute
    double sharding_s;          // of ZeRO-3 on the DP stream
    double first_gather_s, last_scatter_s;
    double num_kernels;
    int num_again; // operators that are recomputed
    int phases;    // bit p: operators of Phase p run here
} Streams;

double part_factor(const Scenario *scenario, StepPart part) {
    return scenario->calibration ? scenario->calibration->factor[part] : 1;
}

StepPart group_part(const Scenario *scenario, const Plan *plan, GroupKind kind) {
    GroupLayout layout = group_layout(&scenario->cluster, plan_group(plan, kind));
    return layout.num_domains > 1 ? PART_ACROSS : PART_INSIDE;
}

static StepPart op_part(const Streams *s, const Op *op) {
    switch (op->kind) {
    case OP_GEMM:
        return PART_PRODUCTS;
    case OP_ATTENTION:
        return PART_ATTENTION;
    case OP_MEMORY:
        return PART_MEMORY;
    case OP_COLLECTIVE:
        break;
    }
    return group_part(s->scenario, s->plan, op->group);
}

static double op_s(const Streams *s, const Op *op) {
    double time_s = op->kind == OP_COLLECTIVE ? op_collective_s(s->scenario, s->plan, op)
                                              : op_compute_s(&s->scenario->cluster, op);
    return time_s * part_factor(s->scenario, op_part(s, op));
}

static void streams_add(Streams *s, Term term, StepPart part, double time_s) {
    s->term_s[term] += time_s;
    s->part_s[part] += time_s;
}

// What is left exposed of a collective that runs piece by piece beside its product: the longer of
// the two hides the shorter, but for one piece.
static double pipelined_s(const Streams *s, const Op *op, const Op *product, double duration_s) {
    int pieces = plan_group(s->plan, op->group).size;
    double product_s = op_s(s, product);
    return fmax(0, duration_s - product_s) + fmin(duration_s, product_s) / pieces;
}

static void sharding_run(Streams *s, const Op *op, double duration_s) {
    const Training *training = &s->scenario->training;
    bool gather = op->collective == COLLECTIVE_ALL_GATHER;
    if (gather ? !training->overlap_param_gather : !training->overlap_grad_reduce) {
        streams_add(s, TERM_DP, s->part[STREAM_DP], duration_s);
        return;
    }
    s->sharding_s += duration_s;
    if (gather)
        s->first_gather_s += duration_s;
    else
        s->last_scatter_s += duration_s;
}

static void op_run(Streams *s, const Op *ops, int i) {
    const Op *op = &ops[i];
    double duration_s = op_s(s, op), previous_s = i > 0 ? s->end_s[i - 1] : 0;
    s->end_s[i] = previous_s;
    s->part[op->stream] = op_part(s, op);
    s->num_kernels += op->num_kernels;
    s->num_again += op->again;
    if (op->stream == STREAM_DP) {
        sharding_run(s, op, duration_s);
        return;
    }
    if (op->hidden) {
        s->hidden_s += duration_s;
        return;
    }
    int waited = op->wait == WAIT_PREVIOUS ? i - 1 : op->wait;
    double ready_s = waited >= 0 ? s->end_s[waited] : 0;
    double start_s = fmax(s->free_s[op->stream], ready_s);
    if (op->kind == OP_COLLECTIVE) {
        s->communication_s += duration_s;
        // A split backward may run the product in its other part.
        if (op->pipelined_with >= 0 && s->phases & 1 << ops[op->pipelined_with].phase)
            duration_s = pipelined_s(s, op, &ops[op->pipelined_with], duration_s);
    } else {
        // The compute stream was idle until what it waited for was there.
        double idle_s = start_s - s->free_s[STREAM_COMPUTE];
        Stream cause = waited >= 0 ? ops[waited].stream : STREAM_COMPUTE;
        streams_add(s, STREAM_TERM[cause], s->part[cause], idle_s);
        streams_add(s, TERM_COMPUTE, s->part[STREAM_COMPUTE], duration_s);
    }
    s->free_s[op->stream] = s->end_s[i] = start_s + duration_s;
}

// Collectives still running when the list's compute is done.
static void tail_run(Streams *s) {
    double done_s = s->free_s[STREAM_COMPUTE];
    for (int stream = STREAM_TP; stream <= STREAM_EP; stream++)
        if (s->free_s[stream] > done_s) {
            streams_add(s, STREAM_TERM[stream], s->part[stream], s->free_s[stream] - done_s);
            done_s = s->free_s[stream];
        }
}

static double terms_sum(const double *term_s) {
    double sum = 0;
    for (int t = 0; t < NUM_TERMS; t++) sum += term_s[t];
    return sum;
}

// What runs beside compute takes SMs and bandwidth from it.
static void compute_slow_down(Streams *s, double time_s) {
    static const StepPart COMPUTE[] = {PART_PRODUCTS, PART_ATTENTION, PART_MEMORY};
    double compute_s = s->term_s[TERM_COMPUTE];
    if (compute_s == 0 || time_s == 0) return;
    for (int i = 0; i < 3; i++) s->part_s[COMPUTE[i]] *= 1 + time_s / compute_s;
    s->term_s[TERM_COMPUTE] += time_s;
}

// Host time of one pass over a block run eagerly, less what CUDA graphs replay. Recomputed kernels
// are a pass of their own.
static double host_s(const Training *training, double num_kernels, double num_passes) {
    const Stack *stack = &training->stack;
    if (training->cuda_graphs & (GRAPH_FULL | GRAPH_LAYER)) return 0;
    double time_s = num_kernels * stack->host_launch_s + num_passes * stack->host_layer_s;
    if (training->compile) time_s *= stack->host_compiled_frac;
    int scopes = training->cuda_graphs & (GRAPH_ATTN | GRAPH_MOE_ROUTER | GRAPH_MOE_PREPROCESS);
    return time_s * (scopes ? 0.5 : 1);
}

// One list of one block.
typedef struct {
    Price price;   // of the device
    double host_s; // to launch it
    double edge_s; // ZeRO-3: the first gather and last scatter have nothing to hide behind
} ListPrice;

// Prices one list of a block; num_forward is the length of its forward list.
static ListPrice list_price(const Scenario *scenario, const Plan *plan, const Op *ops, int num_ops,
                            int num_forward, int phases) {
    Streams s = {.scenario = scenario, .plan = plan, .phases = phases};
    for (int i = 0; i < num_ops; i++) {
        if (phases & 1 << ops[i].phase)
            op_run(&s, ops, i);
        else
            s.end_s[i] = i > 0 ? s.end_s[i - 1] : 0;
    }
    tail_run(&s);
    const Stack *stack = &scenario->training.stack;
    double serial_s = terms_sum(s.term_s);
    double exposed_s = s.term_s[TERM_TP] + s.term_s[TERM_CP] + s.term_s[TERM_EP];
    double beside_s = fmax(0, s.communication_s - exposed_s) + fmin(s.hidden_s, serial_s) +
                      fmin(s.sharding_s, serial_s);
    compute_slow_down(&s, stack->overlap_slowdown_frac * fmin(beside_s, serial_s));
    double busy_s = terms_sum(s.term_s);
    streams_add(&s, TERM_EP, s.part[STREAM_EP], fmax(0, s.hidden_s - busy_s));
    streams_add(&s, TERM_DP, s.part[STREAM_DP], fmax(0, s.sharding_s - busy_s));
    ListPrice list = {.price.time_s = terms_sum(s.term_s)};
    memcpy(list.price.term_s, s.term_s, sizeof s.term_s);
    memcpy(list.price.part_s, s.part_s, sizeof s.part_s);
    list.edge_s = s.first_gather_s + s.last_scatter_s;
    list.host_s =
        host_s(&scenario->training, s.num_kernels, 1 + (double)s.num_again / num_forward) *
        part_factor(scenario, PART_HOST);
    return list;
}

static void price_add(Price *sum, const Price *part, double times) {
    for (int t = 0; t < NUM_TERMS; t++) sum->term_s[t] += times * part->term_s[t];
    for (int k = 0; k < NUM_PARTS; k++) sum->part_s[k] += times * part->part_s[k];
    sum->time_s = terms_sum(sum->term_s);
}

static void price_add_term(Price *sum, Term term, StepPart part, double time_s) {
    sum->term_s[term] += time_s;
    sum->part_s[part] += time_s;
    sum->time_s = terms_sum(sum->term_s);
}

// A chunk that the host launches more slowly than the device runs it takes the host's time alone:
// the rest is not on its critical path.
static void host_wait(Price *chunk, double launch_s) {
    if (launch_s <= chunk->time_s) return;
    chunk->term_s[TERM_OTHER] += launch_s - chunk->time_s;
    chunk->time_s = launch_s;
    memset(chunk->part_s, 0, sizeof chunk->part_s);
    chunk->part_s[PART_HOST] = launch_s;
}

// A message from a pipeline stage to the next; *alpha_s is its latency part.
static double boundary_message_s(const Scenario *scenario, const Plan *plan, int stage, bool near,
                                 double message_bytes, double *alpha_s) {
    const Cluster *cluster = &scenario->cluster;
    double time_s = p2p_s(cluster, near, message_bytes, alpha_s);
    if (near || !cluster->sites) return time_s;
    double transfer_s = (time_s - *alpha_s) * boundary_slowdown(cluster, plan, stage);
    *alpha_s += boundary_latency_s(cluster, plan, stage);
    return *alpha_s + transfer_s;
}

// What the collectives among pipeline ranks that follow a pass over the vocabulary, or bring its
// input, take from compute while they move.
static void vocab_overheads(const Scenario *scenario, const Plan *plan, const Workload *workload,
                            const WorkItem *item, Price *chunk) {
    const VocabCollective awaited = vocab_awaited(plan, item);
    const VocabCollectives following = vocab_following(plan, item);
    const StepPart part = group_part(scenario, plan, GROUP_PP);
    double time_s = 0;
    for (int k = 0; k < NUM_VOCAB_COLLECTIVES; k++) {
        bool own = (int)awaited == k && (k == VOCAB_INPUT_BROADCAST || k == VOCAB_ROWS_BROADCAST);
        for (int i = 0; following.which[i] != NUM_VOCAB_COLLECTIVES; i++)
            own |= (int)following.which[i] == k;
        const ProgramCollective c = vocab_collective(plan, workload, (VocabCollective)k);
        if (own)
            time_s += collective_s(&scenario->cluster, c.kind, plan_group(plan, c.group),
                                   c.message_bytes);
    }
    time_s *= scenario->training.stack.overlap_slowdown_frac * part_factor(scenario, part);
    price_add_term(chunk, TERM_PP, part, time_s);
}

// What one chunk pays beside its blocks in each pass: where the host needs longer for all of it
// than the device, the difference, and what its asynchronous messages (one in, one out, at the same
// time) take from compute while they move.
static void chunk_overheads(const Scenario *scenario, const Plan *plan, const Workload *workload,
                            const WorkItem *item, double launch_s, Price *chunk) {
    const Stack *stack = &scenario->training.stack;
    if (item->chunk >= plan->num_chunks) {
        host_wait(chunk, launch_s);
        vocab_overheads(scenario, plan, workload, item, chunk);
        return;
    }
    launch_s += stack->host_microbatch_s / 2 * part_factor(scenario, PART_HOST);
    host_wait(chunk, launch_s);
    if (plan->pp == 1 || !program_hides_messages(scenario, plan)) return;
    int stage = plan->tp * plan->cp * plan->dp;
    bool near = gpus_share_domain(&scenario->cluster, 0, 2 * stage - 1);
    StepPart part = near ? PART_INSIDE : PART_ACROSS;
    double message_s =
        boundary_message_s(scenario, plan, 0, near, workload->message_bytes, &(double){0});
    price_add_term(chunk, TERM_PP, part,
                   stack->overlap_slowdown_frac * message_s * part_factor(scenario, part));
}

// The work that the operators of some phases of a chunk are.
static WorkKind phases_work(int phases) {
    if (phases == 1 << PHASE_FORWARD) return WORK_FORWARD;
    if (phases == 1 << PHASE_BACKWARD_INPUT) return WORK_BACKWARD_INPUT;
    return phases == 1 << PHASE_BACKWARD_WEIGHT ? WORK_BACKWARD_WEIGHT : WORK_BACKWARD;
}

static Price *phase_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          int phases, Arena *arena) {
    const WorkKind work = phases_work(phases);
    const bool forward = work == WORK_FORWARD;
    ListPrice lists[MAX_BLOCKS] = {0}; // of a block without operators nothing
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const Block *b = &workload->blocks[i];
        if (b->num_forward == 0) continue;
        lists[i] = list_price(scenario, plan, forward ? b->forward : b->backward,
                              forward ? b->num_forward : b->num_backward, b->num_forward, phases);
    }
    Price *chunks = ARENA_ARRAY(arena, workload->num_chunks, Price);
    for (int c = 0; c < workload->num_chunks; c++) {
        double edge_s = 0, launch_s = 0;
        for (int i = 0; i < MAX_BLOCKS; i++) {
            int count = workload->chunks[c].num_blocks[i];
            if (count == 0) continue;
            price_add(&chunks[c], &lists[i].price, count);
            launch_s += count * lists[i].host_s;
            edge_s = fmax(edge_s, lists[i].edge_s);
        }
        price_add_term(&chunks[c], TERM_DP, group_part(scenario, plan, GROUP_ZERO), edge_s);
        const WorkItem item = {.kind = (uint8_t)work, .chunk = (int16_t)c};
        if (work == WORK_BACKWARD_WEIGHT) // the input part has met the other chunks
            host_wait(&chunks[c], launch_s);
        else
            chunk_overheads(scenario, plan, workload, &item, launch_s, &chunks[c]);
    }
    return chunks;
}

// Seconds of the optimizer on a rank: it is bound by the bytes of gradients, moments and weights.
static double optimizer_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          int rank) {
    const StateBytes state = state_bytes(&scenario->training);
    const Gpu *gpu = &scenario->cluster.gpu;
    double dense = 0, expert = 0;
    for (int k = 0; k < plan_rank_chunks(plan); k++) {
        const int c = plan_rank_chunk(plan, rank, k);
        dense += workload->chunks[c].dense_parameters;
        expert += workload->chunks[c].expert_parameters;
    }
    double all = dense + expert, own = all;
    if (plan->zero_stage >= 1)
        own =
            dense / plan_group(plan, GROUP_ZERO).size + expert / plan_group(plan, GROUP_EZERO).size;
    // Norm: read gradients. Update: read gradient, read and write moments and the weight that is
    // trained (the master copy where there is one, and then write the weight). Then the gradient
    // buffer is zeroed.
    double trained = state.master > 0 ? 2 * state.master + state.weight : 2 * state.weight;
    double bytes = own * (2 * state.gradient + 2 * state.moments + trained);
    bytes += (plan->zero_stage >= 2 ? own : all) * state.gradient;
    // One kernel per operation instead of one for all.
    if (!scenario->training.stack.fused_optimizer) bytes *= 3;
    return bytes / (gpu->memory_bandwidth_bytes_per_s * gpu->efficiency.memory_frac) *
           part_factor(scenario, PART_OPTIMIZER);
}

static bool stages_share_domain(const Cluster *cluster, int num_stage_gpus, int from, int to) {
    const int first = from * num_stage_gpus, other = to * num_stage_gpus, last = num_stage_gpus - 1;
    return gpus_share_domain(cluster, first, other) &&
           gpus_share_domain(cluster, first + last, other + last);
}

// Between a rank and the one that holds the copies of its chunks.
static void copies_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         Arena *arena, Prices *prices) {
    double *time_s = ARENA_ARRAY(arena, plan->pp, double);
    double *alpha_s = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        const bool near = stages_share_domain(&scenario->cluster, plan->tp * plan->cp * plan->dp, r,
                                              plan->pp - 1 - r);
        const double factor = part_factor(scenario, near ? PART_INSIDE : PART_ACROSS);
        time_s[r] = p2p_s(&scenario->cluster, near, workload->message_bytes, &alpha_s[r]) * factor;
        alpha_s[r] *= factor;
    }
    prices->copies_s = time_s;
    prices->copies_alpha_s = alpha_s;
}

static void messages_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           Arena *arena, Prices *prices) {
    double *message_s = ARENA_ARRAY(arena, plan->pp, double);
    double *alpha_s = ARENA_ARRAY(arena, plan->pp, double);
    StepPart *parts = ARENA_ARRAY(arena, plan->pp, StepPart);
    int stage = plan->tp * plan->cp * plan->dp;
    const Cluster *cluster = &scenario->cluster;
    double gather_s = 0; // where each rank of a stage sends its share, the receivers gather it
    if (workload->message_bytes < workload->boundary_bytes)
        gather_s = collective_s(cluster, COLLECTIVE_ALL_GATHER, plan_group(plan, GROUP_TP),
                                workload->boundary_bytes);
    for (int r = 0; r < plan->pp; r++) {
        bool near = stages_share_domain(cluster, stage, r, (r + 1) % plan->pp);
        parts[r] = near ? PART_INSIDE : PART_ACROSS;
        double factor = part_factor(scenario, parts[r]);
        message_s[r] =
            (boundary_message_s(scenario, plan, r, near, workload->message_bytes, &alpha_s[r]) +
             gather_s) *
            factor;
        alpha_s[r] = (alpha_s[r] + gather_s) * factor;
    }
    prices->message_s = message_s;
    prices->message_alpha_s = alpha_s;
    prices->message_part = parts;
}

Prices chunks_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                    Arena *arena) {
    const int input = 1 << PHASE_BACKWARD_INPUT, weight = 1 << PHASE_BACKWARD_WEIGHT;
    Prices prices = {.step_s =
                         scenario->training.stack.host_step_s * part_factor(scenario, PART_HOST)};
    prices.forward = phase_price(scenario, plan, workload, 1 << PHASE_FORWARD, arena);
    const ScheduleTraits schedule = plan_schedule_traits(plan);
    const bool splits = schedule.splits_backward;
    if (splits || schedule.mixes_backwards || plan->vocab_barriers == 1) {
        prices.backward_input = phase_price(scenario, plan, workload, input, arena);
        prices.backward_weight = phase_price(scenario, plan, workload, weight, arena);
    }
    Price *whole = splits && !plan->vocab_barriers
                       ? ARENA_ARRAY(arena, workload->num_chunks, Price)
                       : phase_price(scenario, plan, workload, input | weight, arena);
    for (int c = 0; c < workload->num_chunks; c++) {
        const bool vocab = c >= plan->num_chunks; // S and T divide the output layer
        if (vocab ? plan->vocab_barriers != 1 || c != plan->num_chunks + VOCAB_OUTPUT : !splits)
            continue;
        whole[c] = (Price){0};
        price_add(&whole[c], &prices.backward_input[c], 1);
        price_add(&whole[c], &prices.backward_weight[c], 1);
    }
    prices.backward = whole;
    double *update_s = ARENA_ARRAY(arena, plan->pp, double);
    messages_price(scenario, plan, workload, arena, &prices);
    if (plan_is_dual(plan)) copies_price(scenario, plan, workload, arena, &prices);
    for (int r = 0; r < plan->pp; r++) update_s[r] = optimizer_s(scenario, plan, workload, r);
    prices.optimizer_s = update_s;
    return prices;
}
