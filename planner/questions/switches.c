#include "planner/questions/switches.h"

#include "plan/rule_check.h"
#include "workload/technique/technique.h"

#include <string.h>

static const char *const BOOLS[] = {"false", "true", NULL};
static const char *const DTYPES[] = {"fp32", "bf16", NULL};
static const char *const GRAPHS[] = {"none", "attn", "layer", "full", NULL};
static const int GRAPH_BITS[] = {GRAPH_NONE, GRAPH_ATTN, GRAPH_LAYER, GRAPH_FULL};

// --- What matters

static bool has_experts(const Scenario *scenario) {
    return model_is_moe(&scenario->model);
}

// mxfp8 and nvfp4 are recipes of their own (config/job/training.c).
static bool has_recipes(const Scenario *scenario) {
    return scenario->execution.precision == PRECISION_FP8;
}

// Training in 4 or 8 bytes has nothing smaller to keep or to add.
static bool is_mixed(const Scenario *scenario) {
    const int precision = scenario->execution.precision;
    return precision != PRECISION_FP64 && precision != PRECISION_FP32 &&
           precision != PRECISION_TF32;
}

static bool has_moments(const Scenario *scenario) {
    return scenario->training.optimizer == OPTIMIZER_ADAM && is_mixed(scenario);
}

// --- Values

#define BOOL_SWITCH(field)                                                                         \
    static int field##_get(const Execution *execution) {                                           \
        return execution->field;                                                                   \
    }                                                                                              \
    static Status field##_set(Execution *execution, int value, Arena *arena) {                     \
        (void)arena;                                                                               \
        execution->field = value;                                                                  \
        return status_ok();                                                                        \
    }

// Of techniques that the search may turn on.
#define TECHNIQUE_FUNCTIONS(kind, key)                                                             \
    BOOL_SWITCH(key)                                                                               \
    static bool key##_matters(const Scenario *scenario) {                                          \
        return technique_matters(TECHNIQUE_##kind, scenario);                                      \
    }
#define BEST TECHNIQUE_FUNCTIONS
#define TRIED TECHNIQUE_FUNCTIONS
#define KEPT(kind, key)
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) search(kind, key)
#include "config/software/techniques.def"
#undef BEST
#undef TRIED

BOOL_SWITCH(cross_entropy_fused)
BOOL_SWITCH(compile)

static int dispatcher_get(const Execution *execution) {
    return execution->moe_dispatcher;
}

static Status dispatcher_set(Execution *execution, int value, Arena *arena) {
    execution->moe_dispatcher = value;
    if (value != DISPATCH_DEEPEP && value != DISPATCH_HYBRIDEP) return status_ok();
    return dispatcher_load_named(MOE_DISPATCHER_NAMES[value], arena, &execution->dispatcher);
}

static int graphs_get(const Execution *execution) {
    for (int i = 0; GRAPHS[i]; i++)
        if (execution->cuda_graphs == GRAPH_BITS[i]) return i;
    return -1;
}

static Status graphs_set(Execution *execution, int value, Arena *arena) {
    (void)arena;
    execution->cuda_graphs = GRAPH_BITS[value];
    return status_ok();
}

static int recipe_get(const Execution *execution) {
    return execution->fp8_recipe;
}

static Status recipe_set(Execution *execution, int value, Arena *arena) {
    (void)arena;
    execution->fp8_recipe = value;
    return status_ok();
}

static int dtype_get(int precision) {
    return precision == PRECISION_FP32 ? 0 : precision == PRECISION_BF16 ? 1 : -1;
}

static int moments_get(const Execution *execution) {
    return dtype_get(execution->optimizer_precision);
}

static Status moments_set(Execution *execution, int value, Arena *arena) {
    (void)arena;
    execution->optimizer_precision = value ? PRECISION_BF16 : PRECISION_FP32;
    return status_ok();
}

static int reduce_get(const Execution *execution) {
    return dtype_get(execution->grad_reduce_precision);
}

static Status reduce_set(Execution *execution, int value, Arena *arena) {
    (void)arena;
    execution->grad_reduce_precision = value ? PRECISION_BF16 : PRECISION_FP32;
    return status_ok();
}

// --- Rows

#define RULE_BIT(variable, word)                                                                   \
    ((RULE_##variable) >> 6 == (word) ? 1ULL << ((RULE_##variable) & 63) : 0)
#define RULES_OF(variable)                                                                         \
    {                                                                                              \
        { RULE_BIT(variable, 0), RULE_BIT(variable, 1) }                                           \
    }
#define RULES_OF_GRAPHS                                                                            \
    {                                                                                              \
        {                                                                                          \
            RULE_BIT(GRAPH_FULL, 0) | RULE_BIT(GRAPH_LAYER, 0) | RULE_BIT(GRAPH_ATTN, 0) |         \
                RULE_BIT(GRAPH_MOE, 0),                                                            \
                RULE_BIT(GRAPH_FULL, 1) | RULE_BIT(GRAPH_LAYER, 1) | RULE_BIT(GRAPH_ATTN, 1) |     \
                    RULE_BIT(GRAPH_MOE, 1)                                                         \
        }                                                                                          \
    }
#define BOOL_ROW(field, VARIABLE, matters, best)                                                   \
    { #field, BOOLS, true, matters, field##_get, field##_set, best, RULES_OF(VARIABLE), NULL }
// What the rows of techniques say of the search.
#define BEST(VARIABLE, key) BOOL_ROW(key, VARIABLE, key##_matters, 1),
#define TRIED(VARIABLE, key) BOOL_ROW(key, VARIABLE, key##_matters, -1),
#define ROW(key, values, name, VARIABLE, matters, caution)                                         \
    { key, values, false, matters, name##_get, name##_set, -1, RULES_OF(VARIABLE), caution }

// The first five recipes are those of precision fp8.
static const char *const RECIPES[] = {"delayed", "current", "tensorwise", "rowwise", "block", NULL};

const SwitchRow SWITCH_ROWS[] = {
    ROW("moe_dispatcher", MOE_DISPATCHER_NAMES, dispatcher, MOE_DISPATCHER, has_experts, NULL),
    ROW("fp8_recipe", RECIPES, recipe, FP8_RECIPE, has_recipes, "products are scaled otherwise"),
    ROW("optimizer_dtype", DTYPES, moments, OPTIMIZER_DTYPE, has_moments,
        "the optimizer's moments are rounded to 16 bits"),
    ROW("grad_reduce_dtype", DTYPES, reduce, GRAD_REDUCE_DTYPE, is_mixed,
        "gradients are added up in 16 bits"),
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) search(kind, key)
#include "config/software/techniques.def"
    BOOL_ROW(cross_entropy_fused, CROSS_ENTROPY_FUSED, NULL, 1),
    BOOL_ROW(compile, COMPILE, NULL, 1),
    {"cuda_graphs", GRAPHS, false, NULL, graphs_get, graphs_set, 3, RULES_OF_GRAPHS, NULL},
    {0},
};

int switches_open(const Scenario *scenario, SwitchChoice *choices) {
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(scenario->document, "training");
    int num = 0;
    for (const SwitchRow *row = SWITCH_ROWS; row->key; row++) {
        const cJSON *stated = cJSON_GetObjectItemCaseSensitive(training, row->key);
        if (stated && !cJSON_IsNull(stated)) continue;
        if (row->matters && !row->matters(scenario)) continue;
        const int value = row->get(&scenario->execution);
        if (value >= 0) choices[num++] = (SwitchChoice){row, value};
    }
    return num;
}

bool switches_run(const Scenario *scenario, const SwitchChoice *open, int num_open) {
    const Rule *broken[RULES_MAX];
    RuleSet variables = {0};
    for (int i = 0; i < num_open; i++)
        variables = rule_set_union(variables, open[i].row->variables);
    const int num_broken = scenario_broken_rules(scenario, scenario->execution.stack.rules, broken);
    for (int i = 0; i < num_broken; i++)
        if (rule_sets_meet(broken[i]->holds.reads, variables)) return false;
    return true;
}

Status switch_apply(const Scenario *scenario, SwitchChoice choice, Arena *arena, Scenario *out) {
    *out = *scenario;
    return choice.row->set(&out->execution, choice.value, arena);
}

cJSON *switch_to_json(SwitchChoice choice) {
    if (choice.row->is_bool) return cJSON_CreateBool(choice.value);
    return cJSON_CreateString(choice.row->values[choice.value]);
}

const char *switch_text(SwitchChoice choice, const Execution *before, Arena *arena) {
    const SwitchRow *row = choice.row;
    if (row->is_bool && choice.value) return row->key;
    if (row->is_bool) return arena_printf(arena, "no %s", row->key);
    return arena_printf(arena, "%s %s instead of %s", row->key, row->values[choice.value],
                        row->values[row->get(before)]);
}
