#include "config/job/evidence.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "config/cluster/cluster_groups.h"
#include "config/machine/link.h"
#include "config/model/mixer.h"

#include <string.h>

enum { DENSE, EXPERTS, NUM_MODEL_KINDS };
static const char *const MODEL_KINDS[NUM_MODEL_KINDS + 1] = {"dense", "experts", NULL};

static Ingredients bit(int ingredient) {
    return (Ingredients)(1u << ingredient);
}

// --- Memory

static Status spreads_read(const char *stack, int kind, Arena *arena, Evidence *out) {
    JsonNode root;
    double own[NUM_MODEL_KINDS], other[NUM_MODEL_KINDS];
    TRY(json_load(data_path(arena, "hw-profiles", "memory"), arena, &root));
    JsonNode stacks = json_get(&root, "stacks"), beyond = json_get(&root, "other");
    JsonNode named = json_get(&stacks, stack);
    TRY(json_read_numbers(&beyond, MODEL_KINDS, NUM_MODEL_KINDS, 0, 10, true, other));
    TRY(json_read_numbers(json_is_present(&named) ? &named : &beyond, MODEL_KINDS, NUM_MODEL_KINDS,
                          0, 10, true, own));
    out->memory_spread = own[kind];
    out->other_memory_spread = other[kind] > own[kind] ? other[kind] : own[kind];
    return status_ok();
}

// --- Coverage

// A job's values of the columns that are names.
typedef struct {
    const char *values[INGREDIENT_ZERO_0];
} Names;

// In the order of the file.
static const struct {
    const char *key;
    int ingredient;
} COLUMNS[] = {
    {"stack", INGREDIENT_STACK},
    {"architecture", INGREDIENT_ARCHITECTURE},
    {"link", INGREDIENT_LINK},
    {"model", INGREDIENT_MODEL},
    {"precision", INGREDIENT_PRECISION},
    {"zero_stage", INGREDIENT_ZERO_0},
    {"tp", INGREDIENT_TP},
    {"pp", INGREDIENT_PP},
    {"cp", INGREDIENT_CP},
    {"ep", INGREDIENT_EP},
};
enum { NUM_COLUMNS = sizeof COLUMNS / sizeof *COLUMNS };

// Looks from *at on, which becomes the column behind: a whole row is one walk.
//   returns  NUM_COLUMNS: none
static int column_find(const char *key, int *at) {
    for (int tries = 0; tries < NUM_COLUMNS; tries++) {
        const int column = (*at + tries) % NUM_COLUMNS;
        if (strcmp(key, COLUMNS[column].key) != 0) continue;
        *at = column + 1;
        return column;
    }
    return NUM_COLUMNS;
}

static Ingredients value_ingredients(const JsonNode *value, int of, const Names *job) {
    if (of < INGREDIENT_ZERO_0) {
        const char *text = cJSON_GetStringValue(value->item);
        return text && job->values[of] && strcmp(text, job->values[of]) == 0 ? bit(of) : 0;
    }
    int stage;
    if (of == INGREDIENT_ZERO_0)
        return json_read_int(value, 0, 3, &stage).code == STATUS_OK ? bit(of + stage) : 0;
    return cJSON_IsTrue(value->item) ? bit(of) : 0;
}

// What of a published step the job shares.
static Ingredients step_ingredients(const JsonNode *step, const Names *job) {
    Ingredients shared = 0;
    const cJSON *item;
    int at = 0;
    cJSON_ArrayForEach(item, step->item) {
        const int column = column_find(item->string, &at);
        const JsonNode value = {.file = step->file, .item = item};
        if (column < NUM_COLUMNS)
            shared |= value_ingredients(&value, COLUMNS[column].ingredient, job);
    }
    return shared;
}

static void names_set(const Names *job, Arena *arena, GroupEvidence *out) {
    static const char *const FORMS[INGREDIENT_ZERO_0] = {"%s", "%s GPUs", "%s links", "%s", "%s"};
    static const char *const SPLITS[] = {"ZeRO-0",
                                         "ZeRO-1",
                                         "ZeRO-2",
                                         "ZeRO-3",
                                         "tensor parallelism",
                                         "pipeline parallelism",
                                         "context parallelism",
                                         "expert parallelism"};
    for (int i = 0; i < INGREDIENT_ZERO_0; i++)
        if (job->values[i]) out->names[i] = arena_printf(arena, FORMS[i], job->values[i]);
    for (int i = INGREDIENT_ZERO_0; i < NUM_INGREDIENTS; i++)
        out->names[i] = SPLITS[i - INGREDIENT_ZERO_0];
    if (strcmp(job->values[INGREDIENT_MODEL], MODEL_KINDS[DENSE]) == 0)
        out->names[INGREDIENT_MODEL] = "a dense model";
}

static GroupEvidence group_evidence(const JsonNode *steps, const Names *job, Arena *arena) {
    GroupEvidence group = {0};
    for (int i = 0; i < INGREDIENT_ZERO_0; i++)
        if (job->values[i]) group.own |= bit(i);
    const cJSON *item;
    cJSON_ArrayForEach(item, steps->item) {
        const JsonNode step = {.file = steps->file, .item = item};
        const Ingredients shared = step_ingredients(&step, job);
        for (int i = 0; i < NUM_INGREDIENTS; i++)
            if (shared & bit(i)) group.with[i] |= shared;
    }
    names_set(job, arena, &group);
    return group;
}

// What published steps must be of to say something of this model.
static const char *model_value(const Model *model) {
    for (int k = 0; k < model->num_kinds; k++) {
        const char *unmeasured = mixer_row(model->kinds[k].mixer.kind)->unmeasured;
        if (unmeasured) return unmeasured;
    }
    return MODEL_KINDS[model_is_moe(model) ? EXPERTS : DENSE];
}

static Status coverage_read(const Cluster *cluster, const Execution *execution, const Model *model,
                            Arena *arena, Evidence *out) {
    JsonNode root;
    TRY(json_load(data_path(arena, "hw-profiles", "coverage"), arena, &root));
    const JsonNode steps = json_get(&root, "steps"), spread = json_get(&root, "step_spread");
    TRY(json_expect_array(&steps));
    TRY(json_read_double(&spread, 0, 10, &out->other_step_spread));
    out->num_groups = cluster->num_pools;
    GroupEvidence *groups = ARENA_ARRAY(arena, out->num_groups, GroupEvidence);
    for (int i = 0; i < out->num_groups; i++) {
        const Pool *pool = &cluster->pools[i];
        const Names job = {{
            [INGREDIENT_STACK] = execution->stack.name,
            [INGREDIENT_ARCHITECTURE] = pool->gpu.architecture,
            [INGREDIENT_LINK] = pool->num_gpus > 1 ? link_family(pool->scale_up.name) : NULL,
            [INGREDIENT_MODEL] = model_value(model),
            [INGREDIENT_PRECISION] = PRECISION_NAMES[execution->precision],
        }};
        groups[i] = group_evidence(&steps, &job, arena);
    }
    out->groups = groups;
    return status_ok();
}

Status evidence_find(const Model *model, const Cluster *cluster, const Execution *execution,
                     Arena *arena, const Evidence **out) {
    Evidence *evidence = ARENA_NEW(arena, Evidence);
    const int kind = model_is_moe(model) ? EXPERTS : DENSE;
    TRY(spreads_read(execution->stack.name, kind, arena, evidence));
    TRY(coverage_read(cluster, execution, model, arena, evidence));
    *out = evidence;
    return status_ok();
}

// --- A plan

Ingredients evidence_ingredients(int zero_stage, int tp, int pp, int cp, int ep) {
    Ingredients of_plan = bit(INGREDIENT_ZERO_0 + zero_stage);
    if (tp > 1) of_plan |= bit(INGREDIENT_TP);
    if (pp > 1) of_plan |= bit(INGREDIENT_PP);
    if (cp > 1) of_plan |= bit(INGREDIENT_CP);
    if (ep > 1) of_plan |= bit(INGREDIENT_EP);
    return of_plan;
}

bool evidence_covers(const Evidence *evidence, Ingredients of_plan) {
    for (int g = 0; evidence && g < evidence->num_groups; g++) {
        const GroupEvidence *group = &evidence->groups[g];
        const Ingredients all = group->own | of_plan;
        for (int i = 0; i < NUM_INGREDIENTS; i++)
            if ((all & bit(i)) && (all & ~group->with[i])) return false;
    }
    return true;
}

typedef struct {
    const char **texts;
    int num;
} Reasons;

static void reason_add(Reasons *reasons, const char *text) {
    for (int i = 0; i < reasons->num; i++)
        if (strcmp(reasons->texts[i], text) == 0) return;
    reasons->texts[reasons->num++] = text;
}

// What was never seen at all says more than what it was not seen with.
static void group_reasons(const GroupEvidence *group, Ingredients all, Arena *arena,
                          Reasons *reasons) {
    static const char NO_STEP[] = "no published step of";
    Ingredients seen = 0;
    for (int i = 0; i < NUM_INGREDIENTS; i++) {
        if (!(all & bit(i))) continue;
        if (group->with[i])
            seen |= bit(i);
        else
            reason_add(reasons, arena_printf(arena, "%s %s", NO_STEP, group->names[i]));
    }
    for (int i = 0; i < NUM_INGREDIENTS; i++)
        for (int j = i + 1; j < NUM_INGREDIENTS; j++)
            if ((seen & bit(i)) && (seen & bit(j)) && !(group->with[i] & bit(j)))
                reason_add(reasons, arena_printf(arena, "%s %s with %s", NO_STEP, group->names[i],
                                                 group->names[j]));
}

const char *const *evidence_reasons(const Evidence *evidence, Ingredients of_plan, Arena *arena,
                                    int *num) {
    const int num_groups = evidence ? evidence->num_groups : 0;
    Reasons reasons = {
        .texts =
            ARENA_ARRAY(arena, num_groups * NUM_INGREDIENTS * NUM_INGREDIENTS + 1, const char *)};
    for (int g = 0; g < num_groups; g++) {
        const GroupEvidence *group = &evidence->groups[g];
        group_reasons(group, group->own | of_plan, arena, &reasons);
    }
    *num = reasons.num;
    return reasons.texts;
}
