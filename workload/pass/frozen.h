// workload/pass/frozen.h - a block some of whose weights are not trained: what its backward is
// without, and what is not kept for it. With adapters (workload/pass/adapters.h) all are frozen;
// else those of parts that the training names.
//
// Limits: a scenario's parts; biases are of the mixer or the MLP that has them.
#pragma once

#include "workload/pass/builder.h"

// Rewrites the units of a whole block without adapters of which parts are frozen, before techniques
// do.
void frozen_apply(Builder *b);

// Whether nothing that is trained stands in this block, nor before it: no gradient goes there.
bool frozen_ends_backward(const Builder *b);

// --- For adapters.c

bool unit_is_product(const Unit *unit); // of weights
bool unit_is_expert(const Unit *unit);  // a product of routed experts
double unit_num_weights(const Unit *unit);

// A norm whose scale is not trained keeps nothing for its gradient, and does not reduce that.
void unit_freeze_norm(Unit *unit);

// What no product that is trained reads in the backward is there until the next operator has read
// it.
void frozen_drop_inputs(Builder *b);

// Bytes of an input that a base in 8 bits keeps quantized, and adapters as it was.
double builder_unquantized_bytes(const Builder *b, double bytes);
