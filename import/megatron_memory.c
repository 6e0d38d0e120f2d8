// What is sharded, and what is computed again.
#include "import/megatron.h"

#include <string.h>

static Status fsdp_read(MegatronRead *read, int *stage) {
    static const char *const strategies[] = {"no_shard", "optim", "optim_grads",
                                             "optim_grads_params", NULL};
    static const char *const ignored[] = {"--init-model-with-meta-device", NULL};
    const char *strategy;
    TRY(args_text(&read->args, "--data-parallel-sharding-strategy", "no_shard", &strategy));
    args_use(&read->args, ignored);
    for (*stage = 0; strategies[*stage]; ++*stage)
        if (strcmp(strategies[*stage], strategy) == 0) return status_ok();
    return import_refuse(read->args.out, "--data-parallel-sharding-strategy",
                         "\"%.40s\" is unknown; expected no_shard, optim, optim_grads or "
                         "optim_grads_params",
                         strategy);
}

static Status sharding_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    int stage = args_has(args, "--use-distributed-optimizer") ? 1 : 0, copies;
    bool fsdp = args_has(args, "--use-megatron-fsdp"), old = args_has(args, "--use-custom-fsdp");
    if (fsdp || old) TRY(fsdp_read(read, &stage));
    TRY(args_int(args, "--num-distributed-optimizer-instances", 1, 1, &copies));
    cJSON_AddNumberToObject(read->parallel, "zero_stage", stage);
    int ranks = read->dp * read->cp;
    if (copies > 1 && (stage == 0 || ranks % copies != 0))
        return import_refuse(args->out, "--num-distributed-optimizer-instances",
                             "%d copies over %d data- and context-parallel ranks are not possible",
                             copies, ranks);
    if (copies > 1) cJSON_AddNumberToObject(read->parallel, "zero_group", ranks / copies);
    if (args_has(args, "--no-gradient-accumulation-fusion") && stage < 2)
        import_note(args->out, "--no-gradient-accumulation-fusion is priced as fused.");
    return status_ok();
}

static Status full_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *method;
    int num;
    TRY(args_text(args, "--recompute-method", "uniform", &method));
    TRY(args_int(args, "--recompute-num-layers", 1, 1, &num));
    bool block = strcmp(method, "block") == 0;
    const cJSON *vpp = cJSON_GetObjectItemCaseSensitive(read->parallel, "vpp");
    if (!block && strcmp(method, "uniform") != 0)
        return import_refuse(args->out, "--recompute-method",
                             "\"%.40s\" is unknown; expected uniform or block", method);
    if (block && vpp)
        return import_refuse(args->out, "--recompute-method",
                             "block in each of several chunks is not supported yet; expected "
                             "uniform, or one chunk a rank");
    if (!block && num > 1)
        import_note(args->out, "--recompute-num-layers %d is priced as 1: every layer by itself.",
                    num);
    if (block) cJSON_AddNumberToObject(read->parallel, "recompute_layers", num);
    return status_ok();
}

// "core_attn mlp" as a list.
static Status modules_read(MegatronRead *read) {
    const char *text;
    TRY(args_text(&read->args, "--recompute-modules", "core_attn", &text));
    cJSON *list = cJSON_AddArrayToObject(read->parallel, "recompute_modules");
    char *rest = arena_strdup(read->args.out->arena, text);
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (word[0]) cJSON_AddItemToArray(list, cJSON_CreateString(word));
    return status_ok();
}

static Status recompute_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *granularity;
    const char *without = args_has(args, "--recompute-activations") ? "selective" : NULL;
    TRY(args_text(args, "--recompute-granularity", without, &granularity));
    cJSON_AddStringToObject(read->parallel, "recompute", granularity ? granularity : "none");
    if (!granularity) return status_ok();
    if (args_has(args, "--distribute-saved-activations"))
        import_note(args->out, "--distribute-saved-activations is left out.");
    if (strcmp(granularity, "full") == 0) return full_read(read);
    if (strcmp(granularity, "selective") == 0) return modules_read(read);
    return import_refuse(args->out, "--recompute-granularity",
                         "\"%.40s\" is unknown; expected full or selective", granularity);
}

Status megatron_read_memory(MegatronRead *read) {
    TRY(sharding_read(read));
    return recompute_read(read);
}
