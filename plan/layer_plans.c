#include "plan/layer_plans.h"

#include <string.h>

int plan_num_strategies(const Plan *plan) {
    return plan->layers ? plan->layers->num_strategies : 1;
}

const Plan *plan_strategy(const Plan *plan, int strategy) {
    return strategy == PLAN_OWN ? plan : &plan->layers->plans[strategy - 1];
}

int plan_layer_strategy(const Plan *plan, int layer) {
    return plan->layers ? plan->layers->strategy[layer] : PLAN_OWN;
}

// --- Layouts

bool plans_layouts_are_alike(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->cp == b->cp &&
           (a->tp == 1 || a->sequence_parallel == b->sequence_parallel) &&
           (a->cp == 1 || a->cp_method == b->cp_method);
}

int plans_layout_span(const Plan *a, const Plan *b) {
    const int ranks = a->tp * a->cp, others = b->tp * b->cp;
    if (a->tp == b->tp && a->cp == b->cp && (a->cp == 1 || a->cp_method == b->cp_method))
        return a->tp;
    int x = ranks, y = others;
    while (y != 0) {
        const int rest = x % y;
        x = y;
        y = rest;
    }
    return ranks / x * others;
}

static void span_add(int *spans, int *num, int span) {
    int at = 0;
    while (at < *num && spans[at] < span) at++;
    if (at < *num && spans[at] == span) return;
    memmove(&spans[at + 1], &spans[at], (size_t)(*num - at) * sizeof *spans);
    spans[at] = span;
    ++*num;
}

static void spans_find(Plan *plan, LayerPlans *layers, Arena *arena) {
    const int num = layers->num_strategies;
    int *spans = ARENA_ARRAY(arena, num * num / 2 + 1, int);
    for (int a = 0; a < num; a++)
        for (int b = 0; b < a; b++) {
            const Plan *x = plan_strategy(plan, a), *y = plan_strategy(plan, b);
            if (!plans_layouts_are_alike(x, y))
                span_add(spans, &layers->num_spans, plans_layout_span(x, y));
        }
    layers->spans = spans;
}

static void layouts_number(const Plan *plan, LayerPlans *layers, Arena *arena) {
    short *layout = ARENA_ARRAY(arena, layers->num_strategies, short);
    for (int s = 0; s < layers->num_strategies; s++) {
        int like = 0;
        while (!plans_layouts_are_alike(plan_strategy(plan, s), plan_strategy(plan, like))) like++;
        layout[s] = like == s ? (short)layers->num_layouts++ : layout[like];
    }
    layers->layout = layout;
}

// --- What layers do

static bool differ_in_recompute_alone(const Plan *a, const Plan *b) {
    return plans_layouts_are_alike(a, b) && a->zero_stage == b->zero_stage &&
           (a->zero_stage == 0 || a->zero_group == b->zero_group);
}

static bool recompute_is_same(const Plan *a, const Plan *b) {
    return a->recompute == b->recompute &&
           (a->recompute != RECOMPUTE_SELECTIVE || a->recompute_modules == b->recompute_modules);
}

bool plans_layers_are_alike(const Plan *a, const Plan *b) {
    return differ_in_recompute_alone(a, b) && recompute_is_same(a, b);
}

// Whether layer_recompute can say it all: `selective` means one thing in all layers.
static bool recompute_says_all(const Plan *plan, const Plan *own, int num_layers, int *modules) {
    *modules = plan->recompute == RECOMPUTE_SELECTIVE ? plan->recompute_modules : ABSENT;
    for (int l = 0; l < num_layers; l++) {
        if (!differ_in_recompute_alone(&own[l], plan)) return false;
        if (own[l].recompute != RECOMPUTE_SELECTIVE) continue;
        if (*modules == ABSENT) *modules = own[l].recompute_modules;
        if (*modules != own[l].recompute_modules) return false;
    }
    return true;
}

static void recompute_set(Plan *plan, const Plan *own, int num_layers, int modules, Arena *arena) {
    unsigned char *recompute = ARENA_ARRAY(arena, num_layers, unsigned char);
    bool differs = false;
    for (int l = 0; l < num_layers; l++) {
        recompute[l] = (unsigned char)own[l].recompute;
        differs |= own[l].recompute != plan->recompute;
    }
    if (!differs) return;
    plan->layer_recompute = recompute;
    if (modules != ABSENT) plan->recompute_modules = modules;
}

void plan_set_layers(Plan *plan, const Plan *own, int num_layers, Arena *arena) {
    int modules;
    plan->layers = NULL;
    plan->layer_recompute = NULL;
    if (recompute_says_all(plan, own, num_layers, &modules)) {
        recompute_set(plan, own, num_layers, modules, arena);
        return;
    }
    LayerPlans *layers = ARENA_NEW(arena, LayerPlans);
    Plan *plans = ARENA_ARRAY(arena, num_layers, Plan);
    short *strategy = ARENA_ARRAY(arena, num_layers, short);
    *layers = (LayerPlans){
        .num_strategies = 1, .plans = plans, .strategy = strategy, .num_layers = num_layers};
    plan->layers = layers;
    for (int l = 0; l < num_layers; l++) {
        int s = 0;
        while (s < layers->num_strategies &&
               !plans_layers_are_alike(&own[l], plan_strategy(plan, s)))
            s++;
        strategy[l] = (short)s;
        if (s < layers->num_strategies) continue;
        plans[s - 1] = own[l];
        plans[s - 1].layers = NULL;
        plans[s - 1].layer_recompute = NULL;
        layers->num_strategies++;
    }
    spans_find(plan, layers, arena);
    layouts_number(plan, layers, arena);
}

static const short *shorts_copy(const short *values, int num, Arena *arena) {
    short *copy = ARENA_ARRAY(arena, num, short);
    return memcpy(copy, values, (size_t)num * sizeof *copy);
}

LayerPlans *layer_plans_copy(const LayerPlans *layers, const PlanChunk *chunks, Arena *arena) {
    LayerPlans *copy = ARENA_NEW(arena, LayerPlans);
    *copy = *layers;
    Plan *plans = ARENA_ARRAY(arena, layers->num_strategies - 1, Plan);
    for (int s = 0; s < layers->num_strategies - 1; s++) {
        plans[s] = plan_copy(&layers->plans[s], arena);
        plans[s].chunks = chunks;
    }
    copy->plans = plans;
    copy->strategy = shorts_copy(layers->strategy, layers->num_layers, arena);
    copy->layout = shorts_copy(layers->layout, layers->num_strategies, arena);
    int *spans = ARENA_ARRAY(arena, layers->num_spans + 1, int);
    for (int i = 0; i < layers->num_spans; i++) spans[i] = layers->spans[i];
    copy->spans = spans;
    return copy;
}

// "tp 4 instead of 2, zero_stage 3 instead of 1": what a layer does otherwise than the plan.
static const char *differences_text(const Plan *own, const Plan *plan, Arena *arena) {
    const struct {
        const char *key;
        int own, plan;
        bool is_said;
    } counts[] = {
        {"tp", own->tp, plan->tp, true},
        {"cp", own->cp, plan->cp, true},
        {"sequence_parallel", own->sequence_parallel, plan->sequence_parallel, true},
        {"zero_stage", own->zero_stage, plan->zero_stage, true},
        {"zero_group", own->zero_group, plan->zero_group, own->dp * own->cp == plan->dp * plan->cp},
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].is_said && counts[i].own != counts[i].plan)
            text = arena_printf(arena, "%s%s%s %d instead of %d", text, text[0] ? ", " : "",
                                counts[i].key, counts[i].own, counts[i].plan);
    if (own->cp > 1 && own->cp == plan->cp && own->cp_method != plan->cp_method)
        text = arena_printf(arena, "%s%scp_method %s instead of %s", text, text[0] ? ", " : "",
                            CP_METHOD_NAMES[own->cp_method], CP_METHOD_NAMES[plan->cp_method]);
    if (!text[0]) text = "other recompute_modules";
    return text;
}

Status plan_refuse_layers(const Scenario *scenario, const Plan *plan, const char *what) {
    if (!plan->layers) return status_ok();
    int layer = 0;
    while (plan_layer_strategy(plan, layer) == PLAN_OWN) layer++;
    Arena scratch = {0};
    const Plan *own = plan_strategy(plan, plan_layer_strategy(plan, layer));
    const Status status =
        status_at(STATUS_INVALID, scenario->file, "parallel.layers",
                  "layer %d has %s, which %s cannot say; nearest: layers that differ in recompute "
                  "alone",
                  layer, differences_text(own, plan, &scratch), what);
    arena_free(&scratch);
    return status;
}

// --- As JSON and as text

int plan_layers_run_end(const Plan *plan, int from) {
    const int num = plan_num_layers(plan);
    int end = from + 1;
    if (plan->layers)
        while (end < num && plan->layers->strategy[end] == plan->layers->strategy[from]) end++;
    else if (plan->layer_recompute)
        while (end < num && plan->layer_recompute[end] == plan->layer_recompute[from]) end++;
    else
        end = num;
    return end;
}

static void modules_add(cJSON *json, int modules) {
    cJSON *list = cJSON_AddArrayToObject(json, "recompute_modules");
    for (int i = 0; RECOMPUTE_MODULE_NAMES[i]; i++)
        if (modules & 1 << i)
            cJSON_AddItemToArray(list, cJSON_CreateString(RECOMPUTE_MODULE_NAMES[i]));
}

static void run_add(cJSON *list, const Plan *own, const Plan *plan, int from, int end) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToArray(list, json);
    cJSON_AddNumberToObject(json, "from", from);
    cJSON_AddNumberToObject(json, "to", end - 1);
    if (own->tp != plan->tp) cJSON_AddNumberToObject(json, "tp", own->tp);
    if (own->cp != plan->cp) cJSON_AddNumberToObject(json, "cp", own->cp);
    if (own->cp > 1 && own->cp_method != plan->cp_method)
        cJSON_AddStringToObject(json, "cp_method", CP_METHOD_NAMES[own->cp_method]);
    if (own->sequence_parallel != plan->sequence_parallel)
        cJSON_AddBoolToObject(json, "sequence_parallel", own->sequence_parallel);
    if (own->zero_stage != plan->zero_stage)
        cJSON_AddNumberToObject(json, "zero_stage", own->zero_stage);
    if (recompute_is_same(own, plan)) return;
    cJSON_AddStringToObject(json, "recompute", RECOMPUTE_NAMES[own->recompute]);
    // Those of the plan, and per-operator checkpointing, go without saying.
    const bool said =
        plan->recompute == RECOMPUTE_SELECTIVE && own->recompute_modules == plan->recompute_modules;
    if (own->recompute == RECOMPUTE_SELECTIVE && own->recompute_modules && !said)
        modules_add(json, own->recompute_modules);
}

cJSON *plan_layers_to_json(const Plan *plan) {
    if (!plan->layers && !plan->layer_recompute) return NULL;
    cJSON *list = cJSON_CreateArray();
    for (int from = 0, end, num = plan_num_layers(plan); from < num; from = end) {
        end = plan_layers_run_end(plan, from);
        Plan own = *plan_strategy(plan, plan_layer_strategy(plan, from));
        if (plan->layer_recompute) own.recompute = (Recompute)plan->layer_recompute[from];
        if (!plans_layers_are_alike(&own, plan)) run_add(list, &own, plan, from, end);
    }
    return list;
}

static const char *strategy_text(const Plan *plan, int strategy, Arena *arena) {
    const Plan *own = plan_strategy(plan, strategy);
    int num = 0;
    for (int l = 0; l < plan->layers->num_layers; l++) num += plan->layers->strategy[l] == strategy;
    const char *cp = "", *recompute = "";
    if (own->cp > 1)
        cp = arena_printf(arena, " cp %d %s", own->cp, CP_METHOD_NAMES[own->cp_method]);
    if (own->recompute != RECOMPUTE_NONE)
        recompute = arena_printf(arena, " %s", RECOMPUTE_NAMES[own->recompute]);
    return arena_printf(arena, "[%d layer%s tp %d%s dp %d zero%d%s]", num, num == 1 ? "" : "s",
                        own->tp, cp, own->dp, own->zero_stage, recompute);
}

const char *plan_layers_describe(const Plan *plan, Arena *arena) {
    enum { MOST = 4 };
    const int num = plan_num_strategies(plan);
    const char *text = "";
    for (int s = 1; s < num && s <= MOST; s++)
        text = arena_printf(arena, "%s %s", text, strategy_text(plan, s, arena));
    if (num - 1 <= MOST) return text;
    return arena_printf(arena, "%s [%d more]", text, num - 1 - MOST);
}
