// Job and plan of a random scenario.
#include "tests/laws/scenarios.h"

#include "config/job/parallel.h"
#include "config/job/training.h"

#include <string.h>

static void add_int(cJSON *object, const char *key, int value) {
    cJSON_AddNumberToObject(object, key, value);
}

static int int_of(const cJSON *object, const char *key, int absent) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valueint : absent;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

// A divisor of both, small ones more often than not.
static int draw_common(Draw *draw, int a, int b) {
    int common = 1;
    for (int d = 1; d <= smaller(a, b); d++)
        if (a % d == 0 && b % d == 0) common = d;
    return draw_divisor(draw, common);
}

// Layers of every chunk, at random; embedding and loss at the ends.
static void draw_stages(cJSON *parallel, const DrawnSizes *sizes, int chunks, Draw *draw) {
    cJSON *stages = cJSON_AddArrayToObject(parallel, "stages");
    int left = sizes->num_layers;
    const bool even_between = draw_chance(draw, 0.3);
    const int each = sizes->num_layers / chunks;
    for (int c = 0; c < chunks; c++) {
        cJSON *stage = cJSON_CreateObject();
        int layers = left;
        if (c < chunks - 1) {
            layers = even_between && c > 0 ? each : draw_int(draw, each ? each - 1 : 0, each + 1);
            layers = smaller(layers, left);
        }
        add_int(stage, "layers", layers);
        left -= layers;
        if (c == 0) cJSON_AddTrueToObject(stage, "embedding");
        if (c == chunks - 1) cJSON_AddTrueToObject(stage, "loss");
        cJSON_AddItemToArray(stages, stage);
    }
}

static void draw_pipeline(cJSON *parallel, const DrawnSizes *sizes, int pp, Draw *draw) {
    const char *schedule = SCHEDULE_NAMES[SCHEDULE_1F1B];
    int vpp = 1;
    if (draw_chance(draw, 0.45)) schedule = SCHEDULE_NAMES[draw_int(draw, 0, NUM_SCHEDULES - 1)];
    const bool round =
        strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "breadth-first") == 0;
    const bool back = schedule[0] == 'v' || strcmp(schedule, "zb-v") == 0;
    const bool dual = strcmp(schedule, "dualpipe") == 0;
    if (round || (pp > 1 && draw_chance(draw, 0.25))) vpp = draw_int(draw, 2, 4);
    if (back || dual) vpp = 2;
    if (vpp > 1 && !round && !back && !dual) schedule = SCHEDULE_NAMES[SCHEDULE_INTERLEAVED];
    if (vpp > 1) add_int(parallel, "vpp", vpp);
    if (round || back || dual || draw_chance(draw, 0.5))
        cJSON_AddStringToObject(parallel, "schedule", schedule);
    if (pp > 1 && draw_chance(draw, 0.35)) draw_stages(parallel, sizes, dual ? pp : pp * vpp, draw);
    if (pp > 1 && draw_chance(draw, 0.04)) cJSON_AddTrueToObject(parallel, "vocab_parallel");
}

static void draw_recompute(cJSON *parallel, const DrawnSizes *sizes, Draw *draw) {
    if (draw_chance(draw, 0.4)) return;
    const char *recompute = RECOMPUTE_NAMES[draw_int(draw, 0, NUM_RECOMPUTES - 1)];
    cJSON_AddStringToObject(parallel, "recompute", recompute);
    if (strcmp(recompute, "full") == 0 && draw_chance(draw, 0.3))
        add_int(parallel, "recompute_layers", draw_int(draw, 0, sizes->num_layers));
    if (strcmp(recompute, "selective") != 0 || !draw_chance(draw, 0.5)) return;
    cJSON *modules = cJSON_AddArrayToObject(parallel, "recompute_modules");
    for (int m = 0; RECOMPUTE_MODULE_NAMES[m]; m++) {
        const bool of_experts = strstr(RECOMPUTE_MODULE_NAMES[m], "moe") != NULL;
        if (draw_chance(draw, of_experts && !sizes->num_experts ? 0.03 : 0.3))
            cJSON_AddItemToArray(modules, cJSON_CreateString(RECOMPUTE_MODULE_NAMES[m]));
    }
    if (cJSON_GetArraySize(modules) == 0)
        cJSON_AddItemToArray(modules, cJSON_CreateString("core_attn"));
}

// The degrees, a product that fills the machine. Returns the ranks of a stage.
static int draw_degrees(cJSON *parallel, const DrawnSizes *sizes, Draw *draw) {
    int left = sizes->num_gpus, tp = 1, pp = 1, cp = 1;
    if (draw_chance(draw, 0.15) && left > 1) { // some GPUs idle
        const int used = draw_int(draw, 1, left - 1);
        add_int(parallel, "idle_gpus", left - used);
        left = used;
    }
    if (draw_chance(draw, 0.6)) {
        const int heads = draw_chance(draw, 0.8) ? sizes->num_kv_heads : sizes->num_heads;
        tp = draw_common(draw, left, heads);
    }
    left /= tp;
    if (draw_chance(draw, 0.5)) pp = draw_divisor(draw, left);
    if (pp > sizes->num_layers + 2) pp = 1;
    left /= pp;
    if (draw_chance(draw, 0.3)) cp = draw_divisor(draw, left);
    if (tp > 1 || draw_chance(draw, 0.3)) add_int(parallel, "tp", tp);
    if (pp > 1 || draw_chance(draw, 0.3)) add_int(parallel, "pp", pp);
    if (cp > 1 || draw_chance(draw, 0.1)) add_int(parallel, "cp", cp);
    draw_pipeline(parallel, sizes, pp, draw);
    return tp * left;
}

static void draw_expert_degrees(cJSON *parallel, const DrawnSizes *sizes, int ranks, Draw *draw) {
    if (sizes->num_experts == 0) return;
    const int ep = draw_chance(draw, 0.7) ? draw_common(draw, ranks, sizes->num_experts) : 1;
    const int tp = int_of(parallel, "tp", 1);
    add_int(parallel, "ep", ep);
    if (tp > 1 && ranks / ep % tp == 0 && draw_chance(draw, 0.5)) add_int(parallel, "etp", tp);
}

static void draw_sharding(cJSON *parallel, int ranks, Draw *draw) {
    if (draw_chance(draw, 0.6)) add_int(parallel, "zero_stage", draw_int(draw, 0, 3));
    if (draw_chance(draw, 0.15)) add_int(parallel, "zero_group", draw_divisor(draw, ranks));
    if (draw_chance(draw, 0.2))
        cJSON_AddBoolToObject(parallel, "reshard_after_forward", draw_chance(draw, 0.4));
}

// Keeps each key with this chance.
static void keys_thin(cJSON *object, double frac, Draw *draw) {
    for (cJSON *item = object->child, *next; item; item = next) {
        next = item->next;
        if (!draw_chance(draw, frac)) cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
    }
}

cJSON *draw_parallel(const ScenarioSpace *space, const DrawnSizes *sizes, Draw *draw) {
    cJSON *parallel = cJSON_CreateObject();
    const int ranks = draw_degrees(parallel, sizes, draw), tp = int_of(parallel, "tp", 1);
    const int cp = int_of(parallel, "cp", 1);
    draw_expert_degrees(parallel, sizes, ranks, draw);
    draw_sharding(parallel, ranks / tp, draw);
    draw_recompute(parallel, sizes, draw);
    add_int(parallel, "micro_batch", draw_of(draw, (int[]){1, 1, 1, 2, 2, 3, 4, 8, 0}));
    if (tp > 1 && draw_chance(draw, 0.25))
        cJSON_AddBoolToObject(parallel, "sequence_parallel", draw_chance(draw, 0.4));
    if (cp > 1 && draw_chance(draw, 0.6))
        cJSON_AddStringToObject(parallel, "cp_method",
                                CP_METHOD_NAMES[draw_int(draw, 0, NUM_CP_METHODS - 1)]);
    if (draw_chance(draw, 0.15))
        cJSON_AddStringToObject(parallel, "order", PLAN_ORDER_NAMES[draw_int(draw, 0, 1)]);
    // A stage of so many ranks has no batch of its own for what it left out: dp follows.
    add_int(parallel, "dp", ranks / tp / cp);
    if (space->split == SPLIT_SOME) keys_thin(parallel, 0.3, draw);
    return parallel;
}

static void draw_formats(cJSON *training, Draw *draw) {
    static const char *const OTHERS[] = {"fp16",  "fp32",  "fp8",  "fp8",
                                         "mxfp8", "nvfp4", "tf32", NULL};
    static const char *const RECIPES[] = {"delayed", "current", "tensorwise",
                                          "rowwise", "block",   NULL};
    static const char *const TWO[] = {"fp32", "bf16", NULL};
    const char *precision = draw_chance(draw, 0.5) ? "bf16" : draw_text(draw, OTHERS);
    cJSON_AddStringToObject(training, "precision", precision);
    if (strcmp(precision, "fp8") == 0 && draw_chance(draw, 0.7))
        cJSON_AddStringToObject(training, "fp8_recipe", draw_text(draw, RECIPES));
    if (draw_chance(draw, 0.1))
        cJSON_AddStringToObject(training, "optimizer",
                                OPTIMIZER_NAMES[draw_int(draw, 0, NUM_OPTIMIZERS - 1)]);
    if (draw_chance(draw, 0.1))
        cJSON_AddStringToObject(training, "optimizer_dtype", draw_text(draw, TWO));
    if (draw_chance(draw, 0.2))
        cJSON_AddStringToObject(training, "grad_reduce_dtype", draw_text(draw, TWO));
}

static void draw_switches(cJSON *training, Draw *draw) {
    static const char *const SWITCHES[] = {"overlap_grad_reduce",
                                           "overlap_param_gather",
                                           "tp_comm_overlap",
                                           "ep_overlap",
                                           "compile",
                                           "cross_entropy_fused",
                                           NULL};
    static const char *const GRAPHS[] = {"none", "full", "layer", "attn", "attn,moe_router", NULL};
    for (int i = 0; SWITCHES[i]; i++)
        if (draw_chance(draw, 0.15))
            cJSON_AddBoolToObject(training, SWITCHES[i], draw_chance(draw, 0.5));
    if (draw_chance(draw, 0.15))
        cJSON_AddStringToObject(training, "attention",
                                ATTENTION_NAMES[draw_int(draw, 0, NUM_ATTENTIONS - 1)]);
    if (draw_chance(draw, 0.15))
        cJSON_AddStringToObject(training, "cuda_graphs", draw_text(draw, GRAPHS));
    if (draw_chance(draw, 0.03)) cJSON_AddFalseToObject(training, "causal");
    if (draw_chance(draw, 0.03)) cJSON_AddTrueToObject(training, "optimizer_post_validation");
}

static void draw_routing(cJSON *training, Draw *draw) {
    if (draw_chance(draw, 0.4))
        cJSON_AddStringToObject(training, "moe_dispatcher",
                                MOE_DISPATCHER_NAMES[draw_int(draw, 0, NUM_DISPATCHERS - 1)]);
    if (draw_chance(draw, 0.2))
        cJSON_AddNumberToObject(training, "capacity_factor", draw_chance(draw, 0.5) ? 1 : 1.25);
    if (draw_chance(draw, 0.2)) {
        cJSON *routing = cJSON_AddObjectToObject(training, "moe_routing");
        cJSON_AddNumberToObject(routing, "imbalance", draw_number(draw, 1, 3));
    }
}

cJSON *draw_training(const ScenarioSpace *space, const DrawnSizes *sizes, const cJSON *parallel,
                     Draw *draw) {
    static const int LENGTHS[] = {512, 1000, 1024, 2048, 2048, 4096, 4096, 8192, 8192, 16384, 0};
    cJSON *training = cJSON_CreateObject();
    const int one = int_of(parallel, "micro_batch", 1) * int_of(parallel, "dp", sizes->num_gpus);
    const int pp = int_of(parallel, "pp", 1);
    const int batches = draw_chance(draw, 0.6) ? pp * draw_int(draw, 1, 4) : draw_int(draw, 1, 20);
    add_int(training, "seq_len", draw_of(draw, LENGTHS));
    add_int(training, "global_batch", one * batches);
    if (space->stacks) cJSON_AddStringToObject(training, "stack", draw_text(draw, space->stacks));
    if (draw_chance(draw, 0.06)) cJSON_AddStringToObject(training, "stack_version", "26.04");
    draw_formats(training, draw);
    draw_switches(training, draw);
    if (sizes->num_experts > 0) draw_routing(training, draw);
    return training;
}
