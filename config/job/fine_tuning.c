#include "config/job/fine_tuning.h"

#include <math.h>
#include <string.h>

const char *const TARGET_NAMES[] = {
    "q_proj",    "k_proj",    "v_proj",   "o_proj",   "gate_proj",
    "up_proj",   "down_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
    "kv_b_proj", "in_proj",   "out_proj", NULL};

const char *const FROZEN_NAMES[] = {"embedding", "head",  "mixer",  "mlp",     "router",
                                    "experts",   "norms", "vision", "encoder", NULL};

bool fine_tuning_freezes(const FineTuning *tuning) {
    return tuning->adapters.kind != ADAPTER_NONE || tuning->frozen != 0;
}

bool fine_tuning_freezes_part(const FineTuning *tuning, unsigned part) {
    return tuning->adapters.kind != ADAPTER_NONE || (tuning->frozen & part) != 0;
}

// --- What matrices there are

static TargetMatrix one(double n, double k) {
    return (TargetMatrix){n, k, 1};
}

static bool is_stateful(const Mixer *mixer) {
    return mixer->kind == MIXER_MAMBA2 || mixer->kind == MIXER_GATED_DELTA;
}

static int latent_matrices(const Model *model, const Mixer *m, AdapterTarget target,
                           TargetMatrix *out) {
    const double hidden = model->hidden_size, heads = m->num_heads;
    const double query = heads * (m->qk_nope_head_dim + m->qk_rope_head_dim);
    const bool ranked = m->q_lora_rank > 0;
    switch (target) {
    case TARGET_Q_PROJ:
        *out = one(query, hidden);
        return !ranked;
    case TARGET_Q_A_PROJ:
        *out = one(m->q_lora_rank, hidden);
        return ranked;
    case TARGET_Q_B_PROJ:
        *out = one(query, m->q_lora_rank);
        return ranked;
    case TARGET_KV_A_PROJ:
        *out = one(m->kv_lora_rank + m->qk_rope_head_dim, hidden);
        return 1;
    case TARGET_KV_B_PROJ: // of an indexer's attention two, before and behind it
        if (m->kind == MIXER_SPARSE_LATENT_ATTENTION) return 0;
        *out = one(heads * (m->qk_nope_head_dim + m->v_head_dim), m->kv_lora_rank);
        return 1;
    case TARGET_O_PROJ:
        *out = one(hidden, heads * m->v_head_dim);
        return 1;
    default:
        return 0;
    }
}

static int attention_matrices(const Model *model, const Mixer *m, AdapterTarget target,
                              TargetMatrix *out) {
    const double hidden = model->hidden_size, query = (double)m->num_heads * m->head_dim;
    const double gates = m->output_gate == GATE_HEADS     ? m->num_heads
                         : m->output_gate == GATE_RESULTS ? query
                                                          : 0;
    switch (target) {
    case TARGET_Q_PROJ:
        *out = one(query + gates, hidden);
        return 1;
    case TARGET_K_PROJ:
    case TARGET_V_PROJ:
        *out = one((double)m->num_kv_heads * m->head_dim, hidden);
        return 1;
    case TARGET_O_PROJ:
        *out = one(hidden, query);
        return 1;
    default:
        return 0;
    }
}

// Of the first product of a mixer with a state, which makes all that it works on.
static double state_inputs(const Mixer *m) {
    const double keys = (double)m->num_kv_heads * m->head_dim;
    const double values = (double)m->num_heads * m->v_head_dim;
    return 2 * keys + 2 * values + m->num_heads;
}

static int state_matrices(const Model *model, const Mixer *m, AdapterTarget target,
                          TargetMatrix *out) {
    const double hidden = model->hidden_size, values = (double)m->num_heads * m->v_head_dim;
    if (target == TARGET_OUT_PROJ) {
        *out = one(hidden, values);
        return 1;
    }
    *out = one(state_inputs(m), hidden);
    return target == TARGET_IN_PROJ && m->kind == MIXER_MAMBA2;
}

static int mlp_matrices(const Model *model, const FeedForward *ffn, AdapterTarget target,
                        TargetMatrix *out) {
    const double hidden = model->hidden_size;
    const bool down = target == TARGET_DOWN_PROJ, gate = target == TARGET_GATE_PROJ;
    if (!down && target != TARGET_UP_PROJ && !(gate && ffn->gated)) return 0;
    const double widths[2] = {ffn->num_experts > 0 ? ffn->moe_intermediate_size
                                                   : ffn->intermediate_size,
                              ffn->num_experts > 0 ? ffn->shared_intermediate_size : 0};
    int num = 0;
    for (int i = 0; i < 2 && widths[i] > 0; i++)
        out[num++] = (TargetMatrix){down ? hidden : widths[i], down ? widths[i] : hidden,
                                    i == 0 && ffn->num_experts > 0 ? ffn->num_experts : 1};
    return num;
}

int target_matrices(const Model *model, const LayerKind *kind, AdapterTarget target,
                    TargetMatrix matrices[TARGET_MATRICES]) {
    const Mixer *mixer = &kind->mixer;
    if (kind->front) return 0;
    if (target >= TARGET_GATE_PROJ && target <= TARGET_DOWN_PROJ)
        return kind->ffn.none ? 0 : mlp_matrices(model, &kind->ffn, target, matrices);
    if (mixer_is_latent(mixer)) return latent_matrices(model, mixer, target, matrices);
    if (mixer->kind == MIXER_ATTENTION) return attention_matrices(model, mixer, target, matrices);
    return is_stateful(mixer) ? state_matrices(model, mixer, target, matrices) : 0;
}

// Weights of the adapters of one layer: A of rank x k and B of n x rank; DoRA's magnitudes of n.
//   active  of those of routed experts, what a token is sent to
static double layer_adapters(const Model *model, const LayerKind *kind, const Adapters *adapters,
                             bool active) {
    double sum = 0;
    for (int t = 0; t < NUM_TARGETS; t++) {
        if (!(adapters->targets & 1U << t)) continue;
        TargetMatrix matrices[TARGET_MATRICES];
        const int num = target_matrices(model, kind, (AdapterTarget)t, matrices);
        for (int i = 0; i < num; i++)
            sum += (active ? fmin(matrices[i].copies, fmax(1, kind->ffn.num_experts_per_tok))
                           : matrices[i].copies) *
                   (adapters->rank * (matrices[i].n + matrices[i].k) +
                    (adapters->kind == ADAPTER_DORA ? matrices[i].n : 0));
    }
    return sum;
}

// Weights of a layer that are frozen.
//   active  of routed experts, what a token is sent to
static double layer_frozen(const Model *model, const LayerKind *kind, unsigned frozen,
                           bool active) {
    const FeedForward *ffn = &kind->ffn;
    if (kind->front) return frozen & FROZEN_FRONT ? model_layer_parameters(model, kind) : 0;
    double sum = 0;
    if (frozen & FROZEN_MIXER) {
        sum += model_mixer_parameters(model, &kind->mixer);
        if (kind->cross) sum += model_cross_parameters(model, &kind->mixer);
    }
    if (frozen & FROZEN_NORMS && !active) sum += model_kind_norm_parameters(model, kind);
    if (ffn->none) return sum;
    if (!kind_is_moe(kind))
        return frozen & FROZEN_MLP ? sum + model_mlp_parameters(model, ffn) : sum;
    if (frozen & FROZEN_MLP) sum += model_shared_expert_parameters(model, ffn);
    if (frozen & FROZEN_ROUTER) sum += model_router_parameters(model, ffn);
    if (frozen & FROZEN_EXPERTS)
        sum += (active ? ffn->num_experts_per_tok : ffn->num_experts) *
               model_expert_parameters(model, ffn);
    return sum;
}

double frozen_active_parameters(const Model *model, const LayerKind *kind,
                                const FineTuning *tuning) {
    return layer_frozen(model, kind, tuning->frozen, true);
}

static double parts_trained(const Model *model, unsigned frozen) {
    double sum = model_num_parameters(model);
    if (frozen & FROZEN_EMBEDDING) sum -= model_embedding_parameters(model);
    if (frozen & FROZEN_HEAD) sum -= model_head_parameters(model);
    if (frozen & FROZEN_FRONT && model->num_front_layers > 0) sum -= model_front_parameters(model);
    for (int l = 0; l < model->num_layers; l++)
        sum -= layer_frozen(model, &model->kinds[model->layer_kind[l]], frozen, false);
    return sum;
}

double fine_tuning_trained_parameters(const Model *model, const FineTuning *tuning) {
    if (!fine_tuning_freezes(tuning))
        return model_num_parameters(model) + model_mtp_parameters(model);
    if (tuning->frozen) return parts_trained(model, tuning->frozen);
    double sum = 0;
    for (int l = 0; l < model->num_layers; l++)
        sum += layer_adapters(model, &model->kinds[model->layer_kind[l]], &tuning->adapters, false);
    return sum;
}

double adapters_active_parameters(const Model *model, const LayerKind *kind,
                                  const Adapters *adapters) {
    return layer_adapters(model, kind, adapters, true);
}

double base_other_bytes(const FineTuning *tuning) {
    return tuning->adapters.base_dtype == BASE_FP32 ? 4 : 2;
}

double base_matrix_bytes(const FineTuning *tuning) {
    const Adapters *a = &tuning->adapters;
    if (a->base_dtype < BASE_NF4) return base_other_bytes(tuning);
    const double scale = a->double_quant ? 1 + 4.0 / 256 : 4;
    return 0.5 + scale / 64;
}
