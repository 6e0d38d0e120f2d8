#include "runtime/model_ends.h"

#include "runtime/mutant.h"

MicroBatch rank_microbatch(const Rank *rank, int microbatch) {
    if (mutant("pp-first-batch")) microbatch = 0;
    const int64_t first = microbatch * rank->shape.tokens;
    return (MicroBatch){rank->tokens + first, rank->targets + first};
}

// --- Embedding

static Embedding embedding_of(const Rank *rank, const MicroBatch *batch) {
    const RankShape *s = &rank->shape;
    return (Embedding){.rows = s->tokens,
                       .columns = s->hidden,
                       .tokens = batch->tokens,
                       .first_row = rank->world->index[GROUP_TP] * s->vocab_rows,
                       .num_rows = s->vocab_rows,
                       .positions = rank->positions};
}

Tensor *embedding_forward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch) {
    const Backend *b = rank->backend;
    const RankShape *s = &rank->shape;
    Tensor *y = rank_tensor(rank, s->tokens * s->hidden);
    Embedding call = embedding_of(rank, batch);
    call.table = chunk_weight(b, chunk, chunk->list.table);
    // The parts of all ranks are added up: one adds the positions.
    if (rank_is_tp_first(rank))
        call.positions_table = chunk_weight(b, chunk, chunk->list.positions);
    call.y = y->data;
    b->table->embedding_forward(rank->backend, &call, rank->stream);
    return tokens_sum(rank, &y, s->hidden);
}

// Where the gradients of whole parameters are added up over tp (sequence parallelism), one rank
// makes that of the positions.
void embedding_backward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch,
                        Tensor **gradient) {
    const Backend *b = rank->backend;
    Tensor *all = tokens_gather(rank, *gradient, rank->shape.hidden);
    Embedding call = embedding_of(rank, batch);
    call.dy = all ? all->data : (*gradient)->data;
    call.dtable = chunk_gradient(b, chunk, chunk->list.table);
    if (!all || rank_is_tp_first(rank))
        call.dpositions_table = chunk_gradient(b, chunk, chunk->list.positions);
    b->table->embedding_backward(rank->backend, &call, rank->stream);
    rank_drop(rank, &all);
    rank_drop(rank, gradient);
}

// --- Head

static Linear head_linear(const Rank *rank, const ChunkState *chunk) {
    const Backend *b = rank->backend;
    const Parameter *own = chunk->list.head;
    const ChunkState *holder = own ? chunk : rank->table;
    const Parameter *p = own ? own : holder->list.table;
    return (Linear){.split = LINEAR_COLUMN,
                    .outputs = rank->shape.logits,
                    .inputs = rank->shape.hidden,
                    .weight = chunk_weight(b, holder, p),
                    .chunk = holder,
                    .dweight = p};
}

// Loss and gradient over the parts of the vocabulary that the tp ranks have.
static void loss_shared(Rank *rank, CrossEntropy *call, Comm *tp) {
    Backend *b = rank->backend;
    const int64_t rows = call->rows;
    Tensor *max = rank_wide(rank, rows), *sums = rank_wide(rank, 2 * rows);
    call->max = max->data;
    call->sums = sums->data;
    b->table->row_max(b, call, rank->stream);
    if (!mutant("vocabulary-max"))
        tp->table->all_reduce(tp, max->data, rows, b->wide, REDUCE_MAX, rank->stream);
    b->table->row_sums(b, call, rank->stream);
    tp->table->all_reduce(tp, sums->data, 2 * rows, b->wide, REDUCE_SUM, rank->stream);
    b->table->cross_entropy_shared(b, call, rank->stream);
    rank_drop(rank, &max);
    rank_drop(rank, &sums);
}

static int64_t vocabulary_columns(const Rank *rank) {
    const int64_t first = rank->world->index[GROUP_TP] * rank->shape.vocab_rows;
    const int64_t left = rank->scenario->model.vocab_size - first;
    return left < 0 ? 0 : left < rank->shape.vocab_rows ? left : rank->shape.vocab_rows;
}

void head_forward(Rank *rank, const ChunkState *chunk, const MicroBatch *batch, Residual *stream,
                  HeadStash *stash) {
    const RankShape *s = &rank->shape;
    const NormWeights norm = norm_weights(rank, chunk, chunk->list.norm, chunk->list.norm_bias);
    stash->norm = residual_norm(rank, &norm, stream, &stash->x, &stash->statistics);
    const Linear head = head_linear(rank, chunk);
    stash->dlogits = linear_forward(rank, &head, stash->norm);
    CrossEntropy call = {.rows = s->tokens,
                         .num_columns = vocabulary_columns(rank),
                         .stride = s->logits,
                         .first_column = rank->world->index[GROUP_TP] * s->vocab_rows,
                         .logits = stash->dlogits->data,
                         .targets = batch->targets,
                         .scale = rank->loss_scale,
                         .loss = rank->loss};
    Comm *tp = rank_comm(rank, GROUP_TP);
    if (tp)
        loss_shared(rank, &call, tp);
    else
        rank->backend->table->cross_entropy(rank->backend, &call, rank->stream);
}

Tensor *head_backward(Rank *rank, const ChunkState *chunk, HeadStash *stash, WeightQueue *queue) {
    const NormWeights norm = norm_weights(rank, chunk, chunk->list.norm, chunk->list.norm_bias);
    const Linear head = head_linear(rank, chunk);
    Tensor *dnorm = linear_backward(rank, &head, stash->norm, stash->dlogits, queue);
    rank_drop(rank, &stash->dlogits);
    rank_drop(rank, &stash->norm);
    Tensor *dx = residual_norm_backward(rank, &norm, stash->x, stash->statistics, dnorm, NULL);
    rank_drop(rank, &dnorm);
    rank_drop(rank, &stash->x);
    rank_drop(rank, &stash->statistics);
    return dx;
}
