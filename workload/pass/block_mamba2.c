// A Mamba-2 mixer, as NVIDIA/Megatron-LM runs it (megatron/core/ssm/mamba_mixer.py) with the
// kernels of state-spaces/mamba (mamba_ssm/ops/triton/ssd_combined.py,
// MambaSplitConv1dScanCombinedFn): one projection of gates, values, keys, queries and steps, a
// convolution, the chunked scan (Dao and Gu 2024, arXiv:2405.21060, section 6), a norm of each
// group's gated results, the output's projection. The backward keeps the projection's whole result
// and the scan's, and makes the convolution and the states again. Ranks of tp have heads and groups
// of their own; those of cp trade tokens for heads around the convolution and the scan.
#include "workload/pass/block_scan.h"

// Sizes of one rank.
typedef struct {
    double heads, groups, chunk, key_dim, value_dim;
    double keys, values; // numbers of a token: of all groups of keys, of all heads of values
} Mamba;

static Mamba mamba_of(const Builder *b) {
    const Mixer *m = &b->kind->mixer;
    const double tp = b->split.tp;
    return (Mamba){.heads = m->num_heads / tp,
                   .groups = m->num_kv_heads / tp,
                   .chunk = m->scan_chunk,
                   .key_dim = m->head_dim,
                   .value_dim = m->v_head_dim,
                   .keys = m->num_kv_heads / tp * m->head_dim,
                   .values = m->num_heads / tp * m->v_head_dim};
}

// Of a token over all heads. Forward: queries with keys of a chunk, once a group; the states of a
// chunk; of the results those of the states and those of the chunk, of which half is masked and
// skipped. The backward makes the states again, and has two products for each but those of queries
// with keys, which it has again and then twice.
static double scan_flops(const Mamba *m, bool backward) {
    const double products = 2 * m->chunk * m->key_dim * m->groups;
    const double states = 2 * m->key_dim * m->value_dim * m->heads;
    const double inside = m->chunk * m->value_dim * m->heads;
    return backward ? 3 * products + 5 * states + 2 * inside : products + 2 * states + inside;
}

// Values are read for the states and for the results, keys and queries for both and for their
// products, states in fp32 written, passed on and read.
static double scan_bytes(const Mamba *m, double act, bool backward) {
    const double states = 4 * m->key_dim * m->value_dim * m->heads / m->chunk;
    const double products = 4 * m->chunk * m->groups;
    const double forward =
        act * (3 * m->values + 4 * m->keys) + 4 * states + 2 * products + 8 * m->heads;
    if (!backward) return forward;
    return forward + act * (5 * m->values + 6 * m->keys) + 5 * states + 4 * products;
}

static void build_state_space(Builder *b, const Mamba *m) {
    const double act = activation_bytes(b->execution), tokens = b->tokens;
    const double states = 4 * m->key_dim * m->value_dim * m->heads / m->chunk;
    build_scan(b, &(ScanWork){
                      .name = "state_space",
                      .num_chunks = b->pass.queries / m->chunk,
                      .kernels = 5,
                      .backward_kernels = 14,
                      .flops = tokens * scan_flops(m, false),
                      .backward_flops = tokens * scan_flops(m, true),
                      .bytes = tokens * scan_bytes(m, act, false),
                      .backward_bytes = tokens * scan_bytes(m, act, true),
                      .output_bytes = tokens * m->values * act,
                      .transient_bytes = tokens * (2 * states + 4 * m->chunk * m->groups),
                      .backward_alive_bytes = tokens * (act * (3 * m->values + 4 * m->keys) +
                                                        3 * states + 4 * m->chunk * m->groups),
                  });
}

// Results times their gates, normed; what the scan made is kept, and what the projection reads.
static void build_gated_norm(Builder *b, const Mamba *m) {
    const double act = activation_bytes(b->execution), values = b->tokens * m->values;
    const double kept = values * b->input_bytes_per_value;
    build_memory(b, &(MemoryWork){.name = "gated_norm",
                                  .bytes = 3 * values * act,
                                  .backward_bytes = 6 * values * act,
                                  .kernels = 1,
                                  .backward_kernels = 2,
                                  .saved_bytes = values * act + kept,
                                  .product_input_bytes = kept,
                                  .output_bytes = values * act});
}

void build_mamba2(Builder *b) {
    const Model *model = b->model;
    const Mixer *mixer = &b->kind->mixer;
    const Mamba m = mamba_of(b);
    const double tp = b->split.tp, hidden = model->hidden_size, branch = b->tokens_sp * hidden;
    const double in = 2 * m.values + 2 * m.keys + m.heads, conv = m.values + 2 * m.keys;
    const double act = activation_bytes(b->execution);
    build_norm(b, "input_norm", branch, NORM_INPUT | NORM_OUTPUT | NORM_BEGINS_BRANCH);
    build_linear(b, "in_proj", SPLIT_COLUMN, b->tokens, in * tp, hidden, 0);
    build_heads_exchange(b, true, in);
    build_memory(b, &(MemoryWork){.name = "short_conv", // its input is the projection's result
                                  .bytes = 2 * b->tokens * conv * act,
                                  .backward_bytes = 5 * b->tokens * conv * act,
                                  .kernels = 1,
                                  .backward_kernels = 2,
                                  .saved_bytes = b->tokens * in * act,
                                  .output_bytes = b->tokens * conv * act});
    build_state_space(b, &m);
    build_gated_norm(b, &m);
    build_heads_exchange(b, false, m.values);
    build_linear(b, "out_proj", SPLIT_ROW, b->tokens, hidden, m.values * tp, 0);
    b->dense_parameters += (mixer->conv_kernel + (mixer->conv_bias ? 1 : 0)) * conv + 3 * m.heads;
    if (mixer->qkv_bias) b->dense_parameters += in;
    if (mixer->out_bias) build_whole_parameters(b, hidden);
    build_residual(b, branch);
}
