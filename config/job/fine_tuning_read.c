// Which weights a job trains: the keys of its training object, and whether the model has what they
// name.
#include "config/job/fine_tuning.h"
#include "config/model/model_front.h"

#include <math.h>
#include <string.h>

static const unsigned ALL_TARGETS = (1U << NUM_TARGETS) - 1;
static const char ALL_LINEAR[] = "all-linear";

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

static Status frozen_read(const JsonNode *node, unsigned *frozen) {
    TRY(json_expect_array(node));
    if (json_size(node) == 0) return json_error(node, "is empty; expected names of parts");
    for (int i = 0; i < json_size(node); i++) {
        const JsonNode item = json_at(node, i);
        int index;
        TRY(json_read_name(&item, FROZEN_NAMES, &index));
        *frozen |= FROZEN_NAMES[index + 1] ? 1U << index : (unsigned)FROZEN_FRONT;
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

// Frozen weights stay as the stack has them beside adapters. It is the same software that can.
static Status parts_read(const JsonNode *frozen, const JsonNode *adapters,
                         const Execution *execution, Arena *arena, FineTuning *out) {
    const StackAdapters *stack = &execution->stack.adapters;
    if (json_is_present(adapters))
        return json_error(frozen, "beside adapters, with which nothing else is trained anyway");
    if (!stack->kinds[ADAPTER_LORA])
        return json_error(frozen, "the stack %s freezes no parts; those that do: %s",
                          execution->stack.name, capable_stacks(arena));
    out->adapters.base_dtype = stack->base_dtype;
    return frozen_read(frozen, &out->frozen);
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
    const JsonNode node = json_get(training, "adapters"), frozen = json_get(training, "frozen");
    if (json_is_present(&frozen)) TRY(parts_read(&frozen, &node, execution, arena, out));
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

// Parts that the model has.
static unsigned model_parts(const Model *model) {
    unsigned parts = FROZEN_EMBEDDING | FROZEN_NORMS;
    if (!model->tie_word_embeddings) parts |= FROZEN_HEAD;
    if (model->num_front_layers > 0) parts |= FROZEN_FRONT;
    for (int k = 0; k < model->num_kinds; k++) {
        const LayerKind *kind = &model->kinds[k];
        if (kind->front) continue;
        if (kind->mixer.kind != MIXER_NONE) parts |= FROZEN_MIXER;
        if (kind->ffn.none) continue;
        if (!kind_is_moe(kind) || kind->ffn.shared_intermediate_size > 0) parts |= FROZEN_MLP;
        if (kind_is_moe(kind)) parts |= FROZEN_ROUTER | FROZEN_EXPERTS;
    }
    return parts;
}

static const char *part_list(const Model *model, unsigned parts, Arena *arena) {
    const char *list = "";
    for (int i = 0; FROZEN_NAMES[i + 1]; i++) {
        const bool encoder =
            1U << i == FROZEN_FRONT && model->front && model->front->kind == FRONT_ENCODER;
        if (parts & 1U << i)
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "",
                                FROZEN_NAMES[encoder ? i + 1 : i]);
    }
    return list;
}

static Status parts_check(const JsonNode *training, const Model *model, unsigned frozen,
                          Arena *arena) {
    const JsonNode node = json_get(training, "frozen");
    const unsigned there = model_parts(model), missing = frozen & ~there;
    if (missing & FROZEN_HEAD)
        return json_error(&node, "the head of %s is its embedding: freeze that", model->name);
    if (missing)
        return json_error(&node, "%s has no %s; there are %s", model->name,
                          part_list(model, missing, arena), part_list(model, there, arena));
    if (frozen == there) return json_error(&node, "nothing is left to train");
    if (model->num_mtp_layers > 0)
        return json_error(&node,
                          "parts of a model with %d multi-token-prediction layers are legal, "
                          "but not supported yet: leave those out of the model",
                          model->num_mtp_layers);
    return status_ok();
}

Status fine_tuning_check(const JsonNode *training, const Model *model, const Execution *execution,
                         const FineTuning *tuning, Arena *arena) {
    if (tuning->frozen) return parts_check(training, model, tuning->frozen, arena);
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
