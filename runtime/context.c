// Ring and gathered keys are one computation: the rank's two slices of queries against two slices
// of keys at a time; what differs is how the keys get here. Parts are joined by their log-sum-exp.
#include "runtime/context.h"

#include "runtime/context_heads.h"
#include "runtime/mutant.h"

enum { SLICES = 2 };

static int64_t slice_length(const RankShape *shape) {
    return shape->seq_len / SLICES;
}

// First position of slice 0 or 1 of a rank.
static int64_t slice_position(const RankShape *shape, int cp, int index, int slice) {
    return (slice == 0 ? index : 2 * cp - 1 - index) * slice_length(shape);
}

int64_t context_position(const RankShape *shape, int cp, int index, int64_t i) {
    if (cp == 1) return i;
    const int slice = i >= slice_length(shape);
    return slice_position(shape, cp, index, slice) + i - slice * slice_length(shape);
}

// --- Keys and values, [tokens][keys, values] without the queries

typedef struct {
    Rank *rank;
    Comm *cp;
    const Attention *base;
    int64_t width, count; // of keys and values: of a token, of all
    int64_t act;          // bytes of a number
} Context;

static Context context_of(Rank *rank, const Attention *base) {
    const RankShape *s = &rank->shape;
    const int64_t width = 2 * (int64_t)s->kv_heads * s->head_dim;
    return (Context){.rank = rank,
                     .cp = rank_comm(rank, GROUP_CP),
                     .base = base,
                     .width = width,
                     .count = s->tokens * width,
                     .act = (int64_t)dtype_bytes(rank->backend->act)};
}

static const void *keys_at(const Context *c, const void *array, int64_t element) {
    return array ? (const char *)array + element * c->act : NULL;
}

// Copies keys and values out of [tokens][qkv], or their gradients into it.
static void keys_copy(const Context *c, void *keys, void *qkv, bool out) {
    const RankShape *s = &c->rank->shape;
    char *in_qkv = (char *)qkv + s->attended * c->act;
    const int64_t own = c->width * c->act, all = s->qkv * c->act;
    c->rank->backend->table->copy_rows(c->rank->backend, out ? keys : in_qkv, out ? own : all,
                                       out ? in_qkv : keys, out ? all : own, s->tokens, own,
                                       c->rank->stream);
}

// What goes round: the array in use, and the one that the next arrives in.
typedef struct {
    Tensor *now, *next; // [tokens][keys, values]
} Ring;

static Ring ring_make(const Context *c) {
    return (Ring){rank_tensor(c->rank, c->count), rank_tensor(c->rank, c->count)};
}

static void ring_free(const Context *c, Ring *ring) {
    rank_drop(c->rank, &ring->now);
    rank_drop(c->rank, &ring->next);
}

// Sends what is in use to the next rank and receives that of the one before.
static void ring_pass(const Context *c, Ring *rings[], int num) {
    enum { MOST = 2 };
    Message messages[2 * MOST];
    for (int i = 0; i < num; i++) {
        messages[2 * i] = (Message){.peer = (c->cp->rank + 1) % c->cp->size,
                                    .array = rings[i]->now->data,
                                    .count = c->count,
                                    .dtype = c->rank->backend->act};
        messages[2 * i + 1] = messages[2 * i];
        messages[2 * i + 1].peer = (c->cp->rank + c->cp->size - 1) % c->cp->size;
        messages[2 * i + 1].receive = true;
        messages[2 * i + 1].array = rings[i]->next->data;
    }
    c->cp->table->exchange(c->cp, messages, 2 * num, c->rank->stream);
    for (int i = 0; i < num; i++) *rings[i] = (Ring){rings[i]->next, rings[i]->now};
}

// --- One slice of queries and one of keys

typedef struct {
    int queries, keys;   // slices
    int64_t first_query; // element of the first query's token in what has a row a token
    int64_t first_key;
} Pair;

// Sets up the attention of a pair with the keys of rank `source`; false: no query sees a key.
static bool pair_attention(const Context *c, int source, Pair pair, const void *keys,
                           Attention *out) {
    const RankShape *s = &c->rank->shape;
    const int64_t length = slice_length(s);
    const int owner = mutant("cp-wrong-slice") ? c->cp->rank : source;
    const int64_t query = slice_position(s, c->cp->size, c->cp->rank, pair.queries);
    const int64_t key = slice_position(s, c->cp->size, owner, pair.keys);
    *out = *c->base;
    if (out->causal && key > query) return false;
    out->num_queries = out->num_keys = length;
    out->query_first = query - key;
    out->q = keys_at(c, out->q, pair.queries * length * out->q_stride);
    out->k = keys_at(c, keys, pair.keys * length * c->width);
    out->v = keys_at(c, out->k, c->width / 2);
    out->kv_stride = c->width;
    out->kv_batch_stride = s->seq_len * c->width;
    return true;
}

typedef struct {
    Tensor *o, *lse;    // of the pair at hand, laid out as the results
    Tensor *o_sum;      // wide [tokens][attended]
    bool first[SLICES]; // nothing in it yet
} Joining;

static void source_attend(const Context *c, int source, const void *keys, Joining *j,
                          Tensor *lse_sum) {
    Backend *b = c->rank->backend;
    const int64_t length = slice_length(&c->rank->shape);
    for (int i = 0; i < SLICES * SLICES; i++) {
        const Pair pair = {.queries = i / SLICES, .keys = i % SLICES};
        Attention call;
        if (!pair_attention(c, source, pair, keys, &call)) continue;
        const int64_t row = pair.queries * length;
        call.o = (char *)j->o->data + row * call.o_stride * c->act;
        call.lse = wide_at(b, j->lse->data, row);
        b->table->attention_forward(b, &call, c->rank->stream);
        b->table->attention_merge(
            b,
            &(AttentionMerge){.batch = call.batch,
                              .heads = call.heads,
                              .head_dim = call.head_dim,
                              .num_queries = length,
                              .first = j->first[pair.queries],
                              .o = call.o,
                              .o_stride = call.o_stride,
                              .o_batch_stride = call.o_batch_stride,
                              .lse = call.lse,
                              .o_sum = wide_at(b, j->o_sum->data, row * call.o_stride),
                              .sum_stride = call.o_stride,
                              .sum_batch_stride = call.o_batch_stride,
                              .lse_sum = wide_at(b, lse_sum->data, row),
                              .lse_stride = call.lse_stride},
            c->rank->stream);
        j->first[pair.queries] = false;
    }
}

// --- Forward

static void ring_attend(const Context *c, Joining *j, const LayerStash *stash) {
    const int size = c->cp->size, own = c->cp->rank;
    Ring keys = ring_make(c);
    keys_copy(c, keys.now->data, stash->qkv->data, true);
    for (int step = 0; step < size; step++) {
        if (step > 0) ring_pass(c, (Ring *[]){&keys}, 1);
        source_attend(c, (own - step + size) % size, keys.now->data, j, stash->lse);
    }
    ring_free(c, &keys);
}

// Keys and values of all ranks, in their order.
static Tensor *keys_gather(const Context *c, const LayerStash *stash) {
    Rank *rank = c->rank;
    Tensor *keys = rank_tensor(rank, c->count * c->cp->size);
    void *own_keys = (char *)keys->data + c->cp->rank * c->count * c->act;
    keys_copy(c, own_keys, stash->qkv->data, true);
    c->cp->table->all_gather(c->cp, keys->data, own_keys, c->count, rank->backend->act,
                             rank->stream);
    return keys;
}

static void gathered_attend(const Context *c, Joining *j, const LayerStash *stash) {
    const int size = c->cp->size, own = c->cp->rank;
    Tensor *keys = keys_gather(c, stash);
    for (int step = 0; step < size; step++) {
        const int source = (own - step + size) % size;
        source_attend(c, source, keys_at(c, keys->data, source * c->count), j, stash->lse);
    }
    rank_drop(c->rank, &keys);
}

void context_attend(Rank *rank, const Attention *base, LayerStash *stash) {
    if (rank->plan->cp_method == CP_ULYSSES) {
        heads_attend(rank, base, stash);
        return;
    }
    const Context c = context_of(rank, base);
    const RankShape *s = &rank->shape;
    Joining j = {.o = rank_tensor(rank, s->tokens * s->attended),
                 .lse = rank_wide(rank, s->tokens * s->heads),
                 .o_sum = rank_wide(rank, s->tokens * s->attended),
                 .first = {true, true}};
    if (rank->plan->cp_method == CP_RING)
        ring_attend(&c, &j, stash);
    else
        gathered_attend(&c, &j, stash);
    rank->backend->table->cast(rank->backend, stash->o->data, rank->backend->act, j.o_sum->data,
                               rank->backend->wide, false, s->tokens * s->attended, rank->stream);
    rank_drop(rank, &j.o);
    rank_drop(rank, &j.lse);
    rank_drop(rank, &j.o_sum);
}

// --- Backward

typedef struct {
    const LayerStash *stash;
    const Tensor *dout;
    Tensor *dq, *dq_part; // [tokens][qkv], queries' columns only
    Tensor *dkeys_part;   // [tokens][keys, values]
} Gradients;

// Adds the rows of a slice, sequence by sequence.
static void slice_add(const Context *c, void *sum, const void *part, int slice, int64_t width) {
    Backend *b = c->rank->backend;
    const RankShape *s = &c->rank->shape;
    const int64_t length = slice_length(s);
    for (int64_t i = 0; i < s->sequences; i++) {
        const int64_t first = (i * s->seq_len + slice * length) * width * c->act;
        b->table->add(b, (char *)sum + first, (char *)sum + first, (const char *)part + first,
                      length * width, c->rank->stream);
    }
}

// Adds to dkeys, of rank `source`, and to g->dq.
static void source_backward(const Context *c, int source, const void *keys, void *dkeys,
                            const Gradients *g) {
    Backend *b = c->rank->backend;
    const RankShape *s = &c->rank->shape;
    const int64_t length = slice_length(s);
    for (int i = 0; i < SLICES * SLICES; i++) {
        const Pair pair = {.queries = i / SLICES, .keys = i % SLICES};
        Attention call;
        if (!pair_attention(c, source, pair, keys, &call)) continue;
        const int64_t row = pair.queries * length, key_row = pair.keys * length;
        // Gradients of queries have the strides of queries: [tokens][qkv] is too wide for parts.
        call.o = (char *)g->stash->o->data + row * call.o_stride * c->act;
        call.lse = wide_at(b, g->stash->lse->data, row);
        call.dout = keys_at(c, g->dout->data, row * call.o_stride);
        call.dq = (char *)g->dq_part->data + row * s->qkv * c->act;
        call.dk = (char *)g->dkeys_part->data + key_row * c->width * c->act;
        call.dv = (char *)call.dk + c->width / 2 * c->act;
        b->table->attention_backward(b, &call, c->rank->stream);
        slice_add(c, g->dq->data, g->dq_part->data, pair.queries, s->qkv);
        slice_add(c, dkeys, g->dkeys_part->data, pair.keys, c->width);
    }
}

static Tensor *zeroed(Rank *rank, int64_t count) {
    Tensor *tensor = rank_tensor(rank, count);
    rank->backend->table->zero(rank->backend, tensor->data, tensor->bytes, rank->stream);
    return tensor;
}

// The keys of others first: their gradients go on with the ring and are home, with all parts but
// the owner's, when keys have gone round.
static Tensor *ring_backward(const Context *c, const Gradients *g) {
    Rank *rank = c->rank;
    const int size = c->cp->size, own = c->cp->rank;
    Ring keys = ring_make(c), dkeys = ring_make(c);
    keys_copy(c, keys.now->data, g->stash->qkv->data, true);
    rank->backend->table->zero(rank->backend, dkeys.now->data, dkeys.now->bytes, rank->stream);
    for (int step = 1; step < size; step++) {
        ring_pass(c, (Ring *[]){&keys, &dkeys}, step == 1 ? 1 : 2);
        source_backward(c, (own - step + size) % size, keys.now->data, dkeys.now->data, g);
    }
    ring_pass(c, (Ring *[]){&dkeys}, 1);
    keys_copy(c, keys.now->data, g->stash->qkv->data, true);
    source_backward(c, own, keys.now->data, dkeys.now->data, g);
    ring_free(c, &keys);
    rank_drop(rank, &dkeys.next);
    return dkeys.now;
}

static Tensor *gathered_backward(const Context *c, const Gradients *g) {
    Rank *rank = c->rank;
    const int size = c->cp->size, own = c->cp->rank;
    Tensor *keys = keys_gather(c, g->stash), *all = zeroed(rank, c->count * size);
    for (int source = 0; source < size; source++)
        source_backward(c, source, keys_at(c, keys->data, source * c->count),
                        (char *)all->data + source * c->count * c->act, g);
    rank_drop(rank, &keys);
    Tensor *dkeys = rank_tensor(rank, c->count);
    if (mutant("gathered-keys-own"))
        rank->backend->table->copy(rank->backend, dkeys->data,
                                   (char *)all->data + own * c->count * c->act, dkeys->bytes,
                                   rank->stream);
    else
        c->cp->table->reduce_scatter(c->cp, dkeys->data, all->data, c->count, rank->backend->act,
                                     rank->stream);
    rank_drop(rank, &all);
    return dkeys;
}

Tensor *context_attend_backward(Rank *rank, const Attention *base, const LayerStash *stash,
                                Tensor **dout) {
    if (rank->plan->cp_method == CP_ULYSSES) return heads_attend_backward(rank, base, stash, dout);
    const Context c = context_of(rank, base);
    const RankShape *s = &rank->shape;
    Tensor *dqkv = zeroed(rank, s->tokens * s->qkv);
    Gradients g = {.stash = stash,
                   .dout = *dout,
                   .dq = dqkv,
                   .dq_part = zeroed(rank, s->tokens * s->qkv),
                   .dkeys_part = rank_tensor(rank, c.count)};
    Tensor *dkeys =
        rank->plan->cp_method == CP_RING ? ring_backward(&c, &g) : gathered_backward(&c, &g);
    keys_copy(&c, dkeys->data, dqkv->data, false);
    rank_drop(rank, &dkeys);
    rank_drop(rank, &g.dq_part);
    rank_drop(rank, &g.dkeys_part);
    return dqkv;
}
