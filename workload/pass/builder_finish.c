// From collected units to a Block: recomputation, ZeRO-3 collectives, running sums of memory.
#include "workload/pass/adapters.h"
#include "workload/pass/builder_quantize.h"
#include "workload/pass/frozen.h"
#include "workload/technique/technique.h"

#include <math.h>
#include <string.h>

// Of a list: what is recomputed, and at most three of a unit.
enum { MAX_OPS = 4 * BUILDER_MAX_OPS };

// Outputs of a product, which may stand for several, that are kept where it keeps those of every
// second one, beginning with the first.
static double kept_outputs(const Unit *unit, int *num_products) {
    double kept = 0;
    if (unit->part_n[0] <= 0) return (*num_products)++ % 2 == 0 ? unit->op.gemm.n : 0;
    for (int i = 0; i < 3 && unit->part_n[i] > 0; i++)
        if ((*num_products)++ % 2 == 0) kept += unit->part_n[i];
    return kept;
}

// torchtitan's per-operator checkpointing keeps the attention and every second product's output and
// runs the rest again (torchtitan/distributed/activation_checkpoint.py: mm_count % 2). Fused
// products (query, key and value; gate and up) stand for several of its own. Eager, the last
// product's result is cached like any other; compiled, it is not, as no operator of the backward
// reads it.
static void mark_per_operator(Builder *b) {
    double act = activation_bytes(b->execution);
    int num_products = 0;
    Unit *last = NULL;
    for (int i = b->recomputable_begin; i < b->recomputable_end; i++) {
        Unit *unit = &b->units[i];
        unit->recomputed = unit->op.kind == OP_GEMM || unit->op.kind == OP_MEMORY;
        if (unit->op.kind != OP_GEMM || !unit->has_weight) continue;
        last = unit;
        double kept = kept_outputs(unit, &num_products);
        unit->again_frac = 1 - kept / unit->op.gemm.n;
        unit->all_kept = kept >= unit->op.gemm.n;
        unit->kept_outputs_bytes = unit->op.gemm.m * kept * unit->op.gemm.groups * act;
    }
    if (last && b->execution->compile) last->kept_outputs_bytes = 0;
}

// Where the attention runs again but the output projection does not, that keeps its input, unless
// it keeps a copy anyway.
static void keep_attention_output(Builder *b) {
    for (int i = 0; i < b->num_units; i++) {
        Unit *unit = &b->units[i];
        if (unit->op.kind != OP_ATTENTION || !unit->recomputed) continue;
        int product = i + 1;
        while (product < b->num_units && !b->units[product].has_weight) product++;
        const Unit *reader = &b->units[product];
        if (product < b->num_units && !reader->recomputed && reader->op.saved_bytes == 0)
            unit->kept_outputs_bytes = unit->op.saved_bytes;
    }
}

// Recomputation that ends with the last tensor the backward needs does not run what comes after
// it: a product's input is saved before the product runs.
static void stop_early(Builder *b) {
    if (!b->execution->stack.training.checkpoint_early_stop) return;
    for (int i = b->recomputable_end - 1; i >= b->recomputable_begin; i--) {
        const Unit *unit = &b->units[i];
        b->units[i].recomputed = false;
        if (unit->has_weight) return;
        if (unit->op.saved_bytes > 0) {
            b->units[i].recomputed = true;
            return;
        }
    }
}

// Without a backward nothing is kept: what an operator would keep is there until it was read.
static void keep_nothing(Builder *b) {
    for (int i = 0; i < b->num_units; i++) {
        b->units[i].recomputed = true;
        b->units[i].kept_bytes = 0;
    }
}

static void mark_recomputed(Builder *b) {
    const Recompute recompute = b->pass.recompute;
    const int modules = b->pass.recompute_modules;
    if (recompute == RECOMPUTE_NONE) return;
    if (b->recomputable_end == 0) b->recomputable_end = b->num_units;
    if (recompute == RECOMPUTE_SELECTIVE && modules == 0 &&
        b->execution->stack.training.selective_per_operator) {
        mark_per_operator(b);
        return;
    }
    for (int i = b->recomputable_begin; i < b->recomputable_end; i++)
        b->units[i].recomputed = recompute == RECOMPUTE_FULL || (b->units[i].module & modules) != 0;
    if (recompute == RECOMPUTE_FULL) stop_early(b);
    keep_attention_output(b);
}

// What waits beside a branch that begins with units[first], to be added to its result.
static double branch_input_bytes(const Builder *b, int first) {
    int i = first;
    while (i < b->num_units && b->units[i].residual_bytes == 0) i++;
    return i < b->num_units ? b->units[i].residual_bytes : 0;
}

// What an operator that runs again leaves to the product that reads it.
static double left_bytes(const Unit *unit, double kept) {
    if (unit->product_input_bytes > 0) return unit->product_input_bytes;
    return fmax(0, unit->op.saved_bytes - kept);
}

static int forward_list(const Builder *b, Op *forward) {
    int n = 0, index[BUILDER_MAX_OPS];
    bool before = false;
    double branch_bytes = 0; // of its input, where nothing keeps that for the backward
    double read_bytes = 0;   // by the next products and collectives, where nothing keeps that
    for (int i = 0; i < b->num_units; i++) {
        const Unit *unit = &b->units[i];
        index[i] = n;
        if (unit->op.kind != OP_COLLECTIVE || unit->op.collective.kind != NUM_COLLECTIVES) {
            Op op = unit->op;
            bool drops_input = unit->drops_input;
            double kept = 0;
            op.transient_bytes += branch_bytes;
            if (op.kind != OP_MEMORY) op.transient_bytes += read_bytes;
            if (unit->recomputed) {
                kept = (before ? 0 : unit->kept_bytes) + unit->kept_outputs_bytes;
                drops_input = kept == 0;
                op.transient_bytes += fmax(0, op.saved_bytes - kept);
                op.saved_bytes = kept;
            }
            if (op.kind != OP_GEMM && op.kind != OP_COLLECTIVE)
                read_bytes = unit->recomputed ? left_bytes(unit, kept) : 0;
            if (unit->begins_branch && drops_input) branch_bytes = branch_input_bytes(b, i);
            if (unit->residual_bytes > 0) branch_bytes = 0;
            forward[n++] = op;
        }
        if (unit->op.kind != OP_COLLECTIVE) before = unit->recomputed;
    }
    for (int i = 0; i < b->num_units; i++) // indices of units become indices of the list
        if (b->units[i].op.pipelined_with >= 0 &&
            !op_is_collective(&b->units[i].op, NUM_COLLECTIVES))
            forward[index[i]].pipelined_with =
                runs_in_pieces(b, &b->units[i].op) ? index[b->units[i].op.pipelined_with] : -1;
    return n;
}

static Op zero_collective(const char *name, CollectiveKind kind, GroupKind group, double bytes,
                          Phase phase) {
    return (Op){.name = name,
                .kind = OP_COLLECTIVE,
                .phase = phase,
                .stream = STREAM_DP,
                .wait = WAIT_NOTHING,
                .num_kernels = 1,
                .collective.kind = kind,
                .collective.group = group,
                .collective.message_bytes = bytes,
                .pipelined_with = -1};
}

// Partial gradients are whole before they are scattered (pytorch/pytorch, torch/distributed/fsdp/
// _fully_shard/_fsdp_param.py, _get_grad_inner_tensor: as the backward made them, a parameter at a
// time; here in one piece).
static Op partial_sum(const Builder *b, Phase phase) {
    const Execution *execution = b->execution;
    const bool as_made = execution->stack.training.sharding == SHARDING_PER_PARAMETER;
    const double width = as_made ? activation_bytes(execution) : reduced_gradient_bytes(execution);
    Op op = zero_collective("tp_grad_all_reduce", COLLECTIVE_ALL_REDUCE, GROUP_TP,
                            b->partial_parameters * width, phase);
    op.stream = STREAM_TP;
    op.wait = WAIT_PREVIOUS;
    return op;
}

// Gathered weights become tensors of their own.
static Op copy_out(double gathered_bytes, Phase phase) {
    return (Op){.name = "param_copy_out",
                .kind = OP_MEMORY,
                .phase = phase,
                .stream = STREAM_COMPUTE,
                .wait = WAIT_PREVIOUS,
                .bytes = 2 * gathered_bytes,
                .num_kernels = 1,
                .pipelined_with = -1};
}

// A block's gradients are zeroed before products add to them, and of the sum over the group a
// rank's share is read and added to what it keeps.
static Op gradients_add(double gradients_bytes, int group_size, Phase phase) {
    return (Op){.name = "grad_accumulate",
                .kind = OP_MEMORY,
                .phase = phase,
                .stream = STREAM_COMPUTE,
                .wait = WAIT_PREVIOUS,
                .bytes = gradients_bytes * (1 + 3.0 / group_size),
                .num_kernels = 2,
                .pipelined_with = -1};
}

static Phase gradients_phase(const Op *ops, int num_ops) {
    for (int i = 0; i < num_ops; i++)
        if (ops[i].phase == PHASE_BACKWARD_WEIGHT) return PHASE_BACKWARD_WEIGHT;
    return PHASE_BACKWARD_INPUT;
}

// ZeRO-3: weights are gathered for the forward, again for the backward where they were given back
// in between, and gradients scattered, all beside the compute of the neighbouring block. ZeRO-2
// keeps no whole gradient either: it scatters in every backward too, but where gradients are
// reduced once a step (workload/step/program_sync.h). (Zhao et al. 2023, "PyTorch
// FSDP", arXiv:2304.11277, section 3.3). Of a split backward the input part is what reads weights;
// gradients of weights are whole in the weight part, and scattered there. A block without products
// (an embedding) makes them in its input part.
static int add_sharding(const Builder *b, Op *ops, int n, Phase phase) {
    if (b->split.zero_stage < 2) return n;
    const Phase scatter = gradients_phase(ops, n);
    const bool shares = phase == PHASE_FORWARD || !b->table_stays;
    double gathered = gathered_weight_bytes(b->execution);
    double reduced = reduced_gradient_bytes(b->execution);
    const double parameters[2] = {b->dense_parameters, b->expert_parameters};
    const double frozen[2] = {b->frozen.dense, b->frozen.expert};
    const GroupKind groups[2] = {GROUP_ZERO, GROUP_EZERO};
    bool gather =
        b->split.zero_stage == 3 && (phase == PHASE_FORWARD || b->split.reshard_after_forward);
    if (phase != PHASE_FORWARD && b->partial_parameters > 0 &&
        sums_partial_in_blocks(b->execution, split_num_scattered(&b->split)))
        ops[n++] = partial_sum(b, scatter);
    for (int i = 0; i < 2; i++) {
        const double read = parameters[i] + (shares && i == 0 ? b->shared_table : 0);
        const double untrained = (frozen[i] + (shares && i == 0 ? b->frozen_table_bytes : 0)) *
                                 frozen_gathered_frac(b->execution, b->tuning);
        const double weight_bytes = read * gathered + untrained;
        if (weight_bytes <= 0 || b->split.groups[groups[i]].size == 1) continue;
        if (gather && b->execution->stack.training.sharding == SHARDING_PER_PARAMETER)
            ops[n++] = copy_out(weight_bytes, phase);
        if (gather)
            ops[n++] = zero_collective("param_all_gather", COLLECTIVE_ALL_GATHER, groups[i],
                                       weight_bytes, phase);
        if (phase == PHASE_FORWARD || read <= 0 || !b->split.scatters_gradients) continue;
        if (b->execution->stack.training.sharding == SHARDING_SUMMED)
            ops[n++] = gradients_add(read * reduced, b->split.groups[groups[i]].size, scatter);
        ops[n++] = zero_collective("grad_reduce_scatter", COLLECTIVE_REDUCE_SCATTER, groups[i],
                                   read * reduced, scatter);
    }
    return n;
}

// Most bytes above the start of the list, and (returned) what is left at its end.
static double running_sum(const Op *ops, int num_ops, double *peak) {
    double held = 0;
    *peak = 0;
    for (int i = 0; i < num_ops; i++) {
        *peak = fmax(*peak, held + ops[i].saved_bytes + ops[i].transient_bytes);
        held += ops[i].saved_bytes - ops[i].released_bytes;
    }
    return held;
}

// What a weight gradient keeps alive until it runs, beyond what it gives back: the gradient of the
// product's result, dW [m x n] = dY^T [m x k] times X [k x n].
static double awaited_gradient_bytes(const Builder *b, const Op *op) {
    return op->kind == OP_GEMM
               ? op->gemm.groups * op->gemm.m * op->gemm.k * activation_bytes(b->execution)
               : 0;
}

// The input part of a split backward: what weight gradients read stays, also where the operator
// that keeps it gives it back. The gradient of a branch's result is the residual's until the
// branch's own is added to that, and is there once so long.
static void input_part(const Builder *b, Block *block) {
    double held = 0, shared = 0; // of an operator that has not given it back
    for (int i = 0; i < block->num_backward; i++) {
        const Op *op = &block->backward[i];
        if (op->phase == PHASE_BACKWARD_WEIGHT) {
            held += awaited_gradient_bytes(b, op) - op->residual_bytes;
            shared += op->shared_bytes;
        } else {
            const double alive = op->transient_bytes - op->regathered_bytes;
            block->input_peak_bytes = fmax(block->input_peak_bytes, held + op->saved_bytes + alive);
            const double stays = op->released_bytes >= shared ? shared : 0;
            held += op->saved_bytes - op->released_bytes + op->residual_bytes + stays;
            shared -= stays;
        }
        block->input_peak_bytes = fmax(block->input_peak_bytes, held);
    }
    block->deferred_bytes = block->saved_bytes + held;
}

// The weight part. The gradient of the product's input is gone by then, and the residual's is there
// for the weights' sake alone.
static void weight_part(const Builder *b, Block *block) {
    double held = 0;
    for (int i = 0; i < block->num_backward; i++) {
        const Op *op = &block->backward[i];
        if (op->phase != PHASE_BACKWARD_WEIGHT) continue;
        const double awaited = awaited_gradient_bytes(b, op) + op->shared_bytes;
        const double alive =
            op->transient_bytes + op->residual_bytes - op->input_gradient_bytes + op->shared_bytes;
        block->weight_peak_bytes = fmax(block->weight_peak_bytes, held + alive - awaited);
        held -= awaited + op->released_bytes;
    }
}

static const Op *ops_copy(const Builder *b, const Op *ops, int num_ops) {
    return arena_copy(b->arena, ops, (size_t)num_ops * sizeof *ops);
}

// What the experts' products and what lies between them keep: of the forward, or of what of it runs
// again in the backward.
static double received_bytes(const Op *ops, int num_ops, bool again) {
    int first = num_ops, last = -1;
    for (int i = 0; i < num_ops; i++) {
        if (strncmp(ops[i].name, "experts_fc", strlen("experts_fc")) != 0) continue;
        if (ops[i].again != again) continue;
        if (first == num_ops) first = i;
        last = i;
    }
    double bytes = 0;
    for (int i = first; i <= last; i++) bytes += ops[i].saved_bytes;
    return bytes;
}

// The finished list of a pass, as techniques leave it.
static const Op *list_finish(const Builder *b, Op *ops, int num, bool forward, int *num_finished) {
    OperatorList list = {ops, num, MAX_OPS, forward};
    techniques_list(b, &list);
    *num_finished = list.num;
    return ops_copy(b, list.ops, list.num);
}

// A pass that does not train.
static Block forward_block(Builder *b, const char *name) {
    keep_nothing(b);
    Op ops[MAX_OPS];
    int num = add_sharding(b, ops, forward_list(b, ops), PHASE_FORWARD);
    const Op *forward = list_finish(b, ops, num, true, &num);
    Block block = {.name = name,
                   .forward = forward,
                   .num_forward = num,
                   .dense_parameters = b->dense_parameters,
                   .expert_parameters = b->expert_parameters,
                   .frozen = b->frozen};
    running_sum(block.forward, num, &block.forward_peak_bytes);
    return block;
}

Block builder_finish(Builder *b, const char *name) {
    adapters_apply(b);
    frozen_apply(b);
    techniques_operators(b);
    if (!b->pass.trains || frozen_ends_backward(b)) return forward_block(b, name);
    mark_recomputed(b);
    Op ops[MAX_OPS];
    int num_forward = add_sharding(b, ops, forward_list(b, ops), PHASE_FORWARD);
    const Op *forward = list_finish(b, ops, num_forward, true, &num_forward);
    int num_backward = add_sharding(b, ops, backward_derive(b, ops), PHASE_BACKWARD_INPUT);
    const Op *backward = list_finish(b, ops, num_backward, false, &num_backward);
    Block block = {.name = name,
                   .forward = forward,
                   .num_forward = num_forward,
                   .backward = backward,
                   .num_backward = num_backward,
                   .dense_parameters = b->dense_parameters,
                   .expert_parameters = b->expert_parameters,
                   .partial_parameters = b->partial_parameters,
                   .frozen = b->frozen,
                   .gradients_phase = gradients_phase(backward, num_backward),
                   .unusable_bytes = b->unusable_bytes,
                   .received_bytes = received_bytes(forward, num_forward, false),
                   .received_again_bytes = received_bytes(backward, num_backward, true)};
    block.saved_bytes = running_sum(forward, num_forward, &block.forward_peak_bytes);
    running_sum(backward, num_backward, &block.backward_peak_bytes);
    input_part(b, &block);
    weight_part(b, &block);
    return block;
}
