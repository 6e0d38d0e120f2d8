// Constructors of forward units. The backward of each is derived in builder_backward.c.
#include "workload/pass/builder.h"

#include "workload/pass/builder_quantize.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

void builder_start(const LayerWork *work, const LayerKind *kind, Arena *arena, Builder *out) {
    const Execution *execution = work->execution;
    const Pass *pass = &work->pass;
    const Split *split = &work->split;
    memset(out, 0, offsetof(Builder, units)); // units are large, and set when they are added
    out->model = work->model;
    out->gpu = work->gpu;
    out->execution = execution;
    out->pass = *pass;
    out->split = *split;
    out->tuning = work->tuning;
    out->kind = kind;
    out->arena = arena;
    out->tokens = pass->sequences * pass->queries / split->cp;
    out->tokens_sp = split->sequence_parallel ? out->tokens / split->tp : out->tokens;
    out->precision = execution->precision;
    out->compiled = execution->compile;
    out->lasting_gathers = execution->stack.residency.lasting_gathers == LASTING_GATHERS_ALL;
    out->input_bytes_per_value = quantized_input_bytes(execution);
    out->gathered_bytes_per_value = quantized_gathered_bytes(execution);
}

static Unit *unit_add(Builder *b, Op op) {
    assert(b->num_units < BUILDER_MAX_OPS);
    Unit *unit = &b->units[b->num_units++];
    *unit = (Unit){
        .op = op, .module = b->module, .backward_collective = NUM_COLLECTIVES, .backward_frac = 1};
    unit->op.phase = PHASE_FORWARD;
    unit->op.wait = WAIT_PREVIOUS;
    unit->op.pipelined_with = -1;
    if (unit->op.num_kernels == 0) unit->op.num_kernels = 1;
    return unit;
}

void build_operator(Builder *b, Op op) {
    unit_add(b, op);
}

// Bytes that memory-bound operators move over the least.
static double memory_passes(const Execution *execution) {
    return execution->compile ? 1 : 1 + execution->stack.launch.eager_overhead_frac;
}

static void build_quantize(Builder *b, double values) {
    if (values == 0) return;
    MemoryWork cast = {.name = "quantize", .bytes = quantize_bytes(b, values), .kernels = 1};
    build_memory(b, &cast);
}

// GemmOp.aligned. Means over ranks that have unlike numbers are not asked.
static int alignment(double n, double k) {
    int aligned = 8;
    if (n != floor(n) || k != floor(k)) return aligned;
    while (aligned > 1 && (fmod(n, aligned) > 0 || fmod(k, aligned) > 0)) aligned /= 2;
    return aligned;
}

static void build_gemm(Builder *b, const char *name, double tokens, double n, double k,
                       double saved_input_bytes) {
    const Execution *execution = b->execution;
    double act = activation_bytes(execution), weight = weight_read_bytes(execution);
    Op op = {.name = name,
             .kind = OP_GEMM,
             .stream = STREAM_COMPUTE,
             .gemm.groups = 1,
             .gemm.m = tokens,
             .gemm.n = n,
             .gemm.k = k,
             .gemm.aligned = alignment(n, k),
             .precision = b->precision,
             .gemm.fp8_recipe = execution->fp8_recipe,
             .flops = 2 * tokens * n * k,
             .bytes = tokens * k * fmin(act, weight) + n * k * weight + tokens * n * act,
             .saved_bytes = saved_input_bytes,
             .transient_bytes = tokens * n * act};
    Unit *unit = unit_add(b, op);
    unit->has_weight = true;
    unit->kept_bytes = saved_input_bytes;
}

static void build_tp_collective(Builder *b, const char *name, CollectiveKind kind,
                                CollectiveKind backward_kind, double bytes) {
    build_collective(b, name, STREAM_TP, kind, backward_kind, GROUP_TP, bytes);
}

// Column split: the input is gathered (sequence parallelism) or already whole; its gradient is
// scattered or summed beside the weight gradient (Korthikanti et al. 2022, section 4.2). Quantized
// values are gathered quantized (Transformer Engine, module/linear.py), gradients summed in 16
// bits.
static void build_column_input(Builder *b, double tokens, double k) {
    double act = activation_bytes(b->execution), bytes = tokens * k * act;
    bool async = b->execution->stack.training.tp_backward_overlap;
    if (b->split.sequence_parallel)
        build_tp_collective(b, "tp_all_gather", COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                            tokens * k * b->gathered_bytes_per_value);
    else
        build_tp_collective(b, "tp_identity", NUM_COLLECTIVES, COLLECTIVE_ALL_REDUCE, bytes);
    Unit *unit = &b->units[b->num_units - 1];
    unit->backward_async = async;
    unit->gather_again = b->split.sequence_parallel;
    if (unit->gather_again) unit->backward_frac = act / b->gathered_bytes_per_value;
}

// Where a column's gathered input lies: in a tensor of its own while the product runs; in one
// buffer for all, which is never freed; or, gathered by an operator of autograd's, as what the
// product keeps, in place of this rank's part (which the operator before keeps in this account).
static void build_gathered_input(Builder *b, int gather, int gemm) {
    const double gathered_bytes = b->units[gather].op.transient_bytes;
    Op *op = &b->units[gemm].op;
    if (b->lasting_gathers) {
        op->lasting_bytes = gathered_bytes;
        b->units[gather].op.transient_bytes = 0;
    } else if (b->execution->stack.residency.keeps_gathered_inputs) {
        op->saved_bytes += gathered_bytes * (1 - 1.0 / b->split.tp);
    } else {
        op->transient_bytes += gathered_bytes;
    }
}

static void build_row_output(Builder *b, double tokens, double n) {
    double bytes = tokens * n * activation_bytes(b->execution);
    if (b->split.sequence_parallel)
        build_tp_collective(b, "tp_reduce_scatter", COLLECTIVE_REDUCE_SCATTER,
                            COLLECTIVE_ALL_GATHER, bytes);
    else
        build_tp_collective(b, "tp_all_reduce", COLLECTIVE_ALL_REDUCE, NUM_COLLECTIVES, bytes);
    b->units[b->num_units - 1].backward_frac = tokens * n * b->gathered_bytes_per_value / bytes;
}

// What is whole on every tp rank is read by its own tokens where these are split.
void build_partial_parameters(Builder *b, double parameters) {
    if (b->split.sequence_parallel && b->split.tp > 1) b->partial_parameters += parameters;
}

void build_whole_parameters(Builder *b, double parameters) {
    b->dense_parameters += parameters;
    build_partial_parameters(b, parameters);
}

void build_linear(Builder *b, const char *name, WeightSplit split, double tokens, double n,
                  double k, double saved_input_bytes) {
    int tp = b->split.tp;
    double local_n = split == SPLIT_COLUMN ? n / tp : n, local_k = split == SPLIT_ROW ? k / tp : k;
    b->dense_parameters += local_n * local_k;
    if (split == SPLIT_NONE) build_partial_parameters(b, n * k);
    const QuantizedValues values = quantized_values(b, split, tokens, local_n, local_k);
    build_quantize(b, values.input);
    if (split == SPLIT_COLUMN && tp > 1) build_column_input(b, tokens, k);
    int gather = b->num_units - 1;
    build_gemm(b, name, tokens, local_n, local_k, saved_input_bytes);
    int gemm = b->num_units - 1;
    b->units[gemm].weight_split = split;
    if (split == SPLIT_COLUMN && tp > 1) build_gathered_input(b, gather, gemm);
    b->units[gemm].quantize_bytes =
        quantize_bytes(b, values.gradient) * memory_passes(b->execution);
    b->units[gemm].transpose_bytes = transpose_bytes(b, values.transposed);
    if (split == SPLIT_ROW && tp > 1) build_row_output(b, tokens, n);
}

void build_linear_of_heads(Builder *b, const char *name, double n, double k,
                           double saved_input_bytes) {
    const double heads = (double)b->kind->mixer.num_heads / b->split.tp;
    build_gemm(b, name, b->tokens, n, k, saved_input_bytes);
    Unit *unit = &b->units[b->num_units - 1];
    unit->weight_split = SPLIT_COLUMN;
    Op *op = &unit->op;
    op->precision = unquantized_precision(b->execution);
    op->gemm.groups = heads;
    op->flops *= heads;
    op->bytes *= heads;
    op->transient_bytes *= heads;
    b->dense_parameters += heads * n * k;
}

void build_parts(Builder *b, double first_n, double second_n, double third_n) {
    Unit *unit = &b->units[b->num_units - 1];
    assert(unit->has_weight);
    unit->part_n[0] = first_n;
    unit->part_n[1] = second_n;
    unit->part_n[2] = third_n;
}

void build_batched_gemm(Builder *b, const char *name, double groups, double m, double n, double k,
                        double saved_bytes) {
    double act = activation_bytes(b->execution);
    int precision = unquantized_precision(b->execution);
    Op op = {.name = name,
             .kind = OP_GEMM,
             .stream = STREAM_COMPUTE,
             .gemm.groups = groups,
             .gemm.m = m,
             .gemm.n = n,
             .gemm.k = k,
             .gemm.aligned = alignment(n, k),
             .precision = precision,
             .flops = groups * 2 * m * n * k,
             .bytes = groups * act * (m * k + k * n + m * n),
             .saved_bytes = saved_bytes,
             .transient_bytes = groups * m * n * act};
    unit_add(b, op)->kept_bytes = saved_bytes;
}

void build_memory(Builder *b, const MemoryWork *work) {
    const Execution *execution = b->execution;
    double passes = memory_passes(execution);
    // What the next product keeps is the result itself, but where that is quantized.
    const bool is_kept = work->product_input_bytes == work->output_bytes;
    Op op = {.name = work->name,
             .kind = OP_MEMORY,
             .stream = STREAM_COMPUTE,
             .precision = execution->precision,
             .bytes = work->bytes * passes,
             .num_kernels = work->kernels,
             .saved_bytes = work->saved_bytes,
             .transient_bytes = is_kept ? 0 : work->output_bytes};
    Unit *unit = unit_add(b, op);
    unit->product_input_bytes = work->product_input_bytes;
    unit->backward_bytes = work->backward_bytes * passes;
    unit->backward_kernels = work->backward_kernels;
    unit->backward_alive_bytes =
        work->backward_alive_bytes > 0 ? work->backward_alive_bytes : 2 * work->output_bytes;
}

void build_scan(Builder *b, const ScanWork *work) {
    const Execution *execution = b->execution;
    Op op = {.name = work->name,
             .kind = OP_SCAN,
             .stream = STREAM_COMPUTE,
             .scan.num_chunks = work->num_chunks,
             .scan.state_flops = work->state_flops,
             .precision = execution->precision,
             .flops = work->flops,
             .bytes = work->bytes,
             .num_kernels = work->kernels,
             .saved_bytes = work->saved_bytes,
             .transient_bytes = work->output_bytes + work->transient_bytes};
    Unit *unit = unit_add(b, op);
    unit->backward_flops = work->backward_flops;
    unit->backward_state_flops = work->backward_state_flops;
    unit->backward_bytes = work->backward_bytes;
    unit->backward_kernels = work->backward_kernels;
    unit->backward_alive_bytes = work->backward_alive_bytes;
}

// Bytes of the buffer that a collective fills; an all-reduce works in place. What it reads is kept,
// but for what is scattered: a product's result.
static double buffer_bytes(CollectiveKind kind, Group group, double message_bytes) {
    switch (kind) {
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_DISPATCH:
    case COLLECTIVE_COMBINE:
        return message_bytes;
    case COLLECTIVE_REDUCE_SCATTER:
        return message_bytes * (1 + 1.0 / group.size);
    case COLLECTIVE_BROADCAST:
        return message_bytes;
    case COLLECTIVE_RING_EXCHANGE:
        return 2 * message_bytes; // in use, arriving
    default:
        return 0;
    }
}

void build_collective(Builder *b, const char *name, Stream stream, CollectiveKind kind,
                      CollectiveKind backward_kind, GroupKind group, double message_bytes) {
    Op op = {.name = name,
             .kind = OP_COLLECTIVE,
             .stream = stream,
             .collective.kind = kind,
             .collective.group = group,
             .collective.message_bytes = message_bytes,
             .num_kernels = 1,
             .transient_bytes = buffer_bytes(kind, b->split.groups[group], message_bytes)};
    Unit *unit = unit_add(b, op);
    unit->backward_collective = backward_kind;
}

void build_norm(Builder *b, const char *name, double values, int keeps) {
    const Stack *stack = &b->execution->stack;
    double act = activation_bytes(b->execution);
    // PyTorch has always had a kernel for LayerNorm (native_layer_norm).
    bool one_operator = stack->launch.fused_norm || b->model->norm == NORM_LAYERNORM;
    bool fused = one_operator || b->execution->compile;
    double input = keeps & NORM_INPUT ? values * act : 0;
    double output = keeps & NORM_OUTPUT ? values * b->input_bytes_per_value : 0;
    // A chain of operators keeps, instead of its input, that in fp32 and the normalized values,
    // which the product with the scale reads (pytorch/pytorch, aten/src/ATen/native/
    // layer_norm.cpp, rms_norm of 2024, and autograd's formulas of pow and mul).
    double chain = one_operator || b->compiled ? input : values * (act < 4 ? 4 + act : 2 * act);
    // Forward: read input, write output. Backward: read input and gradient, write gradient; the
    // gradient of the scale is reduced in a second kernel.
    MemoryWork work = {.name = name,
                       .bytes = values * act * (fused ? 2 : 5),
                       .backward_bytes = values * act * (fused ? 3 : 8),
                       .kernels = fused ? 1 : 4,
                       .backward_kernels = fused ? 2 : 7,
                       .saved_bytes = chain + output,
                       .product_input_bytes = output,
                       .output_bytes = values * act};
    int module = b->module;
    b->module |= MODULE_LAYERNORM;
    build_memory(b, &work);
    b->units[b->num_units - 1].kept_bytes = input;
    b->units[b->num_units - 1].op.memory.subtracts_mean = b->model->norm == NORM_LAYERNORM;
    b->units[b->num_units - 1].begins_branch = (keeps & NORM_BEGINS_BRANCH) != 0;
    b->units[b->num_units - 1].drops_input = !one_operator && !b->compiled;
    b->units[b->num_units - 1].scale_input_bytes = !one_operator && !b->compiled ? values * act : 0;
    b->module = module;
}

bool drops_out(const Builder *b) {
    return b->pass.trains && b->execution->stack.training.dropout;
}

void build_residual(Builder *b, double values) {
    const Stack *stack = &b->execution->stack;
    const bool dropout = drops_out(b);
    double act = activation_bytes(b->execution);
    double mask = dropout ? 1 : 0; // one byte a value
    MemoryWork work = {.name = dropout ? "dropout_add" : "residual_add",
                       .bytes = values * (3 * act + mask),
                       .kernels = 1,
                       .backward_bytes = values * (dropout ? 2 * act + mask : 3 * act),
                       .backward_kernels = 1,
                       .saved_bytes = values * mask,
                       .output_bytes = values * act};
    build_memory(b, &work);
    // Its gradient is that of the branch's result and of the branch's input: it waits there for the
    // gradient that comes through the branch. Dropout makes another of it.
    b->units[b->num_units - 1].backward_alive_bytes = dropout ? values * act : 0;
    b->units[b->num_units - 1].residual_bytes = values * act;
    if (!stack->residency.adds_in_place)
        b->units[b->num_units - 1].op.transient_bytes += values * act;
}
