// Batch, precision, optimizer, overlap, kernels.
#include "import/megatron.h"

#include <string.h>

static Status batch_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    int micro = cJSON_GetObjectItemCaseSensitive(read->parallel, "micro_batch")->valueint;
    int sequence, global;
    TRY(args_int(args, "--seq-length", 1, 0, &sequence));
    if (sequence == 0) return import_refuse(args->out, "--seq-length", "missing");
    double one = (double)micro * read->dp; // arguments.py: one micro-batch of each replica
    TRY(args_int(args, "--global-batch-size", 1, one < 2e9 ? (int)one : 0, &global));
    cJSON_AddNumberToObject(read->training, "seq_len", sequence);
    cJSON_AddNumberToObject(read->training, "global_batch", global);
    if (args_has(args, "--rampup-batch-size"))
        import_note(args->out, "--rampup-batch-size: the whole batch of %d is priced.", global);
    return status_ok();
}

static Status fp8_read(MegatronRead *read, const char *format) {
    static const struct {
        const char *recipe, *format, *precision, *ours;
    } RECIPES[] = {{"delayed", "hybrid", "fp8", "delayed"},
                   {"tensorwise", "hybrid", "fp8", "tensorwise"},
                   {"blockwise", "e4m3", "fp8", "block"},
                   {"mxfp8", "e4m3", "mxfp8", "mxfp8"},
                   {0}};
    FlagArgs *args = &read->args;
    const char *recipe;
    TRY(args_text(args, "--fp8-recipe", "delayed", &recipe));
    for (int i = 0; RECIPES[i].recipe; i++) {
        if (strcmp(RECIPES[i].recipe, recipe) != 0) continue;
        cJSON_AddStringToObject(read->training, "precision", RECIPES[i].precision);
        cJSON_AddStringToObject(read->training, "fp8_recipe", RECIPES[i].ours);
        if (strcmp(RECIPES[i].format, format) != 0)
            import_note(args->out, "--fp8-format %.20s with recipe %s is priced as %s.", format,
                        recipe, RECIPES[i].format);
        if (args_has(args, "--fp8-param-gather"))
            import_note(args->out, "--fp8-param-gather is left out: weights are gathered in bf16.");
        return status_ok();
    }
    return import_refuse(args->out, "--fp8-recipe",
                         "\"%.40s\" is unknown; expected delayed, tensorwise, blockwise or mxfp8",
                         recipe);
}

static Status precision_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *fp8, *fp4;
    TRY(args_text(args, "--fp8-format", args_has(args, "--fp8-hybrid") ? "hybrid" : NULL, &fp8));
    TRY(args_text(args, "--fp4-format", NULL, &fp4));
    bool half = args_has(args, "--fp16"), bf16 = args_has(args, "--bf16");
    bool narrow = args_has(args, "--grad-reduce-in-bf16");
    bool wide = args_has(args, "--accumulate-allreduce-grads-in-fp32");
    static const char *const ignored[] = {"--fp4-recipe", NULL};
    args_use(args, ignored);
    if (half && !wide && !narrow)
        import_note(args->out, "Gradients of fp16 are priced as reduced in fp32.");
    cJSON_AddStringToObject(read->training, "grad_reduce_dtype", narrow ? "bf16" : "fp32");
    if (fp4) {
        cJSON_AddStringToObject(read->training, "precision", "nvfp4");
        return status_ok();
    }
    if (fp8) return fp8_read(read, fp8);
    cJSON_AddStringToObject(read->training, "precision", half ? "fp16" : bf16 ? "bf16" : "fp32");
    return status_ok();
}

static Status optimizer_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *name, *first, *second;
    TRY(args_text(args, "--optimizer", "adam", &name));
    TRY(args_text(args, "--exp-avg-dtype", "fp32", &first));
    TRY(args_text(args, "--exp-avg-sq-dtype", "fp32", &second));
    bool aware = args_has(args, "--use-precision-aware-optimizer");
    static const char *const ignored[] = {"--main-grads-dtype", "--main-params-dtype", NULL};
    args_use(args, ignored);
    cJSON_AddStringToObject(read->training, "optimizer", name);
    if (!aware || (strcmp(first, "fp32") == 0 && strcmp(second, "fp32") == 0)) return status_ok();
    if (strcmp(first, "bf16") != 0 || strcmp(second, "bf16") != 0)
        return import_refuse(args->out, "--exp-avg-dtype",
                             "moments in %.20s and %.20s are not supported yet; expected bf16 or "
                             "fp32 of both",
                             first, second);
    cJSON_AddStringToObject(read->training, "optimizer_dtype", "bf16");
    return status_ok();
}

// Captured modules as Megatron's releases write them ("attn moe_router", "attn,moe_router"; none,
// or "full": whole layers) as a value of cuda_graphs.
//   returns  NULL where no value has them
static const char *graphs_of_modules(const char *modules, Arena *arena) {
    static const char *const KNOWN[] = {"attn", "moe_router", "moe_preprocess"};
    char *rest = arena_strdup(arena, modules);
    char *graphs = arena_alloc(arena, strlen(modules) + 1), *end = graphs;
    for (char *word; (word = strsep(&rest, " ,")) != NULL;) {
        bool known = !word[0] || strcmp(modules, "full") == 0;
        for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
            known |= strcmp(word, KNOWN[i]) == 0;
        if (!known) return NULL;
        if (!word[0] || strcmp(modules, "full") == 0) continue;
        if (end > graphs) *end++ = ',';
        end = stpcpy(end, word);
    }
    return graphs[0] ? graphs : "layer";
}

// Megatron-LM main of 2026 has --cuda-graph-modules and an implementation full_iteration
// (megatron/core/transformer/cuda_graph_config.py), releases to core_v0.16 --cuda-graph-scope.
static Status graphs_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *kind, *scope, *modules;
    TRY(args_text(args, "--cuda-graph-impl",
                  args_has(args, "--enable-cuda-graph") ? "local" : "none", &kind));
    TRY(args_text(args, "--cuda-graph-scope", "full", &scope));
    TRY(args_text(args, "--cuda-graph-modules", scope, &modules));
    if (strcmp(kind, "none") == 0) return status_ok();
    const bool all = strcmp(kind, "full_iteration") == 0 ||
                     (strcmp(kind, "local") == 0 && strcmp(modules, "full_iteration") == 0);
    const char *graphs = all ? "full"
                         : strcmp(kind, "transformer_engine") == 0
                             ? graphs_of_modules(modules, args->out->arena)
                             : NULL;
    if (!graphs)
        return import_refuse(args->out,
                             modules == scope ? "--cuda-graph-scope" : "--cuda-graph-modules",
                             "%.40s of %.40s is not supported yet; expected full_iteration of "
                             "local, or full, attn, moe_router or moe_preprocess of "
                             "transformer_engine",
                             modules, kind);
    cJSON_AddStringToObject(read->training, "cuda_graphs", graphs);
    return status_ok();
}

static Status kernels_read_flags(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *backend, *fused;
    bool flash = args_has(args, "--use-flash-attn");
    TRY(args_text(args, "--attention-backend", flash ? "flash" : "auto", &backend));
    TRY(args_text(args, "--cross-entropy-fusion-impl", "native", &fused));
    bool unfused = strcmp(backend, "unfused") == 0 || strcmp(backend, "local") == 0;
    bool loss = args_has(args, "--cross-entropy-loss-fusion");
    cJSON_AddStringToObject(read->training, "attention", unfused ? "unfused" : "flash");
    cJSON_AddBoolToObject(read->training, "cross_entropy_fused", loss);
    if (!unfused && strcmp(backend, "flash") != 0)
        import_note(args->out, "--attention-backend %.20s is priced as flash.", backend);
    if (loss && strcmp(fused, "te") != 0)
        import_note(args->out, "--cross-entropy-fusion-impl %.20s is priced as te.", fused);
    return graphs_read(read);
}

static Status dropout_read(MegatronRead *read) {
    FlagArgs *args = &read->args;
    static const char *const flags[] = {"--attention-dropout", "--hidden-dropout", NULL};
    for (int i = 0; flags[i]; i++) {
        double share;
        TRY(args_number(args, flags[i], 0.1, &share));
        if (share > 0)
            import_note(args->out, "%s %g is left out: the planner prices no dropout.", flags[i],
                        share);
    }
    return status_ok();
}

Status megatron_read_training(MegatronRead *read) {
    FlagArgs *args = &read->args;
    TRY(batch_read(read));
    TRY(precision_read(read));
    TRY(optimizer_read(read));
    cJSON_AddStringToObject(read->training, "stack", "megatron-core");
    cJSON_AddBoolToObject(read->training, "overlap_grad_reduce",
                          args_has(args, "--overlap-grad-reduce"));
    cJSON_AddBoolToObject(read->training, "overlap_param_gather",
                          args_has(args, "--overlap-param-gather"));
    cJSON_AddBoolToObject(read->training, "tp_comm_overlap", args_has(args, "--tp-comm-overlap"));
    TRY(kernels_read_flags(read));
    return dropout_read(read);
}
