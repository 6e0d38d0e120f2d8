#include "runtime/engine.h"

#include "runtime/mutant.h"
#include "runtime/sharding.h"

#include <math.h>

static Tensor **tensor_table(Arena *arena, int num_chunks, int num_microbatches) {
    return ARENA_ARRAY(arena, (size_t)num_chunks * (size_t)num_microbatches, Tensor *);
}

Status engine_create(Rank *rank, const Program *program, Arena *arena, Engine *out) {
    const int stage = rank->world->index[GROUP_PP], num_chunks = rank->num_chunks;
    const int num = (int)rank->plan->num_microbatches;
    Engine e = {.rank = rank,
                .program = program,
                .instructions = program->ranks[stage].instructions,
                .num_instructions = program->ranks[stage].num_instructions,
                .num_microbatches = num};
    e.local = ARENA_ARRAY(arena, rank->plan->num_chunks, int);
    for (int c = 0; c < rank->plan->num_chunks; c++) e.local[c] = -1;
    for (int k = 0; k < num_chunks; k++) e.local[rank->chunks[k].list.chunk] = k;
    if (stage == 0 && num_chunks > 2 && mutant("chunks-swapped")) {
        e.local[rank->chunks[1].list.chunk] = 2;
        e.local[rank->chunks[2].list.chunk] = 1;
    }
    e.stashes = ARENA_ARRAY(arena, (size_t)num_chunks * (size_t)num, ChunkStash *);
    e.inputs = tensor_table(arena, num_chunks, num);
    e.outputs = tensor_table(arena, num_chunks, num);
    e.gradients = tensor_table(arena, num_chunks, num);
    e.input_gradients = tensor_table(arena, num_chunks, num);
    const size_t num_places = (size_t)num_chunks * (size_t)num;
    e.input_requests = ARENA_ARRAY(arena, num_places, CommRequest *);
    e.gradient_requests = ARENA_ARRAY(arena, num_places, CommRequest *);
    e.sent = ARENA_ARRAY(arena, 2 * num_places, Sent);
    *out = e;
    return engine_open_ways(out, arena);
}

static int index_of(const Engine *e, const Instruction *i) {
    return (int)(i - e->instructions);
}

// --- Computation. It begins when what it waits for is there.

// Hands a result on: to the chunk beside it where that is of this rank, else to be sent.
static void hand_on(Engine *e, const Instruction *i, int to_chunk, Tensor **arrived,
                    Tensor **to_send, Tensor *result) {
    if (!result) return;
    const Instruction next = {.chunk = (int16_t)to_chunk, .microbatch = i->microbatch};
    if (e->local[to_chunk] >= 0)
        arrived[engine_place(e, &next)] = result;
    else
        to_send[engine_place(e, i)] = result;
}

static Status compute_forward(Engine *e, const Instruction *i) {
    const int64_t place = engine_place(e, i);
    Tensor *output = NULL, *input = engine_take(e, &e->inputs[place], &e->input_requests[place]);
    instruction_times_begin(e->times, index_of(e, i));
    TRY(chunk_forward(e->rank, e->local[i->chunk], i->microbatch, input, &e->stashes[place],
                      &output));
    hand_on(e, i, i->chunk + 1, e->inputs, e->outputs, output);
    return status_ok();
}

static void compute_backward(Engine *e, const Instruction *i) {
    const int64_t place = engine_place(e, i);
    const bool split = i->kind == INSTRUCTION_BACKWARD_INPUT;
    Tensor *arrived = engine_take(e, &e->gradients[place], &e->gradient_requests[place]);
    instruction_times_begin(e->times, index_of(e, i));
    Tensor *gradient = chunk_backward(e->rank, e->local[i->chunk], i->microbatch, e->stashes[place],
                                      arrived, split);
    hand_on(e, i, i->chunk - 1, e->gradients, e->input_gradients, gradient);
    if (!split) chunk_stash_free(e->rank, &e->stashes[place]);
}

static void compute_weights(Engine *e, const Instruction *i) {
    const int64_t place = engine_place(e, i);
    engine_sent_drop(e, false);
    chunk_weights(e->rank, e->local[i->chunk], e->stashes[place]);
    chunk_stash_free(e->rank, &e->stashes[place]);
}

// --- Collectives of gradients and weights

static void gradients_close(Engine *e) {
    if (e->gradients_closed) return;
    e->gradients_closed = true;
    engine_exchange_tied(e);
}

// Of all chunks, whole: what a rank's shard does not have is added up in vain. A call a block.
static void partial_gradients_sum(Rank *rank) {
    for (int i = 0; i < rank->num_chunks; i++)
        for (int k = 0; k < rank->chunks[i].list.num_blocks; k++) {
            const FlatState *f = &rank->chunks[i].blocks[k];
            if (f->zero_stage < 2) partial_sum(rank, f, f->gradients);
        }
}

static void reduce(Rank *rank, const FlatState *f, const ProgramCollective *c) {
    Backend *b = rank->backend;
    void *shard = gradient_at(b, f, f->shard_begin);
    if (mutant(f->layout.experts ? "experts-no-reduce" : "dp-no-reduce")) return;
    const bool replica = c->group == GROUP_REPLICA || c->group == GROUP_EREPLICA;
    const bool wrong = replica && mutant("replica-sums-shards");
    Comm *comm = rank_comm(rank, wrong ? GROUP_ZERO : c->group);
    if (c->kind == COLLECTIVE_REDUCE_SCATTER)
        comm->table->reduce_scatter(comm, shard, f->gradients, f->shard_count, b->wide,
                                    rank->stream);
    else if (replica)
        comm->table->all_reduce(comm, shard, f->shard_count, b->wide, REDUCE_SUM, rank->stream);
    else
        comm->table->all_reduce(comm, f->gradients, f->layout.count, b->wide, REDUCE_SUM,
                                rank->stream);
    if (c->kind == COLLECTIVE_REDUCE_SCATTER || replica)
        rank_padding_sent(rank, c->group, replica ? COMM_ALL_REDUCE : COMM_REDUCE_SCATTER, f,
                          replica, b->wide);
}

static void gather(Rank *rank, const FlatState *f, const ProgramCollective *c) {
    Backend *b = rank->backend;
    Comm *comm = rank_comm(rank, c->group);
    if (mutant("zero-stale-weights")) return;
    comm->table->all_gather(comm, f->weights, act_at(b, f->weights, f->shard_begin), f->shard_count,
                            b->act, rank->stream);
    rank_padding_sent(rank, c->group, COMM_ALL_GATHER, f, false, b->act);
}

static bool is_of_experts(GroupKind group) {
    return group == GROUP_EDP || group == GROUP_EZERO || group == GROUP_EREPLICA;
}

static void collective(Engine *e, const Instruction *i) {
    const ProgramCollective *c = &e->program->collectives[i->collective];
    if (c->group == GROUP_TP) {
        partial_gradients_sum(e->rank);
        return;
    }
    const ChunkState *chunk = &e->rank->chunks[e->local[i->chunk]];
    for (int k = 0; k < chunk->list.num_blocks; k++) {
        const FlatState *f = &chunk->blocks[k];
        if (f->layout.count == 0 || f->layout.experts != is_of_experts(c->group)) continue;
        if (c->kind == COLLECTIVE_ALL_GATHER)
            gather(e->rank, f, c);
        else
            reduce(e->rank, f, c);
    }
}

// --- The step

static void step_begin(Engine *e) {
    Rank *rank = e->rank;
    Backend *b = rank->backend;
    e->gradients_closed = false;
    b->table->zero(b, rank->loss, dtype_bytes(b->wide), rank->stream);
    for (int i = 0; i < rank->num_chunks; i++)
        for (int k = 0; k < rank->chunks[i].list.num_blocks; k++) {
            const FlatState *f = &rank->chunks[i].blocks[k];
            const bool shard = f->zero_stage >= 2;
            const int64_t count = shard ? f->shard_count : f->layout.capacity;
            if (count > 0)
                b->table->zero(b, f->gradients, (size_t)count * dtype_bytes(b->wide), rank->stream);
        }
}

typedef struct {
    const UpdateSettings *settings;
    int64_t step;
    EngineHook hook;
    StepValues *values;
} Update;

static Status update(Engine *e, const Update *u) {
    TRY(step_values(e->rank, u->values));
    // Without the sign, which says nothing of what is no number.
    if (!isfinite(u->values->loss) || !isfinite(u->values->gradient_norm))
        return status_error(
            STATUS_NO, "step %lld: loss %g, gradient norm %g: the training has diverged",
            (long long)u->step, fabs(u->values->loss), fabs(u->values->gradient_norm));
    if (u->hook.call) TRY(u->hook.call(u->hook.context, u->values));
    weights_update(e->rank, u->settings, u->values->gradient_norm, u->step);
    return status_ok();
}

static bool ends_gradients(const Instruction *i) {
    return i->kind == INSTRUCTION_OPTIMIZER || i->kind == INSTRUCTION_COLLECTIVE ||
           ((i->kind == INSTRUCTION_SEND || i->kind == INSTRUCTION_RECV) &&
            (i->embedding || i->copies));
}

// Runs an instruction, or the group of messages that begins with it; num_done: how many that are.
static Status instruction_run(Engine *e, int n, const Update *u, int *num_done) {
    const Instruction *i = &e->instructions[n];
    *num_done = 1;
    switch ((InstructionKind)i->kind) {
    case INSTRUCTION_FORWARD:
        return compute_forward(e, i);
    case INSTRUCTION_BACKWARD:
    case INSTRUCTION_BACKWARD_INPUT:
        compute_backward(e, i);
        break;
    case INSTRUCTION_BACKWARD_WEIGHT:
        compute_weights(e, i);
        break;
    case INSTRUCTION_SEND:
    case INSTRUCTION_RECV:
        *num_done = engine_exchange(e, n);
        break;
    case INSTRUCTION_COLLECTIVE:
        collective(e, i);
        break;
    case INSTRUCTION_OPTIMIZER:
        return update(e, u);
    case NUM_INSTRUCTION_KINDS:
        break;
    }
    return status_ok();
}

Status engine_step(Engine *e, const UpdateSettings *settings, int64_t step, EngineHook hook,
                   StepValues *values) {
    const Update u = {settings, step, hook, values};
    instruction_times_step(e->times);
    step_begin(e);
    for (int n = 0, num_done = 1; n < e->num_instructions; n += num_done) {
        if (ends_gradients(&e->instructions[n])) gradients_close(e);
        instruction_times_begin(e->times, n);
        TRY(instruction_run(e, n, &u, &num_done));
        TRY(e->rank->backend->failure);
        instruction_times_end(e->times, n, num_done);
    }
    engine_sent_drop(e, true);
    return e->rank->backend->failure;
}
