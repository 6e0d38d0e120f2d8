// Degrees, and how layers are laid over the pipeline.
#include "import/megatron.h"

#include "import/layer_list.h"

#include <string.h>

static Status context_read(MegatronRead *read) {
    static const char *const methods[][2] = {{"p2p", "ring"},
                                             {"a2a", "ulysses"},
                                             {"all_gather", "all-gather"},
                                             {"allgather", "all-gather"},
                                             {NULL, NULL}};
    FlagArgs *args = &read->args;
    const char *type;
    TRY(args_text(args, "--cp-comm-type", "p2p", &type));
    if (read->cp == 1) return status_ok();
    for (int i = 0; methods[i][0]; i++) {
        if (strcmp(methods[i][0], type) != 0) continue;
        cJSON_AddStringToObject(read->parallel, "cp_method", methods[i][1]);
        return status_ok();
    }
    return import_refuse(args->out, "--cp-comm-type",
                         "\"%.40s\" is not supported yet; expected p2p, a2a or all_gather", type);
}

Status megatron_read_degrees(MegatronRead *read) {
    FlagArgs *args = &read->args;
    cJSON *parallel = read->parallel;
    int ep, etp, micro_batch;
    TRY(args_int(args, "--tensor-model-parallel-size", 1, 1, &read->tp));
    TRY(args_int(args, "--pipeline-model-parallel-size", 1, 1, &read->pp));
    TRY(args_int(args, "--context-parallel-size", 1, 1, &read->cp));
    TRY(args_int(args, "--expert-model-parallel-size", 1, 1, &ep));
    TRY(args_int(args, "--expert-tensor-parallel-size", 1, read->tp, &etp));
    TRY(args_int(args, "--micro-batch-size", 1, 0, &micro_batch));
    if (micro_batch == 0) return import_refuse(args->out, "--micro-batch-size", "missing");
    double ranks = (double)read->tp * read->pp * read->cp;
    if (ranks > read->num_gpus || read->num_gpus % (int)ranks != 0)
        return import_refuse(args->out, "--tensor-model-parallel-size",
                             "tp %d x pp %d x cp %d does not divide the %d GPUs of --cluster",
                             read->tp, read->pp, read->cp, read->num_gpus);
    read->dp = read->num_gpus / (int)ranks;
    cJSON_AddNumberToObject(parallel, "tp", read->tp);
    cJSON_AddNumberToObject(parallel, "pp", read->pp);
    cJSON_AddNumberToObject(parallel, "cp", read->cp);
    cJSON_AddNumberToObject(parallel, "dp", read->dp);
    if (read->num_experts > 0) {
        cJSON_AddNumberToObject(parallel, "ep", ep);
        cJSON_AddNumberToObject(parallel, "etp", etp);
    }
    cJSON_AddNumberToObject(parallel, "micro_batch", micro_batch);
    bool sequence = args_has(args, "--sequence-parallel");
    cJSON_AddBoolToObject(parallel, "sequence_parallel", sequence && read->tp > 1);
    if (args_has(args, "--use-tp-pp-dp-mapping"))
        cJSON_AddStringToObject(parallel, "order", "tp-cp-ep-pp-dp");
    return context_read(read);
}

static void stage_add(cJSON *stages, int layers, bool embedding, int mtp, bool loss) {
    cJSON *stage = cJSON_CreateObject();
    cJSON_AddNumberToObject(stage, "layers", layers);
    if (embedding) cJSON_AddTrueToObject(stage, "embedding");
    if (mtp > 0) cJSON_AddNumberToObject(stage, "mtp", mtp);
    if (loss) cJSON_AddTrueToObject(stage, "loss");
    cJSON_AddItemToArray(stages, stage);
}

// "Ett|tt|tL": a chunk between two bars. Returns how many there are.
static int layout_stages(const char *layout, cJSON *stages) {
    int num = 0;
    for (const char *at = layout; at; num++) {
        int layers = 0, mtp = 0;
        bool embedding = false, loss = false;
        for (; *at && *at != '|'; at++) {
            layers += *at == 't';
            mtp += *at == 'm';
            embedding |= *at == 'E';
            loss |= *at == 'L';
        }
        stage_add(stages, layers, embedding, mtp, loss);
        at = *at ? at + 1 : NULL;
    }
    return num;
}

static Status layout_read(MegatronRead *read, const char *text, int *vpp) {
    Imported *out = read->args.out;
    const char *layout = layout_unfold(text, 20000, out->arena);
    if (!layout)
        return import_refuse(out, "--pipeline-model-parallel-layout",
                             "\"%.80s\" is not a layout of E, t, m, L and |", text);
    int chunks = layout_stages(layout, cJSON_AddArrayToObject(read->parallel, "stages"));
    if (chunks % read->pp != 0)
        return import_refuse(out, "--pipeline-model-parallel-layout",
                             "%d chunks are not a multiple of pp %d", chunks, read->pp);
    *vpp = chunks / read->pp;
    return status_ok();
}

// Chunks of equal size, but for what the ends hold beside their layers, or less.
static Status ends_read(MegatronRead *read, int vpp) {
    FlagArgs *args = &read->args;
    int first, last;
    if ((double)read->pp * vpp > read->num_layers + 2) return status_ok(); // refused as a split
    int chunks = read->pp * vpp;
    TRY(args_int(args, "--decoder-first-pipeline-num-layers", 1, 0, &first));
    TRY(args_int(args, "--decoder-last-pipeline-num-layers", 1, 0, &last));
    bool embedding = args_has(args, "--account-for-embedding-in-pipeline-split");
    bool loss = args_has(args, "--account-for-loss-in-pipeline-split");
    int ends = (first > 0) + (last > 0), rest = read->num_layers - first - last;
    if (chunks == 1 || (ends == 0 && !embedding && !loss)) return status_ok();
    if (ends > 0 && (vpp > 1 || chunks <= ends || rest % (chunks - ends) != 0))
        return import_refuse(args->out,
                             first > 0 ? "--decoder-first-pipeline-num-layers"
                                       : "--decoder-last-pipeline-num-layers",
                             "the other %d layers do not divide over %d stages", rest,
                             chunks - ends);
    int counted = read->num_layers + embedding + loss;
    if (ends == 0 && counted % chunks != 0)
        return import_refuse(args->out, "--account-for-embedding-in-pipeline-split",
                             "%d counted layers do not divide over %d chunks", counted, chunks);
    cJSON *stages = cJSON_AddArrayToObject(read->parallel, "stages");
    for (int c = 0; c < chunks; c++) {
        bool is_first = c == 0, is_last = c == chunks - 1;
        int layers = ends > 0 ? rest / (chunks - ends) : counted / chunks;
        if (is_first) layers = first > 0 ? first : layers - (ends == 0 && embedding);
        if (is_last) layers = last > 0 ? last : layers - (ends == 0 && loss);
        stage_add(stages, layers, is_first, is_last ? read->num_mtp : 0, is_last);
    }
    return status_ok();
}

// What the even split of the contract would make otherwise: Megatron-LM wants it to divide.
static Status split_check(MegatronRead *read, int vpp) {
    double chunks = (double)read->pp * vpp; // as many as GPUs times layers
    bool stated = cJSON_GetObjectItemCaseSensitive(read->parallel, "stages") != NULL;
    if (stated || (chunks <= read->num_layers && read->num_layers % (int)chunks == 0))
        return status_ok();
    return import_refuse(read->args.out, "--num-layers", "%d do not divide over pp %d x vpp %d",
                         read->num_layers, read->pp, vpp);
}

Status megatron_read_pipeline(MegatronRead *read) {
    FlagArgs *args = &read->args;
    const char *layout;
    int vpp, per_chunk;
    TRY(args_text(args, "--pipeline-model-parallel-layout", NULL, &layout));
    TRY(args_int(args, "--num-virtual-stages-per-pipeline-rank", 1, 1, &vpp));
    TRY(args_int(args, "--num-layers-per-virtual-pipeline-stage", 1, 0, &per_chunk));
    if (vpp > read->num_layers + 2 || per_chunk > read->num_layers)
        return import_refuse(args->out,
                             vpp > 1 ? "--num-virtual-stages-per-pipeline-rank"
                                     : "--num-layers-per-virtual-pipeline-stage",
                             "%d is more than the model's %d layers", vpp > 1 ? vpp : per_chunk,
                             read->num_layers);
    if (per_chunk > 0) {
        int counted = read->num_layers +
                      args_has(args, "--account-for-embedding-in-pipeline-split") +
                      args_has(args, "--account-for-loss-in-pipeline-split");
        if (counted % (read->pp * per_chunk) != 0)
            return import_refuse(args->out, "--num-layers-per-virtual-pipeline-stage",
                                 "%d layers of a chunk x pp %d do not divide %d layers", per_chunk,
                                 read->pp, counted);
        vpp = counted / (read->pp * per_chunk);
    }
    if (layout)
        TRY(layout_read(read, layout, &vpp));
    else
        TRY(ends_read(read, vpp));
    if (vpp > 1) cJSON_AddNumberToObject(read->parallel, "vpp", vpp);
    return split_check(read, vpp);
}
