#include "plan/layer_plans.h"

#include <string.h>

// --- The strategies of a plan

bool plan_recomputes_first(const Plan *plan) {
    return !plan->layers && plan->recompute != RECOMPUTE_NONE && plan->recompute_layers != ABSENT;
}

bool plan_mixes_recompute(const Plan *plan) {
    return plan->layers && plan->layers->recompute_alone;
}

Recompute plan_mtp_recompute(const Plan *plan) {
    return plan->recompute_layers == ABSENT ? plan->recompute : RECOMPUTE_NONE;
}

int plan_num_strategies(const Plan *plan) {
    return plan->layers ? plan->layers->num_strategies : 1 + plan_recomputes_first(plan);
}

Strategy plan_strategy(const Plan *plan, int strategy) {
    if (strategy == PLAN_OWN) return (Strategy){PLAN_OWN, plan->recompute, plan->recompute_modules};
    if (!plan->layers) return (Strategy){PLAN_OWN, RECOMPUTE_NONE, 0}; // PLAN_KEPT
    return plan->layers->strategies[strategy - 1];
}

// Of a chunk's layers, those that are among the first recompute_layers of its rank.
static int num_first(const Plan *plan, int chunk) {
    const int rank = plan_chunk_rank(plan, chunk);
    int left = plan->recompute_layers;
    for (int k = 0; left > 0 && plan_rank_chunk(plan, rank, k) < chunk; k++)
        left -= plan->chunks[plan_rank_chunk(plan, rank, k)].num_layers;
    const int num_layers = plan->chunks[chunk].num_layers;
    return left < 0 ? 0 : left < num_layers ? left : num_layers;
}

int plan_layer_strategy(const Plan *plan, int chunk, int layer) {
    if (plan->layers) return plan->layers->strategy[plan->chunks[chunk].first_layer + layer];
    if (!plan_recomputes_first(plan)) return PLAN_OWN;
    return layer < num_first(plan, chunk) ? PLAN_OWN : PLAN_KEPT;
}

int plan_layer_run(const Plan *plan, int chunk, int layer) {
    const PlanChunk *place = &plan->chunks[chunk];
    if (!plan->layers) {
        const int first = plan_recomputes_first(plan) ? num_first(plan, chunk) : 0;
        return (layer < first ? first : place->num_layers) - layer;
    }
    const short *strategy = &plan->layers->strategy[place->first_layer];
    int end = layer + 1;
    while (end < place->num_layers && strategy[end] == strategy[layer]) end++;
    return end - layer;
}

int plan_num_shardings(const Plan *plan) {
    return plan->layers ? plan->layers->num_shardings : 1;
}

const Plan *plan_sharding(const Plan *plan, int sharding) {
    return sharding == PLAN_OWN ? plan : &plan->layers->shardings[sharding - 1];
}

int plan_layer_sharding(const Plan *plan, int chunk, int layer) {
    if (plan_num_shardings(plan) == 1) return PLAN_OWN;
    return plan_strategy(plan, plan_layer_strategy(plan, chunk, layer)).sharding;
}

int plan_num_layouts(const Plan *plan) {
    return plan->layers ? plan->layers->num_layouts : 1;
}

int plan_layout(const Plan *plan, int sharding) {
    return plan->layers ? plan->layers->layout[sharding] : 0;
}

int plan_layout_spans(const Plan *plan, const int **spans) {
    *spans = plan->layers ? plan->layers->spans : NULL;
    return plan->layers ? plan->layers->num_spans : 0;
}

// A strategy as the plan that does so throughout.
static Plan strategy_throughout(const Plan *plan, int strategy) {
    const Strategy of_layers = plan_strategy(plan, strategy);
    Plan own = *plan_sharding(plan, of_layers.sharding);
    own.recompute = of_layers.recompute;
    own.recompute_modules = of_layers.recompute_modules;
    return own;
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
    const int num = layers->num_shardings;
    int *spans = ARENA_ARRAY(arena, num * num / 2 + 1, int);
    for (int a = 0; a < num; a++)
        for (int b = 0; b < a; b++) {
            const Plan *x = plan_sharding(plan, a), *y = plan_sharding(plan, b);
            if (!plans_layouts_are_alike(x, y))
                span_add(spans, &layers->num_spans, plans_layout_span(x, y));
        }
    layers->spans = spans;
}

static void layouts_number(const Plan *plan, LayerPlans *layers, Arena *arena) {
    short *layout = ARENA_ARRAY(arena, layers->num_shardings, short);
    for (int s = 0; s < layers->num_shardings; s++) {
        int like = 0;
        while (!plans_layouts_are_alike(plan_sharding(plan, s), plan_sharding(plan, like))) like++;
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

// Whether strategies differ in which of RECOMPUTE_NAMES they are alone: `selective` means one thing
// in all of them.
static bool differ_in_names_alone(const Plan *plan) {
    int modules = ABSENT;
    for (int s = 0; s < plan_num_strategies(plan); s++) {
        const Strategy strategy = plan_strategy(plan, s);
        if (strategy.sharding != PLAN_OWN) return false;
        if (strategy.recompute != RECOMPUTE_SELECTIVE) continue;
        if (modules == ABSENT) modules = strategy.recompute_modules;
        if (modules != strategy.recompute_modules) return false;
    }
    return true;
}

// The lists of a plan's strategies and shardings while they grow, each [num_layers].
typedef struct {
    Plan *plan;
    LayerPlans *layers;
    Strategy *strategies;
    Plan *shardings;
} Lists;

static int sharding_of(const Lists *lists, const Plan *own) {
    int s = 0;
    while (s < lists->layers->num_shardings &&
           !differ_in_recompute_alone(own, plan_sharding(lists->plan, s)))
        s++;
    if (s < lists->layers->num_shardings) return s;
    lists->shardings[s - 1] = *own;
    lists->shardings[s - 1].layers = NULL;
    return lists->layers->num_shardings++;
}

static int strategy_of(const Lists *lists, const Plan *own) {
    int s = 0;
    for (; s < lists->layers->num_strategies; s++) {
        const Plan other = strategy_throughout(lists->plan, s);
        if (plans_layers_are_alike(own, &other)) return s;
    }
    lists->strategies[s - 1] =
        (Strategy){sharding_of(lists, own), own->recompute, own->recompute_modules};
    return lists->layers->num_strategies++;
}

void plan_set_layers(Plan *plan, const Plan *own, int num_layers, Arena *arena) {
    bool differ = false;
    for (int l = 0; l < num_layers; l++) differ |= !plans_layers_are_alike(&own[l], plan);
    plan->layers = NULL;
    if (!differ) return;
    LayerPlans *layers = ARENA_NEW(arena, LayerPlans);
    const Lists lists = {plan, layers, ARENA_ARRAY(arena, num_layers, Strategy),
                         ARENA_ARRAY(arena, num_layers, Plan)};
    short *strategy = ARENA_ARRAY(arena, num_layers, short);
    *layers = (LayerPlans){.num_strategies = 1,
                           .strategies = lists.strategies,
                           .strategy = strategy,
                           .num_layers = num_layers,
                           .num_shardings = 1,
                           .shardings = lists.shardings};
    plan->layers = layers;
    for (int l = 0; l < num_layers; l++) strategy[l] = (short)strategy_of(&lists, &own[l]);
    layers->recompute_alone = differ_in_names_alone(plan);
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
    const int num_strategies = layers->num_strategies - 1;
    Strategy *strategies = ARENA_ARRAY(arena, num_strategies, Strategy);
    copy->strategies =
        memcpy(strategies, layers->strategies, (size_t)num_strategies * sizeof *strategies);
    Plan *shardings = ARENA_ARRAY(arena, layers->num_shardings, Plan);
    for (int s = 0; s < layers->num_shardings - 1; s++) {
        shardings[s] = plan_copy(&layers->shardings[s], arena);
        shardings[s].chunks = chunks;
    }
    copy->shardings = shardings;
    copy->strategy = shorts_copy(layers->strategy, layers->num_layers, arena);
    copy->layout = shorts_copy(layers->layout, layers->num_shardings, arena);
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
    if (!plan->layers || plan_mixes_recompute(plan)) return status_ok();
    int layer = 0;
    while (plan->layers->strategy[layer] == PLAN_OWN) layer++;
    Arena scratch = {0};
    const Plan own = strategy_throughout(plan, plan->layers->strategy[layer]);
    const Status status =
        status_at(STATUS_INVALID, scenario->file, "parallel.layers",
                  "layer %d has %s, which %s cannot say; nearest: layers that differ in recompute "
                  "alone",
                  layer, differences_text(&own, plan, &scratch), what);
    arena_free(&scratch);
    return status;
}

// --- As JSON and as text

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
    if (!plan->layers) return NULL;
    const short *strategy = plan->layers->strategy;
    cJSON *list = cJSON_CreateArray();
    for (int from = 0, end, num = plan->layers->num_layers; from < num; from = end) {
        for (end = from + 1; end < num && strategy[end] == strategy[from];) end++;
        const Plan own = strategy_throughout(plan, strategy[from]);
        if (strategy[from] != PLAN_OWN) run_add(list, &own, plan, from, end);
    }
    return list;
}

static const char *strategy_text(const Plan *plan, int strategy, Arena *arena) {
    const Plan own = strategy_throughout(plan, strategy);
    int num = 0;
    for (int l = 0; l < plan->layers->num_layers; l++) num += plan->layers->strategy[l] == strategy;
    const char *cp = "", *recompute = "";
    if (own.cp > 1) cp = arena_printf(arena, " cp %d %s", own.cp, CP_METHOD_NAMES[own.cp_method]);
    if (own.recompute != RECOMPUTE_NONE)
        recompute = arena_printf(arena, " %s", RECOMPUTE_NAMES[own.recompute]);
    return arena_printf(arena, "[%d layer%s tp %d%s dp %d zero%d%s]", num, num == 1 ? "" : "s",
                        own.tp, cp, own.dp, own.zero_stage, recompute);
}

const char *plan_layers_describe(const Plan *plan, Arena *arena) {
    enum { MOST = 4 };
    if (!plan->layers || plan_mixes_recompute(plan)) return "";
    const int num = plan_num_strategies(plan);
    const char *text = "";
    for (int s = 1; s < num && s <= MOST; s++)
        text = arena_printf(arena, "%s %s", text, strategy_text(plan, s, arena));
    if (num - 1 <= MOST) return text;
    return arena_printf(arena, "%s [%d more]", text, num - 1 - MOST);
}
