// Chunks: what each is made of, and what it holds while it runs.
#include "workload/chunk.h"

#include "workload/bytes.h"

#include <math.h>
#include <string.h>

enum { BLOCKS_PER_KIND = 3 }; // recomputed, not recomputed; selective where layers differ

int layer_block_index(int kind, bool recomputed) {
    return BLOCK_FIRST_LAYER + BLOCKS_PER_KIND * kind + !recomputed;
}

int recompute_block_index(int kind, int recompute) {
    if (recompute == RECOMPUTE_SELECTIVE) return BLOCK_FIRST_LAYER + BLOCKS_PER_KIND * kind + 2;
    return layer_block_index(kind, recompute == RECOMPUTE_FULL);
}

const Block *workload_recompute_block(const Workload *workload, int layer_kind, int recompute) {
    return &workload->blocks[recompute_block_index(layer_kind, recompute)];
}

const Block *workload_layer_block(const Workload *workload, int layer_kind, bool recomputed) {
    return &workload->blocks[layer_block_index(layer_kind, recomputed)];
}

static void chunk_add(Chunk *chunk, const Workload *workload, int block, int count) {
    const Block *b = &workload->blocks[block];
    chunk->num_blocks[block] += count;
    chunk->dense_parameters += count * b->dense_parameters;
    chunk->expert_parameters += count * b->expert_parameters;
    chunk->saved_bytes += count * b->saved_bytes;
    chunk->deferred_bytes += count * b->deferred_bytes;
}

// Blocks of one kind that a chunk runs one after the other.
typedef struct {
    int block, count;
} BlockRun;

// The chunk's blocks in the order of their numbers.
static int runs_of(const Chunk *chunk, BlockRun *runs) {
    int num_runs = 0;
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (chunk->num_blocks[i] > 0) runs[num_runs++] = (BlockRun){i, chunk->num_blocks[i]};
    return num_runs;
}

// Of a block that runs, what ZeRO-2 and -3 bring together of all ranks: weights, and in a backward
// gradients too.
static double gathered_bytes(const Scenario *scenario, const Plan *plan, const Block *b,
                             bool backward) {
    const double parameters = (plan_group(plan, GROUP_ZERO).size > 1 ? b->dense_parameters : 0) +
                              (plan_group(plan, GROUP_EZERO).size > 1 ? b->expert_parameters : 0);
    const double weight = plan->zero_stage < 3 ? 0 : gathered_weight_bytes(&scenario->training);
    return parameters * (weight + (backward ? reduced_gradient_bytes(&scenario->training) : 0));
}

// The word table that a tied head has too: from the head on it stays until the backward of the
// embedding. NULL: each has its own.
static const Block *shared_table(const Scenario *scenario, const Plan *plan,
                                 const Workload *workload) {
    const bool shared = scenario->model.tie_word_embeddings && plan->pp == 1;
    return shared ? &workload->blocks[BLOCK_EMBEDDING] : NULL;
}

static double whole_block_bytes(const Scenario *scenario, const Plan *plan, const Chunk *chunk,
                                const Workload *workload, const BlockRun *runs, int num_runs) {
    if (plan->zero_stage < 2 || scenario->training.stack.gathers_ahead) return 0;
    const Block *table = shared_table(scenario, plan, workload);
    double before = 0, most = 0;
    for (int i = 0; i < num_runs; i++) {
        const Block *b = &workload->blocks[runs[i].block];
        before += runs[i].count * b->saved_bytes;
        double forward = before - b->saved_bytes + b->forward_peak_bytes;
        double backward = before + b->backward_peak_bytes;
        if (table && runs[i].block == BLOCK_HEAD)
            forward += gathered_bytes(scenario, plan, table, false);
        if (table && b != table) backward += gathered_bytes(scenario, plan, table, true);
        most = fmax(most, forward + gathered_bytes(scenario, plan, b, false));
        most = fmax(most, backward + gathered_bytes(scenario, plan, b, true));
    }
    return most - fmax(chunk->forward_peak_bytes, chunk->saved_bytes + chunk->backward_peak_bytes);
}

// Blocks run in order: while one runs, those before it (forward) or those left (backward) are kept.
static void chunk_peaks(Chunk *chunk, const Workload *workload, const BlockRun *runs,
                        int num_runs) {
    double before = 0;
    for (int i = 0; i < num_runs; i++) {
        const int count = runs[i].count;
        const Block *b = &workload->blocks[runs[i].block];
        before += count * b->saved_bytes;
        // The last block of the kind, in the backward the first to run: all before it are kept.
        chunk->forward_peak_bytes =
            fmax(chunk->forward_peak_bytes, before - b->saved_bytes + b->forward_peak_bytes);
        chunk->backward_peak_bytes =
            fmax(chunk->backward_peak_bytes, before - chunk->saved_bytes + b->backward_peak_bytes);
    }
}

// The same of a split backward. Of several blocks of a kind the input part peaks in the first to
// run where it leaves less than the forward kept, else in the last.
static void chunk_split_peaks(Chunk *chunk, const Workload *workload, const BlockRun *runs,
                              int num_runs) {
    double held = 0, deferred = chunk->deferred_bytes;
    for (int i = num_runs - 1; i >= 0; i--) {
        const int count = runs[i].count;
        const Block *b = &workload->blocks[runs[i].block];
        const double left = b->deferred_bytes - b->saved_bytes;
        chunk->input_peak_bytes =
            fmax(chunk->input_peak_bytes, held + fmax(0, (count - 1) * left) + b->input_peak_bytes);
        chunk->weight_peak_bytes =
            fmax(chunk->weight_peak_bytes, deferred - chunk->deferred_bytes + b->weight_peak_bytes);
        held += count * left;
        deferred -= count * b->deferred_bytes;
    }
}

static void peaks_set(Chunk *chunk, const Workload *workload, const BlockRun *runs, int num_runs) {
    chunk_peaks(chunk, workload, runs, num_runs);
    chunk_split_peaks(chunk, workload, runs, num_runs);
}

static int recomputed_layers(const Plan *plan, int chunk, int num_layers) {
    if (plan->recompute == RECOMPUTE_NONE) return 0;
    if (plan->recompute_layers < 0) return num_layers;
    int before = 0; // layers of the same rank in earlier chunks
    const int rank = plan_chunk_rank(plan, chunk);
    for (int k = 0; plan_rank_chunk(plan, rank, k) < chunk; k++)
        before += plan->chunks[plan_rank_chunk(plan, rank, k)].num_layers;
    int left = plan->recompute_layers - before;
    return left < 0 ? 0 : left < num_layers ? left : num_layers;
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

// Adds blocks to the chunk, and as the next to its runs.
static void run_add(Chunk *chunk, const Workload *workload, int block, int count, BlockRun *runs,
                    int *num_runs) {
    if (count == 0) return;
    chunk_add(chunk, workload, block, count);
    runs[(*num_runs)++] = (BlockRun){block, count};
}

static Chunk chunk_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         int index) {
    const PlanChunk *spec = &plan->chunks[index];
    int recomputed = recomputed_layers(plan, index, spec->num_layers), num_runs = 0;
    Chunk chunk = {.num_layers = spec->num_layers};
    BlockRun runs[MODEL_MAX_LAYERS + 3];
    run_add(&chunk, workload, BLOCK_EMBEDDING, spec->embedding, runs, &num_runs);
    for (int i = 0; i < spec->num_layers; i++) {
        const int layer = spec->first_layer + i, kind = scenario->model.layer_kind[layer];
        const int block = plan->layer_recompute
                              ? recompute_block_index(kind, plan->layer_recompute[layer])
                              : layer_block_index(kind, i < recomputed);
        run_add(&chunk, workload, block, 1, runs, &num_runs);
    }
    run_add(&chunk, workload, BLOCK_MTP, spec->num_mtp, runs, &num_runs);
    run_add(&chunk, workload, BLOCK_HEAD, spec->loss, runs, &num_runs);
    chunk.dense_parameters += table_copy_parameters(scenario, plan, index);
    if (!plan->layer_recompute) num_runs = runs_of(&chunk, runs);
    peaks_set(&chunk, workload, runs, num_runs);
    chunk.whole_block_bytes = whole_block_bytes(scenario, plan, &chunk, workload, runs, num_runs);
    return chunk;
}

static bool is_recomputed_layer(const Scenario *scenario, int block) {
    for (int k = 0; k < scenario->model.num_kinds; k++)
        if (block == layer_block_index(k, true)) return true;
    return false;
}

static Chunk vocab_chunk_build(const Workload *workload, int block) {
    Chunk chunk = {0};
    BlockRun run = {block, 1};
    chunk_add(&chunk, workload, block, 1);
    peaks_set(&chunk, workload, &run, 1);
    return chunk;
}

const Chunk *chunks_build(const Scenario *scenario, const Plan *plan, const Workload *w,
                          Arena *arena) {
    Chunk *chunks = ARENA_ARRAY(arena, plan_all_chunks(plan), Chunk);
    for (int c = 0; c < plan->num_chunks; c++) chunks[c] = chunk_build(scenario, plan, w, c);
    if (!plan->vocab_barriers) return chunks;
    chunks[plan->num_chunks + VOCAB_INPUT] = vocab_chunk_build(w, BLOCK_VOCAB_INPUT);
    chunks[plan->num_chunks + VOCAB_OUTPUT] = vocab_chunk_build(w, BLOCK_VOCAB_OUTPUT);
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
        chunk->whole_block_bytes = 0;
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
