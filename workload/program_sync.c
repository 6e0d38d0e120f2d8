#include "workload/program_sync.h"

#include "workload/bytes.h"

#include <math.h>

enum { MAX_PARTS = 32 };

typedef struct {
    ProgramCollective *collectives;
    int num_collectives;
    const Plan *plan;
    bool weights_by_broadcast;
    int machines, stage; // of the chunk at hand
} SyncBuilder;

static double grad_bytes(const Scenario *scenario) {
    return reduced_gradient_bytes(&scenario->training);
}

// Chunks are mostly alike: equal collectives share an entry, so that each is priced once. A name
// stands for one kind and group.
static int collective_find(SyncBuilder *b, const ProgramCollective *wanted) {
    for (int i = b->num_collectives - 1; i >= 0; i--) {
        const ProgramCollective *c = &b->collectives[i];
        if (c->message_bytes == wanted->message_bytes && c->num_calls == wanted->num_calls &&
            c->name == wanted->name && c->machines == wanted->machines && c->stage == wanted->stage)
            return i;
    }
    b->collectives[b->num_collectives] = *wanted;
    return b->num_collectives++;
}

// Groups of one rank and empty messages leave no trace.
static void sync_add_calls(SyncBuilder *b, ChunkSync *sync, ProgramCollective wanted) {
    if (plan_group(b->plan, wanted.group).size < 2 || wanted.message_bytes <= 0) return;
    wanted.machines = b->machines;
    wanted.stage = b->stage;
    sync->collectives[sync->num_collectives++] = collective_find(b, &wanted);
}

static void sync_add(SyncBuilder *b, ChunkSync *sync, CollectiveKind kind, GroupKind group,
                     double message_bytes, const char *name) {
    sync_add_calls(
        b, sync,
        (ProgramCollective){kind, group, message_bytes / sync->num_parts, name, 1, 0, 0, 0});
}

static void reduce_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert) {
    const GroupKind all = expert ? GROUP_EDP : GROUP_DP;
    const GroupKind zero = expert ? GROUP_EZERO : GROUP_ZERO;
    const GroupKind replica = expert ? GROUP_EREPLICA : GROUP_REPLICA;
    if (b->plan->zero_stage == 0 || (b->plan->zero_stage == 1 && b->weights_by_broadcast)) {
        sync_add(b, sync, COLLECTIVE_ALL_REDUCE, all, bytes,
                 expert ? "expert_grad_all_reduce" : "grad_all_reduce");
        return;
    }
    if (b->plan->zero_stage == 1) // from 2 on every backward scatters its own
        sync_add(b, sync, COLLECTIVE_REDUCE_SCATTER, zero, bytes,
                 expert ? "expert_grad_reduce_scatter" : "grad_reduce_scatter");
    sync_add(b, sync, COLLECTIVE_ALL_REDUCE, replica, bytes / plan_group(b->plan, zero).size,
             expert ? "expert_grad_shard_all_reduce" : "grad_shard_all_reduce");
}

// Weights of a chunk that are tensors of their own: two products and the MLP's of each layer, its
// norms, the embedding and its counterpart with the last norm.
static double num_tensors(const Model *model, const Chunk *chunk, const PlanChunk *place) {
    double layer = 2 + (model->gated_mlp ? 3 : 2) + model->norms_per_layer;
    return chunk->num_layers * layer + place->embedding + 2 * place->loss;
}

// Each rank that owns tensors sends them to the others.
static void broadcast_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert,
                          double tensors) {
    const GroupKind group = expert ? GROUP_EZERO : GROUP_ZERO;
    int calls = (int)fmax(1, fmin(plan_group(b->plan, group).size, tensors) / sync->num_parts);
    double call_bytes = bytes / sync->num_parts / calls;
    sync_add_calls(b, sync,
                   (ProgramCollective){COLLECTIVE_BROADCAST, group, call_bytes,
                                       expert ? "expert_param_broadcast" : "param_broadcast", calls,
                                       0, 0, 0});
}

static void gather_add(SyncBuilder *b, ChunkSync *sync, double bytes, bool expert) {
    if (b->plan->zero_stage != 1 && b->plan->zero_stage != 2) return;
    sync_add(b, sync, COLLECTIVE_ALL_GATHER, expert ? GROUP_EZERO : GROUP_ZERO, bytes,
             expert ? "expert_param_all_gather" : "param_all_gather");
}

// Pieces that are worth a collective each: buckets of the stack, no finer than layers.
static int num_parts(const Scenario *scenario, const Chunk *chunk) {
    const double bytes =
        (chunk->dense_parameters + chunk->expert_parameters) * grad_bytes(scenario);
    double parts = ceil(bytes / scenario->training.stack.bucket_bytes);
    int most = chunk->num_layers < MAX_PARTS ? chunk->num_layers : MAX_PARTS;
    if (most < 1 || parts < 1) return 1;
    return parts < most ? (int)parts : most;
}

// Whose collectives those of a chunk are.
static void chunk_find(SyncBuilder *b, const Cluster *cluster, int chunk) {
    const int rank = plan_chunk_rank(b->plan, chunk);
    b->machines = plan_rank_group(cluster, b->plan, rank);
    const bool uneven = cluster->sites || cluster->oversubscription > 1 ||
                        (cluster->wires && plan_stage_gpus(b->plan) < cluster->domain_gpus);
    b->stage = uneven && !cluster->groups ? rank + 1 : 0;
}

SyncPlan sync_plan(const Scenario *scenario, const Plan *plan, const Workload *workload,
                   Arena *arena) {
    const Training *training = &scenario->training;
    const int num_chunks = workload->num_chunks;
    const double weight_bytes = gathered_weight_bytes(training);
    SyncBuilder b = {.plan = plan, .weights_by_broadcast = training->stack.weights_by_broadcast};
    b.collectives = ARENA_ARRAY(arena, 6 * num_chunks, ProgramCollective);
    ChunkSync *reduce = ARENA_ARRAY(arena, num_chunks, ChunkSync);
    ChunkSync *gather = ARENA_ARRAY(arena, num_chunks, ChunkSync);
    for (int c = 0; c < num_chunks; c++) {
        const Chunk *chunk = &workload->chunks[c];
        const int parts = num_parts(scenario, chunk);
        if (c < plan->num_chunks) chunk_find(&b, &scenario->cluster, c);
        if (c == plan->num_chunks) b.stage = 0; // of every rank
        reduce[c].num_parts = training->overlap_grad_reduce ? parts : 1;
        gather[c].num_parts = training->overlap_param_gather ? parts : 1;
        reduce_add(&b, &reduce[c], chunk->dense_parameters * grad_bytes(scenario), false);
        reduce_add(&b, &reduce[c], chunk->expert_parameters * grad_bytes(scenario), true);
        for (int expert = 0; expert < 2; expert++) {
            double parameters = expert ? chunk->expert_parameters : chunk->dense_parameters;
            if (plan->zero_stage == 1 && b.weights_by_broadcast)
                broadcast_add(&b, &gather[c], parameters * weight_bytes, expert,
                              c < plan->num_chunks
                                  ? num_tensors(&scenario->model, chunk, &plan->chunks[c])
                                  : 1);
            else
                gather_add(&b, &gather[c], parameters * weight_bytes, expert);
        }
        if (reduce[c].num_collectives == 0) reduce[c].num_parts = 1;
        if (gather[c].num_collectives == 0) gather[c].num_parts = 1;
    }
    return (SyncPlan){reduce, gather, b.collectives, b.num_collectives};
}

double sync_embedding_bytes(const Scenario *scenario, const Plan *plan) {
    const Model *model = &scenario->model;
    // One rank holds both in dual pipelines, and where the vocabulary is spread.
    if (!model->tie_word_embeddings || plan->pp == 1 || plan_is_dual(plan) || plan->vocab_barriers)
        return 0;
    double bytes = (double)model->vocab_size * model->hidden_size / plan->tp * grad_bytes(scenario);
    return plan->zero_stage == 3 ? bytes / plan_group(plan, GROUP_ZERO).size : bytes;
}

const double *sync_copies_bytes(const Scenario *scenario, const Plan *plan,
                                const Workload *workload, Arena *arena) {
    if (!plan_is_dual(plan)) return NULL;
    const bool sharded = plan->zero_stage >= 1;
    const int dense_shards = sharded ? plan_group(plan, GROUP_ZERO).size : 1;
    const int expert_shards = sharded ? plan_group(plan, GROUP_EZERO).size : 1;
    double *bytes = ARENA_ARRAY(arena, plan->num_chunks, double);
    for (int c = 0; c < plan->num_chunks; c++)
        bytes[c] = (workload->chunks[c].dense_parameters / dense_shards +
                    workload->chunks[c].expert_parameters / expert_shards) *
                   grad_bytes(scenario);
    return bytes;
}
