// backend/cpu/real_table.h - the BackendTable of one format. Included by the file that names it:
// Real and Wide (types of act and wide), REAL_DTYPE, WIDE_DTYPE, REAL_GEMM (of cblas, for Real) and
// REAL_TABLE (the table's name).
//
// Sums along a row run in fp64, and every sum in one order: a result depends on the arguments
// alone.
#pragma once

#include "backend/cpu/real_activation.h"
#include "backend/cpu/real_attention.h"
#include "backend/cpu/real_elementwise.h"
#include "backend/cpu/real_norm.h"
#include "backend/cpu/real_product.h"
#include "backend/cpu/real_routing.h"
#include "backend/cpu/real_vocabulary.h"

// An operation of the table: nothing is run after a failure.
#define QUEUED(name, Call)                                                                         \
    static void queue_##name(Backend *backend, const Call *call, BackendStream *stream) {          \
        (void)stream;                                                                              \
        if (backend->failure.code == STATUS_OK) name(call);                                        \
    }

QUEUED(norm_forward, NormForward)
QUEUED(norm_backward, NormBackward)
QUEUED(activation_forward, Activation)
QUEUED(activation_backward, Activation)
QUEUED(rope, Rope)
QUEUED(attention_merge, AttentionMerge)
QUEUED(embedding_forward, Embedding)
QUEUED(embedding_backward, Embedding)
QUEUED(cross_entropy, CrossEntropy)
QUEUED(row_max, CrossEntropy)
QUEUED(row_sums, CrossEntropy)
QUEUED(cross_entropy_shared, CrossEntropy)
QUEUED(adamw, AdamW)
QUEUED(sgd, Sgd)
QUEUED(router_forward, Router)
QUEUED(router_backward, Router)
QUEUED(row_dots, RowDots)
QUEUED(gather_rows, GatherRows)
QUEUED(combine_forward, CombineRows)
QUEUED(combine_backward, CombineRows)

const BackendTable REAL_TABLE = {
    .abi = BACKEND_ABI,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .upload = cpu_upload,
    .download = cpu_download,
    .copy = cpu_upload,
    .zero = cpu_zero,
    .stream_create = cpu_stream_create,
    .stream_free = cpu_stream_free,
    .sync = cpu_sync,
    .event_create = cpu_event_create,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_await = cpu_event_await,
    .event_interval_s = cpu_event_interval_s,
    .product = product,
    .norm_forward = queue_norm_forward,
    .norm_backward = queue_norm_backward,
    .activation_forward = queue_activation_forward,
    .activation_backward = queue_activation_backward,
    .rope = queue_rope,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .attention_merge = queue_attention_merge,
    .embedding_forward = queue_embedding_forward,
    .embedding_backward = queue_embedding_backward,
    .cross_entropy = queue_cross_entropy,
    .row_max = queue_row_max,
    .row_sums = queue_row_sums,
    .cross_entropy_shared = queue_cross_entropy_shared,
    .adamw = queue_adamw,
    .sgd = queue_sgd,
    .router_forward = queue_router_forward,
    .router_backward = queue_router_backward,
    .row_dots = queue_row_dots,
    .gather_rows = queue_gather_rows,
    .combine_forward = queue_combine_forward,
    .combine_backward = queue_combine_backward,
    .add = add,
    .scale = scale,
    .cast = cast,
    .sum_squares = sum_squares,
    .sum_rows = sum_rows,
    .copy_rows = cpu_copy_rows,
};
