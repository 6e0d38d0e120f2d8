// workload/pass/adapters.h - a block whose own weights are not trained, with low-rank adapters
// beside its products.
//
// All that differs of such a block is here: a frozen product has no weight gradient and needs no
// input for it; where its weight is stored in 4 bits it is dequantized before each use; beside the
// products that are targets two narrow ones run, A then B; and what the block holds is frozen but
// for these. Builders of operators do not know of it, and backward_derive follows what the units
// say (Unit.frozen, dequantize_bytes, gather).
//
// Sources: Hu et al. 2021, arXiv:2106.09685, section 4.1; huggingface/peft, tuners/lora/layer.py,
// Linear.forward; over tensor-parallel ranks NVIDIA-NeMo/Megatron-Bridge, peft/utils.py,
// ParallelLinearAdapter; bitsandbytes, autograd/_functions.py, MatMul4Bit: both passes dequantize
// the whole weight and multiply in 16 bits.
// Limits: a dropped-out input is a tensor of each adapter's own; the gradients of a product's
// inputs are added up adapter by adapter.
#pragma once

#include "workload/pass/builder.h"

// Rewrites the units of a whole block that has adapters, before techniques do.
void adapters_apply(Builder *b);
