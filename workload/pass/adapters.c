#include "workload/pass/adapters.h"

#include "workload/pass/frozen.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// --- Which products are targets

enum { OUTPUTS_WHOLE = -1, OUTPUTS_LAST_HALF = -2 };

// A matrix of PEFT's, and where it is: the product, and the part of its outputs.
typedef struct {
    const char *product;
    AdapterTarget target;
    int part;
} Place;

static const Place PLACES[] = {
    {"qkv_proj", TARGET_Q_PROJ, 0},
    {"qkv_proj", TARGET_K_PROJ, 1},
    {"qkv_proj", TARGET_V_PROJ, 2},
    {"out_proj", TARGET_O_PROJ, OUTPUTS_WHOLE},
    {"fc1", TARGET_GATE_PROJ, 0},
    {"fc1", TARGET_UP_PROJ, OUTPUTS_LAST_HALF},
    {"fc2", TARGET_DOWN_PROJ, OUTPUTS_WHOLE},
    {"experts_fc1", TARGET_GATE_PROJ, 0},
    {"experts_fc1", TARGET_UP_PROJ, OUTPUTS_LAST_HALF},
    {"experts_fc2", TARGET_DOWN_PROJ, OUTPUTS_WHOLE},
    {"q_down_proj", TARGET_Q_A_PROJ, OUTPUTS_WHOLE},
    {"q_up_proj", TARGET_Q_PROJ, OUTPUTS_WHOLE},
    {"q_up_proj", TARGET_Q_B_PROJ, OUTPUTS_WHOLE},
    {"kv_down_proj", TARGET_KV_A_PROJ, OUTPUTS_WHOLE},
    {"kv_up_proj", TARGET_KV_B_PROJ, OUTPUTS_WHOLE},
    {"in_proj", TARGET_IN_PROJ, OUTPUTS_WHOLE},
    {"out_proj", TARGET_OUT_PROJ, OUTPUTS_WHOLE},
};
enum { NUM_PLACES = sizeof PLACES / sizeof *PLACES };

static const Adapters *adapters_of(const Builder *b) {
    return &b->tuning->adapters;
}

static bool is_target(const Builder *b, const Place *place, const Unit *unit) {
    TargetMatrix matrices[TARGET_MATRICES];
    return b->kind && strcmp(place->product, unit->op.name) == 0 &&
           adapters_of(b)->targets & 1U << place->target &&
           target_matrices(b->model, b->kind, place->target, matrices) > 0;
}

// Outputs of this rank that an adapter adds to.
static double place_outputs(const Builder *b, const Place *place, const Unit *unit) {
    const double n = unit->op.gemm.n;
    const bool halves = unit->part_n[0] <= 0; // grouped products do not say what they stand for
    if (place->part == OUTPUTS_WHOLE) return n;
    if (place->part == OUTPUTS_LAST_HALF)
        return !b->kind->ffn.gated ? n : halves ? n / 2 : unit->part_n[1];
    return halves ? n / 2 : unit->part_n[place->part];
}

// --- The base

// A layer's own products are stored in the base's format; the head is not (bitsandbytes leaves it).
static bool is_quantized(const Builder *b, const Unit *unit) {
    return adapters_of(b)->base_dtype >= BASE_NF4 && b->kind && unit_is_product(unit);
}

// Of a product that stands for several, and of experts with a kernel each, the weights of one are
// in 16 bits at a time.
static double dequantized_bytes(const Builder *b, const Unit *unit) {
    const GemmOp *gemm = &unit->op.gemm;
    double widest = gemm->n;
    if (unit->part_n[0] > 0) widest = fmax(unit->part_n[0], fmax(unit->part_n[1], unit->part_n[2]));
    return (gemm->separate ? 1 : gemm->groups) * widest * gemm->k * activation_bytes(b->execution);
}

// One kernel, and two for scales that are quantized themselves, of each matrix.
static void dequantize_add(Builder *b, Unit *unit) {
    const Adapters *adapters = adapters_of(b);
    int num_matrices = unit->part_n[0] > 0 ? 2 : 1;
    if (unit->part_n[2] > 0) num_matrices = 3;
    if (unit->op.gemm.separate) num_matrices *= (int)ceil(unit->op.gemm.groups);
    const double moved =
        unit_num_weights(unit) * (base_matrix_bytes(b->tuning) + activation_bytes(b->execution));
    const double alive = dequantized_bytes(b, unit);
    const MemoryWork work = {.name = "dequantize",
                             .bytes = moved,
                             .kernels = num_matrices * (adapters->double_quant ? 3 : 1)};
    build_memory(b, &work);
    Op *op = &b->units[b->num_units - 1].op;
    op->bytes = moved; // by one kernel, whatever the stack runs eagerly
    op->transient_bytes = alive;
    unit->dequantize_bytes = moved;
    unit->dequantize_kernels = work.kernels;
    unit->dequantized_bytes = alive;
    unit->op.transient_bytes += alive;
}

static Unit *unit_copy(Builder *b, const Unit *unit) {
    assert(b->num_units < BUILDER_MAX_OPS);
    Unit *copy = &b->units[b->num_units++];
    *copy = *unit;
    return copy;
}

// --- Adapters

// What adapters add to the parameters of a block.
typedef struct {
    double dense, expert, partial;
} Trained;

// One product of an adapter: of as many groups as the base's.
static Unit *adapter_product(Builder *b, const char *name, const Unit *base, double n, double k,
                             double saved_bytes) {
    const GemmOp *like = &base->op.gemm;
    const double dense = b->dense_parameters, partial = b->partial_parameters;
    const int precision = b->precision;
    b->precision = unquantized_precision(b->execution); // beside a base in 8 bits, too
    build_linear(b, name, SPLIT_NONE, like->groups * like->m, n, k, saved_bytes);
    b->precision = precision;
    b->dense_parameters = dense;
    b->partial_parameters = partial;
    Unit *unit = &b->units[b->num_units - 1];
    Op *op = &unit->op;
    op->gemm.groups = like->groups;
    op->gemm.separate = like->separate;
    op->gemm.m = like->m;
    op->bytes += (like->groups - 1) * n * k * weight_read_bytes(b->execution);
    op->num_kernels = base->op.num_kernels;
    unit->plain_gradient = true;
    return unit;
}

static void tp_collective(Builder *b, const char *name, CollectiveKind kind,
                          CollectiveKind backward, double bytes) {
    build_collective(b, name, STREAM_TP, kind, backward, GROUP_TP, bytes);
}

static void dropout_add(Builder *b, double values) {
    const double act = activation_bytes(b->execution), moved = values * (2 * act + 1);
    build_memory(b, &(MemoryWork){.name = "lora_dropout",
                                  .bytes = moved,
                                  .backward_bytes = moved,
                                  .kernels = 1,
                                  .backward_kernels = 1,
                                  .saved_bytes = values * (1 + act),
                                  .product_input_bytes = values * act,
                                  .output_bytes = values * act});
}

// The scaled result is added to the base's. Backward: the gradient is scaled, and that of the
// input added to what the base and other adapters made of it.
static void sum_add(Builder *b, double outputs, double inputs) {
    const double act = activation_bytes(b->execution);
    build_memory(b, &(MemoryWork){.name = "lora_add",
                                  .bytes = 3 * outputs * act,
                                  .backward_bytes = (2 * outputs + 3 * inputs) * act,
                                  .kernels = 2,
                                  .backward_kernels = 2,
                                  .output_bytes = outputs * act,
                                  .backward_alive_bytes = outputs * act});
}

// The norm of each output's weights with the adapter's added: of the unit matrix through A and B, a
// product scaled, added, squared and summed; nothing of it has a gradient. Then the results of
// base and adapter are scaled by magnitude over norm (huggingface/peft, tuners/lora/dora.py).
static void magnitude_add(Builder *b, const Unit *base, double n, double outputs) {
    const double act = activation_bytes(b->execution), k = base->op.gemm.k;
    const double weights = base->op.gemm.groups * n * k;
    const double read = is_quantized(b, base) ? weights * (base_matrix_bytes(b->tuning) + act) : 0;
    build_memory(b, &(MemoryWork){.name = "dora_norm",
                                  .bytes = (7 * weights + 2 * k * k) * act + read,
                                  .kernels = 8,
                                  .output_bytes = 2 * n * k * act});
    build_memory(b, &(MemoryWork){.name = "dora_scale",
                                  .bytes = 4 * outputs * act,
                                  .backward_bytes = 6 * outputs * act,
                                  .kernels = 3,
                                  .backward_kernels = 5,
                                  .saved_bytes = 2 * outputs * act,
                                  .output_bytes = outputs * act});
}

// A and B beside a product, over the tp ranks as that is: beside a column's, A is split by its
// rank and what it makes gathered; beside a row's, A by its inputs and what it makes added up, and
// B by its outputs, which are gathered.
//   n  outputs of this rank that they add to
static void adapter_add(Builder *b, const Unit *base, double n, Trained *trained) {
    const Adapters *adapters = adapters_of(b);
    const bool row = base->weight_split == SPLIT_ROW, whole = base->weight_split == SPLIT_NONE;
    const int tp = whole ? 1 : b->split.tp;
    const double act = activation_bytes(b->execution), r = adapters->rank;
    const double k = base->op.gemm.k, tokens = base->op.gemm.groups * base->op.gemm.m;
    const double own_rank = row ? r : r / tp, own_n = row ? n / tp : n;
    const bool spread = row && tp > 1 && b->split.sequence_parallel;
    const double outputs = tokens * n / (spread ? tp : 1);
    if (adapters->dropout > 0) dropout_add(b, tokens * k);
    adapter_product(b, "lora_a", base, own_rank, k, 0);
    if (tp > 1)
        tp_collective(b, row ? "lora_all_reduce" : "lora_all_gather",
                      row ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_ALL_GATHER, COLLECTIVE_ALL_REDUCE,
                      tokens * r * act);
    adapter_product(b, "lora_b", base, own_n, r, tokens * r * act);
    if (row && tp > 1)
        tp_collective(b, "lora_all_gather", COLLECTIVE_ALL_GATHER,
                      spread ? COLLECTIVE_ALL_GATHER : NUM_COLLECTIVES, tokens * n * act);
    if (adapters->kind == ADAPTER_DORA) magnitude_add(b, base, own_n, outputs);
    sum_add(b, outputs, tokens * k);
    const double one = own_rank * k + own_n * r + (adapters->kind == ADAPTER_DORA ? own_n : 0);
    if (unit_is_expert(base))
        trained->expert += base->op.gemm.groups * one;
    else
        trained->dense += one;
    if (whole && !unit_is_expert(base) && b->split.sequence_parallel && b->split.tp > 1)
        trained->partial += one;
}

// What the base product kept of its input the adapters' first product reads instead. A copy that a
// base in 8 bits made of the attention's results is not needed: that keeps them itself.
static void input_hand_over(Builder *b, int base, int gather, int first) {
    Unit *from = &b->units[base], *to = NULL;
    for (int i = first; i < b->num_units; i++) {
        if (!unit_is_product(&b->units[i]) || strcmp(b->units[i].op.name, "lora_a") != 0) continue;
        if (!to) to = &b->units[i];
        if (i + 1 < b->num_units) b->units[i].gather = 0;
    }
    const bool reads = to && adapters_of(b)->dropout == 0;
    const bool quantized = precision_is_quantized(b->precision);
    if (reads && quantized && strcmp(from->op.name, "out_proj") == 0 && from->op.saved_bytes > 0) {
        to->shared_input_bytes = builder_unquantized_bytes(b, from->op.saved_bytes);
        to->gather = gather;
    } else if (reads) {
        to->op.saved_bytes += builder_unquantized_bytes(b, from->op.saved_bytes);
        to->kept_bytes = builder_unquantized_bytes(b, from->kept_bytes);
        to->shared_input_bytes = from->shared_input_bytes;
        to->gather = gather;
    } else {
        from->op.transient_bytes += from->op.saved_bytes;
    }
    from->op.saved_bytes = from->kept_bytes = from->shared_input_bytes = 0;
}

static void product_adapt(Builder *b, int base, int gather, Trained *trained) {
    const int first = b->num_units, module = b->module;
    b->module = b->units[base].module;
    for (int i = 0; i < NUM_PLACES; i++) {
        if (!is_target(b, &PLACES[i], &b->units[base])) continue;
        const Unit unit = b->units[base];
        adapter_add(b, &unit, place_outputs(b, &PLACES[i], &unit), trained);
    }
    b->module = module;
    input_hand_over(b, base, gather, first);
}

// --- The block

static bool is_column_gather(const Unit *unit, const Unit *next) {
    return unit->op.kind == OP_COLLECTIVE && unit->op.stream == STREAM_TP &&
           unit_is_product(next) && next->weight_split == SPLIT_COLUMN;
}

// Whether a product's row collective follows it.
static bool is_row_sum(const Unit *unit, const Unit *next) {
    return unit_is_product(unit) && unit->weight_split == SPLIT_ROW &&
           next->op.kind == OP_COLLECTIVE && next->op.stream == STREAM_TP;
}

// Units old[0, num) once more into b->units, frozen, with what stands beside them.
static void units_rewrite(Builder *b, Unit *old, int num, Trained *trained) {
    int begin = -1, end = -1, gather = 0;
    for (int i = 0; i < num; i++) {
        if (i == b->recomputable_begin) begin = b->num_units;
        const bool gathers = i + 1 < num && is_column_gather(&old[i], &old[i + 1]);
        Unit *product = gathers ? &old[i + 1] : &old[i];
        const bool starts = unit_is_product(product) && (gathers || gather == 0);
        if (starts && is_quantized(b, product)) {
            b->module = product->module;
            dequantize_add(b, product);
        }
        Unit *unit = unit_copy(b, &old[i]);
        const int at = b->num_units - 1;
        if (unit->module & MODULE_LAYERNORM && unit->op.kind == OP_MEMORY) unit_freeze_norm(unit);
        if (unit_is_product(unit)) {
            unit->frozen = true;
            if (i + 1 < num && is_row_sum(&old[i], &old[i + 1])) unit_copy(b, &old[++i]);
            const bool again = gather > 0 && b->units[gather].gather_again;
            product_adapt(b, at, again ? gather : 0, trained);
        }
        gather = gathers ? at : 0;
        if (i + 1 == b->recomputable_end) end = b->num_units;
    }
    if (b->recomputable_end > 0) {
        b->recomputable_begin = begin;
        b->recomputable_end = end;
    }
}

// All that the block had is frozen, and the adapters are what it trains.
static void parameters_freeze(Builder *b, const Unit *old, int num, const Trained *trained) {
    const double matrix = base_matrix_bytes(b->tuning), other = base_other_bytes(b->tuning);
    double dense = 0, expert = 0; // stored as matrices
    for (int i = 0; i < num; i++) {
        if (!is_quantized(b, &old[i])) continue;
        *(unit_is_expert(&old[i]) ? &expert : &dense) += unit_num_weights(&old[i]);
    }
    b->frozen.dense = (b->dense_parameters - dense) * other + dense * matrix;
    b->frozen.expert = (b->expert_parameters - expert) * other + expert * matrix;
    b->frozen_table_bytes = b->shared_table * other;
    b->shared_table = 0;
    b->dense_parameters = trained->dense;
    b->expert_parameters = trained->expert;
    b->partial_parameters = trained->partial;
}

void adapters_apply(Builder *b) {
    if (!b->tuning || !fine_tuning_freezes(b->tuning)) return;
    if (adapters_of(b)->kind == ADAPTER_NONE) return;
    Unit old[BUILDER_MAX_OPS];
    const int num = b->num_units;
    Trained trained = {0};
    memcpy(old, b->units, (size_t)num * sizeof *old);
    b->num_units = 0;
    units_rewrite(b, old, num, &trained);
    frozen_drop_inputs(b);
    parameters_freeze(b, old, num, &trained);
}
