#include "workload/pass/block_scan.h"

void build_heads_exchange(Builder *b, bool before, double values) {
    if (b->split.cp == 1) return;
    build_collective(b, before ? "cp_all_to_all_qkv" : "cp_all_to_all_out", STREAM_CP,
                     COLLECTIVE_ALL_TO_ALL, COLLECTIVE_ALL_TO_ALL, GROUP_CP,
                     b->tokens * values * activation_bytes(b->execution));
}

// Transposed, convolved, transposed: each reads and writes all; the backward of the convolution
// reads its input beside the gradient. The activation behind it is made again in the backward
// (causal_conv1d/causal_conv1d_interface.py).
void build_short_conv(Builder *b, double values) {
    const double bytes = values * activation_bytes(b->execution);
    build_memory(b, &(MemoryWork){.name = "short_conv",
                                  .bytes = 6 * bytes,
                                  .backward_bytes = 7 * bytes,
                                  .kernels = 5,
                                  .backward_kernels = 6,
                                  .saved_bytes = bytes,
                                  .output_bytes = bytes});
}
