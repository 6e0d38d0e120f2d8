// The gated delta rule behind a short convolution (Yang et al. 2024, "Gated Delta Networks",
// arXiv:2412.06464, section 3; Qwen3-Next and 3.5: modeling_qwen3_next.py of Hugging Face
// transformers, Qwen3NextGatedDeltaNet; NVIDIA/Megatron-LM, megatron/core/ssm/gated_delta_net.py).
#include "config/model/mixer.h"

// In: queries, keys, values, as many gates as values, and a decay and a strength a head. The
// convolution has a kernel for each number and no bias; a head has a logarithm and a bias of its
// decay.
static double parameters(const Model *model, const Mixer *m) {
    const double hidden = model->hidden_size, values = recurrent_values(m), heads = m->num_heads;
    const double in = 2 * recurrent_key_values(m) + 2 * values + 2 * heads;
    return hidden * in + values * hidden + m->conv_kernel * recurrent_conv_values(m) + 2 * heads;
}

// One norm for all heads.
static double norm_parameters(const Model *model, const Mixer *mixer) {
    (void)model;
    return mixer->v_head_dim;
}

// Four products of the size of the state: of keys and state, keys and values, the decayed state
// with what is taken from it, queries and state (NVIDIA/Megatron-LM, megatron/training/training.py,
// num_floating_point_operations).
static double token_flops(const Mixer *mixer, double keys) {
    (void)keys;
    return 2.0 * 4 * mixer->num_heads * mixer->head_dim * mixer->v_head_dim;
}

static const char *text(const Mixer *m, Arena *arena) {
    return arena_printf(arena,
                        "gated delta rule, %d heads of %d for %d of keys of %d, convolution over "
                        "%d",
                        m->num_heads, m->v_head_dim, m->num_kv_heads, m->head_dim, m->conv_kernel);
}

const MixerRow GATED_DELTA_MIXER_ROW = {
    .name = "gated_delta",
    .parameters = parameters,
    .norm_parameters = norm_parameters,
    .token_flops = token_flops,
    .cache_values = mixer_no_values,
    .state_bytes = recurrent_state_bytes,
    .tp_conflict = recurrent_tp_conflict,
    .heads_conflict = recurrent_heads_conflict,
    .always_trades_heads = true,
    .unmeasured = "the gated delta rule",
    .text = text,
    .add_json = recurrent_add_json,
};
