// Messages of one group are started in an order that both ends agree on: between two ranks, as the
// sender's list has them.
#include "runtime/engine.h"

#include "runtime/mutant.h"

#include <stdlib.h>

// A message, and where its array comes from or goes to.
typedef struct {
    Message message;
    Tensor **place;
    int order; // of the sender's instruction
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

static int compare(const void *a, const void *b) {
    return ((const Pending *)a)->order - ((const Pending *)b)->order;
}

int engine_exchange(Engine *e, int first) {
    enum { MOST = 16 };
    const Instruction *list = e->instructions;
    const int group = list[first].p2p_group;
    Pending pending[MOST];
    Message messages[MOST];
    int num = 0, last = first;
    while (last < e->num_instructions && is_message(&list[last]) && num < MOST &&
           list[last].p2p_group == group) {
        if (!list[last].embedding) pending[num++] = pending_of(e, &list[last], last);
        last++;
    }
    qsort(pending, (size_t)num, sizeof *pending, compare);
    for (int i = 0; i < num; i++) messages[i] = pending[i].message;
    Comm *pp = rank_comm(e->rank, GROUP_PP);
    if (num > 0) pp->table->exchange(pp, messages, num, e->rank->stream);
    for (int i = 0; i < num; i++)
        if (!messages[i].receive) rank_drop(e->rank, pending[i].place);
    return last - first;
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

void engine_exchange_tied(Engine *e) {
    Rank *rank = e->rank;
    Backend *b = rank->backend;
    const Instruction *message = NULL;
    for (int n = 0; n < e->num_instructions && !message; n++)
        if (e->instructions[n].embedding) message = &e->instructions[n];
    if (!message || mutant("pp-no-tied-sum")) return;
    const Parameter *table = NULL;
    const ChunkState *chunk = tied_chunk(rank, &table);
    const int64_t count = parameter_count(table);
    Tensor *other = rank_wide(rank, count);
    void *own = chunk_gradient(b, chunk, table);
    const Message both[2] = {{message->peer, false, own, count, b->wide},
                             {message->peer, true, other->data, count, b->wide}};
    Comm *pp = rank_comm(rank, GROUP_PP);
    pp->table->exchange(pp, both, 2, rank->stream);
    b->table->cast(b, own, b->wide, other->data, b->wide, true, count, rank->stream);
    rank_drop(rank, &other);
}
