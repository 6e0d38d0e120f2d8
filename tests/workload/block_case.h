// tests/workload/block_case.h - what the tests of blocks look for in lists of operators.
#pragma once

#include "tests/costmodel/made_up.h"

// The block of the layer of this index.
const Block *layer_block_of(const Case *c, int layer);

// The first operator of this name in a list; fails the test where there is none.
const Op *op_named(const Op *ops, int num_ops, const char *name);

// Sums over a list: flops of products; bytes of collectives of one kind on one group.
double gemm_flops(const Op *ops, int num_ops);
double collective_bytes(const Op *ops, int num_ops, CollectiveKind kind, GroupKind group);
