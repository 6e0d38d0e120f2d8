// Mamba-2, a state space whose decay is one number a head, behind a short convolution (Dao and Gu
// 2024, "Transformers are SSMs", arXiv:2405.21060, sections 6 and 7; state-spaces/mamba,
// mamba_ssm/modules/mamba2.py; Nemotron-H, arXiv:2504.03624, modeling_nemotron_h.py:
// NemotronHMamba2Mixer; NVIDIA/Megatron-LM, megatron/core/ssm/mamba_mixer.py). Its C and B are the
// queries and keys of num_kv_heads groups, of head_dim numbers; its heads have v_head_dim.
#include "config/model/mixer.h"

// In: gates, values, keys and queries, and a step a head. The convolution has a kernel and a bias
// for each number; a head has a logarithm of its decay, the bias of its step and a weight of its
// input.
static double parameters(const Model *model, const Mixer *m) {
    const double hidden = model->hidden_size, values = recurrent_values(m), heads = m->num_heads;
    const double in = 2 * values + 2 * recurrent_key_values(m) + heads;
    double sum = hidden * in + values * hidden + 3 * heads;
    sum += (m->conv_kernel + (m->conv_bias ? 1 : 0)) * recurrent_conv_values(m);
    if (m->qkv_bias) sum += in;
    return m->out_bias ? sum + hidden : sum;
}

// Over the values of each group.
static double norm_parameters(const Model *model, const Mixer *mixer) {
    (void)model;
    return recurrent_values(mixer);
}

// Seven operations for each number of the state (NVIDIA/Megatron-LM, megatron/training/training.py,
// mamba_layer_flops).
static double token_flops(const Mixer *mixer, double keys) {
    (void)keys;
    return 7.0 * mixer->num_heads * mixer->head_dim * mixer->v_head_dim;
}

static const char *text(const Mixer *m, Arena *arena) {
    return arena_printf(
        arena, "Mamba-2, %d heads of %d for %d groups of states of %d, convolution over %d",
        m->num_heads, m->v_head_dim, m->num_kv_heads, m->head_dim, m->conv_kernel);
}

const MixerRow MAMBA2_MIXER_ROW = {
    .name = "mamba2",
    .parameters = parameters,
    .norm_parameters = norm_parameters,
    .token_flops = token_flops,
    .cache_values = mixer_no_values,
    .state_bytes = recurrent_state_bytes,
    .tp_conflict = recurrent_tp_conflict,
    .heads_conflict = recurrent_heads_conflict,
    .always_trades_heads = true,
    .unmeasured = "a state space",
    .text = text,
    .add_json = recurrent_add_json,
};
