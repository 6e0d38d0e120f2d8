#include "runtime/update.h"

#include "runtime/mutant.h"

#include <math.h>
#include <string.h>

// Whether this rank's copy of a region is the one that counts for the norm.
static bool region_counts(const Rank *rank, const ChunkState *chunk, Region region) {
    if (!region_is_split(region) && !rank_is_tp_first(rank)) return mutant("norm-counts-all");
    if (region == REGION_TABLES && chunk->list.head_is_copy) return false;
    return true;
}

// Whether this rank's shard of a block is counted: of equal ones the first.
static bool shard_counts(const Rank *rank, const FlatState *f) {
    const bool sharded = rank->plan->zero_stage >= 1;
    const GroupKind layers = sharded ? GROUP_REPLICA : GROUP_DP;
    const GroupKind experts = sharded ? GROUP_EREPLICA : GROUP_EDP;
    return rank->world->index[f->layout.experts ? experts : layers] == 0;
}

static void block_squares(Rank *rank, const ChunkState *chunk, const FlatState *f, void *sum) {
    Backend *b = rank->backend;
    for (int region = 0; region < NUM_REGIONS && shard_counts(rank, f); region++) {
        int64_t begin = f->layout.region_begin[region], end = f->layout.region_begin[region + 1];
        if (shard_cut(f, &begin, &end) && region_counts(rank, chunk, (Region)region))
            b->table->sum_squares(b, sum, gradient_at(b, f, begin), end - begin, rank->stream);
    }
}

static void chunk_squares(Rank *rank, const ChunkState *chunk, void *sum) {
    if (plan_is_dual(rank->plan) && chunk->list.chunk >= plan_num_stages(rank->plan)) return;
    for (int i = 0; i < chunk->list.num_blocks; i++)
        block_squares(rank, chunk, &chunk->blocks[i], sum);
}

static double wide_value(const Backend *backend, const void *values, int i) {
    double wide;
    float narrow;
    if (backend->wide == DTYPE_FP64) {
        memcpy(&wide, (const char *)values + (size_t)i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)values + (size_t)i * sizeof narrow, sizeof narrow);
    return narrow;
}

Status step_values(Rank *rank, StepValues *out) {
    Backend *b = rank->backend;
    Tensor *sums = rank_wide(rank, 2); // loss, squares
    b->table->zero(b, sums->data, sums->bytes, rank->stream);
    if (rank_is_tp_first(rank))
        b->table->copy(b, sums->data, rank->loss, dtype_bytes(b->wide), rank->stream);
    for (int i = 0; i < rank->num_chunks; i++)
        chunk_squares(rank, &rank->chunks[i], wide_at(b, sums->data, 1));
    Comm *all = rank->world->all;
    if (all) all->table->all_reduce(all, sums->data, 2, b->wide, REDUCE_SUM, rank->stream);
    double values[2] = {0};
    const Status status = b->table->download(b, values, sums->data, sums->bytes, rank->stream);
    rank_drop(rank, &sums);
    TRY(status);
    out->loss = wide_value(b, values, 0) * rank->loss_scale;
    out->gradient_norm = sqrt(wide_value(b, values, 1));
    return status_ok();
}

// --- Weights

typedef struct {
    int64_t begin, end; // elements of the block
    double weight_decay;
} Span;

static void span_update(Rank *rank, const ChunkState *chunk, const FlatState *f,
                        const UpdateSettings *s, Span span, double gradient_scale, int64_t step) {
    Backend *b = rank->backend;
    int64_t begin = span.begin, end = span.end;
    if (!shard_cut(f, &begin, &end)) return;
    const int64_t own = begin - f->shard_begin;
    void *weight = act_at(b, f->weights, f->zero_stage >= 3 ? own : begin);
    if (chunk->masters_are_weights) weight = NULL;
    const void *gradient = gradient_at(b, f, begin);
    if (rank->scenario->training.optimizer == OPTIMIZER_SGD) {
        b->table->sgd(b,
                      &(Sgd){.count = end - begin,
                             .gradient = gradient,
                             .gradient_scale = gradient_scale,
                             .master = wide_at(b, f->masters, own),
                             .weight = weight,
                             .momentum = wide_at(b, f->moment, own),
                             .learning_rate = s->learning_rate,
                             .momentum_frac = s->momentum_frac,
                             .weight_decay = span.weight_decay},
                      rank->stream);
        return;
    }
    b->table->adamw(b,
                    &(AdamW){.count = end - begin,
                             .gradient = gradient,
                             .gradient_scale = gradient_scale,
                             .master = wide_at(b, f->masters, own),
                             .weight = weight,
                             .moment = wide_at(b, f->moment, own),
                             .variance = wide_at(b, f->variance, own),
                             .learning_rate = s->learning_rate,
                             .beta1 = s->beta1,
                             .beta2 = s->beta2,
                             .epsilon = s->epsilon,
                             .weight_decay = span.weight_decay,
                             .step = step},
                    rank->stream);
}

void weights_update(Rank *rank, const UpdateSettings *s, double gradient_norm, int64_t step) {
    const bool clips = s->max_norm > 0 && gradient_norm > s->max_norm &&
                       !(mutant("clip-first-only") && rank->world->rank > 0);
    const double scale = clips ? s->max_norm / gradient_norm : 1;
    for (int i = 0; i < rank->num_chunks; i++)
        for (int k = 0; k < rank->chunks[i].list.num_blocks; k++) {
            const ChunkState *chunk = &rank->chunks[i];
            const FlatState *f = &chunk->blocks[k];
            const int64_t matrices = f->layout.region_begin[REGION_WHOLE_MATRICES];
            const Span rest = {matrices, f->layout.count, s->weight_decay};
            span_update(rank, chunk, f, s, (Span){0, matrices, 0}, scale, step);
            span_update(rank, chunk, f, s, rest, scale, step);
        }
}
