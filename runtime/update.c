#include "runtime/update.h"

#include "runtime/mutant.h"

#include <math.h>

static int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Whether this rank's copy of a region is the one that counts for the norm.
static bool region_counts(const Rank *rank, const ChunkState *chunk, Region region) {
    if (!region_is_split(region) && !rank_is_tp_first(rank)) return mutant("norm-counts-all");
    if (region == REGION_TABLES && chunk->list.head_is_copy) return false;
    return true;
}

// Whether this rank's shard is counted: of equal ones the first.
static bool shards_count(const Rank *rank) {
    const bool sharded = rank->plan->zero_stage >= 1;
    return rank->world->index[sharded ? GROUP_REPLICA : GROUP_DP] == 0;
}

static void chunk_squares(Rank *rank, const ChunkState *chunk, void *sum) {
    Backend *b = rank->backend;
    const bool copy = plan_is_dual(rank->plan) && chunk->list.chunk >= plan_num_stages(rank->plan);
    for (int region = 0; region < NUM_REGIONS && !copy; region++) {
        const int64_t begin = at_least(chunk->list.region_begin[region], chunk->shard_begin);
        const int64_t end =
            at_most(chunk->list.region_begin[region + 1], chunk->shard_begin + chunk->shard_count);
        if (begin < end && region_counts(rank, chunk, (Region)region))
            b->table->sum_squares(b, sum, wide_at(b, chunk->gradients, begin), end - begin,
                                  rank->stream);
    }
}

static double wide_value(const Backend *backend, const void *values, int i) {
    return backend->wide == DTYPE_FP64 ? ((const double *)values)[i]
                                       : (double)((const float *)values)[i];
}

Status step_values(Rank *rank, StepValues *out) {
    Backend *b = rank->backend;
    Tensor *sums = rank_wide(rank, 2); // loss, squares
    b->table->zero(b, sums->data, sums->bytes, rank->stream);
    if (rank_is_tp_first(rank))
        b->table->copy(b, sums->data, rank->loss, dtype_bytes(b->wide), rank->stream);
    for (int i = 0; i < rank->num_chunks && shards_count(rank); i++)
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
    int64_t begin, end; // elements of the chunk
    double weight_decay;
} Span;

static void span_update(Rank *rank, const ChunkState *chunk, const UpdateSettings *s, Span span,
                        double gradient_scale, int64_t step) {
    Backend *b = rank->backend;
    const int64_t begin = at_least(span.begin, chunk->shard_begin);
    const int64_t end = at_most(span.end, chunk->shard_begin + chunk->shard_count);
    const int64_t own = begin - chunk->shard_begin;
    if (begin >= end) return;
    void *weight = (char *)chunk->weights + begin * (int64_t)dtype_bytes(b->act);
    if (chunk->masters_are_weights) weight = NULL;
    const void *gradient = wide_at(b, chunk->gradients, begin);
    if (rank->scenario->training.optimizer == OPTIMIZER_SGD) {
        b->table->sgd(b,
                      &(Sgd){.count = end - begin,
                             .gradient = gradient,
                             .gradient_scale = gradient_scale,
                             .master = wide_at(b, chunk->masters, own),
                             .weight = weight,
                             .momentum = wide_at(b, chunk->moment, own),
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
                             .master = wide_at(b, chunk->masters, own),
                             .weight = weight,
                             .moment = wide_at(b, chunk->moment, own),
                             .variance = wide_at(b, chunk->variance, own),
                             .learning_rate = s->learning_rate,
                             .beta1 = s->beta1,
                             .beta2 = s->beta2,
                             .epsilon = s->epsilon,
                             .weight_decay = span.weight_decay,
                             .step = step},
                    rank->stream);
}

void weights_update(Rank *rank, const UpdateSettings *s, double gradient_norm, int64_t step) {
    const bool clips = s->max_norm > 0 && gradient_norm > s->max_norm;
    const double scale = clips ? s->max_norm / gradient_norm : 1;
    for (int i = 0; i < rank->num_chunks; i++) {
        const ChunkState *chunk = &rank->chunks[i];
        const int64_t matrices = chunk->list.region_begin[REGION_WHOLE_MATRICES];
        span_update(rank, chunk, s, (Span){0, matrices, 0}, scale, step);
        span_update(rank, chunk, s, (Span){matrices, chunk->list.count, s->weight_decay}, scale,
                    step);
    }
}
