// Messages of one group are started in an order that both ends agree on: between two ranks, as the
// sender's list has them.
#include "runtime/engine.h"

#include "runtime/mutant.h"

#include <stdlib.h>

// A message, and where its array comes from or goes to.
typedef struct {
    Message message;
    Tensor **place; // NULL: gradients that are sent from where they are
    int order;      // of the sender's instruction
    Tensor *added;  // received, to be added to `to`
    void *to;
} Pending;

static bool is_message(const Instruction *i) {
    return i->kind == INSTRUCTION_SEND || i->kind == INSTRUCTION_RECV;
}

static Pending pending_of(Engine *e, const Instruction *i, int index) {
    Rank *rank = e->rank;
    const bool receive = i->kind == INSTRUCTION_RECV, forward = i->phase == PHASE_FORWARD;
    const int64_t count = rank->shape.tokens_sp * rank->shape.hidden;
    Tensor **table = receive ? (forward ? e->inputs : e->gradients)
                             : (forward ? e->outputs : e->input_gradients);
    Tensor **place = &table[engine_place(e, i)];
    if (receive) *place = rank_tensor(rank, count);
    return (Pending){.message = {.peer = i->peer,
                                 .receive = receive,
                                 .array = (*place)->data,
                                 .count = count,
                                 .dtype = rank->backend->act},
                     .place = place,
                     .order = receive ? i->match : index};
}

// Numbers of one block's gradients of a chunk that has a copy, of this rank's shard.
typedef struct {
    const FlatState *block;
    int64_t begin, count; // in the shard
} Slice;

enum { LEAST_SLICE = 1 << 12 };

// Gradients that two ranks hold are exchanged slice by slice, each of as many numbers as a message
// between chunks, or a few thousand: what arrives needs no more room than such a message had.
static int64_t slice_count(const Rank *rank) {
    const int64_t count = rank->shape.tokens_sp * rank->shape.hidden;
    return count > LEAST_SLICE ? count : LEAST_SLICE;
}

static int num_slices_of(const Rank *rank, const FlatState *block) {
    const int64_t most = slice_count(rank);
    return block->layout.count > 0 ? (int)((block->shard_count + most - 1) / most) : 0;
}

static int num_slices(const Rank *rank, const ChunkState *chunk) {
    int num = 0;
    for (int k = 0; k < chunk->list.num_blocks; k++) num += num_slices_of(rank, &chunk->blocks[k]);
    return num;
}

// Slice `part` of a chunk that has more.
static Slice slice_at(const Rank *rank, const ChunkState *chunk, int part) {
    const FlatState *block = chunk->blocks;
    for (int num; part >= (num = num_slices_of(rank, block)); block++) part -= num;
    const int64_t most = slice_count(rank), begin = part * most, left = block->shard_count - begin;
    return (Slice){block, begin, left < most ? left : most};
}

// A slice, exchanged with the rank that has the copy.
static Pending pending_copies(Engine *e, const Instruction *i, int index, const Slice *slice) {
    Rank *rank = e->rank;
    Backend *b = rank->backend;
    const bool receive = i->kind == INSTRUCTION_RECV;
    const FlatState *f = slice->block;
    Pending p = {.to = gradient_at(b, f, f->shard_begin + slice->begin),
                 .order = receive ? i->match : index};
    if (receive)
        p.added = rank_wide(rank, slice->count);
    else if (slice->begin == 0)
        rank_padding_sent(rank, GROUP_PP, COMM_MESSAGES, f, true, b->wide);
    p.message = (Message){.peer = i->peer,
                          .receive = receive,
                          .array = receive ? p.added->data : p.to,
                          .count = slice->count,
                          .dtype = b->wide};
    return p;
}

// What one instruction moves, of copies slice `part`. Returns whether it moves anything.
static bool pending_find(Engine *e, int index, int part, Pending *pending) {
    const Instruction *i = &e->instructions[index];
    if (i->embedding) return false; // moved already
    if (!i->copies) {
        *pending = pending_of(e, i, index);
        return true;
    }
    const ChunkState *chunk = &e->rank->chunks[e->local[i->chunk]];
    if (part >= num_slices(e->rank, chunk)) return false;
    const Slice slice = slice_at(e->rank, chunk, part);
    *pending = pending_copies(e, i, index, &slice);
    return true;
}

// How many messages from `first` on follow each other as one group, and how many parts they have,
// one after the other.
static int group_size(const Engine *e, int first, int *num_parts) {
    const Instruction *list = e->instructions;
    int last = first;
    for (*num_parts = 1; last < e->num_instructions && is_message(&list[last]) &&
                         list[last].p2p_group == list[first].p2p_group;
         last++) {
        if (!list[last].copies) continue;
        const int num = num_slices(e->rank, &e->rank->chunks[e->local[list[last].chunk]]);
        if (num > *num_parts) *num_parts = num;
    }
    return last - first;
}

static void message_done(Engine *e, Pending *p) {
    Rank *rank = e->rank;
    Backend *b = rank->backend;
    if (p->place && !p->message.receive) rank_drop(rank, p->place);
    if (!p->added) return;
    b->table->cast(b, p->to, b->wide, p->added->data, b->wide, true, p->message.count,
                   rank->stream);
    rank_drop(rank, &p->added);
}

static int compare(const void *a, const void *b) {
    const Pending *x = a, *y = b;
    return x->order - y->order;
}

// --- Messages that do not block

static bool does_not_block(const Instruction *i) {
    return is_message(i) && i->p2p_group < 0;
}

// The way of a message; -1: there is none yet.
static int way_of(const Engine *e, int from, int to, uint8_t phase) {
    for (int w = 0; w < e->num_ways; w++)
        if (e->ways[w].from == from && e->ways[w].to == to && e->way_phases[w] == phase) return w;
    return -1;
}

// Whether a rank receives what is sent one way in the order in which it is sent.
static bool receives_in_order(const Engine *e, int rank, int *last) {
    const RankProgram *own = &e->program->ranks[rank];
    for (int n = 0; n < own->num_instructions; n++) {
        const Instruction *i = &own->instructions[n];
        if (!does_not_block(i) || i->kind != INSTRUCTION_RECV) continue;
        int *before = &last[way_of(e, i->peer, rank, i->phase)];
        if (*before > i->match) return false;
        *before = i->match;
    }
    return true;
}

// Of all ranks, so that all refuse alike. Activations and gradients take ways apart, since where a
// rank has several chunks they overtake each other.
static Status order_check(const Engine *e) {
    int *last = calloc((size_t)e->num_ways, sizeof *last);
    if (!last) return status_error(STATUS_MACHINE, "no memory for the ways of messages");
    bool in_order = true;
    for (int rank = 0; rank < e->program->num_ranks && in_order; rank++)
        in_order = receives_in_order(e, rank, last);
    free(last);
    return in_order
               ? status_ok()
               : status_error(STATUS_INVALID,
                              "%s: its messages overtake each other, which this device's do not",
                              plan_schedule_name(e->rank->plan));
}

Status engine_open_ways(Engine *e, Arena *arena) {
    const Program *program = e->program;
    const int most = 2 * program->num_ranks * program->num_ranks;
    e->ways = ARENA_ARRAY(arena, most, Way);
    e->way_phases = ARENA_ARRAY(arena, most, uint8_t);
    for (int r = 0; r < program->num_ranks; r++) {
        for (int n = 0; n < program->ranks[r].num_instructions; n++) {
            const Instruction *i = &program->ranks[r].instructions[n];
            if (!does_not_block(i) || i->kind != INSTRUCTION_SEND) continue;
            if (way_of(e, r, i->peer, i->phase) >= 0) continue;
            e->ways[e->num_ways] = (Way){.from = r, .to = i->peer};
            e->way_phases[e->num_ways++] = i->phase;
        }
    }
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    if (e->num_ways == 0 || !pp->table->open_ways) return status_ok();
    TRY(order_check(e));
    return pp->table->open_ways(pp, e->ways, e->num_ways);
}

// Those that leave together, of a pair of chunks, follow each other.
static void sent_add(Engine *e, int index, Sent sent) {
    const bool together = index > 0 && does_not_block(&e->instructions[index - 1]) &&
                          e->instructions[index - 1].kind == INSTRUCTION_SEND;
    e->num_sent_last = together ? e->num_sent_last + 1 : 1;
    e->sent[e->num_sent++] = sent;
    engine_sent_drop(e, false);
}

static void message_start(Engine *e, const Instruction *i, int index) {
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    engine_sent_drop(e, false);
    Pending p = pending_of(e, i, index);
    const int rank = e->rank->world->index[GROUP_PP];
    p.message.tag = p.order;
    p.message.way =
        p.message.receive ? way_of(e, i->peer, rank, i->phase) : way_of(e, rank, i->peer, i->phase);
    CommRequest *request = pp->table->start(pp, &p.message, e->rank->stream);
    if (i->kind == INSTRUCTION_RECV) {
        const bool forward = i->phase == PHASE_FORWARD;
        (forward ? e->input_requests : e->gradient_requests)[engine_place(e, i)] = request;
        return;
    }
    sent_add(e, index, (Sent){request, *p.place});
    *p.place = NULL;
}

Tensor *engine_take(Engine *e, Tensor **place, CommRequest **request) {
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    if (*request) pp->table->finish(pp, *request, true);
    *request = NULL;
    Tensor *tensor = *place;
    *place = NULL;
    engine_sent_drop(e, false);
    return tensor;
}

// The last ones are not asked: whether they have left is a matter of time, and the Program counts
// them as held until the next leaves (costmodel/memory/held_messages.h).
void engine_sent_drop(Engine *e, bool all) {
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    const int num_asked = all ? e->num_sent : e->num_sent - e->num_sent_last;
    int left = 0;
    for (int i = 0; i < e->num_sent; i++) {
        if (i < num_asked && pp->table->finish(pp, e->sent[i].request, all))
            rank_drop(e->rank, &e->sent[i].tensor);
        else
            e->sent[left++] = e->sent[i];
    }
    e->num_sent = left;
    if (all) e->num_sent_last = 0;
}

// --- Groups of messages

static void arrays_exchange(Engine *e, Pending *pending, Message *messages, int num) {
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    qsort(pending, (size_t)num, sizeof *pending, compare);
    for (int i = 0; i < num; i++) messages[i] = pending[i].message;
    if (num > 0) pp->table->exchange(pp, messages, num, e->rank->stream);
    for (int i = 0; i < num; i++) message_done(e, &pending[i]);
}

int engine_exchange(Engine *e, int first) {
    int num_parts;
    if (e->instructions[first].p2p_group < 0) {
        message_start(e, &e->instructions[first], first);
        return 1;
    }
    const int num_messages = group_size(e, first, &num_parts);
    Arena scratch = {0};
    Pending *pending = ARENA_ARRAY(&scratch, num_messages, Pending);
    Message *messages = ARENA_ARRAY(&scratch, num_messages, Message);
    for (int part = 0; part < num_parts; part++) {
        int num = 0;
        for (int i = first; i < first + num_messages; i++)
            num += pending_find(e, i, part, &pending[num]);
        arrays_exchange(e, pending, messages, num);
    }
    arena_free(&scratch);
    return num_messages;
}

// --- At the end of the backward

// The chunk of this rank that has a tied matrix, and that matrix; NULL: none.
static const ChunkState *tied_chunk(const Rank *rank, const Parameter **table) {
    for (int i = 0; i < rank->num_chunks; i++) {
        const ChunkParameters *list = &rank->chunks[i].list;
        *table = list->head_is_copy ? list->head : list->table;
        if (*table) return &rank->chunks[i];
    }
    return NULL;
}

// Adds what the other end has, slice by slice.
static void gradient_exchange(Rank *rank, int peer, char *own, int64_t count) {
    Backend *b = rank->backend;
    Comm *pp = rank_comm(rank, GROUP_PP);
    int64_t most = slice_count(rank);
    if (most > count) most = count;
    Tensor *other = rank_wide(rank, most);
    for (int64_t at = 0; at < count; at += most) {
        const int64_t num = most < count - at ? most : count - at;
        void *part = own + (size_t)at * dtype_bytes(b->wide);
        const Message both[2] = {
            {.peer = peer, .array = part, .count = num, .dtype = b->wide},
            {.peer = peer, .array = other->data, .count = num, .dtype = b->wide, .receive = true}};
        pp->table->exchange(pp, both, 2, rank->stream);
        b->table->cast(b, part, b->wide, other->data, b->wide, true, num, rank->stream);
    }
    rank_drop(rank, &other);
}

void engine_exchange_tied(Engine *e) {
    Rank *rank = e->rank;
    Backend *b = rank->backend;
    const Instruction *message = NULL;
    for (int n = 0; n < e->num_instructions && !message; n++)
        if (e->instructions[n].embedding) message = &e->instructions[n];
    if (!message || mutant("pp-no-tied-sum")) return;
    const Parameter *table = NULL;
    const ChunkState *chunk = tied_chunk(rank, &table);
    const FlatState *f = &chunk->blocks[table->block];
    const bool shards = f->zero_stage >= 2;
    const int64_t count = shards ? f->shard_count : parameter_count(table);
    void *own = shards ? f->gradients : chunk_gradient(b, chunk, table);
    if (shards) rank_padding_sent(rank, GROUP_PP, COMM_MESSAGES, f, true, b->wide);
    gradient_exchange(rank, message->peer, own, count);
}
