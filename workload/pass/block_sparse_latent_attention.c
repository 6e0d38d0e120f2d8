// Latent attention to the keys that an indexer chooses (DeepSeek-V3.2, arXiv:2512.02556, section
// 2.1), as it is trained with the sparse kernels: all heads of a query read the latents of its keys
// themselves, once, so that the up-projections stand before and behind the attention ("MQA mode";
// tile-ai/tilelang, examples/deepseek_v32, sparse_mla_fwd.py, sparse_mla_bwd.py). The indexer
// learns from the attention's own weights of the chosen keys, of which its inputs get no gradient.
//
// No published measurement of such a step covers these operators: they are priced by the laws of
// attention and memory.
#include "workload/pass/builder.h"

enum { SCORE_BYTES = 4 }; // of a sum of the indexer's, a weight and the number of a key

// Down projections and norms are those of latent attention. Each head's part of the query that is
// not rotated goes through the matrix that makes the head's keys of latents.
static void project(Builder *b) {
    const Mixer *m = &b->kind->mixer;
    const double heads = (double)m->num_heads / b->split.tp;
    const double query = m->qk_nope_head_dim + m->qk_rope_head_dim;
    build_latents(b);
    build_linear(b, "q_up_proj", SPLIT_COLUMN, b->tokens, m->num_heads * query, m->q_lora_rank, 0);
    build_linear_of_heads(b, "q_absorb_proj", m->kv_lora_rank, m->qk_nope_head_dim,
                          b->tokens * heads * m->qk_nope_head_dim * activation_bytes(b->execution));
}

// Each head's sum of latents becomes its values.
static void results(Builder *b) {
    const Mixer *m = &b->kind->mixer;
    build_linear_of_heads(b, "v_up_proj", m->v_head_dim, m->kv_lora_rank, 0);
}

// Queries, key and weights of the heads. Every tp rank makes them for all tokens, as its heads see
// what is chosen (NVIDIA/Megatron-LM, megatron/core/transformer/experimental_attention_variant/
// dsa.py, DSAIndexer). The software makes no gradient of their inputs; it is counted here all the
// same, as of every product with weights, so that the indexer's backward is priced too high.
static void build_index_heads(Builder *b) {
    const Mixer *m = &b->kind->mixer;
    const double act = activation_bytes(b->execution), hidden = b->model->hidden_size;
    const double query = (double)m->index_num_heads * m->index_head_dim;
    const double values = b->tokens * (query + m->index_head_dim);
    if (b->split.sequence_parallel && b->split.tp > 1)
        build_collective(b, "tp_all_gather", STREAM_TP, COLLECTIVE_ALL_GATHER, NUM_COLLECTIVES,
                         GROUP_TP, b->tokens * (hidden + m->q_lora_rank) * act);
    build_linear(b, "index_q_proj", SPLIT_NONE, b->tokens, query, m->q_lora_rank, 0);
    build_linear(b, "index_k_proj", SPLIT_NONE, b->tokens, m->index_head_dim, hidden, 0);
    build_linear(b, "index_weights_proj", SPLIT_NONE, b->tokens, m->index_num_heads, hidden, 0);
    build_memory(b, &(MemoryWork){.name = "index_norm_rope",
                                  .bytes = 2 * values * act,
                                  .backward_bytes = 3 * values * act,
                                  .kernels = 4,
                                  .backward_kernels = 4,
                                  .saved_bytes = (values + b->tokens * m->index_num_heads) * act,
                                  .output_bytes = values * act});
}

// One product of queries and keys without a softmax.
//   pairs, backward_pairs  of a query and a key, over all heads
static Unit *build_scores(Builder *b, const char *name, const AttentionOp *of, double pairs,
                          double backward_pairs, double bytes) {
    const double flops = 2.0 * of->head_dim;
    Unit *unit = &b->units[b->num_units++];
    *unit = (Unit){.backward_collective = NUM_COLLECTIVES,
                   .backward_flops = 3 * backward_pairs * flops,
                   .backward_bytes = 3 * bytes,
                   .backward_kernels = 1,
                   .backward_alive_bytes = bytes};
    unit->op = (Op){.name = name,
                    .kind = OP_ATTENTION,
                    .phase = PHASE_FORWARD,
                    .stream = STREAM_COMPUTE,
                    .wait = WAIT_PREVIOUS,
                    .pipelined_with = -1,
                    .attention = *of,
                    .flops = pairs * flops,
                    .bytes = bytes,
                    .num_kernels = 1,
                    .transient_bytes = bytes,
                    .precision = b->execution->precision};
    return unit;
}

static AttentionOp scores_of(const Builder *b, double heads, double dim) {
    return (AttentionOp){.sequences = b->pass.sequences,
                         .heads = heads,
                         .kv_heads = 1,
                         .queries = b->pass.queries,
                         .keys = b->pass.keys,
                         .head_dim = dim,
                         .v_head_dim = dim,
                         .causal = b->pass.causal,
                         .generation = b->execution->stack.launch.attention_generation};
}

// Sums over the heads of all keys, in fp32, and the largest of each query. The backward makes again
// those of the chosen keys.
static void build_choice(Builder *b, double chosen) {
    const Mixer *m = &b->kind->mixer;
    const double sums = b->tokens * pass_average_keys(&b->pass, 0);
    const AttentionOp scores = scores_of(b, m->index_num_heads, m->index_head_dim);
    build_scores(b, "index_scores", &scores, sums * m->index_num_heads, chosen * m->index_num_heads,
                 sums * SCORE_BYTES);
    // Read to find the least of the largest, and again to take them.
    build_memory(b, &(MemoryWork){.name = "index_topk",
                                  .bytes = (2 * sums + chosen) * SCORE_BYTES,
                                  .kernels = 2,
                                  .saved_bytes = chosen * SCORE_BYTES,
                                  .output_bytes = chosen * SCORE_BYTES});
}

// What the indexer learns: the divergence of its softmax from the mean of the heads' own, over the
// chosen keys (section 2.1.1), for which their scores are made once more and summed over tp.
static void build_loss(Builder *b, double chosen) {
    const Mixer *m = &b->kind->mixer;
    const double heads = (double)m->num_heads / b->split.tp;
    const AttentionOp own = scores_of(b, heads, m->kv_lora_rank + m->qk_rope_head_dim);
    const double rows = own.head_dim * activation_bytes(b->execution);
    build_scores(b, "index_target", &own, chosen * heads, 0, chosen * (SCORE_BYTES + rows))
        ->ends_backward = true;
    b->units[b->num_units - 1].op.transient_bytes = chosen * SCORE_BYTES;
    if (b->split.tp > 1)
        build_collective(b, "index_target_all_reduce", STREAM_TP, COLLECTIVE_ALL_REDUCE,
                         NUM_COLLECTIVES, GROUP_TP, chosen * SCORE_BYTES);
    build_memory(b, &(MemoryWork){.name = "index_loss",
                                  .bytes = 3 * chosen * SCORE_BYTES,
                                  .backward_bytes = 3 * chosen * SCORE_BYTES,
                                  .kernels = 3,
                                  .backward_kernels = 2,
                                  .saved_bytes = 2 * chosen * SCORE_BYTES,
                                  .output_bytes = chosen * SCORE_BYTES});
}

static void select(Builder *b) {
    const Mixer *m = &b->kind->mixer;
    const double chosen = b->tokens * pass_average_keys(&b->pass, m->index_topk);
    if (m->index_num_heads == 0) return; // chosen in a layer before
    build_index_heads(b);
    build_choice(b, chosen);
    if (b->pass.trains) build_loss(b, chosen);
}

void build_sparse_latent_attention(Builder *b) {
    build_attention_behind(
        b, &(AttentionParts){.project = project, .select = select, .results = results});
}
