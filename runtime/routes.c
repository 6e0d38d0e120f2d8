#include "runtime/routes.h"

#include "runtime/mutant.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 1024 }; // of ep and of etp: runtime/rank_shape.c refuses more

// What is needed on the host while routes are made.
typedef struct {
    int num_experts, experts, ep, etp; // of the model, of this rank
    int64_t routed;
    int32_t *chosen;  // [routed]
    int32_t *index;   // [the most rows]
    int32_t *inverse; // likewise
    int32_t *counts;  // [etp][ep][experts] rows by sender and expert, of all that comes here
    int64_t *places;  // [num_experts] the next row of each
} Scratch;

static void fail(Rank *rank, size_t bytes) {
    Status *failure = &rank->backend->failure;
    if (failure->code == STATUS_OK)
        *failure = status_error(STATUS_MACHINE, "no %zu bytes for the places of tokens", bytes);
}

static bool is_well(const Rank *rank) {
    return rank->backend->failure.code == STATUS_OK;
}

static Tensor *upload_index(Rank *rank, const int32_t *index, int64_t count) {
    Backend *b = rank->backend;
    Tensor *tensor = tensor_new(&rank->pool, count, DTYPE_INT32);
    b->table->upload(b, tensor->data, index, (size_t)count * sizeof *index, rank->stream);
    return tensor;
}

// --- Who chose what

static void chosen_read(Rank *rank, const Tensor *chosen, Scratch *s) {
    Backend *b = rank->backend;
    const size_t bytes = (size_t)s->routed * sizeof *s->chosen;
    if (rank->balanced) {
        memcpy(s->chosen, rank->balanced, bytes);
        return;
    }
    const Status status = b->table->download(b, s->chosen, chosen->data, bytes, rank->stream);
    if (status.code != STATUS_OK) memset(s->chosen, 0, bytes);
}

// Sorts the choices by expert: index has the token of each row that is sent, inverse the row of
// each choice. sent: [num_experts] rows to each.
static void choices_sort(Scratch *s, int per_token, int64_t *sent) {
    for (int64_t i = 0; i < s->routed; i++) sent[s->chosen[i]]++;
    int64_t begin = 0;
    for (int e = 0; e < s->num_experts; e++) {
        s->places[e] = begin;
        begin += sent[e];
    }
    for (int64_t i = 0; i < s->routed; i++) {
        const int64_t row = s->places[s->chosen[i]]++;
        s->index[row] = (int32_t)(i / per_token);
        s->inverse[i] = (int32_t)row;
    }
    if (s->ep > 1 && mutant("ep-drops-token")) s->index[0] = -1; // a row of zeros goes
}

// --- How much comes from where

// Where every rank sends as much to every expert nobody has to ask.
static void counts_balanced(const Scratch *s) {
    const int64_t all = (int64_t)s->etp * s->ep * s->experts;
    for (int64_t i = 0; i < all; i++) s->counts[i] = (int32_t)(s->routed / s->num_experts);
}

// Each rank tells those of its ep group what it sends to their experts; then the etp group what
// each was told.
static void counts_exchange(Rank *rank, const Scratch *s, const int64_t *sent) {
    Backend *b = rank->backend;
    const int64_t own = (int64_t)s->ep * s->experts, all = own * s->etp;
    Comm *ep = rank_comm(rank, GROUP_EP), *etp = rank_comm(rank, GROUP_ETP);
    for (int64_t i = 0; i < own; i++) s->counts[i] = (int32_t)sent[i];
    Tensor *told = upload_index(rank, s->counts, own);
    if (ep) {
        Tensor *from = tensor_new(&rank->pool, own, DTYPE_INT32);
        int64_t counts[2][MOST_RANKS];
        for (int r = 0; r < s->ep; r++) {
            counts[0][r] = s->experts;
            counts[1][r] = (int64_t)r * s->experts;
        }
        ep->table->all_to_all(ep, from->data, counts[0], counts[1], told->data, counts[0],
                              counts[1], DTYPE_INT32, rank->stream);
        rank->beside_bytes[GROUP_EP][COMM_ALL_TO_ALL] += (double)own * sizeof(int32_t);
        rank_drop(rank, &told);
        told = from;
    }
    if (etp) {
        Tensor *of_all = tensor_new(&rank->pool, all, DTYPE_INT32);
        etp->table->all_gather(etp, of_all->data, told->data, own, DTYPE_INT32, rank->stream);
        rank->beside_bytes[GROUP_ETP][COMM_ALL_GATHER] += (double)all * sizeof(int32_t);
        rank_drop(rank, &told);
        told = of_all;
    }
    const Status status =
        b->table->download(b, s->counts, told->data, (size_t)all * sizeof *s->counts, rank->stream);
    if (status.code != STATUS_OK) memset(s->counts, 0, (size_t)all * sizeof *s->counts);
    rank_drop(rank, &told);
}

static void counts_sum(const Rank *rank, const Scratch *s, const int64_t *sent, Routes *out) {
    const int own = rank->world->index[GROUP_ETP];
    for (int e = 0; e < s->num_experts; e++) out->sent[e / s->experts] += sent[e];
    for (int i = 0; i < s->etp; i++)
        for (int j = 0; j < s->ep; j++)
            for (int e = 0; e < s->experts; e++) {
                const int64_t rows = s->counts[((int64_t)i * s->ep + j) * s->experts + e];
                out->gathered[i] += rows;
                out->rows[e] += rows;
                if (i == own) out->arrived[j] += rows;
            }
    out->num_arrived = out->gathered[own];
    for (int i = 0; i < s->etp; i++) out->num_rows += out->gathered[i];
}

// --- Rows by expert

// What arrives stands by sender, and what a sender sent by expert: index has where each row by
// expert arrived, inverse the other way.
static void rows_sort(Scratch *s, const Routes *routes) {
    int64_t begin = 0, arrived = 0;
    for (int e = 0; e < s->experts; e++) {
        s->places[e] = begin;
        begin += routes->rows[e];
    }
    for (int64_t i = 0; i < (int64_t)s->etp * s->ep * s->experts; i++)
        for (int32_t k = 0; k < s->counts[i]; k++) {
            const int64_t row = s->places[i % s->experts]++;
            s->index[row] = (int32_t)arrived;
            s->inverse[arrived++] = (int32_t)row;
        }
}

static void scratch_free(Scratch *s) {
    free(s->chosen);
    free(s->index);
    free(s->inverse);
    free(s->counts);
    free(s->places);
}

static bool scratch_make(const Rank *rank, Scratch *s) {
    const RankShape *shape = &rank->shape;
    *s = (Scratch){.num_experts = model_ffn(&rank->scenario->model)->num_experts,
                   .experts = shape->experts,
                   .ep = rank->plan->ep,
                   .etp = rank->plan->etp,
                   .routed = shape->routed};
    s->chosen = calloc((size_t)s->routed, sizeof *s->chosen);
    s->index = calloc((size_t)s->routed, sizeof *s->index);
    s->inverse = calloc((size_t)s->routed, sizeof *s->inverse);
    s->counts = calloc((size_t)s->etp * (size_t)s->num_experts, sizeof *s->counts);
    s->places = calloc((size_t)s->num_experts, sizeof *s->places);
    return s->chosen && s->index && s->inverse && s->counts && s->places;
}

static bool scratch_grow(Scratch *s, int64_t rows) {
    free(s->index);
    free(s->inverse);
    s->index = calloc((size_t)rows + 1, sizeof *s->index);
    s->inverse = calloc((size_t)rows + 1, sizeof *s->inverse);
    return s->index && s->inverse;
}

static void routes_fill(Rank *rank, const Tensor *chosen, Scratch *s, int64_t *sent, Routes *out) {
    chosen_read(rank, chosen, s);
    choices_sort(s, rank->shape.experts_per_token, sent);
    out->from_token = upload_index(rank, s->index, s->routed);
    out->to_sent = upload_index(rank, s->inverse, s->routed);
    if (rank->balanced)
        counts_balanced(s);
    else
        counts_exchange(rank, s, sent);
    if (!is_well(rank)) return;
    counts_sum(rank, s, sent, out);
    // The rows of a single sender, or of a single expert, lie by expert already.
    if ((int64_t)s->etp * s->ep == 1 || s->experts == 1) return;
    if (!scratch_grow(s, out->num_rows)) {
        fail(rank, (size_t)out->num_rows * sizeof *s->index);
        return;
    }
    rows_sort(s, out);
    out->by_expert = upload_index(rank, s->index, out->num_rows);
    out->by_arrival = upload_index(rank, s->inverse, out->num_rows);
}

void routes_make(Rank *rank, const Tensor *chosen, Routes *out) {
    Scratch s;
    const bool ready = scratch_make(rank, &s);
    const size_t num = (size_t)(2 * s.ep + s.etp + s.experts + s.num_experts);
    *out = (Routes){.counts = calloc(num, sizeof *out->counts)};
    if (ready && out->counts) {
        out->sent = out->counts;
        out->arrived = out->sent + s.ep;
        out->gathered = out->arrived + s.ep;
        out->rows = out->gathered + s.etp;
        routes_fill(rank, chosen, &s, out->rows + s.experts, out);
    } else {
        fail(rank, num * sizeof *out->counts);
    }
    scratch_free(&s);
}

void routes_drop(Rank *rank, Routes *routes) {
    rank_drop(rank, &routes->from_token);
    rank_drop(rank, &routes->to_sent);
    rank_drop(rank, &routes->by_expert);
    rank_drop(rank, &routes->by_arrival);
}

void routes_free(Rank *rank, Routes *routes) {
    routes_drop(rank, routes);
    free(routes->counts);
    *routes = (Routes){0};
}

// --- Rows on their way

static Dtype row_dtype(const Rank *rank, RowKind kind) {
    return kind.wide ? rank->backend->wide : rank->backend->act;
}

static Tensor *rows_new(Rank *rank, RowKind kind, int64_t rows) {
    return tensor_new(&rank->pool, rows * kind.columns, row_dtype(rank, kind));
}

// Puts rows in another order; takes them. index NULL: they stay.
static Tensor *rows_permute(Rank *rank, RowKind kind, Tensor **rows, const Tensor *index,
                            int64_t num) {
    Tensor *from = *rows;
    *rows = NULL;
    if (!index) return from;
    Tensor *to = rows_new(rank, kind, num);
    if (num > 0)
        rank->backend->table->gather_rows(rank->backend,
                                          &(GatherRows){.rows = num,
                                                        .columns = kind.columns,
                                                        .wide = kind.wide,
                                                        .x = from->data,
                                                        .index = index->data,
                                                        .y = to->data},
                                          rank->stream);
    rank_drop(rank, &from);
    return to;
}

// What travels beside the rows of act is not in the Program.

// Over ep: `counts` rows to each rank, `arrive` from each, `num` in all.
static Tensor *rows_exchange(Rank *rank, RowKind kind, Tensor **rows, const int64_t *counts,
                             const int64_t *arrive, int64_t num) {
    Comm *ep = rank_comm(rank, GROUP_EP);
    Tensor *from = *rows;
    *rows = NULL;
    if (!ep || !is_well(rank)) return from;
    int64_t in[2][MOST_RANKS], out[2][MOST_RANKS], in_end = 0, out_end = 0;
    for (int r = 0; r < ep->size; r++) {
        in[0][r] = counts[r] * kind.columns, in[1][r] = in_end;
        out[0][r] = arrive[r] * kind.columns, out[1][r] = out_end;
        in_end += in[0][r];
        out_end += out[0][r];
    }
    Tensor *to = rows_new(rank, kind, num);
    const double before = ep->sent_bytes[COMM_ALL_TO_ALL];
    ep->table->all_to_all(ep, to->data, out[0], out[1], from->data, in[0], in[1],
                          row_dtype(rank, kind), rank->stream);
    if (kind.wide)
        rank->beside_bytes[GROUP_EP][COMM_ALL_TO_ALL] += ep->sent_bytes[COMM_ALL_TO_ALL] - before;
    rank_drop(rank, &from);
    return to;
}

// Over etp: all have all, or each has the sum of its own.
static Tensor *rows_share(Rank *rank, RowKind kind, Tensor **rows, const Routes *routes,
                          bool gather) {
    Comm *etp = rank_comm(rank, GROUP_ETP);
    Tensor *from = *rows;
    *rows = NULL;
    if (!etp || !is_well(rank)) return from;
    int64_t counts[MOST_RANKS];
    for (int r = 0; r < etp->size; r++) counts[r] = routes->gathered[r] * kind.columns;
    Tensor *to = rows_new(rank, kind, gather ? routes->num_rows : routes->num_arrived);
    const CommKind call = gather ? COMM_ALL_GATHER : COMM_REDUCE_SCATTER;
    const double before = etp->sent_bytes[call];
    if (gather)
        etp->table->all_gather_parts(etp, to->data, from->data, counts, row_dtype(rank, kind),
                                     rank->stream);
    else if (!mutant("etp-no-sum"))
        etp->table->reduce_scatter_parts(etp, to->data, from->data, counts, row_dtype(rank, kind),
                                         rank->stream);
    else
        rank->backend->table->copy(rank->backend, to->data, from->data, to->bytes, rank->stream);
    if (kind.wide) rank->beside_bytes[GROUP_ETP][call] += etp->sent_bytes[call] - before;
    rank_drop(rank, &from);
    return to;
}

Tensor *routes_to_experts(Rank *rank, const Routes *routes, RowKind kind, Tensor **sent) {
    rank->rows_moved.sent += (double)rank->shape.routed;
    rank->rows_moved.arrived += (double)routes->num_arrived;
    rank->rows_moved.gathered += (double)routes->num_rows;
    Tensor *rows =
        rows_exchange(rank, kind, sent, routes->sent, routes->arrived, routes->num_arrived);
    rows = rows_share(rank, kind, &rows, routes, true);
    if (mutant("ep-unsorted")) return rows;
    return rows_permute(rank, kind, &rows, routes->by_expert, routes->num_rows);
}

Tensor *routes_from_experts(Rank *rank, const Routes *routes, RowKind kind, Tensor **rows) {
    Tensor *back = rows_permute(rank, kind, rows, routes->by_arrival, routes->num_rows);
    back = rows_share(rank, kind, &back, routes, false);
    return rows_exchange(rank, kind, &back, routes->arrived, routes->sent, rank->shape.routed);
}
