// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1.2).
#include "workload/pass/builder.h"

// They are replicated over tp.
void build_latents(Builder *b) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    double act = activation_bytes(b->execution);
    double in = b->input_bytes_per_value;
    double kv_down = mixer->kv_lora_rank + mixer->qk_rope_head_dim;
    if (mixer->qkv_bias) build_whole_parameters(b, mixer->q_lora_rank + kv_down);
    if (mixer->q_lora_rank > 0)
        build_linear(b, "q_down_proj", SPLIT_NONE, b->tokens_sp, mixer->q_lora_rank, m->hidden_size,
                     0);
    build_linear(b, "kv_down_proj", SPLIT_NONE, b->tokens_sp, kv_down, m->hidden_size, 0);
    if (b->split.sequence_parallel && b->split.tp > 1) // the key part that all heads share
        build_collective(b, "tp_all_gather", STREAM_TP, COLLECTIVE_ALL_GATHER,
                         COLLECTIVE_REDUCE_SCATTER, GROUP_TP,
                         b->tokens * mixer->qk_rope_head_dim * act);
    int num_norms = mixer->q_lora_rank > 0 ? 2 : 1;
    double latent = b->tokens_sp * (mixer->q_lora_rank + mixer->kv_lora_rank);
    MemoryWork norm = {.name = "latent_norm",
                       .bytes = latent * act * 2,
                       .kernels = num_norms,
                       .backward_bytes = latent * act * 3,
                       .backward_kernels = 2 * num_norms,
                       .saved_bytes = latent * (act + in),
                       .product_input_bytes = latent * in,
                       .output_bytes = latent * act};
    build_memory(b, &norm);
    b->module = MODULE_MLA_UP_PROJ;
}

// The up projections are split by head.
static void project(Builder *b) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    const double heads = mixer->num_heads;
    const double qk_dim = mixer->qk_nope_head_dim + mixer->qk_rope_head_dim;
    build_latents(b);
    double q_in = mixer->q_lora_rank > 0 ? mixer->q_lora_rank : m->hidden_size;
    build_linear(b, "q_up_proj", SPLIT_COLUMN, b->tokens, heads * qk_dim, q_in, 0);
    build_linear(b, "kv_up_proj", SPLIT_COLUMN, b->tokens,
                 heads * (mixer->qk_nope_head_dim + mixer->v_head_dim), mixer->kv_lora_rank, 0);
}

void build_latent_attention(Builder *b) {
    build_attention_behind(b, &(AttentionParts){.project = project});
}
