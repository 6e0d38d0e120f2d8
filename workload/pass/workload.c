// The blocks of a model under a plan.
#include "workload/pass/block.h"

#include "config/model/mixer.h"
#include "config/model/model_front.h"
#include "plan/layer_plans.h"
#include "plan/plan_orders.h"
#include "workload/pass/builder.h"
#include "workload/pass/chunk.h"
#include "workload/pass/front.h"
#include "workload/pass/strategy_blocks.h"

#include <math.h>
#include <string.h>

static double padded_rows(double vocab_size, int parts) {
    const double multiple = 128.0 * parts;
    return parts == 1 ? vocab_size : ceil(vocab_size / multiple) * multiple / parts;
}

double vocab_rows(const Model *model, const Plan *plan) {
    return padded_rows(model->vocab_size, plan_vocab_parts(plan));
}

// A micro-batch of the text, of which nothing runs again: all but layers are built so. What 8-bit
// operands need beside products is the same on all pools, whose architecture has to be one
// (config/job/scenario.c).
static LayerWork text_work(const Scenario *scenario, const Plan *plan) {
    LayerWork work = {.model = &scenario->model,
                      .gpu = &scenario->cluster.pools[0].gpu,
                      .execution = &scenario->execution,
                      .pass = text_pass(scenario, plan),
                      .split = plan_split(plan),
                      .tuning = &scenario->training.tuning};
    work.pass.recompute = RECOMPUTE_NONE;
    return work;
}

// A layer of a kind with a strategy.
static Block layer_block(const Scenario *scenario, const Plan *plan, const LayerKind *kind,
                         const Strategy *strategy, Arena *arena) {
    const Plan *own = plan_sharding(plan, strategy->sharding);
    LayerWork work = text_work(scenario, own);
    if (kind->front) {
        work.model = scenario->model.front->model;
        work.pass = front_pass(scenario, own);
        work.split = front_split(&scenario->model, own);
    }
    work.pass.recompute = strategy->recompute;
    work.pass.recompute_modules = strategy->recompute_modules;
    Block block = layer_build(&work, kind, arena);
    if (strategy->sharding != PLAN_OWN) block_bind(plan, strategy->sharding, arena, &block);
    return block;
}

// Rows of the word table, which is split by tp: what other ranks hold is added up, over the
// pipeline ranks by a collective of the Program.
void build_embedding_lookup(Builder *b, const char *name, double tokens) {
    const bool scatters = b->split.sequence_parallel;
    double act = activation_bytes(b->execution);
    double values = tokens * b->model->hidden_size;
    // Forward: read a row and write it per token. Backward: rows are added to the fp32 gradient.
    MemoryWork lookup = {.name = name,
                         .bytes = 2 * values * act,
                         .kernels = 3,
                         .backward_bytes = values * (act + 8),
                         .backward_kernels = 3,
                         .output_bytes = values * act,
                         .backward_alive_bytes = values * act};
    build_memory(b, &lookup);
    if (b->split.tp > 1)
        build_collective(b, scatters ? "tp_reduce_scatter" : "tp_all_reduce", STREAM_TP,
                         scatters ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE,
                         scatters ? COLLECTIVE_ALL_GATHER : NUM_COLLECTIVES, GROUP_TP,
                         values * act);
}

static Block embedding_block(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *m = &scenario->model;
    const LayerWork work = text_work(scenario, plan);
    Builder b;
    builder_start(&work, NULL, arena, &b);
    const bool spread = plan->vocab_barriers > 0;
    if (m->num_front_layers > 0) build_front_ends(&b, &scenario->training);
    if (!spread) build_embedding_lookup(&b, "embedding", b.tokens);
    if (scenario->execution.stack.training.dropout) {
        build_residual(&b, b.tokens_sp * m->hidden_size);
        b.units[b.num_units - 1].residual_bytes = 0; // nothing is added
    }
    if (m->embedding_norm)
        build_norm(&b, "embedding_norm", b.tokens_sp * m->hidden_size, NORM_INPUT);
    double rest = model_embedding_parameters(m) - (double)m->vocab_size * m->hidden_size;
    b.dense_parameters += (spread ? 0 : vocab_rows(m, plan) * m->hidden_size) + rest;
    if (m->embedding_norm) build_partial_parameters(&b, model_norm_parameters(m));
    if (scenario->execution.stack.training.splits_positions)
        build_partial_parameters(&b, (double)m->max_position_embeddings * m->hidden_size);
    b.begins_model = true;
    return builder_finish(&b, "embedding");
}

// What the loss holds of a logit while it makes the gradient, beside what it keeps: the logits
// where fused, else their fp32 softmax.
static double loss_gradient_bytes(const Builder *b) {
    const Execution *execution = b->execution;
    const Stack *stack = &execution->stack;
    if (execution->cross_entropy_fused)
        return stack->training.loss_in_place ? 0 : activation_bytes(execution);
    return b->split.vocab_parts > 1 ? stack->training.parallel_loss_gradient_bytes
                                    : stack->training.loss_gradient_bytes;
}

// The 16-bit logits are freed before the backward, but the place between what else the loss made
// holds no fp32 tensor. Where the gradient takes the softmax's place, its 16-bit copy goes there.
static double loss_unusable_bytes(const Builder *b, double logits) {
    const double act = activation_bytes(b->execution);
    if (b->execution->cross_entropy_fused || act >= 4) return 0;
    return loss_gradient_bytes(b) > act ? logits * act : 0;
}

// What follows the layers, which alone are compiled, one by one.
static void begin_head(Builder *b) {
    const Execution *execution = b->execution;
    b->precision = unquantized_precision(execution);
    b->input_bytes_per_value = b->gathered_bytes_per_value = activation_bytes(execution);
    b->lasting_gathers = execution->stack.residency.lasting_gathers != LASTING_GATHERS_NONE;
    b->compiled = false;
}

// Logits and cross-entropy over this rank's part of the vocabulary. Unfused, the logits are cast to
// fp32, whose softmax is kept for the backward; fused, the gradient replaces the logits.
static void build_logits(Builder *b, double saved_input_bytes) {
    const Execution *execution = b->execution;
    const double act = activation_bytes(execution), dense = b->dense_parameters;
    const double rows = padded_rows(b->model->vocab_size, b->split.vocab_parts);
    build_linear(b, "lm_head", SPLIT_COLUMN, b->tokens, rows * b->split.tp, b->model->hidden_size,
                 saved_input_bytes);
    b->units[b->num_units - 1].plain_gradient = true;
    // Most software fills the vocabulary up; one that does not is priced as if it did.
    b->units[b->num_units - 1].op.gemm.aligned = 8;
    b->dense_parameters = dense;
    double logits = b->tokens * rows;
    bool fused = execution->cross_entropy_fused, one_pass = fused || execution->compile;
    MemoryWork loss = {.name = "cross_entropy",
                       .bytes = logits * (one_pass ? 2 * act : act + 4 + 12),
                       .backward_bytes = logits * (one_pass ? 2 * act : 12 + act),
                       .kernels = fused ? 3 : 9,
                       .backward_kernels = fused ? 1 : 4,
                       .saved_bytes = logits * (fused ? act : 4),
                       .output_bytes = logits * (fused ? 0 : act + 4),
                       .backward_alive_bytes = logits * loss_gradient_bytes(b)};
    if (fused && execution->stack.training.loss_gradient_in_forward) {
        loss.bytes += loss.backward_bytes;
        loss.kernels += loss.backward_kernels;
        loss.backward_bytes = loss.backward_kernels = 0;
    }
    build_memory(b, &loss);
    b->unusable_bytes = loss_unusable_bytes(b, logits);
    // Over the parts of the vocabulary: the largest logit, the sum of exponentials, the target's.
    // Wide numbers: in fp64 of 8 bytes. Over pipeline ranks a collective of the Program does it.
    if (b->split.tp > 1)
        build_collective(b, "loss_all_reduce", STREAM_TP, COLLECTIVE_ALL_REDUCE, NUM_COLLECTIVES,
                         GROUP_TP, 3 * b->tokens * (b->precision == PRECISION_FP64 ? 8 : 4));
}

// Final norm, then logits and loss.
static void build_head(Builder *b, const char *norm_name) {
    const Model *m = b->model;
    const double input = b->tokens_sp * m->hidden_size;
    begin_head(b);
    if (m->final_norm) build_norm(b, norm_name, input, NORM_INPUT | NORM_OUTPUT);
    build_logits(b, m->final_norm ? 0 : input * activation_bytes(b->execution));
}

// The last rank's part of the head where the vocabulary is spread: what it sends to all.
static void build_final_norm(Builder *b) {
    const Model *m = b->model;
    begin_head(b);
    if (m->final_norm) build_norm(b, "final_norm", b->tokens_sp * m->hidden_size, NORM_INPUT);
}

bool workload_table_stays(const Plan *plan) {
    const ScheduleTraits schedule = plan_schedule_traits(plan);
    return plan->pp * plan->vpp == 1 && !schedule.splits_backward && !schedule.mixes_backwards;
}

static Block head_block(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *m = &scenario->model;
    const LayerWork work = text_work(scenario, plan);
    Builder b;
    builder_start(&work, NULL, arena, &b);
    const bool spread = plan->vocab_barriers > 0;
    if (spread)
        build_final_norm(&b);
    else
        build_head(&b, "final_norm");
    double matrix = spread ? 0 : vocab_rows(m, plan) * m->hidden_size;
    // The embedding's own matrix.
    bool shared = m->tie_word_embeddings && plan_joins_ends(plan);
    double norm = model_head_parameters(m) -
                  (m->tie_word_embeddings ? 0 : (double)m->vocab_size * m->hidden_size);
    b.dense_parameters = (shared ? 0 : matrix) + norm;
    if (m->final_norm) build_partial_parameters(&b, model_norm_parameters(m));
    b.table_stays = shared && workload_table_stays(plan);
    if (shared && !(b.table_stays && scenario->execution.stack.training.gathers_ahead))
        b.shared_table = matrix;
    return builder_finish(&b, "head");
}

// A rank's rows of the word table where the vocabulary is spread. A tied matrix is counted here.
static Block vocab_input_block(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const LayerWork work = text_work(scenario, plan);
    Builder b;
    builder_start(&work, NULL, arena, &b);
    build_embedding_lookup(&b, "embedding", b.tokens);
    b.dense_parameters = vocab_rows(&scenario->model, plan) * scenario->model.hidden_size;
    b.begins_model = true;
    return builder_finish(&b, "vocab_input");
}

// A rank's part of logits and loss; the input comes from the last rank and is kept.
static Block vocab_output_block(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *m = &scenario->model;
    const LayerWork work = text_work(scenario, plan);
    Builder b;
    builder_start(&work, NULL, arena, &b);
    begin_head(&b);
    build_logits(&b, b.tokens_sp * m->hidden_size * activation_bytes(&scenario->execution));
    if (!m->tie_word_embeddings) b.dense_parameters = vocab_rows(m, plan) * m->hidden_size;
    return builder_finish(&b, "vocab_output");
}

// A multi-token-prediction layer: two norms, a projection of 2h to h, a layer like the last one and
// the head once more (DeepSeek-V3, arXiv:2412.19437, section 2.2). Embedding and head are shared
// (chunk_build). All but lookup and head may be recomputed.
static Block mtp_block(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *m = &scenario->model;
    const LayerKind *kind = model_mtp_kind(m);
    LayerWork work = text_work(scenario, plan);
    work.pass.recompute = plan_mtp_recompute(plan);
    Builder b;
    builder_start(&work, kind, arena, &b);
    double values = b.tokens_sp * m->hidden_size;
    build_embedding_lookup(&b, "embedding", b.tokens);
    b.recomputable_begin = b.num_units;
    build_norm(&b, "mtp_embedding_norm", values, NORM_INPUT | NORM_OUTPUT);
    build_norm(&b, "mtp_hidden_norm", values, NORM_INPUT | NORM_OUTPUT);
    build_linear(&b, "mtp_proj", SPLIT_COLUMN, b.tokens, m->hidden_size, 2.0 * m->hidden_size, 0);
    build_mixer(&b);
    build_mlp(&b);
    b.recomputable_end = b.num_units;
    build_head(&b, "mtp_final_norm");
    build_whole_parameters(&b, model_kind_norm_parameters(m, kind));
    build_whole_parameters(&b, (m->norm_bias ? 6.0 : 3.0) * m->hidden_size); // its own three norms
    return builder_finish(&b, "mtp");
}

// Weights that a token is multiplied by.
static double ffn_active_parameters(const Model *model, const FeedForward *ffn) {
    if (ffn->none) return 0;
    if (ffn->num_experts == 0) return model_mlp_parameters(model, ffn);
    return model_router_parameters(model, ffn) + model_shared_expert_parameters(model, ffn) +
           ffn->num_experts_per_tok * model_expert_parameters(model, ffn);
}

// Model FLOPs of a step: 6 per token and parameter that multiplies (Kaplan et al. 2020,
// arXiv:2001.08361, section 2.1), plus 3 x the forward's attention products, halved where causal. A
// frozen parameter has no gradient: 4.
double workload_model_flops(const Scenario *scenario) {
    const Model *m = &scenario->model;
    const TrainingJob *training = &scenario->training;
    double seq = (double)training->seq_len, tokens = seq * (double)training->global_batch;
    const FineTuning *tuning = &training->tuning;
    double matrices = (double)m->vocab_size * m->hidden_size, attention = 0, cross = 0;
    const unsigned head = m->tie_word_embeddings ? FROZEN_EMBEDDING : FROZEN_HEAD;
    double adapters = 0, frozen = tuning->frozen & head ? matrices : 0;
    for (int i = 0; i < m->num_layers + m->num_mtp_layers; i++) {
        const LayerKind *kind = i < m->num_layers ? &m->kinds[m->layer_kind[i]] : model_mtp_kind(m);
        if (kind->front) continue;
        const Mixer *mixer = &kind->mixer;
        double keys = mixer->window > 0 ? fmin(mixer->window, seq) : seq; // an indexer sees all
        if (training->causal) keys = keys < seq ? keys - keys * keys / (2 * seq) : keys / 2;
        if (mixer->chunk > 0 && mixer->chunk < seq) keys = mixer->chunk / 2.0;
        if (kind->cross) keys += (double)training->encoder_seq_len;
        attention += mixer_row(mixer->kind)->token_flops(mixer, keys);
        frozen += frozen_active_parameters(m, kind, tuning);
        if (fine_tuning_freezes(tuning))
            adapters += adapters_active_parameters(m, kind, &tuning->adapters);
        if (kind->cross) cross += model_mixer_parameters(m, mixer);
        matrices += model_mixer_parameters(m, mixer);
        matrices += ffn_active_parameters(m, &kind->ffn);
    }
    double hidden = m->hidden_size;
    matrices += m->num_mtp_layers * (m->vocab_size * hidden + 2 * hidden * hidden);
    double flops = tokens * (6 * matrices + 3 * attention);
    if (tuning->frozen)
        flops -= 2 * tokens * frozen;
    else if (fine_tuning_freezes(tuning))
        flops = tokens * (4 * matrices + 6 * adapters + 3 * attention);
    if (m->num_front_layers == 0) return flops;
    // Half of a cross attention's matrices read the decoder's tokens, half the encoder's.
    flops += 3 * cross * (seq + (double)training->encoder_seq_len) * (double)training->global_batch;
    // Of a frozen front there is the forward alone.
    const double passes = tuning->frozen & FROZEN_FRONT ? 1.0 / 3 : 1;
    return flops + passes * front_model_flops(scenario) * (double)training->global_batch;
}

// Whether a strategy of a list has layers of a kind.
static bool list_has(const Model *model, const LayerPlans *layers, int kind, int strategy) {
    for (int l = 0; l < layers->num_layers; l++)
        if (layers->strategy[l] == strategy && model->layer_kind[l] == kind) return true;
    return false;
}

// The blocks of all kinds of layers with each strategy that they may have.
static void layer_blocks_build(const Scenario *scenario, const Plan *plan, Arena *arena,
                               Block *blocks) {
    const Model *m = &scenario->model;
    for (int s = 0; s < plan_num_strategies(plan); s++) {
        const Strategy strategy = plan_strategy(plan, s);
        for (int k = 0; k < m->num_kinds; k++)
            if (s == PLAN_OWN || !plan->layers || list_has(m, plan->layers, k, s))
                blocks[layer_block_index(k, s)] =
                    layer_block(scenario, plan, &m->kinds[k], &strategy, arena);
    }
    change_blocks_build(scenario, plan, arena, blocks);
}

static void blocks_build(const Scenario *scenario, const Plan *plan, Arena *arena, Block *blocks) {
    blocks[BLOCK_EMBEDDING] = embedding_block(scenario, plan, arena);
    blocks[BLOCK_HEAD] = head_block(scenario, plan, arena);
    if (scenario->model.num_mtp_layers) blocks[BLOCK_MTP] = mtp_block(scenario, plan, arena);
    layer_blocks_build(scenario, plan, arena, blocks);
    if (!plan->vocab_barriers) return;
    blocks[BLOCK_VOCAB_INPUT] = vocab_input_block(scenario, plan, arena);
    blocks[BLOCK_VOCAB_OUTPUT] = vocab_output_block(scenario, plan, arena);
}

double workload_message_bytes(const Scenario *scenario, const Plan *plan) {
    const bool scattered =
        scenario->execution.stack.communication.p2p_scatter_gather && !plan->sequence_parallel;
    return layout_boundary_bytes(scenario, plan) / (scattered ? plan->tp : 1);
}

Workload workload_build(const Scenario *scenario, const Plan *plan, Arena *arena) {
    Workload w = {.num_blocks = chunk_num_blocks(plan),
                  .first_change = chunk_first_change(plan),
                  .num_chunks = plan_all_chunks(plan)};
    Block *blocks = ARENA_ARRAY(arena, w.num_blocks, Block);
    blocks_build(scenario, plan, arena, blocks);
    w.blocks = blocks;
    w.tokens_per_microbatch =
        (double)plan->micro_batch * (double)scenario->training.seq_len / plan->cp;
    w.boundary_bytes = layout_boundary_bytes(scenario, plan);
    w.message_bytes = workload_message_bytes(scenario, plan);
    w.chunks = chunks_build(scenario, plan, &w, arena);
    w.model_flops = workload_model_flops(scenario);
    return w;
}

Workload workload_build_like(const Scenario *scenario, const Plan *plan, const Workload *like,
                             Arena *arena) {
    Workload w = *like;
    w.num_chunks = plan_all_chunks(plan);
    w.chunks = chunks_build(scenario, plan, &w, arena);
    return w;
}

Workload workload_rank_like(const Scenario *scenario, const Plan *plan, const Workload *like,
                            int rank, Arena *arena) {
    Workload w = *like;
    w.num_chunks = plan_all_chunks(plan);
    w.chunks = chunks_build_rank(scenario, plan, &w, rank, arena);
    return w;
}

Workload workload_layers_floor(const Scenario *scenario, const Plan *plan, const Workload *like,
                               Arena *arena) {
    Workload w = *like;
    w.chunks = chunks_floor(scenario, plan, like, arena);
    return w;
}

bool workload_layers_hold_less(const Scenario *scenario, const Workload *workload) {
    for (int k = 0; k < scenario->model.num_kinds; k++) {
        const Block *all = workload_layer_block(workload, k, PLAN_KEPT);
        const Block *some = workload_layer_block(workload, k, PLAN_OWN);
        if (some->saved_bytes > all->saved_bytes || some->deferred_bytes > all->deferred_bytes ||
            some->forward_peak_bytes > all->forward_peak_bytes)
            return false;
    }
    return true;
}

bool plans_share_blocks(const Plan *a, const Plan *b) {
    const int zero_a = a->zero_stage < 2 ? 0 : a->zero_stage;
    const int zero_b = b->zero_stage < 2 ? 0 : b->zero_stage;
    const bool same_shards = zero_a == 0 || a->zero_group == b->zero_group;
    const bool same_layers = (a->recompute_layers < 0) == (b->recompute_layers < 0);
    const bool same_scatters = plan_scatters_gradients(a) == plan_scatters_gradients(b);
    return zero_a == zero_b && same_scatters && same_shards && same_layers && a->tp == b->tp &&
           a->pp == b->pp && a->dp == b->dp && a->cp == b->cp && a->ep == b->ep &&
           a->etp == b->etp && a->micro_batch == b->micro_batch &&
           a->sequence_parallel == b->sequence_parallel &&
           a->reshard_after_forward == b->reshard_after_forward && a->recompute == b->recompute &&
           a->recompute_modules == b->recompute_modules && a->cp_method == b->cp_method &&
           a->layers == b->layers && a->vocab_barriers == b->vocab_barriers &&
           plan_is_dual(a) == plan_is_dual(b) && plan_joins_ends(a) == plan_joins_ends(b) &&
           workload_table_stays(a) == workload_table_stays(b) && a->order == b->order;
}
