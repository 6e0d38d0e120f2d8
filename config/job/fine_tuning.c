#include "config/job/fine_tuning.h"

#include <math.h>
#include <string.h>

const char *const TARGET_NAMES[] = {
    "q_proj",    "k_proj",    "v_proj",   "o_proj",   "gate_proj",
    "up_proj",   "down_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
    "kv_b_proj", "in_proj",   "out_proj", NULL};

static const unsigned ALL_TARGETS = (1U << NUM_TARGETS) - 1;
static const char ALL_LINEAR[] = "all-linear";

bool fine_tuning_freezes(const FineTuning *tuning) {
    return tuning->adapters.kind != ADAPTER_NONE;
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
    case TARGET_KV_B_PROJ:
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
    if (mixer->kind == MIXER_LATENT_ATTENTION)
        return latent_matrices(model, mixer, target, matrices);
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

double fine_tuning_trained_parameters(const Model *model, const FineTuning *tuning) {
    if (!fine_tuning_freezes(tuning))
        return model_num_parameters(model) + model_mtp_parameters(model);
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

// --- Reading

static Status targets_read(const JsonNode *node, unsigned *targets) {
    if (cJSON_IsString(node->item) && strcmp(node->item->valuestring, ALL_LINEAR) == 0) {
        *targets = ALL_TARGETS; // those that the model has
        return status_ok();
    }
    TRY(json_expect_array(node));
    if (json_size(node) == 0) return json_error(node, "is empty; expected names or %s", ALL_LINEAR);
    for (int i = 0; i < json_size(node); i++) {
        const JsonNode item = json_at(node, i);
        int index;
        TRY(json_read_name(&item, TARGET_NAMES, &index));
        *targets |= 1U << index;
    }
    return status_ok();
}

// The stacks that have adapters, for a refusal.
static const char *capable_stacks(Arena *arena) {
    const char *list = "", *const * names;
    if (stack_names(arena, &names).code != STATUS_OK) return list;
    for (int i = 0; names[i]; i++) {
        Stack stack;
        if (stack_load_named(names[i], arena, &stack).code != STATUS_OK) continue;
        if (stack.adapters.kinds[ADAPTER_LORA])
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", names[i]);
    }
    return list;
}

static Status kind_check(const JsonNode *adapters, const Stack *stack, int kind, Arena *arena) {
    if (!stack->adapters.kinds[ADAPTER_LORA])
        return json_error(adapters, "the stack %s trains no adapters; those that do: %s",
                          stack->name, capable_stacks(arena));
    const JsonNode node = json_get(adapters, "kind");
    if (stack->adapters.kinds[kind]) return status_ok();
    return json_error(&node, "the stack %s has no %s; expected lora", stack->name,
                      ADAPTER_NAMES[kind - ADAPTER_LORA]);
}

static Status base_read(const JsonNode *adapters, const Stack *stack, Arena *arena, Adapters *out) {
    out->base_dtype = stack->adapters.base_dtype;
    const JsonNode node = json_get(adapters, "base_dtype");
    if (json_is_present(&node)) TRY(json_read_name(&node, BASE_DTYPE_NAMES, &out->base_dtype));
    const char *list = "";
    for (int i = 0; i < NUM_BASE_DTYPES; i++)
        if (stack->adapters.base_dtypes[i])
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", BASE_DTYPE_NAMES[i]);
    if (!stack->adapters.base_dtypes[out->base_dtype])
        return json_error(&node, "the stack %s has no frozen base in %s; expected one of %s",
                          stack->name, BASE_DTYPE_NAMES[out->base_dtype], list);
    const JsonNode quant = json_get(adapters, "double_quant");
    if (json_is_present(&quant) && out->base_dtype < BASE_NF4)
        return json_error(&quant, "says how a base in nf4 or fp4 is stored, and this one is %s",
                          BASE_DTYPE_NAMES[out->base_dtype]);
    return status_ok();
}

Status fine_tuning_read(const JsonNode *training, const Execution *execution, Arena *arena,
                        FineTuning *out) {
    static const JsonField FIELDS[] = {
        {"kind", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
        {"rank", JSON_FIELD_INT, offsetof(Adapters, rank), 1, 1e6, NULL, true},
        {"targets", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
        {"base_dtype", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
        {"double_quant", JSON_FIELD_BOOL, offsetof(Adapters, double_quant), 0, 0, NULL, false},
        {"dropout", JSON_FIELD_DOUBLE, offsetof(Adapters, dropout), 0, 0.999, NULL, false},
    };
    *out = (FineTuning){.adapters.double_quant = true};
    const JsonNode node = json_get(training, "adapters");
    if (!json_is_present(&node)) return status_ok();
    Adapters *a = &out->adapters;
    TRY(json_read_object(&node, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, a));
    const JsonNode kind = json_get(&node, "kind"), targets = json_get(&node, "targets");
    int index;
    TRY(json_read_name(&kind, ADAPTER_NAMES, &index));
    a->kind = ADAPTER_LORA + index;
    TRY(kind_check(&node, &execution->stack, a->kind, arena));
    TRY(targets_read(&targets, &a->targets));
    return base_read(&node, &execution->stack, arena, a);
}

// --- Checking against the model

static unsigned model_targets(const Model *model) {
    unsigned targets = 0;
    TargetMatrix matrices[TARGET_MATRICES];
    for (int k = 0; k < model->num_kinds; k++)
        for (int t = 0; t < NUM_TARGETS; t++)
            if (target_matrices(model, &model->kinds[k], (AdapterTarget)t, matrices) > 0)
                targets |= 1U << t;
    return targets;
}

static const char *target_list(unsigned targets, Arena *arena) {
    const char *list = "";
    for (int t = 0; t < NUM_TARGETS; t++)
        if (targets & 1U << t)
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", TARGET_NAMES[t]);
    return list;
}

static Status rank_check(const JsonNode *adapters, const Model *model, const Adapters *a) {
    const JsonNode node = json_get(adapters, "rank");
    TargetMatrix matrices[TARGET_MATRICES];
    for (int k = 0; k < model->num_kinds; k++)
        for (int t = 0; t < NUM_TARGETS; t++) {
            if (!(a->targets & 1U << t)) continue;
            const int num = target_matrices(model, &model->kinds[k], (AdapterTarget)t, matrices);
            for (int i = 0; i < num; i++)
                if (a->rank > fmin(matrices[i].n, matrices[i].k))
                    return json_error(&node, "%d is beyond the width of %s, %.0f x %.0f", a->rank,
                                      TARGET_NAMES[t], matrices[i].n, matrices[i].k);
        }
    return status_ok();
}

// What is legal, but not priced yet.
static Status beside_check(const JsonNode *adapters, const Model *model, const Execution *execution,
                           const Adapters *a) {
    const JsonNode dropout = json_get(adapters, "dropout");
    const JsonNode base = json_get(adapters, "base_dtype");
    if (execution->precision >= PRECISION_FP8 && a->base_dtype >= BASE_NF4)
        return json_error(&base, "%s is multiplied in 16 bits, and precision is %s",
                          BASE_DTYPE_NAMES[a->base_dtype], PRECISION_NAMES[execution->precision]);
    if (model->num_front_layers > 0)
        return json_error(adapters, "of a model with an encoder or a tower for images are legal, "
                                    "but not supported yet");
    if (model->num_mtp_layers > 0)
        return json_error(adapters,
                          "of a model with %d multi-token-prediction layers are legal, "
                          "but not supported yet: leave those out of the model",
                          model->num_mtp_layers);
    if (a->kind == ADAPTER_DORA && a->dropout > 0)
        return json_error(&dropout, "beside dora is legal, but not supported yet");
    return status_ok();
}

Status fine_tuning_check(const JsonNode *training, const Model *model, const Execution *execution,
                         const FineTuning *tuning, Arena *arena) {
    if (!fine_tuning_freezes(tuning)) return status_ok();
    const Adapters *a = &tuning->adapters;
    const JsonNode adapters = json_get(training, "adapters");
    const JsonNode targets = json_get(&adapters, "targets");
    const unsigned there = model_targets(model), missing = a->targets & ~there;
    if (missing && a->targets != ALL_TARGETS)
        return json_error(&targets, "no layer of %s has %s; there are %s", model->name,
                          target_list(missing, arena), target_list(there, arena));
    TRY(rank_check(&adapters, model, a));
    return beside_check(&adapters, model, execution, a);
}
