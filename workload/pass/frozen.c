#include "workload/pass/frozen.h"

#include <math.h>
#include <string.h>

bool unit_is_expert(const Unit *unit) {
    return strncmp(unit->op.name, "experts_", strlen("experts_")) == 0;
}

bool unit_is_product(const Unit *unit) {
    return unit->op.kind == OP_GEMM && unit->has_weight;
}

double unit_num_weights(const Unit *unit) {
    return unit->op.gemm.groups * unit->op.gemm.n * unit->op.gemm.k;
}

// A norm whose scale is not trained keeps nothing for its gradient, and does not reduce that.
void unit_freeze_norm(Unit *unit) {
    const bool chain = unit->backward_kernels > 2;
    unit->op.saved_bytes -= unit->scale_input_bytes;
    unit->scale_input_bytes = 0;
    if (unit->backward_kernels == 0) return;
    unit->backward_kernels -= chain ? 2 : 1;
    if (chain) unit->backward_bytes *= 5.0 / 8; // the product with the gradient, and its sum
}

// Bytes of an input that a base in 8 bits keeps quantized, and adapters as it was.
double builder_unquantized_bytes(const Builder *b, double bytes) {
    return bytes * activation_bytes(b->execution) / b->input_bytes_per_value;
}

// --- What is kept

// Whether a product from units[i] on reads what an operator before it keeps: those up to the next
// that keeps some, or to the attention; and where there are shared experts, or one norm for both
// halves of a layer, the MLP's first.
static bool input_is_read(const Builder *b, int i) {
    const bool norm = b->units[i].module & MODULE_LAYERNORM;
    const bool one_norm = norm && b->model->norms_per_layer == 1;
    bool near = true, beside = false; // beside: of adapters of the MLP's first product
    for (int k = i + 1; k < b->num_units; k++) {
        const Unit *unit = &b->units[k];
        const OpKind kind = unit->op.kind;
        if (unit->module & MODULE_LAYERNORM && unit->product_input_bytes > 0) return false;
        if (unit->product_input_bytes > 0 || kind == OP_ATTENTION || kind == OP_SCAN)
            near = beside = false;
        if (!unit_is_product(unit)) continue;
        const bool shared = unit->module & MODULE_SHARED_EXPERTS;
        const bool mlp = strcmp(unit->op.name, "fc1") == 0 && norm && (one_norm || shared);
        if (unit->frozen)
            beside = mlp;
        else if (near || mlp || (beside && strcmp(unit->op.name, "lora_a") == 0))
            return true;
    }
    return false;
}

// What nothing reads in the backward is there until the next operator has read it.
void frozen_drop_inputs(Builder *b) {
    for (int i = 0; i < b->num_units; i++) {
        Unit *unit = &b->units[i];
        if (unit->product_input_bytes == 0) continue;
        if (input_is_read(b, i)) {
            const double more =
                builder_unquantized_bytes(b, unit->product_input_bytes) - unit->product_input_bytes;
            if (strcmp(unit->op.name, "lora_dropout") == 0) continue; // its result is 16 bits wide
            unit->op.saved_bytes += more;
            unit->product_input_bytes += more;
            continue;
        }
        unit->op.saved_bytes -= unit->product_input_bytes;
        unit->op.transient_bytes = fmax(unit->op.transient_bytes, unit->product_input_bytes);
        unit->product_input_bytes = 0;
    }
}

// --- Parts without adapters

static bool freezes(const Builder *b, unsigned part) {
    return fine_tuning_freezes_part(b->tuning, part);
}

// The part of a block that a unit's weight is of.
static unsigned unit_part(const Builder *b, const Unit *unit) {
    if (b->kind && b->kind->front) return FROZEN_FRONT;
    if (!b->kind)
        return b->model->tie_word_embeddings && unit_is_product(unit) ? FROZEN_EMBEDDING
                                                                      : FROZEN_HEAD;
    if (unit->module & MODULE_LAYERNORM) return FROZEN_NORMS;
    if (unit_is_expert(unit)) return FROZEN_EXPERTS;
    if (strcmp(unit->op.name, "router") == 0) return FROZEN_ROUTER;
    const bool mlp = strcmp(unit->op.name, "fc1") == 0 || strcmp(unit->op.name, "fc2") == 0;
    return mlp ? FROZEN_MLP : FROZEN_MIXER;
}

// Of a front whose weights are frozen nothing has a gradient.
static void front_units_end(Builder *b) {
    for (int i = 0; i < b->num_front_units && freezes(b, FROZEN_FRONT); i++) {
        Unit *unit = &b->units[i];
        unit->ends_backward = true;
        unit->op.transient_bytes = fmax(unit->op.transient_bytes, unit->op.saved_bytes);
        unit->op.saved_bytes = unit->product_input_bytes = unit->kept_bytes = 0;
    }
}

static void units_freeze(Builder *b) {
    for (int i = b->num_front_units; i < b->num_units; i++) {
        Unit *unit = &b->units[i];
        if (!b->kind && b->begins_model) {
            if (freezes(b, FROZEN_EMBEDDING) && unit->op.kind == OP_MEMORY)
                unit->backward_kernels = 0;
            continue;
        }
        if (!freezes(b, unit_part(b, unit))) continue;
        if (unit->module & MODULE_LAYERNORM && unit->op.kind == OP_MEMORY) unit_freeze_norm(unit);
        if (!unit_is_product(unit)) continue;
        unit->frozen = true;
        unit->op.transient_bytes += unit->op.saved_bytes;
        unit->op.saved_bytes = unit->kept_bytes = unit->shared_input_bytes = 0;
    }
}

// Of dense_parameters of a block that is not of a layer.
static double frozen_end(const Builder *b) {
    const Model *m = b->model;
    if (b->begins_model)
        return (freezes(b, FROZEN_EMBEDDING) ? b->dense_parameters - b->front_parameters : 0) +
               (freezes(b, FROZEN_FRONT) ? b->front_parameters : 0);
    if (!m->tie_word_embeddings) return freezes(b, FROZEN_HEAD) ? b->dense_parameters : 0;
    const double own =
        (m->final_norm ? model_norm_parameters(m) : 0) + (m->lm_head_bias ? m->vocab_size : 0);
    return freezes(b, FROZEN_EMBEDDING) ? fmax(0, b->dense_parameters - own) : 0;
}

// Of a layer; what is neither mixer, norm nor router is the MLP's.
static double frozen_layer(const Builder *b) {
    if (b->kind->front) return freezes(b, FROZEN_FRONT) ? b->dense_parameters : 0;
    const double norms = model_kind_norm_parameters(b->model, b->kind);
    const double router =
        kind_is_moe(b->kind) ? model_router_parameters(b->model, &b->kind->ffn) : 0;
    const double mlp = b->dense_parameters - norms - b->mixer_parameters - router;
    return (freezes(b, FROZEN_MIXER) ? b->mixer_parameters : 0) +
           (freezes(b, FROZEN_MLP) ? mlp : 0) + (freezes(b, FROZEN_ROUTER) ? router : 0) +
           (freezes(b, FROZEN_NORMS) ? norms : 0);
}

// Of partial_parameters: frozen products that are whole on every tp rank, and norms.
static double frozen_partial(const Builder *b) {
    if (b->partial_parameters == 0) return 0;
    if (!b->kind) return frozen_end(b) > 0 ? b->partial_parameters : 0;
    double sum = freezes(b, FROZEN_NORMS) ? model_kind_norm_parameters(b->model, b->kind) : 0;
    for (int i = 0; i < b->num_units; i++) {
        const Unit *unit = &b->units[i];
        if (unit->frozen && !unit_is_expert(unit) && unit->weight_split == SPLIT_NONE)
            sum += unit_num_weights(unit);
    }
    return fmin(sum, b->partial_parameters);
}

void frozen_apply(Builder *b) {
    if (!b->tuning || !b->tuning->frozen) return;
    const double stored = base_other_bytes(b->tuning);
    const double dense = b->kind ? frozen_layer(b) : frozen_end(b);
    const bool front = b->kind && b->kind->front;
    const double expert =
        freezes(b, front ? FROZEN_FRONT : FROZEN_EXPERTS) ? b->expert_parameters : 0;
    front_units_end(b);
    units_freeze(b);
    const double partial = frozen_partial(b);
    b->frozen = (FrozenBytes){dense * stored, expert * stored};
    b->dense_parameters -= dense;
    b->expert_parameters -= expert;
    b->partial_parameters -= partial;
    frozen_drop_inputs(b);
    if (!freezes(b, FROZEN_EMBEDDING)) return;
    b->frozen_table_bytes = b->shared_table * stored;
    b->shared_table = 0;
}

bool frozen_ends_backward(const Builder *b) {
    if (!b->begins_model || !b->tuning) return false;
    const bool front = b->num_front_units > 0 || (b->kind && b->kind->front);
    return (b->kind || freezes(b, FROZEN_EMBEDDING)) && (!front || freezes(b, FROZEN_FRONT));
}
