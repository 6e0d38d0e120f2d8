#include "launch/megatron_kept.h"

#include "base/json.h"
#include "base/quantity.h"

#include <string.h>

const KeptFlag MEGATRON_KEPT[] = {
    {"--attention-backend", "flash|fused|unfused|local|auto"},
    {"--attention-dropout", "0"},
    {"--hidden-dropout", "0"},
    {"--apply-layernorm-1p", NULL},
    {"--cross-entropy-fusion-impl", "te|native"},
    {"--fp8-param-gather", NULL},
    {"--accumulate-allreduce-grads-in-fp32", NULL},
    {"--no-gradient-accumulation-fusion", NULL},
    {"--moe-grouped-gemm", NULL},
    {"--moe-permute-fusion", NULL},
    {"--moe-router-load-balancing-type", "aux_loss|seq_aux_loss|global_aux_loss|sinkhorn|none"},
    {0},
};

static int flag_index(const FlagList *list, const char *flag) {
    for (int i = 0; i < list->num_flags; i++)
        if (strcmp(list->flags[i].row->flag, flag) == 0) return i;
    return -1;
}

// Where a flag of this group ends up: behind the last of its group.
static int group_end(const FlagList *list, const char *group) {
    int end = list->num_flags;
    for (int i = 0; i < list->num_flags; i++)
        if (strcmp(list->flags[i].row->group, group) == 0) end = i + 1;
    return end;
}

static void flag_remove(FlagList *list, int index) {
    for (int i = index + 1; i < list->num_flags; i++) list->flags[i - 1] = list->flags[i];
    list->num_flags--;
}

// Moves the last flag, which was added just now, to its group.
static void flag_sort_in(FlagList *list) {
    Flag added = list->flags[--list->num_flags];
    int index = group_end(list, added.row->group);
    for (int i = list->num_flags++; i > index; i--) list->flags[i] = list->flags[i - 1];
    list->flags[index] = added;
}

static bool value_is_legal(const KeptFlag *kept, const cJSON *value) {
    if (cJSON_IsFalse(value)) return true;
    if (!kept->legal) return cJSON_IsTrue(value);
    if (!cJSON_IsString(value)) return false;
    const char *text = value->valuestring;
    if (strcmp(kept->legal, "0") == 0) {
        char *end;
        double number = decimal_read(text, &end);
        const bool plain = strspn(text, "+-.0123456789eE") == strlen(text);
        return plain && end != text && *end == '\0' && number >= 0 && number < 1;
    }
    const char *at = strstr(kept->legal, text);
    size_t length = strlen(text);
    return length > 0 && at && (at == kept->legal || at[-1] == '|') &&
           (at[length] == '\0' || at[length] == '|');
}

static const char *legal_text(const KeptFlag *kept) {
    if (!kept->legal) return "true or false";
    return strcmp(kept->legal, "0") == 0 ? "a number from 0 to less than 1" : kept->legal;
}

// Whether the plan as it is now still lets the flag be as it was.
static bool flag_applies(const Scenario *scenario, const Plan *plan, const FlagList *list,
                         const char *flag, const cJSON *value) {
    const Execution *execution = &scenario->execution;
    if (strcmp(flag, "--attention-backend") == 0) {
        const char *text = cJSON_IsString(value) ? value->valuestring : "auto";
        bool unfused = strcmp(text, "unfused") == 0 || strcmp(text, "local") == 0;
        return unfused == (execution->attention == ATTENTION_UNFUSED);
    }
    if (strcmp(flag, "--cross-entropy-fusion-impl") == 0) return execution->cross_entropy_fused;
    if (strcmp(flag, "--fp8-param-gather") == 0)
        return flag_index(list, "--fp8-format") >= 0 && plan->zero_stage > 0;
    if (strcmp(flag, "--accumulate-allreduce-grads-in-fp32") == 0)
        return execution->precision == PRECISION_FP16;
    if (strcmp(flag, "--no-gradient-accumulation-fusion") == 0) return plan->zero_stage < 2;
    if (strncmp(flag, "--moe-", 6) == 0) return model_is_moe(&scenario->model);
    return true;
}

static void flag_keep(FlagList *list, const char *flag, const cJSON *value) {
    int index = flag_index(list, flag);
    if (index >= 0) flag_remove(list, index);
    if (cJSON_IsFalse(value)) return;
    if (cJSON_IsTrue(value))
        flag_switch(list, flag);
    else
        flag_text(list, flag, value->valuestring);
    flag_sort_in(list);
}

Status megatron_keep_flags(const Scenario *scenario, const Plan *plan, MegatronCommand *command) {
    const cJSON *origin = cJSON_GetObjectItemCaseSensitive(scenario->document, "provenance");
    const cJSON *imported = cJSON_GetObjectItemCaseSensitive(origin, "imported");
    const cJSON *flags = cJSON_GetObjectItemCaseSensitive(imported, "megatron");
    Arena *arena = command->flags.arena;
    const char *names = "";
    for (const KeptFlag *kept = MEGATRON_KEPT; kept->flag; kept++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(flags, kept->flag);
        if (!value) continue;
        if (!value_is_legal(kept, value))
            return status_at(STATUS_INVALID, scenario->file,
                             arena_printf(arena, "provenance.imported.megatron.%s", kept->flag),
                             "expected %s", legal_text(kept));
        if (!flag_applies(scenario, plan, &command->flags, kept->flag, value)) continue;
        flag_keep(&command->flags, kept->flag, value);
        names = arena_printf(arena, "%s%s%s", names, names[0] ? ", " : "", kept->flag);
    }
    if (names[0] && command->num_notes < MEGATRON_MAX_NOTES)
        command->notes[command->num_notes++] = arena_printf(
            arena, "As the imported command had them, which the plan does not price: %s.", names);
    return status_ok();
}
