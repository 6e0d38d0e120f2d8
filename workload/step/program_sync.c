#include "workload/step/program_sync.h"

#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"
#include "workload/pass/chunk.h"
#include "workload/pass/split.h"
#include "workload/technique/technique.h"

#include <math.h>

enum { MAX_PARTS = 32 };

typedef struct {
    ProgramCollective *collectives;
    int num_collectives;
    const Plan *plan;
    bool weights_by_broadcast;
    int pool, stage; // of the chunk at hand
    int sharding;    // of its layers at hand
    const Plan *own; // plan throughout
} SyncBuilder;

static double grad_bytes(const Scenario *scenario) {
    return reduced_gradient_bytes(&scenario->execution);
}

// Chunks are mostly alike: equal collectives share an entry, so that each is priced once. A name
// stands for one kind.
static int collective_find(SyncBuilder *b, const ProgramCollective *wanted) {
    for (int i = b->num_collectives - 1; i >= 0; i--) {
        const ProgramCollective *c = &b->collectives[i];
        if (c->message_bytes == wanted->message_bytes && c->num_calls == wanted->num_calls &&
            c->name == wanted->name && c->group == wanted->group && c->pool == wanted->pool &&
            c->stage == wanted->stage)
            return i;
    }
    b->collectives[b->num_collectives] = *wanted;
    return b->num_collectives++;
}

// Groups of one rank and empty messages leave no trace.
static void sync_add_calls(SyncBuilder *b, ChunkSync *sync, ProgramCollective wanted) {
    if (plan_group(b->own, wanted.group).size < 2 || wanted.message_bytes <= 0) return;
    wanted.group = sharding_group_kind(b->plan, b->sharding, wanted.group);
    wanted.pool = b->pool;
    wanted.stage = b->stage;
    sync->collectives[sync->num_collectives++] = collective_find(b, &wanted);
}

static void sync_add(SyncBuilder *b, ChunkSync *sync, CollectiveKind kind, GroupKind group,
                     double message_bytes, const char *name) {
    sync_add_calls(
        b, sync,
        (ProgramCollective){kind, group, message_bytes / sync->num_parts, name, 1, 0, 0, 0});
}

// Shardings whose layers are reduced and gathered together: the first of those like this one.
static int sync_sharding(const Plan *plan, int sharding) {
    static const GroupKind GROUPS[] = {GROUP_DP,  GROUP_ZERO,  GROUP_REPLICA,
                                       GROUP_EDP, GROUP_EZERO, GROUP_EREPLICA};
    const Plan *own = plan_sharding(plan, sharding);
    for (int s = 0; s < sharding; s++) {
        const Plan *other = plan_sharding(plan, s);
        bool alike = own->zero_stage == other->zero_stage;
        for (size_t k = 0; k < sizeof GROUPS / sizeof *GROUPS && alike; k++) {
            const Group x = plan_group(own, GROUPS[k]), y = plan_group(other, GROUPS[k]);
            alike = x.size == y.size && x.stride == y.stride;
        }
        if (alike) return s;
    }
    return sharding;
}

// What a chunk holds under this sharding and those like it.
static HeldParameters sync_parameters(const Plan *plan, const Chunk *chunk, int sharding) {
    HeldParameters sum = chunk_held(chunk, sharding);
    for (int s = sharding + 1; s < plan_num_shardings(plan); s++) {
        if (sync_sharding(plan, s) != sharding) continue;
        const HeldParameters own = chunk_held(chunk, s);
        sum.dense += own.dense;
        sum.expert += own.expert;
    }
    return sum;
}

static void reduce_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert) {
    const GroupKind all = expert ? GROUP_EDP : GROUP_DP;
    const GroupKind zero = expert ? GROUP_EZERO : GROUP_ZERO;
    const GroupKind replica = expert ? GROUP_EREPLICA : GROUP_REPLICA;
    if (b->own->zero_stage == 0 || (b->own->zero_stage == 1 && b->weights_by_broadcast)) {
        sync_add(b, sync, COLLECTIVE_ALL_REDUCE, all, bytes,
                 expert ? "expert_grad_all_reduce" : "grad_all_reduce");
        return;
    }
    if (!plan_scatters_gradients(b->own)) // else every backward scatters its own
        sync_add(b, sync, COLLECTIVE_REDUCE_SCATTER, zero, bytes,
                 expert ? "expert_grad_reduce_scatter" : "grad_reduce_scatter");
    sync_add(b, sync, COLLECTIVE_ALL_REDUCE, replica, bytes / plan_group(b->own, zero).size,
             expert ? "expert_grad_shard_all_reduce" : "grad_shard_all_reduce");
}

// Weights of a chunk that are tensors of their own: two products and the MLP's of each layer, its
// norms, the embedding and its counterpart with the last norm.
static double num_tensors(const SyncBuilder *b, const Model *model, int chunk) {
    if (chunk >= b->plan->num_chunks) return 1;
    const PlanChunk *place = &b->plan->chunks[chunk];
    double tensors = b->sharding == PLAN_OWN ? place->embedding + 2 * place->loss : 0;
    for (int l = 0; l < place->num_layers; l++) {
        const int layer = place->first_layer + l;
        const int sharding = plan_layer_sharding(b->plan, chunk, l);
        if (sync_sharding(b->plan, sharding) != b->sharding) continue;
        const bool gated = model->kinds[model->layer_kind[layer]].ffn.gated;
        tensors += 2 + (gated ? 3 : 2) + model->norms_per_layer;
    }
    return tensors;
}

// Each rank that owns tensors sends them to the others.
static void broadcast_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert,
                          double tensors) {
    const GroupKind group = expert ? GROUP_EZERO : GROUP_ZERO;
    int calls = (int)fmax(1, fmin(plan_group(b->own, group).size, tensors) / sync->num_parts);
    double call_bytes = bytes / sync->num_parts / calls;
    sync_add_calls(b, sync,
                   (ProgramCollective){COLLECTIVE_BROADCAST, group, call_bytes,
                                       expert ? "expert_param_broadcast" : "param_broadcast", calls,
                                       0, 0, 0});
}

static void gather_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert) {
    if (b->own->zero_stage != 1 && b->own->zero_stage != 2) return;
    sync_add(b, sync, COLLECTIVE_ALL_GATHER, expert ? GROUP_EZERO : GROUP_ZERO, bytes,
             expert ? "expert_param_all_gather" : "param_all_gather");
}

// FSDP reduces each wrapped block by itself in the backward of the last micro-batch; in a pipeline
// all of a stage after its last backward (pytorch/pytorch, torch/distributed/pipelining/stage.py,
// backward_maybe_with_nosync, and the schedules' REDUCE_GRAD).
static bool reduces_by_layer(const Scenario *scenario, const Plan *plan) {
    const int sharding = scenario->execution.stack.training.sharding;
    const bool wraps = sharding == SHARDING_FLAT || sharding == SHARDING_PER_PARAMETER;
    return wraps && plan->pp == 1 && plan->zero_stage >= 2 && plan->reduces_once;
}

// Pieces that are worth a collective each: buckets of the stack, no finer than layers.
static int num_parts(const Scenario *scenario, const Plan *plan, const Chunk *chunk) {
    const double bytes =
        (chunk->dense_parameters + chunk->expert_parameters) * grad_bytes(scenario);
    double parts = ceil(bytes / scenario->execution.stack.training.bucket_bytes);
    int most = chunk->num_layers < MAX_PARTS ? chunk->num_layers : MAX_PARTS;
    if (most < 1 || parts < 1) return 1;
    return parts < most && !reduces_by_layer(scenario, plan) ? (int)parts : most;
}

// Whose collectives those of a chunk are.
static void chunk_find(SyncBuilder *b, const Cluster *cluster, int chunk) {
    const int rank = plan_chunk_rank(b->plan, chunk);
    b->pool = plan_rank_pool(cluster, b->plan, rank);
    const Machines machines = cluster_machines(cluster, b->pool);
    const Pool *pool = machines.pool;
    const bool uneven = machines.network->sites || pool->oversubscription > 1 ||
                        (pool->wires && plan_block_gpus(b->plan) < pool->domain_gpus);
    b->stage = uneven && cluster->num_pools == 1 ? rank + 1 : 0;
}

// The collectives of a chunk's layers that have this sharding.
static void sharding_add(SyncBuilder *b, const Scenario *scenario, const Workload *workload,
                         int chunk, ChunkSync *reduce, ChunkSync *gather) {
    const HeldParameters held = sync_parameters(b->plan, &workload->chunks[chunk], b->sharding);
    const double weight_bytes = gathered_weight_bytes(&scenario->execution);
    const double gradient_bytes = grad_bytes(scenario);
    reduce_add(b, reduce, held.dense * gradient_bytes, false);
    reduce_add(b, reduce, held.expert * gradient_bytes, true);
    for (int expert = 0; expert < 2; expert++) {
        const double bytes = (expert ? held.expert : held.dense) * weight_bytes;
        if (b->own->zero_stage == 1 && b->weights_by_broadcast)
            broadcast_add(b, gather, bytes, expert, num_tensors(b, &scenario->model, chunk));
        else
            gather_add(b, gather, bytes, expert);
    }
}

// Whether the tp ranks of two shardings are the same.
static bool same_tp(const Plan *a, const Plan *b) {
    const Group x = plan_group(a, GROUP_TP), y = plan_group(b, GROUP_TP);
    return x.size == y.size && x.stride == y.stride;
}

// Shardings whose partial gradients are added up in one piece: the first of those like this one.
static int sum_sharding(const Plan *plan, int sharding) {
    for (int s = 0; s < sharding; s++)
        if (same_tp(plan_sharding(plan, s), plan_sharding(plan, sharding))) return s;
    return sharding;
}

// Of a rank's chunks, what layers of a sharding and those like it add up at the end of a step.
static double sum_bytes(const Execution *execution, const Plan *plan, const Workload *workload,
                        int rank, int sharding) {
    double bytes = 0;
    for (int s = sharding; s < plan_num_shardings(plan); s++) {
        if (sum_sharding(plan, s) != sharding) continue;
        double partial = 0;
        for (int k = 0; k < plan->vpp; k++)
            partial += chunk_held(&workload->chunks[plan_rank_chunk(plan, rank, k)], s).partial;
        bytes += partial_sum_bytes(execution, plan_num_scattered(plan_sharding(plan, s)), partial);
    }
    return bytes;
}

static void rank_sum(SyncBuilder *b, const Scenario *scenario, const Workload *workload, int rank,
                     ChunkSync *sum) {
    chunk_find(b, &scenario->cluster, plan_rank_chunk(b->plan, rank, 0));
    for (b->sharding = 0; b->sharding < plan_num_shardings(b->plan); b->sharding++) {
        if (sum_sharding(b->plan, b->sharding) != b->sharding) continue;
        b->own = plan_sharding(b->plan, b->sharding);
        const double bytes = sum_bytes(&scenario->execution, b->plan, workload, rank, b->sharding);
        sync_add(b, sum, COLLECTIVE_ALL_REDUCE, GROUP_TP, bytes, "tp_grad_all_reduce");
    }
}

static ChunkSync sync_start(int num_parts, int num_shardings, Arena *arena) {
    return (ChunkSync){.num_parts = num_parts,
                       .collectives =
                           ARENA_ARRAY(arena, SYNC_MAX_COLLECTIVES * num_shardings, int)};
}

SyncPlan sync_plan(const Scenario *scenario, const Plan *plan, const Workload *workload,
                   Arena *arena) {
    const Execution *execution = &scenario->execution;
    const int num_chunks = workload->num_chunks, num_shardings = plan_num_shardings(plan);
    SyncBuilder b = {.plan = plan,
                     .weights_by_broadcast = execution->stack.training.weights_by_broadcast};
    b.collectives =
        ARENA_ARRAY(arena, (6 * num_chunks + plan->pp) * num_shardings, ProgramCollective);
    ChunkSync *reduce = ARENA_ARRAY(arena, num_chunks, ChunkSync);
    ChunkSync *gather = ARENA_ARRAY(arena, num_chunks, ChunkSync);
    const StepTraits traits = step_traits(execution);
    for (int c = 0; c < num_chunks; c++) {
        const int parts = num_parts(scenario, plan, &workload->chunks[c]);
        if (c < plan->num_chunks) chunk_find(&b, &scenario->cluster, c);
        if (c == plan->num_chunks) b.stage = 0; // of every rank
        reduce[c] = sync_start(traits.reduces_beside ? parts : 1, num_shardings, arena);
        gather[c] = sync_start(traits.gathers_beside ? parts : 1, num_shardings, arena);
        for (b.sharding = 0; b.sharding < num_shardings; b.sharding++) {
            if (sync_sharding(plan, b.sharding) != b.sharding) continue;
            b.own = plan_sharding(plan, b.sharding);
            sharding_add(&b, scenario, workload, c, &reduce[c], &gather[c]);
        }
        if (reduce[c].num_collectives == 0) reduce[c].num_parts = 1;
        if (gather[c].num_collectives == 0) gather[c].num_parts = 1;
    }
    ChunkSync *sums = ARENA_ARRAY(arena, plan->pp, ChunkSync);
    for (int r = 0; r < plan->pp; r++) {
        sums[r] = sync_start(1, num_shardings, arena);
        rank_sum(&b, scenario, workload, r, &sums[r]);
    }
    return (SyncPlan){reduce, gather, sums, b.collectives, b.num_collectives};
}

double sync_embedding_bytes(const Scenario *scenario, const Plan *plan) {
    const Model *model = &scenario->model;
    // One rank holds both where the vocabulary is spread, too.
    if (!model->tie_word_embeddings || plan_joins_ends(plan) || plan->vocab_barriers) return 0;
    if (fine_tuning_freezes_part(&scenario->training.tuning, FROZEN_EMBEDDING)) return 0;
    double bytes = vocab_rows(model, plan) * model->hidden_size * grad_bytes(scenario);
    return bytes / plan_num_scattered(plan);
}

const double *sync_copies_bytes(const Scenario *scenario, const Plan *plan,
                                const Workload *workload, Arena *arena) {
    if (!plan_is_dual(plan)) return NULL;
    double *bytes = ARENA_ARRAY(arena, plan->num_chunks, double);
    for (int c = 0; c < plan->num_chunks; c++)
        for (int s = 0; s < plan_num_shardings(plan); s++) {
            const Plan *own = plan_sharding(plan, s);
            const HeldParameters held = chunk_held(&workload->chunks[c], s);
            const bool sharded = own->zero_stage >= 1;
            const int dense_shards = sharded ? plan_group(own, GROUP_ZERO).size : 1;
            const int expert_shards = sharded ? plan_group(own, GROUP_EZERO).size : 1;
            bytes[c] +=
                (held.dense / dense_shards + held.expert / expert_shards) * grad_bytes(scenario);
        }
    return bytes;
}
