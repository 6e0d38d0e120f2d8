// A mixer of the gated delta rule, as NVIDIA/Megatron-LM runs it (megatron/core/ssm/
// gated_delta_net.py): one projection, a short convolution of queries, keys and values, the chunked
// scan of fla-org/flash-linear-attention (fla/ops/gated_delta_rule/chunk.py), a norm of each head
// times its gate, the output's projection. Ranks of tp have heads of their own; those of cp trade
// tokens for heads around the convolution and the scan.
#include "workload/pass/block_scan.h"

// Sizes of one rank: numbers of a token and a head's products.
typedef struct {
    double heads, chunk, key_dim, value_dim;
    double keys, values; // of a token: of all heads of keys, of values
    bool repeats;        // keys and queries are copied for the heads of values that share them
} Delta;

static Delta delta_of(const Builder *b) {
    const Mixer *m = &b->kind->mixer;
    const double tp = b->split.tp;
    return (Delta){.heads = m->num_heads / tp,
                   .chunk = m->scan_chunk,
                   .key_dim = m->head_dim,
                   .value_dim = m->v_head_dim,
                   .keys = m->num_kv_heads / tp * m->head_dim,
                   .values = m->num_heads / tp * m->v_head_dim,
                   .repeats = m->num_heads > m->num_kv_heads};
}

// Queries and keys are normed, without weights, and copied for every head of values.
static void build_keys(Builder *b, const Delta *d) {
    const double act = activation_bytes(b->execution), normed = 2 * b->tokens * d->keys * act;
    const double copies = 2 * b->tokens * d->heads * d->key_dim * act;
    build_memory(b, &(MemoryWork){.name = "qk_norm",
                                  .bytes = 2 * normed,
                                  .backward_bytes = 3 * normed,
                                  .kernels = 2,
                                  .backward_kernels = 2,
                                  .saved_bytes = d->repeats ? normed : 0,
                                  .output_bytes = normed});
    if (!d->repeats) return;
    build_memory(b, &(MemoryWork){.name = "repeat_heads",
                                  .bytes = normed + copies,
                                  .backward_bytes = normed + copies,
                                  .kernels = 2,
                                  .backward_kernels = 2,
                                  .output_bytes = copies});
}

// A decay in fp32 and a strength for each head: the decay's input, its softplus, the strength's
// input and itself are kept.
static void build_gates(Builder *b, const Delta *d) {
    const double act = activation_bytes(b->execution), numbers = b->tokens * d->heads;
    build_memory(b, &(MemoryWork){.name = "decay",
                                  .bytes = numbers * (2 * act + 6 * 4 + 2 * act),
                                  .backward_bytes = numbers * (2 * act + 6 * 4 + 2 * act),
                                  .kernels = 8,
                                  .backward_kernels = 8,
                                  .saved_bytes = numbers * (2 * 4 + 2 * act),
                                  .output_bytes = numbers * (4 + act)});
}

// Products of chunk x chunk, chunk x head and head x head, of a token and head: keys with keys, the
// inverse, w and u; queries with the state, with keys, and these with values. The backward makes w,
// u and the states again (fla/ops/common/chunk_o.py, chunk_delta_h.py,
// fla/ops/gated_delta_rule/wy_fast.py).
static double chunk_flops(const Delta *d, bool backward) {
    const double c = d->chunk, k = d->key_dim, v = d->value_dim;
    if (!backward) return c * (6 * k + 4 * v) + 2 * k * v + 2 * c * c / 3;
    return c * (18 * k + 10 * v) + 6 * k * v + 4 * c * c;
}

static double state_flops(const Delta *d, bool backward) {
    return (backward ? 10 : 4) * d->key_dim * d->value_dim;
}

// Read and written by the same kernels, of a token and head.
static double scan_bytes(const Delta *d, double act, bool backward) {
    const double c = d->chunk, k = d->key_dim, v = d->value_dim, state = k * v / c;
    const double both = act * (4 * k + 4 * v + c + state); // w and u, and the states
    if (!backward) return both + act * (3 * k + 2 * v + c + state) + 8 * c;
    return both + act * (17 * k + 12 * v + c + 3 * state);
}

static void build_rule(Builder *b, const Delta *d) {
    const double act = activation_bytes(b->execution), numbers = b->tokens * d->heads;
    const double k = d->key_dim, v = d->value_dim, c = d->chunk, state = k * v / c;
    const double state_forward = state_flops(d, false), state_backward = state_flops(d, true);
    build_scan(b, &(ScanWork){
                      .name = "gated_delta_rule",
                      .num_chunks = b->pass.queries / c,
                      .kernels = 7,
                      .backward_kernels = 12,
                      .flops = numbers * (chunk_flops(d, false) + state_forward),
                      .backward_flops = numbers * (chunk_flops(d, true) + state_backward),
                      .state_flops = numbers * state_forward,
                      .backward_state_flops = numbers * state_backward,
                      .bytes = numbers * scan_bytes(d, act, false),
                      .backward_bytes = numbers * scan_bytes(d, act, true),
                      .saved_bytes = numbers * (act * (2 * k + v + c + 1) + 4),
                      .output_bytes = numbers * v * act,
                      .transient_bytes = numbers * act * (k + 2 * v + state),
                      .backward_alive_bytes = numbers * act * (6 * k + 5 * v + 2 * state),
                  });
}

// A norm of each head's results, in 16 bits, and their gates' activation in fp32 times it; both
// and the results are kept. What the output's projection reads is transposed.
static void build_gated_norm(Builder *b, const Delta *d) {
    const double act = activation_bytes(b->execution), values = b->tokens * d->values;
    const double kept = values * b->input_bytes_per_value;
    build_memory(b, &(MemoryWork){.name = "gated_norm",
                                  .bytes = 9 * values * act,
                                  .backward_bytes = 12 * values * act,
                                  .kernels = 4,
                                  .backward_kernels = 6,
                                  .saved_bytes = 3 * values * act + kept,
                                  .product_input_bytes = kept,
                                  .output_bytes = values * act});
    if (b->split.tp > 1 && !b->split.sequence_parallel)
        b->partial_parameters += b->kind->mixer.v_head_dim;
}

void build_gated_delta(Builder *b) {
    const Model *m = b->model;
    const Delta d = delta_of(b);
    const double tp = b->split.tp, hidden = m->hidden_size, branch = b->tokens_sp * hidden;
    const double in = 2 * d.keys + 2 * d.values + 2 * d.heads, conv = 2 * d.keys + d.values;
    build_norm(b, "input_norm", branch, NORM_INPUT | NORM_OUTPUT | NORM_BEGINS_BRANCH);
    build_linear(b, "qkvg_proj", SPLIT_COLUMN, b->tokens, in * tp, hidden, 0);
    build_heads_exchange(b, true, in);
    build_short_conv(b, b->tokens * conv);
    build_keys(b, &d);
    build_gates(b, &d);
    build_rule(b, &d);
    build_gated_norm(b, &d);
    build_heads_exchange(b, false, d.values);
    build_linear(b, "out_proj", SPLIT_ROW, b->tokens, hidden, d.values * tp, 0);
    b->dense_parameters += b->kind->mixer.conv_kernel * conv + 2 * d.heads;
    build_residual(b, branch);
}
