#include "runtime/context_heads.h"

#include "runtime/mutant.h"

// Columns of a token that go to one rank: a part of each of the blocks side by side.
typedef struct {
    int num_blocks;
    int64_t block[3]; // columns of this rank before the exchange: queries, keys, values; or output
    int64_t total;    // their sum
} Columns;

static Columns columns_qkv(const RankShape *s) {
    const int64_t keys = (int64_t)s->kv_heads * s->head_dim;
    return (Columns){3, {s->attended, keys, keys}, s->qkv};
}

static Columns columns_out(const RankShape *s) {
    return (Columns){1, {s->attended}, s->attended};
}

static int64_t act_bytes(const Rank *rank) {
    return (int64_t)dtype_bytes(rank->backend->act);
}

// Between [tokens][total] and [ranks][tokens][total / ranks].
static void parts_copy(Rank *rank, const Columns *c, char *whole, char *parts, bool to_parts) {
    const int size = rank_comm(rank, GROUP_CP)->size;
    const int64_t act = act_bytes(rank), tokens = rank->shape.tokens, width = c->total / size;
    for (int r = 0; r < size; r++) {
        int64_t before = 0, before_part = 0;
        for (int i = 0; i < c->num_blocks; i++) {
            const int64_t own = c->block[i] / size;
            char *a = whole + (before + r * own) * act;
            char *b = parts + (r * tokens * width + before_part) * act;
            rank->backend->table->copy_rows(rank->backend, to_parts ? b : a,
                                            (to_parts ? width : c->total) * act, to_parts ? a : b,
                                            (to_parts ? c->total : width) * act, tokens, own * act,
                                            rank->stream);
            before += c->block[i];
            before_part += own;
        }
    }
}

// Every rank has as much for every other.
static void exchange(Rank *rank, void *out, const void *in, int64_t count) {
    enum { MOST = 1024 };
    Comm *cp = rank_comm(rank, GROUP_CP);
    int64_t counts[MOST], offsets[MOST];
    for (int r = 0; r < cp->size && r < MOST; r++) {
        counts[r] = count;
        offsets[r] = r * count;
    }
    cp->table->all_to_all(cp, out, counts, offsets, in, counts, offsets, rank->backend->act,
                          rank->stream);
}

// Rows of what was exchanged stand by the ranks they came from; attention wants them by sequence
// and place in it. The map is made when the rank is (runtime/run_setup.c).
static void rows_permute(Rank *rank, void *out, const void *in, int64_t columns,
                         const int32_t *index) {
    const int64_t rows = rank->shape.tokens * rank_comm(rank, GROUP_CP)->size;
    rank->backend->table->gather_rows(
        rank->backend,
        &(GatherRows){.rows = rows, .columns = columns, .x = in, .index = index, .y = out},
        rank->stream);
}

// [tokens][total] to [all tokens][total / ranks], in the order of the sequences; takes `whole`.
static Tensor *to_heads(Rank *rank, const Columns *c, Tensor **whole) {
    const int size = rank_comm(rank, GROUP_CP)->size;
    const int64_t count = rank->shape.tokens * c->total;
    Tensor *parts = rank_tensor(rank, count);
    parts_copy(rank, c, (*whole)->data, parts->data, true);
    rank_drop(rank, whole);
    Tensor *arrived = rank_tensor(rank, count);
    exchange(rank, arrived->data, parts->data, count / size);
    rows_permute(rank, parts->data, arrived->data, c->total / size, rank->from_ranks);
    rank_drop(rank, &arrived);
    return parts;
}

// The other way; takes `heads`, and fills `whole` or, where that is NULL, a new one.
static Tensor *to_tokens(Rank *rank, const Columns *c, Tensor *heads, Tensor *whole) {
    const int size = rank_comm(rank, GROUP_CP)->size;
    const int64_t count = rank->shape.tokens * c->total;
    Tensor *sorted = rank_tensor(rank, count);
    rows_permute(rank, sorted->data, heads->data, c->total / size,
                 mutant("ulysses-unsorted") ? rank->from_ranks : rank->to_ranks);
    rank_drop(rank, &heads);
    Tensor *arrived = rank_tensor(rank, count);
    exchange(rank, arrived->data, sorted->data, count / size);
    rank_drop(rank, &sorted);
    if (!whole) whole = rank_tensor(rank, count);
    parts_copy(rank, c, whole->data, arrived->data, false);
    rank_drop(rank, &arrived);
    return whole;
}

static void *columns_at(const Rank *rank, const Tensor *x, int64_t column) {
    return x->data ? (char *)x->data + column * act_bytes(rank) : NULL;
}

// All tokens, and this rank's part of the heads.
static Attention attention_of_heads(const Rank *rank, const Attention *base, const Tensor *qkv) {
    const int size = rank_comm(rank, GROUP_CP)->size;
    Attention a = *base;
    const int64_t seq_len = base->num_queries * size;
    a.heads /= size;
    a.kv_heads /= size;
    a.num_queries = a.num_keys = a.lse_stride = seq_len;
    a.q_stride = a.kv_stride = rank->shape.qkv / size;
    a.q_batch_stride = a.kv_batch_stride = seq_len * a.q_stride;
    a.o_stride = rank->shape.attended / size;
    a.o_batch_stride = seq_len * a.o_stride;
    a.q = qkv->data;
    a.k = columns_at(rank, qkv, a.o_stride);
    a.v = columns_at(rank, qkv, a.o_stride + (int64_t)a.kv_heads * a.head_dim);
    return a;
}

// Where the attention runs again, so do its exchanges: till then the stash has what it had before.
void heads_attend(Rank *rank, const Attention *base, LayerStash *stash) {
    const Columns in = columns_qkv(&rank->shape), out = columns_out(&rank->shape);
    Tensor *whole = tensor_hold(stash->qkv);
    if (stash->keep != KEEP_ATTENTION_OUTPUT) rank_drop(rank, &stash->qkv);
    Tensor *qkv = to_heads(rank, &in, &whole);
    Tensor *heads_o = rank_tensor(rank, rank->shape.tokens * rank->shape.attended);
    Attention call = attention_of_heads(rank, base, qkv);
    call.o = heads_o->data;
    call.lse = stash->lse->data;
    rank->backend->table->attention_forward(rank->backend, &call, rank->stream);
    if (stash->keep == KEEP_ALL) {
        stash->qkv = qkv;
        stash->heads_o = tensor_hold(heads_o);
    } else {
        rank_drop(rank, &qkv);
    }
    to_tokens(rank, &out, heads_o, stash->o);
}

Tensor *heads_attend_backward(Rank *rank, const Attention *base, const LayerStash *stash,
                              Tensor **dout) {
    const Columns in = columns_qkv(&rank->shape), out = columns_out(&rank->shape);
    Tensor *heads_dout = to_heads(rank, &out, dout);
    Tensor *heads_dqkv = rank_tensor(rank, rank->shape.tokens * rank->shape.qkv);
    Attention call = attention_of_heads(rank, base, stash->qkv);
    call.o = stash->heads_o->data;
    call.lse = stash->lse->data;
    call.dout = heads_dout->data;
    call.dq = heads_dqkv->data;
    call.dk = columns_at(rank, heads_dqkv, call.o_stride);
    call.dv = columns_at(rank, heads_dqkv, call.o_stride + (int64_t)call.kv_heads * call.head_dim);
    rank->backend->table->attention_backward(rank->backend, &call, rank->stream);
    rank_drop(rank, &heads_dout);
    return to_tokens(rank, &in, heads_dqkv, NULL);
}
