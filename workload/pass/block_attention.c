// The attention half of a layer: norm, projections, core attention, output projection.
#include "workload/pass/builder.h"

#include <math.h>

// What queries see: keys on average, tokens of the sequence that those are of, how many of these
// the rank has, and of how many sequences.
typedef struct {
    double mean, length, tokens, num_sequences;
    bool causal;
} Keys;

// Chunks are sequences of their own, each spread over all cp ranks.
static Keys chunk_keys(const Builder *b) {
    const Pass *pass = &b->pass;
    const double length = b->kind->mixer.chunk, num = pass->sequences * pass->queries / length;
    return (Keys){(length + 1) / 2, length, b->tokens, num, pass->causal};
}

// A window of a tower is a sequence of its own: a square of the image, which no other overlaps.
static Keys own_keys(const Builder *b) {
    const Pass *pass = &b->pass;
    if (b->kind->mixer.chunk > 0 && b->kind->mixer.chunk < pass->queries) return chunk_keys(b);
    const double window = mixer_most_keys(&b->kind->mixer), mean = pass_average_keys(pass, window);
    if (!b->kind->front || window <= 0)
        return (Keys){mean, pass->keys, pass->sequences * pass->keys / b->split.cp, pass->sequences,
                      pass->causal};
    const double length = fmin(window, pass->keys);
    return (Keys){mean, length, b->tokens, b->tokens / length, pass->causal};
}

// Sizes of one rank's heads. Key-value heads are replicated where there are fewer than tp.
typedef struct {
    double heads, kv_heads;
    double qk_dim, v_dim;                          // of one head
    double out_dim;                                // of what the output's projection reads of it
    double q_values, k_values, v_values, o_values; // per token
    double latent_dim;                             // of a token's cache; 0: not latent
} Heads;

static Heads heads_of(const Mixer *mixer, int tp) {
    Heads h = {.heads = (double)mixer->num_heads / tp};
    h.out_dim = mixer_is_latent(mixer) ? mixer->v_head_dim : mixer->head_dim;
    if (mixer->kind == MIXER_SPARSE_LATENT_ATTENTION) {
        // All heads read a key's latent, of which its values are a part.
        h.kv_heads = 1;
        h.v_dim = mixer->kv_lora_rank;
        h.qk_dim = h.latent_dim = mixer->kv_lora_rank + mixer->qk_rope_head_dim;
    } else if (mixer_is_latent(mixer)) {
        h.kv_heads = h.heads;
        h.qk_dim = mixer->qk_nope_head_dim + mixer->qk_rope_head_dim;
        h.v_dim = mixer->v_head_dim;
        h.latent_dim = mixer->kv_lora_rank + mixer->qk_rope_head_dim;
    } else {
        h.kv_heads = fmax(1, (double)mixer->num_kv_heads / tp);
        h.qk_dim = h.v_dim = mixer->head_dim;
    }
    h.q_values = h.heads * h.qk_dim;
    h.k_values = h.kv_heads * h.qk_dim;
    h.v_values = mixer->kind == MIXER_SPARSE_LATENT_ATTENTION ? 0 : h.kv_heads * h.v_dim;
    h.o_values = h.heads * h.v_dim;
    return h;
}

// Queries, keys and values as the attention reads them, which their product's result becomes: in
// place, or as tensors of their own, whose gradients become one again.
static void build_heads(Builder *b, MemoryWork *work, double values) {
    const Execution *execution = b->execution;
    work->saved_bytes = work->output_bytes = values * activation_bytes(execution);
    if (!execution->stack.residency.splits_heads) work->backward_alive_bytes = work->output_bytes;
    build_memory(b, work);
    if (!execution->stack.residency.splits_heads) b->units[b->num_units - 1].op.transient_bytes = 0;
}

// Rotary embedding of queries and keys. It keeps its results: the attention's inputs.
static void build_rope(Builder *b, const Heads *h) {
    const Execution *execution = b->execution;
    double act = activation_bytes(execution);
    double values = b->tokens * (h->q_values + h->k_values + h->v_values);
    const bool rotates = b->model->position == POSITION_ROPE && !b->kind->mixer.no_positions;
    double rotated = rotates ? b->tokens * (h->q_values + h->k_values) : 0;
    bool fused = execution->stack.launch.fused_rope || execution->compile;
    MemoryWork work = {.name = "rope",
                       .bytes = rotated * act * (fused ? 2 : 6),
                       .backward_bytes = rotated * act * (fused ? 2 : 6),
                       .kernels = fused ? 2 : 8,
                       .backward_kernels = fused ? 2 : 8};
    if (rotated <= 0) { // the projections' results as they are
        work.name = "split_heads";
        work.kernels = work.backward_kernels = 1;
        work.bytes = work.backward_bytes = 0;
    }
    build_heads(b, &work, values);
    // Of queries and of keys, half as many as a head has numbers.
    if (rotated > 0) b->units[b->num_units - 1].op.memory.angles = b->tokens * h->qk_dim;
}

// Context parallelism: keys and values of the other ranks (Liu et al. 2023, "Ring Attention",
// arXiv:2310.01889; Jacobs et al. 2023, "DeepSpeed Ulysses", arXiv:2309.14509, section 3.1).
static void build_context_exchange(Builder *b, const Heads *h, bool before) {
    const Split *split = &b->split;
    double act = activation_bytes(b->execution);
    double kv = b->tokens * (h->k_values + h->v_values) * act;
    if (split->cp == 1) return;
    b->module = MODULE_CORE_ATTN;
    if (split->cp_method == CP_ULYSSES) {
        double values = before ? h->q_values + h->k_values + h->v_values : h->o_values;
        build_collective(b, before ? "cp_all_to_all_qkv" : "cp_all_to_all_out", STREAM_CP,
                         COLLECTIVE_ALL_TO_ALL, COLLECTIVE_ALL_TO_ALL, GROUP_CP,
                         b->tokens * values * act);
    } else if (before && split->cp_method == CP_ALL_GATHER) {
        build_collective(b, "cp_all_gather_kv", STREAM_CP, COLLECTIVE_ALL_GATHER,
                         COLLECTIVE_REDUCE_SCATTER, GROUP_CP, kv * split->cp);
        b->units[b->num_units - 1].gather_again = true;
    } else if (before) {
        // The ring's steps run beside the attention of the step before. In the backward the
        // gradients of keys and values go round with them.
        build_collective(b, "cp_ring_kv", STREAM_CP, COLLECTIVE_RING_EXCHANGE,
                         COLLECTIVE_RING_EXCHANGE, GROUP_CP, kv);
        b->units[b->num_units - 1].op.pipelined_with = b->num_units;
        b->units[b->num_units - 1].backward_frac = 2;
    }
    b->module = 0;
}

// Keys and values that attention over cp ranks holds beside its inputs: gathered all, in a ring
// those in use and those that arrive. Its backward holds their gradients, too, and what one step
// made of the queries' and of one rank's (Transformer Engine, pytorch/attention/
// dot_product_attention/context_parallel.py; runtime/context.c): where queries, keys and values
// share rows, the queries' take as much as all three.
static double context_keys_bytes(const Builder *b, const Heads *h) {
    const Split *split = &b->split;
    const double kv = b->tokens * (h->k_values + h->v_values);
    if (split->cp == 1 || split->cp_method == CP_ULYSSES) return 0;
    return kv * (split->cp_method == CP_RING ? 2 : split->cp) * activation_bytes(b->execution);
}

static double context_gradients_bytes(const Builder *b, const Heads *h) {
    const Execution *execution = b->execution;
    const double keys = context_keys_bytes(b, h), kv = h->k_values + h->v_values;
    const double step = h->q_values + kv * (execution->stack.residency.splits_heads ? 1 : 2);
    return keys > 0 ? keys + b->tokens * step * activation_bytes(execution) : 0;
}

// One step of the attention over cp ranks: a ring's is on one rank's keys; with gathered keys the
// rank's early and late part of the sequence are a step each, as short as that part; Ulysses' ranks
// have whole sequences, of heads of their own.
static AttentionOp attention_step(const Builder *b, const Heads *h, const Keys *keys) {
    const int cp = b->split.cp;
    const bool whole = cp == 1 || b->split.cp_method == CP_ULYSSES;
    const int parts = whole ? 1 : cp,
              halves = !whole && b->split.cp_method == CP_ALL_GATHER ? 2 : 1;
    const double own = b->tokens / keys->num_sequences, heads_split = whole ? cp : 1;
    return (AttentionOp){.sequences = keys->num_sequences,
                         .heads = h->heads / heads_split,
                         .kv_heads = h->kv_heads / heads_split,
                         .queries = own * heads_split / halves,
                         .keys = keys->length / parts,
                         .window = mixer_most_keys(&b->kind->mixer),
                         .head_dim = h->qk_dim,
                         .v_head_dim = h->v_dim,
                         .latent_dim = h->latent_dim,
                         .causal = keys->causal,
                         .served = !b->pass.trains,
                         .generation = b->execution->stack.launch.attention_generation};
}

static void build_flash(Builder *b, const Heads *h, const Keys *keys) {
    const Execution *execution = b->execution;
    double act = activation_bytes(execution);
    // Two products of 2 x keys x dim per query and head (Dao et al. 2022, arXiv:2205.14135). The
    // backward has five: the scores again, and the gradients of probabilities, queries, keys and
    // values (Dao 2023, "FlashAttention-2", arXiv:2307.08691, section 3.1.2).
    double pairs = b->tokens * keys->mean * h->heads;
    double flops = 2 * pairs * (h->qk_dim + h->v_dim);
    double backward_flops = 2 * pairs * (3 * h->qk_dim + 2 * h->v_dim);
    double io =
        (b->tokens * (h->q_values + h->o_values) + keys->tokens * (h->k_values + h->v_values)) *
        act;
    double saved = b->tokens * (h->o_values * act + h->heads * 4); // output, log-sum-exp in fp32
    // Of keys that are chosen every query reads its own, and the backward adds to their gradients,
    // in fp32, as it reads them.
    const bool chosen = b->kind->mixer.index_topk > 0;
    const double rows = chosen ? b->tokens * keys->mean * h->k_values : 0;
    // A ring merges its steps' fp32 results.
    bool ring = b->split.cp_method == CP_RING, split = b->split.cp_method != CP_ULYSSES;
    int steps = b->split.cp == 1 || !split ? 1 : ring ? b->split.cp : 2;
    double merge = ring ? (steps - 1) * b->tokens * h->o_values * 3 * 4 : 0;
    const double others = context_keys_bytes(b, h);
    Unit *unit = &b->units[b->num_units++];
    *unit = (Unit){.module = MODULE_CORE_ATTN,
                   .backward_collective = NUM_COLLECTIVES,
                   .backward_flops = backward_flops,
                   .backward_bytes = 3 * io + merge + rows * (act + 2 * 4),
                   .backward_kernels = 3 * steps,
                   .backward_alive_bytes = io + others + context_gradients_bytes(b, h)};
    unit->op = (Op){.name = "core_attn",
                    .kind = OP_ATTENTION,
                    .phase = PHASE_FORWARD,
                    .stream = STREAM_COMPUTE,
                    .wait = WAIT_PREVIOUS,
                    .pipelined_with = -1,
                    .attention = attention_step(b, h, keys),
                    .flops = flops,
                    .bytes = io + merge + rows * act,
                    .num_kernels = steps,
                    .saved_bytes = saved,
                    .transient_bytes = b->tokens * h->o_values * act + others,
                    .precision = execution->precision};
}

// Softmax of s x s scores in memory, as before fused attention: every score is computed, also
// masked ones, and 2 + 2 + 1 bytes of each are kept (Korthikanti et al. 2022, section 4.1).
static void build_unfused(Builder *b, const Heads *h, const Keys *keys) {
    const Execution *execution = b->execution;
    const Stack *stack = &execution->stack;
    double act = activation_bytes(execution);
    double groups = keys->num_sequences * h->heads, queries = b->tokens / keys->num_sequences;
    double num_keys = keys->length, scores = groups * queries * num_keys;
    b->module = MODULE_CORE_ATTN;
    build_batched_gemm(b, "scores", groups, queries, num_keys, h->qk_dim, 0);
    int passes = stack->launch.fused_softmax ? 2 : 8;
    MemoryWork softmax = {.name = "softmax",
                          .bytes = scores * act * passes,
                          .backward_bytes = scores * act * (passes + 1),
                          .kernels = stack->launch.fused_softmax ? 1 : 4,
                          .backward_kernels = stack->launch.fused_softmax ? 1 : 4,
                          .saved_bytes = scores * act,
                          .output_bytes = scores * act};
    build_memory(b, &softmax);
    if (drops_out(b)) {
        MemoryWork dropout = {.name = "attention_dropout",
                              .bytes = scores * (2 * act + 1),
                              .backward_bytes = scores * (2 * act + 1),
                              .kernels = 1,
                              .backward_kernels = 1,
                              .saved_bytes = scores * (act + 1),
                              .output_bytes = scores * act};
        build_memory(b, &dropout);
    }
    build_batched_gemm(b, "context", groups, queries, h->v_dim, num_keys, 0);
    b->module = 0;
    MemoryWork transpose = {.name = "merge_heads",
                            .bytes = b->tokens * h->o_values * act * 2,
                            .backward_bytes = b->tokens * h->o_values * act * 2,
                            .kernels = 1,
                            .backward_kernels = 1,
                            .saved_bytes = b->tokens * h->o_values * act,
                            .output_bytes = b->tokens * h->o_values * act};
    build_memory(b, &transpose);
}

// Numbers of a token that multiply its results, over all tp ranks.
static double gates_of(const Mixer *mixer) {
    if (mixer->output_gate == GATE_HEADS) return mixer->num_heads;
    return mixer->output_gate == GATE_RESULTS ? (double)mixer->num_heads * mixer->head_dim : 0;
}

// Results times the sigmoid of their gates, which are copied from where the queries' projection
// left them (NVIDIA/Megatron-LM, megatron/core/transformer/attention.py, _apply_output_gate).
static void build_output_gate(Builder *b, const Heads *h) {
    const double act = activation_bytes(b->execution), values = b->tokens * h->o_values;
    const double gates = b->tokens * gates_of(&b->kind->mixer) / b->split.tp;
    const double kept = values * b->input_bytes_per_value;
    build_memory(b, &(MemoryWork){.name = "output_gate",
                                  .bytes = (2 * values + 3 * gates) * act,
                                  .backward_bytes = (3 * values + 2 * gates) * act,
                                  .kernels = 2,
                                  .backward_kernels = 2,
                                  .saved_bytes = gates * act + kept,
                                  .product_input_bytes = kept,
                                  .output_bytes = values * act});
}

static void build_gqa_projections(Builder *b) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    double q = (double)mixer->num_heads * mixer->head_dim;
    double kv = fmax(mixer->num_kv_heads, b->split.tp) * (double)mixer->head_dim;
    const double gates = gates_of(mixer);
    build_linear(b, "qkv_proj", SPLIT_COLUMN, b->tokens, q + gates + 2 * kv, m->hidden_size, 0);
    build_parts(b, (q + gates) / b->split.tp, kv / b->split.tp, kv / b->split.tp);
    if (mixer->qkv_bias) b->dense_parameters += (q + 2 * kv) / b->split.tp;
    if (!mixer->qk_norm) return;
    // One norm for all heads, of which each tp rank has some, whatever it has of the tokens. A norm
    // over all heads at once has a weight for each of their numbers.
    if (b->split.tp > 1 && !b->split.sequence_parallel && !mixer->qk_norm_whole)
        b->partial_parameters += model_heads_norm_parameters(m, mixer);
    double act = activation_bytes(b->execution);
    double values = b->tokens * (q + kv) / b->split.tp;
    if (mixer->qk_norm_whole && b->split.tp > 1) // sums of squares, in fp32
        build_collective(b, "qk_norm_sums", STREAM_TP, COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_REDUCE,
                         GROUP_TP, b->tokens * 2 * 4);
    MemoryWork norm = {.name = "qk_norm",
                       .bytes = values * act * 2,
                       .kernels = 2,
                       .backward_bytes = values * act * 3,
                       .backward_kernels = 4,
                       .saved_bytes = values * act,
                       .output_bytes = values * act};
    build_memory(b, &norm);
}

// The product just built reads what an operator before it keeps.
static void input_share(Builder *b, double bytes) {
    int product = b->num_units - 1;
    while (!b->units[product].has_weight) product--;
    b->units[product].shared_input_bytes = bytes;
}

static void build_core(Builder *b, const Heads *h, const Keys *keys) {
    if (b->execution->attention == ATTENTION_FLASH)
        build_flash(b, h, keys);
    else
        build_unfused(b, h, keys);
}

// Output projection and addition.
static void build_output(Builder *b, const Heads *h, const char *name) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    // Its input is a copy of the attention's output, which that keeps itself, where it is
    // quantized; after Ulysses' exchange (Transformer Engine,
    // pytorch/attention/dot_product_attention/ context_parallel.py, AttnFuncWithCPAndQKVOA2A); and
    // where the attention of gathered keys and values keeps the results of its two steps.
    const Split *split = &b->split;
    bool joined =
        split->cp_method == CP_ALL_GATHER && b->execution->stack.residency.copies_attention_steps;
    const bool is_made = b->units[b->num_units - 1].has_weight; // by a product, not the attention
    bool copied = is_made || precision_is_quantized(b->precision) ||
                  (split->cp > 1 && (split->cp_method == CP_ULYSSES || joined));
    const bool gated = mixer->output_gate != GATE_NONE; // the gate keeps what the product reads
    if (gated) build_output_gate(b, h);
    double copy = copied && !gated ? b->tokens * h->heads * h->out_dim : 0;
    build_linear(b, name, SPLIT_ROW, b->tokens, m->hidden_size, mixer->num_heads * h->out_dim,
                 copy * b->input_bytes_per_value);
    if (!copied && !gated) input_share(b, b->tokens * h->o_values * activation_bytes(b->execution));
    if (mixer->out_bias) build_whole_parameters(b, m->hidden_size);
}

void build_attention_behind(Builder *b, const AttentionParts *parts) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    Heads h = heads_of(mixer, b->split.tp);
    const Keys keys = own_keys(b);
    double values = b->tokens_sp * m->hidden_size;
    build_norm(b, "input_norm", values, NORM_INPUT | NORM_OUTPUT | NORM_BEGINS_BRANCH);
    parts->project(b);
    build_rope(b, &h);
    b->module = 0;
    if (parts->select) parts->select(b);
    build_context_exchange(b, &h, true);
    build_core(b, &h, &keys);
    build_context_exchange(b, &h, false);
    if (parts->results) {
        parts->results(b);
        input_share(b, b->tokens * h.o_values * activation_bytes(b->execution));
    }
    build_output(b, &h, "out_proj");
    if (mixer->sinks) b->dense_parameters += h.heads;
    if (m->norms_per_layer == 4) build_norm(b, "post_attention_norm", values, NORM_INPUT);
    build_residual(b, values);
}

void build_attention(Builder *b) {
    build_attention_behind(b, &(AttentionParts){.project = build_gqa_projections});
}

// Queries of the decoder, keys and values of what the encoder made of its tokens: the output of its
// last norm, which that keeps, once for all layers (Vaswani et al. 2017, arXiv:1706.03762, section
// 3.2.3). Quantized, or as gathered over tp, every layer keeps a copy of its own (Transformer
// Engine, module/linear.py).
void build_cross_attention(Builder *b) {
    const Model *m = b->model;
    const Mixer *mixer = &b->kind->mixer;
    const Execution *execution = b->execution;
    const Heads h = heads_of(mixer, b->split.tp);
    const double length = b->pass.encoded;
    const double num_sequences = b->pass.sequences;
    const Keys keys = {length, length, num_sequences * length, num_sequences, false};
    const double values = b->tokens_sp * m->hidden_size;
    const double query = (double)mixer->num_heads * mixer->head_dim;
    const double key_value = 2.0 * mixer->num_kv_heads * mixer->head_dim;
    const double split = b->tokens * h.q_values + keys.tokens * (h.k_values + h.v_values);
    const bool copied =
        precision_is_quantized(b->precision) ||
        (b->split.sequence_parallel && execution->stack.residency.keeps_gathered_inputs);
    const double copy = copied ? keys.tokens / (b->split.sequence_parallel ? b->split.tp : 1) *
                                     m->hidden_size * b->input_bytes_per_value
                               : 0;
    build_norm(b, "cross_norm", values, NORM_INPUT | NORM_OUTPUT | NORM_BEGINS_BRANCH);
    build_linear(b, "cross_q_proj", SPLIT_COLUMN, b->tokens, query, m->hidden_size, 0);
    build_linear(b, "cross_kv_proj", SPLIT_COLUMN, keys.tokens, key_value, m->hidden_size, copy);
    build_parts(b, key_value / 2 / b->split.tp, key_value / 2 / b->split.tp, 0);
    if (mixer->qkv_bias) b->dense_parameters += (query + key_value) / b->split.tp;
    build_heads(b, &(MemoryWork){.name = "split_heads", .kernels = 1, .backward_kernels = 1},
                split);
    build_core(b, &h, &keys);
    build_output(b, &h, "cross_out_proj");
    build_residual(b, values);
    build_whole_parameters(b, (m->norm_bias ? 2.0 : 1.0) * m->hidden_size); // its norm
}
