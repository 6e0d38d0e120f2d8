// backend/check_attention.c - cases of attention, and of joining it over two sets of keys.
#include "backend/check_case.h"

#include <math.h>

typedef struct {
    int batch, heads, kv_heads, head_dim;
    int64_t num_queries, num_keys;
    bool causal;
    int64_t query_first, window;
    bool packed;       // q, k and v of a token lie side by side
    int64_t first_key; // of those that the backward is given; o and lse are over all
} AttentionSize;

static const AttentionSize SIZES[] = {
    {1, 25, 25, 64, 100, 100, true, 0, 0, true, 0},
    {2, 4, 4, 64, 128, 128, true, 0, 0, false, 0},
    {1, 32, 8, 128, 130, 130, true, 0, 0, true, 0},
    {2, 3, 3, 80, 65, 65, true, 0, 0, true, 0},
    {2, 3, 1, 96, 33, 129, false, 0, 0, false, 0},
    {1, 4, 2, 16, 70, 33, false, 0, 0, false, 0},
    {1, 2, 2, 64, 1, 77, true, 76, 0, false, 0},
    {2, 2, 1, 64, 50, 90, true, 40, 0, false, 0},
    {2, 2, 1, 64, 90, 64, true, 1000, 0, false, 0},
    {1, 2, 2, 64, 97, 64, true, -20, 0, false, 0},   // the first see nothing
    {1, 2, 2, 64, 64, 64, true, -200, 0, false, 0},  // nobody sees anything
    {1, 2, 2, 128, 200, 200, true, 0, 16, true, 0},  // the last of 16
    {1, 4, 2, 64, 150, 150, true, 30, 50, false, 0}, // keys end before queries do
    {1, 2, 2, 64, 64, 64, true, 100, 20, false, 0},  // the window is past all keys of some
    {1, 4, 2, 64, 128, 128, true, 0, 0, false, 64},  // the half of the keys, later ones
    {1, 4, 2, 64, 64, 192, true, 128, 0, false, 100},
    {1, 6, 6, 64, 1024, 1024, true, 0, 0, true, 0},
    {2, 8, 2, 64, 257, 257, true, 0, 0, true, 0},
    {2, 4, 2, 128, 192, 192, false, 0, 0, true, 0},
};

// Where the parts are: one array of tokens, or one each; and the distances between tokens.
typedef struct {
    const CheckArray *array[3]; // of q, k, v, or of their gradients
    int64_t offset[3];
} AttentionParts;

static Attention attention_of(const AttentionSize *size) {
    int64_t q_width = (int64_t)size->heads * size->head_dim;
    int64_t kv_width = (int64_t)size->kv_heads * size->head_dim;
    Attention call = {
        .batch = size->batch,
        .heads = size->heads,
        .kv_heads = size->kv_heads,
        .head_dim = size->head_dim,
        .num_queries = size->num_queries,
        .num_keys = size->num_keys,
        .causal = size->causal,
        .query_first = size->query_first,
        .window = size->window,
        .scale = 1 / sqrt(size->head_dim),
        .lse_stride = size->num_queries + (size->packed ? 0 : 3),
        .o_stride = q_width,
        .o_batch_stride = q_width * size->num_queries,
    };
    // Gaps between tokens and between sequences, where nothing is to be written.
    call.q_stride = size->packed ? q_width + 2 * kv_width : q_width + 8;
    call.kv_stride = size->packed ? call.q_stride : kv_width + 16;
    call.q_batch_stride = call.q_stride * size->num_queries + (size->packed ? 0 : 24);
    call.kv_batch_stride = size->packed ? call.q_batch_stride : call.kv_stride * size->num_keys + 8;
    return call;
}

static AttentionParts parts_make(Checker *checker, const AttentionSize *size, const Attention *call,
                                 bool gradients) {
    static const char *const NAMES[2][3] = {{"q", "k", "v"}, {"dq", "dk", "dv"}};
    int64_t counts[3] = {call->q_batch_stride * size->batch, call->kv_batch_stride * size->batch,
                         call->kv_batch_stride * size->batch};
    AttentionParts parts = {0};
    for (int i = 0; i < 3; i++) {
        const char *name = size->packed ? gradients ? "dqkv" : "qkv" : NAMES[gradients][i];
        if (i > 0 && size->packed)
            parts.array[i] = parts.array[0];
        else if (gradients)
            parts.array[i] = case_written(checker, name, CHECK_ACT, counts[i]);
        else
            parts.array[i] = case_random(checker, name, CHECK_ACT, CHECK_READ, counts[i], 1);
    }
    if (size->packed) {
        parts.offset[1] = (int64_t)size->heads * size->head_dim;
        parts.offset[2] = parts.offset[1] + (int64_t)size->kv_heads * size->head_dim;
    }
    return parts;
}

static void *part_at(const Checker *checker, const AttentionParts *parts, int part, int side,
                     int64_t offset) {
    return array_at(checker, parts->array[part], side, parts->offset[part] + offset);
}

static void begin(Checker *checker, const char *name, const AttentionSize *size) {
    case_begin(checker, name, "%d of %lld on %lld, %d/%d heads of %d%s, first %lld, window %lld%s",
               size->batch, (long long)size->num_queries, (long long)size->num_keys, size->heads,
               size->kv_heads, size->head_dim, size->causal ? ", causal" : "",
               (long long)size->query_first, (long long)size->window,
               size->first_key > 0 ? ", some keys" : "");
}

static void check_forward(Checker *checker, const AttentionSize *size) {
    begin(checker, "attention_forward", size);
    Attention call = attention_of(size);
    AttentionParts parts = parts_make(checker, size, &call, false);
    const CheckArray *o = case_written(checker, "o", CHECK_ACT, call.o_batch_stride * size->batch);
    const CheckArray *lse =
        case_written(checker, "lse", CHECK_WIDE, call.lse_stride * size->heads * size->batch);
    FOR_EACH_SIDE(side) {
        call.q = part_at(checker, &parts, 0, side, 0);
        call.k = part_at(checker, &parts, 1, side, 0);
        call.v = part_at(checker, &parts, 2, side, 0);
        call.o = o->at[side];
        call.lse = lse->at[side];
        table_of(checker, side)
            ->attention_forward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

// o and lse over all keys, by the reference, as arrays that both sides read.
static void run_forward(Checker *checker, Attention call, const AttentionParts *parts,
                        const CheckArray **o, const CheckArray **lse) {
    int64_t o_count = call.o_batch_stride * call.batch;
    int64_t lse_count = call.lse_stride * call.heads * call.batch;
    Backend *reference = checker->sides[CHECK_REFERENCE];
    call.q = part_at(checker, parts, 0, CHECK_REFERENCE, 0);
    call.k = part_at(checker, parts, 1, CHECK_REFERENCE, 0);
    call.v = part_at(checker, parts, 2, CHECK_REFERENCE, 0);
    call.o = ARENA_ARRAY(&checker->arena, o_count, double);
    call.lse = ARENA_ARRAY(&checker->arena, lse_count, double);
    reference->table->attention_forward(reference, &call, reference->stream);
    *o = case_values(checker, "o", CHECK_ACT, CHECK_READ, o_count, call.o);
    *lse = case_values(checker, "lse", CHECK_WIDE, CHECK_READ, lse_count, call.lse);
}

static void check_backward(Checker *checker, const AttentionSize *size) {
    begin(checker, "attention_backward", size);
    Attention call = attention_of(size);
    AttentionParts parts = parts_make(checker, size, &call, false);
    AttentionParts gradients = parts_make(checker, size, &call, true);
    const CheckArray *dout =
        case_random(checker, "dout", CHECK_ACT, CHECK_READ, call.o_batch_stride * size->batch, 1);
    const CheckArray *o, *lse;
    run_forward(checker, call, &parts, &o, &lse);
    int64_t skipped = size->first_key * call.kv_stride;
    call.num_keys -= size->first_key;
    call.query_first -= size->first_key;
    FOR_EACH_SIDE(side) {
        call.q = part_at(checker, &parts, 0, side, 0);
        call.k = part_at(checker, &parts, 1, side, skipped);
        call.v = part_at(checker, &parts, 2, side, skipped);
        call.o = o->at[side];
        call.lse = lse->at[side];
        call.dout = dout->at[side];
        call.dq = part_at(checker, &gradients, 0, side, 0);
        call.dk = part_at(checker, &gradients, 1, side, skipped);
        call.dv = part_at(checker, &gradients, 2, side, skipped);
        table_of(checker, side)
            ->attention_backward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_attention(Checker *checker) {
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        check_forward(checker, &SIZES[i]);
        check_backward(checker, &SIZES[i]);
    }
}

// --- Joining

// Logs of sums, of which each `every`-th is -infinity: no key was seen.
static double *draw_logs(Checker *checker, int64_t count, int every) {
    double *values = draw_fracs(checker, count);
    for (int64_t i = 0; i < count; i++) values[i] = i % every == 0 ? -INFINITY : 10 * values[i] - 3;
    return values;
}

// Outputs, of `stride` from query to query, that are 0 where the log says that no key was seen.
static double *draw_outputs(Checker *checker, const AttentionMerge *call, const double *logs,
                            int64_t stride, int64_t batch_stride) {
    double *values = draw_fracs(checker, call->batch * batch_stride);
    for (int b = 0; b < call->batch; b++) {
        for (int h = 0; h < call->heads; h++) {
            for (int64_t t = 0; t < call->num_queries; t++) {
                if (logs[(b * call->heads + h) * call->lse_stride + t] != -INFINITY) continue;
                double *row = values + b * batch_stride + t * stride + h * call->head_dim;
                for (int d = 0; d < call->head_dim; d++) row[d] = 0;
            }
        }
    }
    return values;
}

static void check_merge(Checker *checker, AttentionMerge call) {
    int64_t width = (int64_t)call.heads * call.head_dim;
    call.o_stride = width + 8;
    call.o_batch_stride = call.o_stride * call.num_queries + 16;
    call.sum_stride = width;
    call.sum_batch_stride = width * call.num_queries;
    call.lse_stride = call.num_queries + 5;
    case_begin(checker, "attention_merge", "%d of %lld, %d heads of %d%s", call.batch,
               (long long)call.num_queries, call.heads, call.head_dim, call.first ? ", first" : "");
    int64_t lse_count = call.batch * call.heads * call.lse_stride;
    int64_t sum_count = call.batch * call.sum_batch_stride;
    double *logs = draw_logs(checker, lse_count, 3), *sum_logs = draw_logs(checker, lse_count, 4);
    double *outputs = draw_outputs(checker, &call, logs, call.o_stride, call.o_batch_stride);
    double *sums = draw_outputs(checker, &call, sum_logs, call.sum_stride, call.sum_batch_stride);
    const CheckArray *o =
        case_values(checker, "o", CHECK_ACT, CHECK_READ, call.batch * call.o_batch_stride, outputs);
    const CheckArray *lse = case_values(checker, "lse", CHECK_WIDE, CHECK_READ, lse_count, logs);
    const CheckArray *o_sum =
        call.first ? case_written(checker, "o_sum", CHECK_WIDE, sum_count)
                   : case_values(checker, "o_sum", CHECK_WIDE, CHECK_CHANGED, sum_count, sums);
    const CheckArray *lse_sum = call.first ? case_written(checker, "lse_sum", CHECK_WIDE, lse_count)
                                           : case_values(checker, "lse_sum", CHECK_WIDE,
                                                         CHECK_CHANGED, lse_count, sum_logs);
    FOR_EACH_SIDE(side) {
        call.o = o->at[side];
        call.lse = lse->at[side];
        call.o_sum = o_sum->at[side];
        call.lse_sum = lse_sum->at[side];
        table_of(checker, side)
            ->attention_merge(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_attention_merge(Checker *checker) {
    for (int first = 0; first < 2; first++) {
        check_merge(
            checker,
            (AttentionMerge){
                .batch = 2, .heads = 25, .head_dim = 64, .num_queries = 33, .first = first});
        check_merge(
            checker,
            (AttentionMerge){
                .batch = 1, .heads = 8, .head_dim = 128, .num_queries = 130, .first = first});
        check_merge(checker,
                    (AttentionMerge){
                        .batch = 1, .heads = 3, .head_dim = 80, .num_queries = 7, .first = first});
    }
}
