// Chunks: what each is made of, and what it holds while it runs.
#include "workload/pass/chunk.h"

#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"

#include <math.h>
#include <string.h>

int layer_block_index(int kind, int strategy) {
    if (strategy < NEAR_STRATEGIES) return BLOCK_FIRST_LAYER + NEAR_STRATEGIES * kind + strategy;
    return MAX_BLOCKS + (strategy - NEAR_STRATEGIES) * MODEL_MAX_LAYER_KINDS + kind;
}

const Block *workload_layer_block(const Workload *workload, int layer_kind, int strategy) {
    return &workload->blocks[layer_block_index(layer_kind, strategy)];
}

int chunk_first_change(const Plan *plan) {
    const int num_strategies = plan_num_strategies(plan);
    return num_strategies <= NEAR_STRATEGIES ? MAX_BLOCKS : layer_block_index(0, num_strategies);
}

int change_block_index(const Plan *plan, int from, int to) {
    return chunk_first_change(plan) + plan_layout(plan, from) * plan_num_layouts(plan) +
           plan_layout(plan, to);
}

int chunk_num_blocks(const Plan *plan) {
    const int num_layouts = plan_num_layouts(plan);
    return chunk_first_change(plan) + (num_layouts > 1 ? num_layouts * num_layouts : 0);
}

const Block *workload_change_block(const Workload *workload, const Plan *plan, int from, int to) {
    return &workload->blocks[change_block_index(plan, from, to)];
}

HeldParameters chunk_held(const Chunk *chunk, int sharding) {
    if (chunk->of_sharding) return chunk->of_sharding[sharding];
    return (HeldParameters){chunk->dense_parameters, chunk->expert_parameters,
                            chunk->partial_parameters, chunk->frozen};
}

// A chunk while it is built.
typedef struct {
    Chunk chunk;
    int *num_blocks;
    HeldParameters *of_sharding; // or NULL
} ChunkBuilder;

static ChunkBuilder chunk_start(const Plan *plan, const Workload *workload, Arena *arena) {
    const int num_shardings = plan_num_shardings(plan);
    ChunkBuilder b = {.num_blocks = ARENA_ARRAY(arena, workload->num_blocks, int)};
    if (num_shardings > 1) b.of_sharding = ARENA_ARRAY(arena, num_shardings, HeldParameters);
    b.chunk.num_blocks = b.num_blocks;
    b.chunk.of_sharding = b.of_sharding;
    return b;
}

// What is added once for each of `count` blocks, one after the other. Whole numbers, as nearly all
// bytes are, add up exactly: their sum is a product.
static double added(double sum, int count, double each) {
    static const double EXACT = 9007199254740992; // 2^53
    const double all = count * each;
    if (sum == trunc(sum) && each == trunc(each) && fabs(sum) + fabs(all) < EXACT) return sum + all;
    for (int i = 0; i < count; i++) sum += each;
    return sum;
}

static void frozen_add(FrozenBytes *sum, int count, FrozenBytes each) {
    sum->dense = added(sum->dense, count, each.dense);
    sum->expert = added(sum->expert, count, each.expert);
}

//   held  by each of `count` blocks
static void chunk_hold(ChunkBuilder *builder, int sharding, int count, HeldParameters held) {
    Chunk *chunk = &builder->chunk;
    chunk->dense_parameters = added(chunk->dense_parameters, count, held.dense);
    chunk->expert_parameters = added(chunk->expert_parameters, count, held.expert);
    chunk->partial_parameters = added(chunk->partial_parameters, count, held.partial);
    frozen_add(&chunk->frozen, count, held.frozen);
    if (!builder->of_sharding) return;
    HeldParameters *own = &builder->of_sharding[sharding];
    own->dense = added(own->dense, count, held.dense);
    own->expert = added(own->expert, count, held.expert);
    own->partial = added(own->partial, count, held.partial);
    frozen_add(&own->frozen, count, held.frozen);
}

static void chunk_add(ChunkBuilder *builder, const Workload *workload, int block, int count) {
    const Block *b = &workload->blocks[block];
    Chunk *chunk = &builder->chunk;
    builder->num_blocks[block] += count;
    chunk_hold(builder, b->sharding, count,
               (HeldParameters){b->dense_parameters, b->expert_parameters, b->partial_parameters,
                                b->frozen});
    chunk->saved_bytes = added(chunk->saved_bytes, count, b->saved_bytes);
    chunk->deferred_bytes = added(chunk->deferred_bytes, count, b->deferred_bytes);
}

// The chunk's blocks in the order of their numbers.
static int runs_of(const Chunk *chunk, BlockRun *runs) {
    int num_runs = 0;
    for (int i = 0; i < MAX_BLOCKS; i++) // only where layers have no strategies of their own
        if (chunk->num_blocks[i] > 0) runs[num_runs++] = (BlockRun){i, chunk->num_blocks[i]};
    return num_runs;
}

// What the peaks of a chunk are made of, beside its blocks.
typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Workload *workload;
    double shared_table; // parameters of a word table that is gathered for the head too, or 0
} Peaks;

static Peaks peaks_of(const Scenario *scenario, const Plan *plan, const Workload *workload) {
    const Model *m = &scenario->model;
    const bool shared = m->tie_word_embeddings && plan_joins_ends(plan) && !plan->vocab_barriers &&
                        !fine_tuning_freezes_part(&scenario->training.tuning, FROZEN_EMBEDDING);
    return (Peaks){scenario, plan, workload, shared ? vocab_rows(m, plan) * m->hidden_size : 0};
}

// Whether the gradients of a block's weights are whole while this is done.
static bool makes_gradients(const Block *block, WorkKind work) {
    if (work == WORK_FORWARD || work == WORK_BACKWARD) return work == WORK_BACKWARD;
    return (block->gradients_phase == PHASE_BACKWARD_WEIGHT) == (work == WORK_BACKWARD_WEIGHT);
}

// Of a parameter that ZeRO shards as `plan` says and a block reads while it runs: the weight, but
// for the weight part of a split backward, and where gradients of weights are made that too.
static double whole_parameter_bytes(const Execution *execution, const Plan *plan,
                                    const Block *block, WorkKind work) {
    const bool weights = plan->zero_stage == 3 && work != WORK_BACKWARD_WEIGHT;
    const bool gradients = plan_scatters_gradients(plan) && makes_gradients(block, work);
    return (weights ? gathered_weight_bytes(execution) : 0) +
           (gradients ? reduced_gradient_bytes(execution) : 0);
}

// Of a block that runs, what ZeRO-2 and -3 bring together of all ranks and hold in no part of their
// memory that is there anyway. A stack that gathers ahead has buffers for it. The word table is the
// plan's own, whatever sharding the layers have that run while it stays.
static double whole_bytes(const Peaks *p, int block, WorkKind work) {
    const Execution *execution = &p->scenario->execution;
    if (execution->stack.training.gathers_ahead) return 0;
    const Block *b = &p->workload->blocks[block];
    const Plan *own = plan_sharding(p->plan, b->sharding);
    // From the head on the table stays until the backward of the embedding, where it does.
    const bool stays =
        work == WORK_BACKWARD && workload_table_stays(p->plan) && block != BLOCK_EMBEDDING;
    const double table = block == BLOCK_HEAD || stays ? p->shared_table : 0;
    const double frozen = own->zero_stage == 3 && work != WORK_BACKWARD_WEIGHT
                              ? plan_sharded_parameters(own, b->frozen.dense, b->frozen.expert)
                              : 0;
    return frozen +
           whole_parameter_bytes(execution, own, b, work) *
               plan_sharded_parameters(own, b->dense_parameters, b->expert_parameters) +
           whole_parameter_bytes(execution, p->plan, b, work) *
               plan_sharded_parameters(p->plan, table, 0);
}

// Blocks run in order: while one runs, those before it (forward) or those left (backward) are kept.
static void chunk_peaks(const Peaks *p, Chunk *chunk, const BlockRun *runs, int num_runs) {
    double before = 0, unusable = 0;
    for (int i = 0; i < num_runs; i++) {
        const int count = runs[i].count;
        const Block *b = &p->workload->blocks[runs[i].block];
        const double whole[] = {whole_bytes(p, runs[i].block, WORK_FORWARD),
                                whole_bytes(p, runs[i].block, WORK_BACKWARD)};
        before += count * b->saved_bytes;
        // The last block of the kind, in the backward the first to run: all before it are kept.
        chunk->forward_peak_bytes = fmax(
            chunk->forward_peak_bytes, before - b->saved_bytes + b->forward_peak_bytes + whole[0]);
        const double backward = before - chunk->saved_bytes + b->backward_peak_bytes + whole[1];
        chunk->backward_peak_bytes = fmax(chunk->backward_peak_bytes, backward);
        if (b->unusable_bytes > 0) unusable = fmax(unusable, backward + b->unusable_bytes);
    }
    chunk->unusable_bytes = fmax(0, unusable - chunk->backward_peak_bytes);
}

// The same of a split backward. Of several blocks of a kind the input part peaks in the first to
// run where it leaves less than the forward kept, else in the last.
static void chunk_split_peaks(const Peaks *p, Chunk *chunk, const BlockRun *runs, int num_runs) {
    double held = 0, deferred = chunk->deferred_bytes;
    for (int i = num_runs - 1; i >= 0; i--) {
        const int count = runs[i].count, block = runs[i].block;
        const Block *b = &p->workload->blocks[block];
        const double left = b->deferred_bytes - b->saved_bytes;
        const double input = b->input_peak_bytes + whole_bytes(p, block, WORK_BACKWARD_INPUT);
        const double weight = b->weight_peak_bytes + whole_bytes(p, block, WORK_BACKWARD_WEIGHT);
        chunk->input_peak_bytes =
            fmax(chunk->input_peak_bytes, held + fmax(0, (count - 1) * left) + input);
        chunk->weight_peak_bytes =
            fmax(chunk->weight_peak_bytes, deferred - chunk->deferred_bytes + weight);
        held += count * left;
        deferred -= count * b->deferred_bytes;
    }
}

static void peaks_set(const Peaks *p, Chunk *chunk, const BlockRun *runs, int num_runs) {
    chunk_peaks(p, chunk, runs, num_runs);
    chunk_split_peaks(p, chunk, runs, num_runs);
}

// MTP layers look words up too: a rank without the table (tied or not) holds a copy of it.
static double table_copy_parameters(const Scenario *scenario, const Plan *plan, int index) {
    const Model *m = &scenario->model;
    if (plan->chunks[index].num_mtp == 0) return 0;
    for (int k = 0; k < plan->vpp; k++) {
        const PlanChunk *chunk =
            &plan->chunks[plan_rank_chunk(plan, plan_chunk_rank(plan, index), k)];
        if (chunk->embedding || (chunk->loss && m->tie_word_embeddings)) return 0;
    }
    return vocab_rows(m, plan) * m->hidden_size;
}

static void run_add(BlockRun *runs, int *num_runs, int block, int count) {
    if (count > 0) runs[(*num_runs)++] = (BlockRun){block, count};
}

// Where the layout changes between two shardings.
static void change_add(const Plan *plan, BlockRun *runs, int *num_runs, int from, int to) {
    if (plan_layout(plan, from) != plan_layout(plan, to))
        run_add(runs, num_runs, change_block_index(plan, from, to), 1);
}

enum { MAX_RUNS = 2 * MODEL_MAX_LAYERS + 4 };

// How many layers of a chunk from its i-th on are of one block: of one kind, with one strategy.
static int equal_layers(const Scenario *scenario, const Plan *plan, int index, int i) {
    const uint8_t *kinds = scenario->model.layer_kind + plan->chunks[index].first_layer;
    const int num = plan_layer_run(plan, index, i);
    if (scenario->model.num_kinds == 1) return num;
    int next = i + 1;
    while (next < i + num && kinds[next] == kinds[i]) next++;
    return next - i;
}

// Embedding, layer by layer with the changes of layout between them, MTP layers, head. What comes
// into the chunk and what leaves it is laid out as the plan's own sharding has it.
//   together  layers of one block are one run
static int layers_run(const Scenario *scenario, const Plan *plan, int index, bool together,
                      BlockRun *runs) {
    const PlanChunk *spec = &plan->chunks[index];
    int num_runs = 0, before = PLAN_OWN;
    run_add(runs, &num_runs, BLOCK_EMBEDDING, spec->embedding);
    for (int i = 0, num = 0; i < spec->num_layers; i += num) {
        const int kind = scenario->model.layer_kind[spec->first_layer + i];
        const int strategy = plan_layer_strategy(plan, index, i);
        const int sharding = plan_strategy(plan, strategy).sharding;
        num = together ? equal_layers(scenario, plan, index, i) : 1;
        change_add(plan, runs, &num_runs, before, sharding);
        before = sharding;
        run_add(runs, &num_runs, layer_block_index(kind, strategy), num);
    }
    change_add(plan, runs, &num_runs, before, PLAN_OWN);
    run_add(runs, &num_runs, BLOCK_MTP, spec->num_mtp);
    run_add(runs, &num_runs, BLOCK_HEAD, spec->loss);
    return num_runs;
}

int workload_runs(const Scenario *scenario, const Plan *plan, int chunk, Arena *arena,
                  const BlockRun **runs) {
    BlockRun found[MAX_RUNS];
    int num_runs = 1;
    if (chunk < plan->num_chunks)
        num_runs = layers_run(scenario, plan, chunk, false, found);
    else
        found[0] = (BlockRun){BLOCK_VOCAB_INPUT + chunk - plan->num_chunks, 1};
    *runs = arena_copy(arena, found, (size_t)num_runs * sizeof *found);
    return num_runs;
}

static Chunk chunk_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         int index, Arena *arena) {
    BlockRun runs[MAX_RUNS];
    int num_runs = layers_run(scenario, plan, index, true, runs);
    ChunkBuilder b = chunk_start(plan, workload, arena);
    b.chunk.num_layers = plan->chunks[index].num_layers;
    for (int i = 0; i < num_runs; i++) chunk_add(&b, workload, runs[i].block, runs[i].count);
    chunk_hold(&b, PLAN_OWN, 1,
               (HeldParameters){.dense = table_copy_parameters(scenario, plan, index)});
    if (!plan->layers) num_runs = runs_of(&b.chunk, runs);
    const Peaks peaks = peaks_of(scenario, plan, workload);
    peaks_set(&peaks, &b.chunk, runs, num_runs);
    return b.chunk;
}

// Of a plan that recomputes the first layers of each stage.
static bool is_recomputed_layer(const Scenario *scenario, int block) {
    for (int k = 0; k < scenario->model.num_kinds; k++)
        if (block == layer_block_index(k, PLAN_OWN)) return true;
    return false;
}

static Chunk vocab_chunk_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               int block, Arena *arena) {
    ChunkBuilder b = chunk_start(plan, workload, arena);
    const BlockRun run = {block, 1};
    chunk_add(&b, workload, block, 1);
    const Peaks peaks = peaks_of(scenario, plan, workload);
    peaks_set(&peaks, &b.chunk, &run, 1);
    return b.chunk;
}

// Whether two chunks are made of the same: kinds of layers, as many of them recomputed, and what
// stands at the ends.
static bool chunks_alike(const Scenario *scenario, const Plan *plan, int a, int b) {
    const PlanChunk *x = &plan->chunks[a], *y = &plan->chunks[b];
    const uint8_t *kinds = scenario->model.layer_kind;
    const int n = x->num_layers;
    if (n != y->num_layers || x->embedding != y->embedding || x->loss != y->loss) return false;
    if (x->num_mtp > 0 || y->num_mtp > 0 || plan->layers) return false;
    if (n == 0) return true;
    return plan_layer_strategy(plan, a, 0) == plan_layer_strategy(plan, b, 0) &&
           plan_layer_run(plan, a, 0) == plan_layer_run(plan, b, 0) &&
           memcmp(kinds + x->first_layer, kinds + y->first_layer, (size_t)n * sizeof *kinds) == 0;
}

const Chunk *chunks_build(const Scenario *scenario, const Plan *plan, const Workload *w,
                          Arena *arena) {
    Chunk *chunks = ARENA_ARRAY(arena, plan_all_chunks(plan), Chunk);
    for (int c = 0; c < plan->num_chunks; c++) {
        const bool alike = c > 0 && chunks_alike(scenario, plan, c - 1, c);
        chunks[c] = alike ? chunks[c - 1] : chunk_build(scenario, plan, w, c, arena);
    }
    if (!plan->vocab_barriers) return chunks;
    chunks[plan->num_chunks + VOCAB_INPUT] =
        vocab_chunk_build(scenario, plan, w, BLOCK_VOCAB_INPUT, arena);
    chunks[plan->num_chunks + VOCAB_OUTPUT] =
        vocab_chunk_build(scenario, plan, w, BLOCK_VOCAB_OUTPUT, arena);
    return chunks;
}

const Chunk *chunks_build_rank(const Scenario *scenario, const Plan *plan, const Workload *w,
                               int rank, Arena *arena) {
    Chunk *chunks = ARENA_ARRAY(arena, plan_all_chunks(plan), Chunk);
    for (int k = 0; k < plan->vpp; k++) {
        const int c = plan_rank_chunk(plan, rank, k);
        chunks[c] = chunk_build(scenario, plan, w, c, arena);
    }
    return chunks;
}

const Chunk *chunks_floor(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          Arena *arena) {
    Chunk *chunks = ARENA_ARRAY(arena, plan_all_chunks(plan), Chunk);
    memcpy(chunks, workload->chunks, (size_t)plan_all_chunks(plan) * sizeof *chunks);
    for (int c = 0; c < plan->num_chunks; c++) {
        Chunk *chunk = &chunks[c];
        BlockRun runs[MAX_BLOCKS];
        const int num_runs = runs_of(chunk, runs);
        double before = 0;
        chunk->backward_peak_bytes = chunk->input_peak_bytes = chunk->weight_peak_bytes = 0;
        chunk->unusable_bytes = 0; // layers that need more than the head may use it
        for (int i = 0; i < num_runs; i++) {
            const Block *b = &workload->blocks[runs[i].block];
            before += runs[i].count * b->saved_bytes;
            if (is_recomputed_layer(scenario, runs[i].block)) continue;
            chunk->backward_peak_bytes = fmax(chunk->backward_peak_bytes,
                                              before - chunk->saved_bytes + b->backward_peak_bytes);
        }
    }
    return chunks;
}
