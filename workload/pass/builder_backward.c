// The backward of a block, derived from its forward units as autograd would run it.
#include "workload/pass/builder_quantize.h"

#include <assert.h>
#include <string.h>

// The list being written and which operator's result the next one needs.
typedef struct {
    const Builder *b;
    Op *ops;
    int num_ops;
    int data; // index of the operator that made the current gradient; -1 at the start
    double product_input_bytes[BUILDER_MAX_OPS]; // given back by this product
    double residual_bytes; // of the gradient that waits for the start of the branch
    int residual_at;       // the first operator that held one; -1: none yet
    int residual_from;     // the operator whose result it is, unchanged; -1: none
    double residual_read;  // of it, by a weight gradient
} Backward;

static int wait_for_data(const Backward *w) {
    return w->data < 0 || w->data == w->num_ops - 1 ? WAIT_PREVIOUS : w->data;
}

static int backward_add(Backward *w, Op op, Phase phase, int wait) {
    op.phase = phase;
    op.wait = wait;
    op.saved_bytes = 0;
    op.pipelined_with = -1;
    w->ops[w->num_ops] = op;
    return w->num_ops++;
}

static int data_add(Backward *w, Op op) {
    return w->data = backward_add(w, op, PHASE_BACKWARD_INPUT, wait_for_data(w));
}

static Op input_gradient(const Op *forward, double act) {
    Op op = *forward; // dX [m x k] = dY [m x n] times W^T
    op.gemm.n = forward->gemm.k;
    op.gemm.k = forward->gemm.n;
    op.released_bytes = 0;
    op.transient_bytes =
        forward->gemm.groups * forward->gemm.m * (forward->gemm.n + forward->gemm.k) * act;
    return op;
}

// dW [n x k] = dY^T [n x m] times X [m x k], added to the gradient buffer.
static Op weight_gradient(const Op *forward, double act, double read, double gradient_bytes) {
    Op op = *forward;
    op.gemm.m = forward->gemm.n;
    op.gemm.n = forward->gemm.k;
    op.gemm.k = forward->gemm.m;
    op.bytes =
        forward->gemm.groups * (forward->gemm.m * (forward->gemm.n + forward->gemm.k) * read +
                                2 * forward->gemm.n * forward->gemm.k * gradient_bytes);
    op.released_bytes = forward->saved_bytes;
    op.transient_bytes = forward->gemm.groups * forward->gemm.m * forward->gemm.n * act;
    return op;
}

// What the backward of a collective is called.
static const char *backward_name(const Unit *unit) {
    static const char *const PAIRS[][2] = {
        {"tp_identity", "tp_all_reduce"},         {"tp_all_gather", "tp_reduce_scatter"},
        {"tp_reduce_scatter", "tp_all_gather"},   {"cp_all_gather_kv", "cp_reduce_scatter_kv"},
        {"cp_ring_kv", "cp_ring_kv_gradients"},   {"etp_all_gather", "etp_reduce_scatter"},
        {"etp_reduce_scatter", "etp_all_gather"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        if (strcmp(unit->op.name, PAIRS[i][0]) == 0) return PAIRS[i][1];
    return unit->op.name;
}

// Gradients that a collective reads and makes. The buffers of a ring's steps are left out.
static double exchanged_bytes(const Backward *w, const Op *op) {
    const int size = w->b->split.groups[op->collective.group].size;
    switch (op->collective.kind) {
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
        return op->collective.message_bytes * (1 + 1.0 / size);
    case COLLECTIVE_ALL_TO_ALL:
        return 2 * op->collective.message_bytes;
    case COLLECTIVE_ALL_REDUCE:
        return op->collective.message_bytes;
    default:
        return 0;
    }
}

// Where the forward runs piece by piece beside a product, so does the backward, beside the gradient
// of that product: the one after it where the product came first, else the one just before.
static void collective_backward(Backward *w, const Unit *unit) {
    if (unit->backward_collective == NUM_COLLECTIVES) return;
    Op op = unit->op;
    op.name = backward_name(unit);
    op.collective.kind = unit->backward_collective;
    op.collective.message_bytes *= unit->backward_frac;
    op.transient_bytes = exchanged_bytes(w, &op);
    const int at = data_add(w, op);
    op.pipelined_with = unit->op.pipelined_with;
    if (!runs_in_pieces(w->b, &op) || unit->backward_async) return;
    const bool product_first = unit->op.pipelined_with < unit - w->b->units;
    w->ops[at].pipelined_with = product_first ? at + 1 : at - 1;
}

// Whether each backward scatters its gradients from tensors of their own.
static bool is_scattered(const Builder *b) {
    const int stage = b->split.zero_stage, sharding = b->execution->stack.training.sharding;
    if (!b->split.scatters_gradients) return false;
    if (sharding == SHARDING_SUMMED) return false; // products add to what is scattered
    return stage == 3 || (stage == 2 && sharding != SHARDING_PLAIN);
}

// Bytes moved for each gradient that is scattered, from the product's output to the collective's
// input (config/software/stack.h, Sharding): copied; or concatenated, cast and divided, each a pass
// of its own; or written in the format of the reduction.
static double scattered_copy_bytes(const Execution *execution) {
    const double act = activation_bytes(execution), reduced = reduced_gradient_bytes(execution);
    switch (execution->stack.training.sharding) {
    case SHARDING_FLAT:
        return 2 * act + (reduced != act ? act + reduced : 0) + 2 * reduced;
    case SHARDING_PER_PARAMETER:
        return act + reduced;
    default:
        return 2 * act;
    }
}

// Bytes moved to bring a weight gradient to where gradients are kept, beyond writing the product
// once in 16 bits: in place, the buffer is read and written by the product itself; a tensor of its
// own is read once more and added to it, or (ZeRO-2 and -3) brought into what is scattered.
static void gradient_bytes_set(const Execution *execution, bool sharded, Op *weights) {
    const double act = activation_bytes(execution), kept = kept_gradient_bytes(execution);
    const double num_weights = weights->gemm.groups * weights->gemm.m * weights->gemm.n;
    if (sharded)
        weights->gemm.after_bytes = num_weights * scattered_copy_bytes(execution);
    else if (execution->stack.training.weight_gradient == WEIGHT_GRADIENT_SEPARATE)
        weights->gemm.after_bytes = num_weights * (act + 2 * kept);
    else
        weights->gemm.epilogue_bytes = num_weights * (2 * kept - act);
}

// What the gradient of a weight takes beside the gradient buffer. With ZeRO-3 the memory account
// holds the gradients of whole blocks.
static void gradient_tensor_add(const Backward *w, const Unit *unit, Op *weights) {
    const Execution *execution = w->b->execution;
    const int kind = execution->stack.training.weight_gradient;
    const double one = weights->gemm.m * weights->gemm.n * activation_bytes(execution);
    if (w->b->split.zero_stage == 3 || kind == WEIGHT_GRADIENT_IN_PLACE) return;
    if (kind == WEIGHT_GRADIENT_SEPARATE || unit->plain_gradient)
        weights->transient_bytes += weights->gemm.groups * one;
    else
        weights->placeholder_bytes = one;
}

// One pass over a gradient, by so many kernels.
static Op gradient_pass(const char *name, double bytes, int num_kernels) {
    return (Op){.name = name,
                .kind = OP_MEMORY,
                .stream = STREAM_COMPUTE,
                .bytes = bytes,
                .num_kernels = num_kernels,
                .backward = true};
}

// A product whose weight is not trained: the gradient of its input alone, and that of the column
// collective before it. A weight that is stored in fewer bits is made anew.
static void frozen_backward(Backward *w, const Unit *unit, const Unit *column) {
    const double act = activation_bytes(w->b->execution);
    double weight_bytes = 0;
    if (unit->quantize_bytes > 0)
        data_add(w, gradient_pass("quantize", unit->quantize_bytes, unit->op.num_kernels));
    if (unit->dequantize_bytes > 0) {
        Op pass = gradient_pass("dequantize", unit->dequantize_bytes, unit->dequantize_kernels);
        weight_bytes = pass.transient_bytes = unit->dequantized_bytes;
        data_add(w, pass);
    }
    const int at = data_add(w, input_gradient(&unit->op, act));
    w->ops[at].transient_bytes += weight_bytes;
    if (column) collective_backward(w, column);
}

// A product with weights. Where the unit before it is its column collective, that collective's
// backward runs between the two gradients, beside the second.
static void linear_backward(Backward *w, const Unit *unit, const Unit *column) {
    const Execution *execution = w->b->execution;
    double act = activation_bytes(execution);
    int gather = WAIT_NOTHING;
    double gathered = 0;
    if (unit->frozen) {
        frozen_backward(w, unit, column);
        return;
    }
    if (unit->quantize_bytes > 0)
        data_add(w, gradient_pass("quantize", unit->quantize_bytes, unit->op.num_kernels));
    // What the gradients read waits for the start of the branch anyway.
    const bool is_residual = w->residual_bytes > 0 && w->data == w->residual_from;
    const double waiting = is_residual ? w->residual_bytes : 0;
    const Unit *again = unit->gather > 0 ? &w->b->units[unit->gather] : column;
    if (again && again->gather_again) {
        gather = backward_add(w, again->op, PHASE_BACKWARD_WEIGHT, wait_for_data(w));
        if (!again->backward_async) w->data = gather;
        gathered = again->op.transient_bytes;
    }
    int at = data_add(w, input_gradient(&unit->op, act));
    w->ops[at].transient_bytes += gathered - waiting;
    w->ops[at].regathered_bytes = gathered;
    // The input's gradient is there while the weight's is made, and so is what is scattered of it
    // where the stack scatters beside the weight's, hidden or not.
    double made = unit->op.gemm.groups * unit->op.gemm.m * unit->op.gemm.k * act;
    bool async = column && column->backward_async;
    if (column && column->backward_collective == COLLECTIVE_REDUCE_SCATTER &&
        execution->stack.training.scatters_beside_weights)
        made *= 1 + 1.0 / w->b->split.tp;
    if (async) collective_backward(w, column);
    if (unit->transpose_bytes > 0)
        gather =
            backward_add(w, gradient_pass("transpose", unit->transpose_bytes, unit->op.num_kernels),
                         PHASE_BACKWARD_WEIGHT, gather);
    double read = unit->quantize_bytes > 0 ? weight_read_bytes(execution) : act;
    Op weights = weight_gradient(&unit->op, act, read, kept_gradient_bytes(execution));
    weights.transient_bytes += gathered + made - waiting;
    weights.released_bytes += w->product_input_bytes[unit - w->b->units];
    weights.input_gradient_bytes = made;
    weights.shared_bytes = unit->shared_input_bytes;
    weights.residual_bytes = waiting;
    if (is_residual) w->residual_read = waiting;
    gradient_bytes_set(execution, is_scattered(w->b), &weights);
    gradient_tensor_add(w, unit, &weights);
    backward_add(w, weights, PHASE_BACKWARD_WEIGHT, gather);
    if (column && !async) {
        w->data = w->num_ops - 1;
        collective_backward(w, column);
    }
}

// A product of two activations, C [m x n] = A [m x k] times B [k x n]: dA = dC times B^T, then
// dB = A^T times dC.
static void batched_backward(Backward *w, const Unit *unit) {
    const Op *forward = &unit->op;
    const double act = activation_bytes(w->b->execution);
    data_add(w, input_gradient(forward, act));
    Op op = *forward;
    op.gemm.m = forward->gemm.k;
    op.gemm.k = forward->gemm.m;
    op.released_bytes = forward->saved_bytes;
    op.transient_bytes =
        forward->gemm.groups * forward->gemm.n * (forward->gemm.m + forward->gemm.k) * act;
    data_add(w, op);
}

static void work_backward(Backward *w, const Unit *unit) {
    Op op = unit->op;
    op.awaited_by_host = false; // it has the counts
    op.bytes = unit->backward_bytes;
    op.flops = unit->backward_flops;
    op.scan.state_flops = unit->backward_state_flops;
    op.num_kernels = unit->backward_kernels;
    op.backward = true;
    op.released_bytes = unit->op.saved_bytes - unit->product_input_bytes;
    op.transient_bytes = unit->backward_alive_bytes;
    if (op.num_kernels == 0 && op.released_bytes == 0) return;
    const int at = data_add(w, op);
    if (unit->residual_bytes > 0 && w->residual_bytes == 0) {
        w->ops[at].saved_bytes = w->residual_bytes = unit->residual_bytes;
        w->residual_from = unit->backward_alive_bytes > 0 ? -1 : at; // dropout makes another
        if (w->residual_at < 0) w->residual_at = at;
    } else if (unit->begins_branch) {
        w->ops[at].released_bytes += w->residual_bytes;
        w->ops[at].residual_bytes = w->residual_read;
        w->residual_bytes = w->residual_read = 0;
    }
}

// What an operator keeps as the input of a product stays until the gradient of that product's
// weight is made: of the first product that reads it, the last in the backward.
static void product_inputs_assign(Backward *w) {
    for (int i = 0; i < w->b->num_units; i++)
        for (int k = i + 1; w->b->units[i].product_input_bytes > 0; k++) {
            assert(k < w->b->num_units);
            if (!w->b->units[k].has_weight || w->b->units[k].frozen) continue;
            w->product_input_bytes[k] += w->b->units[i].product_input_bytes;
            break;
        }
}

static bool is_column_of(const Unit *unit) {
    return unit->op.kind == OP_COLLECTIVE && unit->op.stream == STREAM_TP &&
           (unit->backward_async || unit->gather_again ||
            unit->op.collective.kind == NUM_COLLECTIVES);
}

// What runs again, in forward order. Saved once more, except what was kept.
static void recompute_add(Backward *w) {
    bool before = false;
    for (int i = 0; i < w->b->num_units; i++) {
        const Unit *unit = &w->b->units[i];
        bool run = unit->recomputed;
        if (run && !op_is_collective(&unit->op, NUM_COLLECTIVES)) {
            int at = data_add(w, unit->op);
            Op *again = &w->ops[at];
            again->again = true;
            again->saved_bytes = unit->op.saved_bytes - (before ? 0 : unit->kept_bytes);
            again->released_bytes = unit->kept_outputs_bytes; // becomes part of what is saved
            if (runs_in_pieces(w->b, &unit->op))
                again->pipelined_with = at + unit->op.pipelined_with - i;
            if (unit->all_kept) {
                again->kind = OP_MEMORY;
                again->flops = again->bytes = again->num_kernels = 0;
            } else if (unit->again_frac > 0) {
                again->gemm.n *= unit->again_frac;
                again->flops *= unit->again_frac;
                again->bytes *= unit->again_frac;
            }
        }
        if (unit->op.kind != OP_COLLECTIVE) before = run;
    }
}

// Keys and values of the other ranks are not kept: what follows them in the attention, from
// units[i] backwards, needs them again.
static void gather_keys_again(Backward *w, int i) {
    const Unit *units = w->b->units;
    if (i + 1 < w->b->num_units && units[i + 1].module & MODULE_CORE_ATTN) return;
    for (; i >= 0 && units[i].module & MODULE_CORE_ATTN; i--)
        if (units[i].op.kind == OP_COLLECTIVE && units[i].gather_again) data_add(w, units[i].op);
}

int backward_derive(const Builder *b, Op *backward) {
    Backward w = {.b = b, .ops = backward, .data = -1, .residual_at = -1, .residual_from = -1};
    product_inputs_assign(&w);
    recompute_add(&w);
    for (int i = b->num_units - 1; i >= 0; i--) {
        const Unit *unit = &b->units[i];
        if (unit->ends_backward) continue;
        if (unit->module & MODULE_CORE_ATTN) gather_keys_again(&w, i);
        if (unit->op.kind == OP_COLLECTIVE) {
            collective_backward(&w, unit);
        } else if (unit->op.kind == OP_GEMM && unit->has_weight) {
            const Unit *column = i > 0 && is_column_of(&b->units[i - 1]) ? &b->units[i - 1] : NULL;
            linear_backward(&w, unit, column);
            if (column) i--;
        } else if (unit->op.kind == OP_GEMM) {
            batched_backward(&w, unit);
        } else {
            work_backward(&w, unit);
        }
    }
    // Where the block ends with an addition, the gradient comes before what is recomputed.
    if (b->num_units > 0 && b->units[b->num_units - 1].residual_bytes > 0) {
        const double bytes = backward[w.residual_at].saved_bytes;
        backward[w.residual_at].saved_bytes = 0;
        backward[0].saved_bytes += bytes;
    }
    return w.num_ops;
}
