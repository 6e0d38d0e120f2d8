#include "runtime/run_setup.h"

#include "backend/cpu_backend.h"
#include "backend/cuda_backend.h"
#include "runtime/context.h"
#include "runtime/mutant.h"
#include "workload/step/runtime_limits.h"

#include <stdlib.h>

static Dtype dtype_of(const TrainOptions *options, const Execution *execution) {
    if (options->dtype != NUM_DTYPES) return (Dtype)options->dtype;
    if (execution->precision == PRECISION_FP64) return DTYPE_FP64;
    if (execution->precision == PRECISION_BF16 && options->cuda) return DTYPE_BF16;
    return DTYPE_FP32;
}

// The plan in the format that it is run in: so the Program's bytes are those of the run.
static Status plan_read(Run *run) {
    const TrainOptions *o = run->options;
    TRY(scenario_load(o->plan, &run->arena, &run->scenario));
    TRY(scenario_refuse_unsupported(&run->scenario));
    TRY(plan_resolve(&run->scenario, &run->arena, &run->plan));
    TRY(runtime_supports(&run->scenario, &run->plan));
    const Dtype dtype = dtype_of(o, &run->scenario.execution);
    const int precision = dtype == DTYPE_FP64   ? PRECISION_FP64
                          : dtype == DTYPE_FP32 ? PRECISION_FP32
                                                : PRECISION_BF16;
    run->scenario.execution.precision = precision;
    run->workload = workload_build(&run->scenario, &run->plan, &run->arena);
    run->program = program_build(&run->scenario, &run->plan, &run->workload, &run->arena);
    return status_ok();
}

// Messages that wait on the device for their other end must hold up nobody: work of streams that
// share one of its queues waits for each other, and so does the loading of a kernel at its first
// launch (CUDA C++ Programming Guide, "Lazy Loading", on kernels that run concurrently) and the
// memory that NCCL allocates where a group connects at its first collective. (Groups that exchange
// - experts, cp, tied words - connect at their first exchange in any case: docs/gpu.md.)
static void messages_apart(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("NCCL_RUNTIME_CONNECT", "0", 0); // groups connect when they are made
}

static Status backend_open(Run *run) {
    const TrainOptions *o = run->options;
    const Dtype dtype = dtype_of(o, &run->scenario.execution);
    const bool beside = run->plan.pp > 1 && program_hides_messages(&run->scenario, &run->plan);
    if (o->cuda && beside) messages_apart();
    if (o->cuda) return cuda_backend_open(run->world->local_rank, dtype, &run->backend);
    if (dtype == DTYPE_BF16)
        return status_error(STATUS_INVALID, "--dtype bf16: the CPU has fp32 and fp64");
    return cpu_backend_open(dtype, 0, &run->backend);
}

// Ranks that share one set of shards, and this one's place among them.
static int shards_of(const Run *run, GroupKind group, int *shard) {
    const bool sharded = run->plan.zero_stage >= 1;
    *shard = sharded ? run->world->index[group] : 0;
    return sharded ? plan_group(&run->plan, group).size : 1;
}

static Status chunks_create(Run *run) {
    Rank *rank = &run->rank;
    const Plan *plan = &run->plan;
    const int *index = rank->world->index;
    ChunkStart start = {.optimizer = (Optimizer)run->scenario.training.optimizer,
                        .zero_stage = plan->zero_stage,
                        .seed = run->options->seed};
    start.num_shards = shards_of(run, GROUP_ZERO, &start.shard);
    const bool experts = model_is_moe(&run->scenario.model);
    start.num_expert_shards = shards_of(run, GROUP_EZERO, &start.expert_shard);
    const bool sharded = start.num_shards > 1 || (experts && start.num_expert_shards > 1);
    const ParameterShare share = {.tp_index = index[GROUP_TP],
                                  .ep_index = index[GROUP_EP],
                                  .etp_index = index[GROUP_ETP],
                                  .num_shards = start.num_shards,
                                  .num_expert_shards = start.num_expert_shards,
                                  .by_block = plan->zero_stage >= 2 && sharded};
    rank->num_chunks = plan->vpp;
    rank->chunks = ARENA_ARRAY(&run->arena, plan->vpp, ChunkState);
    for (int k = 0; k < plan->vpp; k++) {
        const int chunk = plan_rank_chunk(plan, index[GROUP_PP], k);
        const ChunkParameters list =
            chunk_parameters(&run->scenario, plan, chunk, &share, &run->arena);
        TRY(chunk_state_create(run->backend, &list, &start, &run->arena, &rank->chunks[k]));
        if (list.table) rank->table = &rank->chunks[k];
    }
    return status_ok();
}

// Whole rounds of experts, one token after the other by its place in its sequence: so that every
// split of a plan gives a token the same experts, and every rank as many tokens to each.
static Status balanced_create(Run *run) {
    Rank *rank = &run->rank;
    const RankShape *s = &rank->shape;
    const int num_experts = model_ffn(&run->scenario.model)->num_experts,
              *index = rank->world->index;
    if (!run->options->balanced || num_experts == 0) return status_ok();
    int32_t *chosen = ARENA_ARRAY(&run->arena, s->routed, int32_t);
    int64_t *tokens = ARENA_ARRAY(&run->arena, num_experts, int64_t);
    for (int64_t i = 0; i < s->routed; i++) {
        const int64_t token =
            index[GROUP_TP] % (s->tokens / s->tokens_sp) * s->tokens_sp + i / s->experts_per_token;
        const int64_t place =
            context_position(s, run->plan.cp, index[GROUP_CP], token % s->seq_len);
        chosen[i] =
            (int32_t)((place * s->experts_per_token + i % s->experts_per_token) % num_experts);
        tokens[chosen[i]]++;
    }
    rank->balanced = chosen;
    for (int e = 1; e < num_experts; e++)
        if (tokens[e] != tokens[0])
            return status_error(STATUS_INVALID,
                                "--routing balanced: the %lld tokens of a rank, %d experts each, "
                                "are not as many for each of %d experts; expected a multiple",
                                (long long)s->tokens_sp, s->experts_per_token, num_experts);
    return status_ok();
}

// Where the rows of all cp ranks' tokens lie by rank, and where by sequence.
static Status rows_create(Run *run) {
    Rank *rank = &run->rank;
    const BackendTable *t = run->backend->table;
    const RankShape *s = &rank->shape;
    const int cp = run->plan.cp;
    const size_t bytes = (size_t)(s->tokens * cp) * sizeof(int32_t);
    int32_t *from = malloc(bytes), *to = malloc(bytes);
    for (int64_t row = 0; row < s->tokens * cp && from && to; row++) {
        const int64_t source = row / s->tokens, i = row % s->tokens;
        const int64_t place =
            context_position(s, cp, (int)source, i % s->seq_len) + i / s->seq_len * s->seq_len * cp;
        from[place] = (int32_t)row;
        to[row] = (int32_t)place;
    }
    rank->from_ranks = t->alloc(run->backend, bytes);
    rank->to_ranks = t->alloc(run->backend, bytes);
    Status status = from && to ? run->backend->failure
                               : status_error(STATUS_MACHINE, "no memory for the places of tokens");
    if (status.code == STATUS_OK) {
        t->upload(run->backend, rank->from_ranks, from, bytes, rank->stream);
        t->upload(run->backend, rank->to_ranks, to, bytes, rank->stream);
        status = backend_sync(run->backend);
    }
    free(from);
    free(to);
    return status;
}

// Positions of the tokens, and places for what is uploaded with each step.
static Status tokens_create(Run *run) {
    Rank *rank = &run->rank;
    const BackendTable *t = run->backend->table;
    const int64_t tokens = rank->shape.tokens, all = run->plan.num_microbatches * tokens;
    run->host = malloc(2 * (size_t)all * sizeof *run->host);
    run->sequence = malloc(2 * (size_t)run->corpus.seq_len * sizeof *run->sequence);
    rank->positions = t->alloc(run->backend, (size_t)tokens * sizeof *rank->positions);
    rank->tokens = t->alloc(run->backend, 2 * (size_t)all * sizeof *rank->tokens);
    rank->loss = t->alloc(run->backend, dtype_bytes(run->backend->wide));
    TRY(run->backend->failure);
    if (!run->host || !run->sequence)
        return status_error(STATUS_MACHINE, "no memory for %lld tokens", (long long)all);
    rank->targets = rank->tokens + all;
    for (int64_t i = 0; i < tokens; i++)
        run->host[i] = (int32_t)context_position(
            &rank->shape, run->plan.cp, rank->world->index[GROUP_CP], i % rank->shape.seq_len);
    t->upload(run->backend, rank->positions, run->host, (size_t)tokens * sizeof *run->host,
              rank->stream);
    TRY(backend_sync(run->backend));
    return run->plan.cp > 1 ? rows_create(run) : status_ok();
}

static Status times_create(Run *run) {
    const Group pp = plan_group(&run->plan, GROUP_PP);
    int *num_of = ARENA_ARRAY(&run->arena, run->world->size, int);
    for (int r = 0; r < run->world->size; r++)
        num_of[r] = run->program.ranks[r / pp.stride % pp.size].num_instructions;
    run->engine.times = &run->times;
    return instruction_times_create(run->options->times, run->backend, run->world, num_of,
                                    &run->times);
}

static Status rank_create(Run *run, const World *world) {
    const TrainingJob *training = &run->scenario.training;
    run->rank = (Rank){.scenario = &run->scenario,
                       .plan = &run->plan,
                       .backend = run->backend,
                       .stream = run->backend->stream,
                       .world = world,
                       .pool = {.backend = run->backend, .arena = &run->arena},
                       .shape = rank_shape(&run->scenario, &run->plan)};
    run->rank.loss_scale = 1 / ((double)training->global_batch * (double)training->seq_len);
    TRY(chunks_create(run));
    TRY(tokens_create(run));
    TRY(balanced_create(run));
    if (!run->rank.balanced && model_is_moe(&run->scenario.model) && run->plan.ep > 1)
        run->rank.expert_load = expert_load_new(run->scenario.model.num_layers, &run->arena);
    TRY(engine_create(&run->rank, &run->program, &run->arena, &run->engine));
    return run->options->times ? times_create(run) : status_ok();
}

// A system promises its processes more memory than it has, and kills one when they write to it.
static Status memory_suffices(const Run *run) {
    double bytes = run->account.peak_bytes;
    if (run->options->cuda) return status_ok();
    TRY(world_machine_sum(run->world, &bytes));
    const double gib = 1.0 / (1 << 30), has = (double)run->backend->memory_bytes;
    if (bytes <= has) return status_ok();
    return status_error(
        STATUS_MACHINE,
        "%s: the plan's processes on this machine are to need %.1f GiB of memory, and it "
        "has %.1f GiB",
        run->options->plan, bytes * gib, has * gib);
}

Status run_prepare(const TrainOptions *o, World *world, Run *run) {
    *run = (Run){.options = o, .world = world};
    TRY(plan_read(run));
    TRY(corpus_open(o->data, run->scenario.model.vocab_size, run->scenario.training.seq_len,
                    o->seed, &run->corpus));
    TRY(world_check(world, &run->plan, o->plan));
    TRY(backend_open(run));
    backend_reset_peak(run->backend);
    const Group pp = plan_group(&run->plan, GROUP_PP);
    run->account = memory_running_sum(&run->scenario, &run->plan, &run->workload, &run->program,
                                      world->rank / pp.stride % pp.size);
    TRY(memory_suffices(run));
    TRY(world_connect(world, &run->plan, model_is_moe(&run->scenario.model), o->cuda,
                      run->backend));
    return rank_create(run, world);
}

void run_free(Run *run) {
    Rank *rank = &run->rank;
    Backend *b = run->backend;
    if (run->world) world_disconnect(run->world);
    for (int i = 0; i < rank->num_chunks; i++) chunk_state_free(b, &rank->chunks[i]);
    const int64_t tokens = rank->shape.tokens * (int64_t)sizeof(int32_t);
    if (rank->positions) b->table->release(b, rank->positions, (size_t)tokens);
    if (rank->from_ranks) b->table->release(b, rank->from_ranks, (size_t)(run->plan.cp * tokens));
    if (rank->to_ranks) b->table->release(b, rank->to_ranks, (size_t)(run->plan.cp * tokens));
    if (rank->tokens)
        b->table->release(b, rank->tokens, 2 * (size_t)(run->plan.num_microbatches * tokens));
    if (rank->loss) b->table->release(b, rank->loss, dtype_bytes(b->wide));
    if (b) b->table->close(b);
    corpus_free(&run->corpus);
    free(run->host);
    free(run->sequence);
    arena_free(&run->arena);
    *run = (Run){0};
}

// This rank's part of the global batch: replica after replica, each micro-batch after micro-batch;
// of each sequence the tokens that its cp rank has.
void run_upload(Run *run, int64_t step) {
    const Rank *rank = &run->rank;
    const RankShape *s = &rank->shape;
    const int cp = run->plan.cp, index = rank->world->index[GROUP_CP];
    const int64_t num = run->plan.num_microbatches * s->sequences, all = num * s->seq_len;
    const Plan *plan = rank->plan;
    const int dp = mutant("order-other-batch") ? rank->world->rank / plan->tp % (plan->dp * cp)
                                               : rank->world->index[GROUP_DP];
    const int64_t first = dp / cp * num;
    for (int64_t i = 0; i < num; i++) {
        int32_t *tokens = run->host + i * s->seq_len, *whole = run->sequence;
        corpus_sequence(&run->corpus, step, first + i, whole, whole + run->corpus.seq_len);
        for (int64_t k = 0; k < s->seq_len; k++) {
            const int64_t place = context_position(s, cp, index, k);
            tokens[k] = whole[place];
            tokens[all + k] = whole[run->corpus.seq_len + place];
        }
    }
    run->backend->table->upload(run->backend, rank->tokens, run->host,
                                2 * (size_t)all * sizeof *run->host, rank->stream);
}
