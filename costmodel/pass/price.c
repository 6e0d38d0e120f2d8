#include "costmodel/pass/price.h"

#include "costmodel/kernel/core_op.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/message.h"
#include "costmodel/pass/list_price.h"
#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"
#include "workload/step/program_vocab.h"

#include <math.h>
#include <string.h>

const char *const TERM_NAMES[NUM_TERMS] = {
    "compute",    "tp_exposed", "cp_exposed", "ep_exposed", "dp_exposed",
    "pp_exposed", "bubble",     "optimizer",  "other",
};

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

// What the chunks of a plan on one pool are priced from.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Workload *workload;
    BlockPrices *blocks;
    const PricingContext *context;
} Pricing;

// What those of all pools are.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Workload *workload;
    BlockPrices *blocks;    // [num_pools]
    PricingContext context; // of the first
} PlanPricing;

static double beside_compute_frac(const Pricing *p, StepPart part) {
    return p->context->execution->stack.communication.overlap_slowdown_frac *
           part_factor(p->context->calibration, part);
}

// What the collectives among pipeline ranks that follow a pass over the vocabulary, or bring its
// input, take from compute while they move.
static void vocab_overheads(const Pricing *p, const WorkItem *item, Price *chunk) {
    const VocabCollective awaited = vocab_awaited(p->plan, item);
    const VocabCollectives following = vocab_following(p->plan, item);
    const Machines machines = p->context->machines;
    const StepPart part = group_part(machines.pool, context_group(p->context, GROUP_PP));
    double time_s = 0;
    for (int k = 0; k < NUM_VOCAB_COLLECTIVES; k++) {
        bool own = (int)awaited == k && vocab_is_broadcast((VocabCollective)k);
        for (int i = 0; following.which[i] != NUM_VOCAB_COLLECTIVES; i++)
            own |= (int)following.which[i] == k;
        const ProgramCollective c = vocab_collective(p->plan, p->workload, (VocabCollective)k);
        if (own)
            time_s +=
                collective_s(machines, c.kind, context_group(p->context, c.group), c.message_bytes);
    }
    price_add_term(chunk, TERM_PP, part, time_s * beside_compute_frac(p, part));
}

// What one chunk pays beside its blocks in each pass: where the host needs longer for all of it
// than the device, the difference, and what its asynchronous messages (one in, one out, at the same
// time) take from compute while they move.
static void chunk_overheads(const Pricing *p, const WorkItem *item, double launch_s, Price *chunk) {
    const Plan *plan = p->plan;
    if (item->chunk >= plan->num_chunks) {
        host_wait(chunk, launch_s);
        vocab_overheads(p, item, chunk);
        return;
    }
    launch_s += pass_host_s(p->context->execution, p->context->calibration);
    host_wait(chunk, launch_s);
    if (plan->pp == 1 || !program_hides_messages(p->scenario, plan)) return;
    const Cluster own = cluster_of_machines(p->context->machines, NULL);
    const StepPart part = ranks_share_domain(&own, plan, 0, 1) ? PART_INSIDE : PART_ACROSS;
    const double message_s =
        ranks_message_s(&own, plan, 0, 1, p->workload->message_bytes, &(double){0});
    price_add_term(chunk, TERM_PP, part, message_s * beside_compute_frac(p, part));
}

// The operators that a kind of work is: bit p for those of Phase p.
static const int WORK_PHASES[NUM_WORK_KINDS] = {
    [WORK_FORWARD] = 1 << PHASE_FORWARD,
    [WORK_BACKWARD] = 1 << PHASE_BACKWARD_INPUT | 1 << PHASE_BACKWARD_WEIGHT,
    [WORK_BACKWARD_INPUT] = 1 << PHASE_BACKWARD_INPUT,
    [WORK_BACKWARD_WEIGHT] = 1 << PHASE_BACKWARD_WEIGHT,
};

BlockPrices *block_prices_new(const Cluster *cluster, Arena *arena) {
    BlockPrices *prices = ARENA_ARRAY(arena, cluster->num_pools, BlockPrices);
    for (int i = 0; i < cluster->num_pools; i++) prices[i].arena = arena;
    return prices;
}

BlockPrices *block_prices_of_pool(BlockPrices *blocks, int pool) {
    return &blocks[pool];
}

static ListPrice *list_at(const Pricing *p, WorkKind work, int block) {
    return block < MAX_BLOCKS ? &p->blocks->lists[work][block]
                              : &p->blocks->more[work][block - MAX_BLOCKS];
}

// Prices the blocks for a kind of work, once.
static void lists_price(const Pricing *p, WorkKind work) {
    const bool forward = work == WORK_FORWARD;
    if (p->blocks->known[work]) return;
    if (p->workload->num_blocks > MAX_BLOCKS)
        p->blocks->more[work] =
            ARENA_ARRAY(p->blocks->arena, p->workload->num_blocks - MAX_BLOCKS, ListPrice);
    for (int i = 0; i < p->workload->num_blocks; i++) {
        const Block *b = &p->workload->blocks[i];
        if (b->num_forward == 0) continue;
        *list_at(p, work, i) = list_price(&(OpList){
            .context = p->context,
            .ops = forward ? b->forward : b->backward,
            .num_ops = forward ? b->num_forward : b->num_backward,
            .num_forward = b->num_forward,
            .phases = WORK_PHASES[work],
        });
    }
    p->blocks->known[work] = true;
}

PassPrice block_pass_price(const PricingContext *context, const Workload *workload,
                           BlockPrices *blocks, WorkKind work, int block) {
    const Pricing pricing = {.workload = workload, .blocks = blocks, .context = context};
    lists_price(&pricing, work);
    const ListPrice *list = list_at(&pricing, work, block);
    return (PassPrice){.device_s = list->price.time_s, .host_s = list->host_s};
}

double pass_host_s(const Execution *execution, const Calibration *calibration) {
    return execution->stack.training.host_microbatch_s / 2 * part_factor(calibration, PART_HOST);
}

// ZeRO 3's groups under a sharding.
static StepPart shards_part(const Pricing *p, int sharding) {
    const GroupKind zero = sharding_group_kind(p->plan, sharding, GROUP_ZERO);
    return group_part(p->context->machines.pool, context_group(p->context, zero));
}

static Price chunk_price(const Pricing *p, WorkKind work, int c) {
    const Chunk *chunk = &p->workload->chunks[c];
    Price price = {0};
    double edge_s = 0, launch_s = 0;
    int edge_sharding = PLAN_OWN;
    for (int i = 0; i < p->workload->num_blocks; i++) {
        const int count = chunk->num_blocks[i];
        if (count == 0) continue;
        const ListPrice *list = list_at(p, work, i);
        price_add(&price, &list->price, count);
        launch_s += count * list->host_s;
        if (list->edge_s <= edge_s) continue;
        edge_s = list->edge_s;
        edge_sharding = p->workload->blocks[i].sharding;
    }
    price_add_term(&price, TERM_DP, shards_part(p, edge_sharding), edge_s);
    const WorkItem item = {.kind = (uint8_t)work, .chunk = (int16_t)c};
    if (work == WORK_BACKWARD_WEIGHT) // the input part has met the other chunks
        host_wait(&price, launch_s);
    else
        chunk_overheads(p, &item, launch_s, &price);
    return price;
}

// Most chunks are like the one before them.
static bool is_like_last(const Workload *workload, int num_model_chunks, int c) {
    return c > 0 && c < num_model_chunks &&
           memcmp(workload->chunks[c].num_blocks, workload->chunks[c - 1].num_blocks,
                  (size_t)workload->num_blocks * sizeof *workload->chunks[c].num_blocks) == 0;
}

// Those of the chunks that lie on the pricing's pool.
static void pool_chunks_price(const Pricing *p, WorkKind work, int pool, Price *chunks) {
    const Cluster *cluster = &p->scenario->cluster;
    int last = -1; // of the pool
    lists_price(p, work);
    for (int c = 0; c < p->workload->num_chunks; c++) {
        if (plan_rank_pool(cluster, p->plan, plan_chunk_rank(p->plan, c)) != pool) continue;
        const bool alike = last == c - 1 && is_like_last(p->workload, p->plan->num_chunks, c);
        chunks[c] = alike ? chunks[last] : chunk_price(p, work, c);
        last = c;
    }
}

static Price *phase_price(const PlanPricing *all, WorkKind work, Arena *arena) {
    Price *chunks = ARENA_ARRAY(arena, all->workload->num_chunks, Price);
    for (int pool = 0; pool < all->scenario->cluster.num_pools; pool++) {
        PricingContext context = all->context;
        context.machines = cluster_machines(&all->scenario->cluster, pool);
        const Pricing p = {all->scenario, all->plan, all->workload, &all->blocks[pool], &context};
        pool_chunks_price(&p, work, pool, chunks);
    }
    return chunks;
}

// Bytes that the optimizer moves for weights that a rank holds before ZeRO.
static double optimizer_bytes(const Scenario *scenario, const Plan *own, double dense,
                              double expert) {
    const StateBytes state = state_bytes(&scenario->execution, scenario->training.optimizer);
    double all = dense + expert, shard = all;
    if (own->zero_stage >= 1)
        shard =
            dense / plan_group(own, GROUP_ZERO).size + expert / plan_group(own, GROUP_EZERO).size;
    // Norm: read gradients. Update: read gradient, read and write moments and the weight that is
    // trained (the master copy where there is one, and then write the weight). Then the gradient
    // buffer is zeroed.
    double trained = state.master > 0 ? 2 * state.master + state.weight : 2 * state.weight;
    double bytes = shard * (2 * state.gradient + 2 * state.moments + trained);
    const StackTraining *training = &scenario->execution.stack.training;
    const bool zeroes_shard =
        own->zero_stage >= 2 && (plan_scatters_gradients(own) || !training->keeps_gradients);
    bytes += (zeroes_shard ? shard : all) * state.gradient;
    // One kernel per operation instead of one for all.
    return scenario->execution.stack.training.fused_optimizer ? bytes : 3 * bytes;
}

static double optimizer_bytes_s(const Scenario *scenario, const Gpu *gpu, double bytes) {
    if (gpu->core)
        return core_optimizer_s(gpu, scenario->execution.precision, bytes) *
               part_factor(scenario->calibration, PART_OPTIMIZER);
    return bytes / (gpu->memory_bandwidth_bytes_per_s * gpu->efficiency.memory_frac) *
           part_factor(scenario->calibration, PART_OPTIMIZER);
}

double optimizer_update_s(const Scenario *scenario, const Plan *plan, const Gpu *gpu, double dense,
                          double expert) {
    return optimizer_bytes_s(scenario, gpu, optimizer_bytes(scenario, plan, dense, expert));
}

static double optimizer_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          int rank) {
    double bytes = 0;
    for (int s = 0; s < plan_num_shardings(plan); s++) {
        double dense = 0, expert = 0;
        for (int k = 0; k < plan_rank_chunks(plan); k++) {
            const int c = plan_rank_chunk(plan, rank, k);
            const HeldParameters held = chunk_held(&workload->chunks[c], s);
            dense += held.dense;
            expert += held.expert;
        }
        bytes += optimizer_bytes(scenario, plan_sharding(plan, s), dense, expert);
    }
    return optimizer_bytes_s(scenario,
                             &plan_rank_machines(&scenario->cluster, plan, rank).pool->gpu, bytes);
}

const double *optimizers_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               Arena *arena) {
    double *time_s = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) time_s[r] = optimizer_s(scenario, plan, workload, r);
    return time_s;
}

// Between a rank and the one that holds the copies of its chunks.
static void copies_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         Arena *arena, Prices *prices) {
    const Cluster *cluster = &scenario->cluster;
    double *time_s = ARENA_ARRAY(arena, plan->pp, double);
    double *alpha_s = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        const int peer = plan->pp - 1 - r;
        const bool near = ranks_share_domain(cluster, plan, r, peer);
        const double factor = part_factor(scenario->calibration, near ? PART_INSIDE : PART_ACROSS);
        time_s[r] =
            factor * ranks_message_s(cluster, plan, r, peer, workload->message_bytes, &alpha_s[r]);
        alpha_s[r] *= factor;
    }
    prices->copies_s = time_s;
    prices->copies_alpha_s = alpha_s;
}

// Where each rank of a stage sends its share of a message, the receivers gather it.
//   returns  [num_pools] seconds on each pool
static const double *gathers_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               Arena *arena) {
    double *time_s = ARENA_ARRAY(arena, scenario->cluster.num_pools, double);
    if (workload->message_bytes >= workload->boundary_bytes) return time_s;
    for (int i = 0; i < scenario->cluster.num_pools; i++)
        time_s[i] = collective_s(cluster_machines(&scenario->cluster, i), COLLECTIVE_ALL_GATHER,
                                 plan_group(plan, GROUP_TP), workload->boundary_bytes);
    return time_s;
}

static void messages_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           Arena *arena, Prices *prices) {
    double *message_s = ARENA_ARRAY(arena, plan->pp, double);
    double *alpha_s = ARENA_ARRAY(arena, plan->pp, double);
    StepPart *parts = ARENA_ARRAY(arena, plan->pp, StepPart);
    const double *gather_s = gathers_s(scenario, plan, workload, arena);
    const Cluster *cluster = &scenario->cluster;
    for (int r = 0; r < plan->pp; r++) {
        const int next = (r + 1) % plan->pp;
        bool near = ranks_share_domain(cluster, plan, r, next);
        parts[r] = near ? PART_INSIDE : PART_ACROSS;
        double factor = part_factor(scenario->calibration, parts[r]);
        const double gathered_s = fmax(gather_s[plan_rank_pool(cluster, plan, r)], // both ways
                                       gather_s[plan_rank_pool(cluster, plan, next)]);
        message_s[r] =
            (ranks_message_s(cluster, plan, r, next, workload->message_bytes, &alpha_s[r]) +
             gathered_s) *
            factor;
        alpha_s[r] = (alpha_s[r] + gathered_s) * factor;
    }
    prices->message_s = message_s;
    prices->message_alpha_s = alpha_s;
    prices->message_part = parts;
}

bool backward_is_parts(const Plan *plan, int chunk) {
    if (chunk < plan->num_chunks) return plan_schedule_traits(plan).splits_backward;
    // Of passes over a spread vocabulary S and T divide the output layer.
    return plan->vocab_barriers == 1 && chunk == plan->num_chunks + VOCAB_OUTPUT;
}

Prices chunks_price_shared(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           BlockPrices *blocks, Arena *arena) {
    const PlanPricing p = {scenario, plan, workload, blocks,
                           pricing_context(scenario, plan, 0, arena)};
    Prices prices = {.step_s = scenario->execution.stack.launch.host_step_s *
                               part_factor(scenario->calibration, PART_HOST)};
    prices.forward = phase_price(&p, WORK_FORWARD, arena);
    const ScheduleTraits schedule = plan_schedule_traits(plan);
    const bool splits = schedule.splits_backward;
    if (splits || schedule.mixes_backwards || plan->vocab_barriers == 1) {
        prices.backward_input = phase_price(&p, WORK_BACKWARD_INPUT, arena);
        prices.backward_weight = phase_price(&p, WORK_BACKWARD_WEIGHT, arena);
    }
    Price *whole = splits && !plan->vocab_barriers ? ARENA_ARRAY(arena, workload->num_chunks, Price)
                                                   : phase_price(&p, WORK_BACKWARD, arena);
    for (int c = 0; c < workload->num_chunks; c++) {
        if (!backward_is_parts(plan, c)) continue;
        whole[c] = (Price){0};
        price_add(&whole[c], &prices.backward_input[c], 1);
        price_add(&whole[c], &prices.backward_weight[c], 1);
    }
    prices.backward = whole;
    messages_price(scenario, plan, workload, arena, &prices);
    if (plan_is_dual(plan)) copies_price(scenario, plan, workload, arena, &prices);
    prices.optimizer_s = optimizers_price(scenario, plan, workload, arena);
    return prices;
}

Prices chunks_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                    Arena *arena) {
    return chunks_price_shared(scenario, plan, workload,
                               block_prices_new(&scenario->cluster, arena), arena);
}
