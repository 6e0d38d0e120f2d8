// The experts: layers, routing, dispatch.
#include "import/megatron.h"

#include "config/model/model.h"
#include "import/layer_list.h"

#include <stdlib.h>
#include <string.h>

// Which layers have experts: a list, or every n-th.
static Status layers_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *text;
    TRY(args_text(args, "--moe-layer-freq", "1", &text));
    int *moe = ARENA_ARRAY(args->out->arena, MODEL_MAX_LAYERS, int), n = read->num_layers;
    char *end;
    long every = strtol(text, &end, 10);
    if (*end == '\0' && every >= 1) {
        for (int l = 0; l < n; l++) moe[l] = l % every == 0;
    } else if (number_list(text, MODEL_MAX_LAYERS, moe) != n) {
        return import_refuse(args->out, "--moe-layer-freq",
                             "\"%.60s\" is neither a number nor a list of %d entries", text, n);
    }
    cJSON *dense = cJSON_CreateArray();
    for (int l = 0; l < n; l++)
        if (!moe[l]) cJSON_AddItemToArray(dense, cJSON_CreateNumber(l));
    if (cJSON_GetArraySize(dense) > 0)
        cJSON_AddItemToObject(read->model, "mlp_only_layers", dense);
    else
        cJSON_Delete(dense);
    return status_ok();
}

static Status router_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *score;
    int topk, groups, chosen;
    double scale;
    TRY(args_int(args, "--moe-router-topk", 1, 2, &topk));
    TRY(args_text(args, "--moe-router-score-function", "softmax", &score));
    TRY(args_int(args, "--moe-router-num-groups", 1, 0, &groups));
    TRY(args_int(args, "--moe-router-group-topk", 1, groups, &chosen));
    TRY(args_number(args, "--moe-router-topk-scaling-factor", 1, &scale));
    bool sigmoid = strcmp(score, "sigmoid") == 0;
    bool biased = args_has(args, "--moe-router-enable-expert-bias");
    bool before = args_has(args, "--moe-router-pre-softmax");
    if (!sigmoid && strcmp(score, "softmax") != 0)
        return import_refuse(args->out, "--moe-router-score-function",
                             "\"%.40s\" is unknown; expected softmax or sigmoid", score);
    cJSON_AddNumberToObject(read->model, "num_experts_per_tok", topk);
    if (groups > 0) {
        cJSON_AddNumberToObject(read->model, "n_group", groups);
        cJSON_AddNumberToObject(read->model, "topk_group", chosen);
    }
    cJSON_AddStringToObject(read->model, "scoring_func", score);
    cJSON_AddStringToObject(read->model, "topk_method", biased ? "noaux_tc" : "greedy");
    cJSON_AddBoolToObject(read->model, "norm_topk_prob", sigmoid || !before);
    cJSON_AddNumberToObject(read->model, "routed_scaling_factor", scale);
    if (sigmoid && scale == 1 && before)
        import_note(args->out, "--moe-router-pre-softmax is left out: sigmoid scores have none.");
    return status_ok();
}

static Status dispatcher_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *type, *backend;
    double capacity;
    TRY(args_text(args, "--moe-token-dispatcher-type", "allgather", &type));
    TRY(args_text(args, "--moe-flex-dispatcher-backend",
                  args_has(args, "--moe-enable-deepep") ? "deepep" : "none", &backend));
    TRY(args_number(args, "--moe-expert-capacity-factor", 0, &capacity));
    const char *name = type;
    if (strcmp(type, "flex") == 0) name = backend;
    if (strcmp(name, "alltoall") != 0 && strcmp(name, "allgather") != 0 &&
        strcmp(name, "deepep") != 0 && strcmp(name, "hybridep") != 0)
        return import_refuse(args->out, "--moe-token-dispatcher-type",
                             "\"%.40s\" is not supported yet; expected alltoall, allgather, or "
                             "flex with --moe-enable-deepep",
                             type);
    cJSON_AddStringToObject(read->training, "moe_dispatcher", name);
    if (capacity > 0) {
        cJSON_AddNumberToObject(read->training, "capacity_factor", capacity);
        if (!args_has(args, "--moe-pad-expert-input-to-capacity"))
            import_note(args->out, "--moe-expert-capacity-factor without "
                                   "--moe-pad-expert-input-to-capacity is priced as padded.");
    }
    cJSON_AddBoolToObject(read->training, "ep_overlap",
                          args_has(args, "--overlap-moe-expert-parallel-comm"));
    return status_ok();
}

// What is priced, and written by launch, whether the flag is there or not.
static Status kernels_note(FlagArgs *args) {
    const char *balancing;
    TRY(args_text(args, "--moe-router-load-balancing-type", "aux_loss", &balancing));
    if (strcmp(balancing, "aux_loss") != 0)
        import_note(args->out,
                    "--moe-router-load-balancing-type %.20s is priced, and written by "
                    "launch, as aux_loss.",
                    balancing);
    static const char *const flags[] = {"--moe-grouped-gemm", "--moe-permute-fusion", NULL};
    for (int i = 0; flags[i]; i++)
        if (!args_has(args, flags[i]))
            import_note(args->out, "%s is missing, and priced as if it were there.", flags[i]);
    return status_ok();
}

Status megatron_read_experts(MegatronRead *read) {
    FlagArgs *args = &read->args;
    int dense = cJSON_GetObjectItemCaseSensitive(read->model, "intermediate_size")->valueint;
    int size, shared;
    TRY(args_int(args, "--num-experts", 1, 0, &read->num_experts));
    if (read->num_experts == 0) return status_ok();
    TRY(args_int(args, "--moe-ffn-hidden-size", 1, dense, &size));
    TRY(args_int(args, "--moe-shared-expert-intermediate-size", 1, 0, &shared));
    if (args_has(args, "--moe-shared-expert-gate"))
        return import_refuse(args->out, "--moe-shared-expert-gate", "not supported yet");
    cJSON_AddNumberToObject(read->model, "num_experts", read->num_experts);
    cJSON_AddNumberToObject(read->model, "moe_intermediate_size", size);
    if (shared > 0) cJSON_AddNumberToObject(read->model, "shared_expert_intermediate_size", shared);
    TRY(layers_read(read));
    TRY(router_read(read));
    TRY(dispatcher_read(read));
    return kernels_note(args);
}
