#include "cli/plan/rule_question.h"

#include "base/shown_text.h"
#include "planner/why/conflict.h"
#include "planner/why/relax.h"
#include "planner/why/rule_verdict.h"
#include "whatif/change.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ASKED = 16, MAX_VALUES = 64 };

typedef struct {
    const char *paths[MAX_ASKED]; // "parallel.cp"
    const char *values[MAX_ASKED];
    int num_asked;
} Asked;

static Status text_error(const char *text, const char *what) {
    return status_error(STATUS_INVALID,
                        "meshwright: --explain-rule: \"%.200s\": %s; expected KEY=VALUE,... with "
                        "keys of parallel or training, as in cp=16,cp_method=ulysses",
                        text, what);
}

static bool is_of_parallel(const char *key) {
    for (int i = 0; i < NUM_CONSTRAINTS; i++)
        if (strcmp(CONSTRAINTS[i].key, key) == 0) return true;
    return strcmp(key, "recompute_modules") == 0;
}

static Status asked_parse(const char *text, Arena *arena, Asked *out) {
    out->num_asked = 0;
    char *rest = arena_strdup(arena, text);
    for (char *pair; (pair = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(pair, '=');
        if (!equals || equals == pair || !equals[1]) return text_error(text, "no KEY=VALUE");
        if (out->num_asked == MAX_ASKED) return text_error(text, "too many keys");
        *equals = '\0';
        const char *path = pair;
        if (!strchr(pair, '.'))
            path =
                arena_printf(arena, "%s.%s", is_of_parallel(pair) ? "parallel" : "training", pair);
        for (int i = 0; i < out->num_asked; i++)
            if (strcmp(out->paths[i], path) == 0) return text_error(text, "a key twice");
        out->paths[out->num_asked] = path;
        out->values[out->num_asked++] = equals + 1;
    }
    return status_ok();
}

// The scenario with what is asked about in place of its own.
static Status asked_scenario(const Scenario *scenario, const Asked *asked, Arena *arena,
                             Scenario *out) {
    const cJSON *base;
    TRY(change_base(scenario, asked->paths, asked->num_asked, false, arena, &base));
    cJSON *document = cJSON_Duplicate(base, true);
    json_own(arena, document);
    change_derive(document, asked->paths, asked->num_asked);
    for (int i = 0; i < asked->num_asked; i++) {
        cJSON *value = cJSON_ParseWithOpts(asked->values[i], NULL, true);
        if (!value) value = cJSON_CreateString(asked->values[i]);
        TRY(change_check_path(scenario, base, asked->paths[i], value));
        const Status status = change_set(scenario, document, asked->paths[i], value);
        cJSON_Delete(value);
        TRY(status);
    }
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    TRY(scenario_read(root, arena, out));
    return scenario_refuse_unsupported(out);
}

// --- Legal values

// Candidates of one key: what divides the GPUs or the batch, or the names there are.
static int candidates_of(const Scenario *scenario, const Constraint *key, int *values) {
    int num = 0;
    if (key->names)
        while (key->names[num]) values[num] = num, num++;
    if (key->names) return num;
    if (key->kind == CONSTRAINT_SWITCH) return values[0] = 0, values[1] = 1, 2;
    if (strcmp(key->key, "zero_stage") == 0) {
        for (int stage = 0; stage <= 3; stage++) values[num++] = stage;
        return num;
    }
    const int64_t whole = strcmp(key->key, "micro_batch") == 0 ? scenario->training.global_batch
                                                               : scenario->cluster.num_gpus;
    for (int v = 1; v <= whole && v <= 4096 && num < MAX_VALUES; v++) {
        const bool chunks = strcmp(key->key, "vpp") == 0 && v <= 16;
        if (whole % v == 0 || chunks) values[num++] = v;
    }
    return num;
}

static const Constraint *constraint_of(const char *path) {
    if (strncmp(path, "parallel.", 9) != 0) return NULL;
    for (int i = 0; i < NUM_CONSTRAINTS; i++) {
        const ConstraintKind kind = CONSTRAINTS[i].kind;
        if (strcmp(CONSTRAINTS[i].key, path + 9) == 0)
            return kind == CONSTRAINT_INT || kind == CONSTRAINT_SWITCH ? &CONSTRAINTS[i] : NULL;
    }
    return NULL;
}

static void value_set(const Constraint *key, ParallelSpec *spec, int value) {
    char *field = (char *)spec + key->offset;
    if (key->kind == CONSTRAINT_SWITCH)
        *(signed char *)field = (signed char)value;
    else
        memcpy(field, &value, sizeof value);
}

// "1, 2, 4, 8": the values of one key with which something is legal, all else as it is asked for.
static const char *legal_text(const Scenario *scenario, const char *path, Arena *arena) {
    int values[MAX_VALUES];
    const Constraint *key = constraint_of(path);
    const char *list = "";
    const int num = key ? candidates_of(scenario, key, values) : 0;
    for (int i = 0; i < num; i++) {
        Scenario changed = *scenario;
        value_set(key, &changed.parallel, values[i]);
        if (!rules_leave_any(&changed, arena, NULL)) continue;
        const char *text = key->names                       ? key->names[values[i]]
                           : key->kind == CONSTRAINT_SWITCH ? RULE_SWITCH_NAMES[values[i]]
                                                            : arena_printf(arena, "%d", values[i]);
        list = arena_printf(arena, "%s%s%s", list, list[0] ? ", " : "", text);
    }
    return list;
}

// --- The answer

typedef struct {
    const Scenario *scenario;
    const Asked *asked;
    const RuleVerdict *verdict;
    const char *legal[MAX_ASKED]; // of each key; "" where it is not known
    const char *other;            // why it is illegal, where no rule says so
    Arena *arena;
} Answer;

static cJSON *culprit_to_json(const Answer *a, const RuleCulprit *culprit) {
    const Scenario *scenario = a->scenario;
    const Rule *rule = culprit->rule;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(
        json, "rule", arena_printf(a->arena, "%s/%s", scenario->execution.stack.name, rule->id));
    cJSON_AddStringToObject(json, "key", rule->key);
    cJSON_AddStringToObject(json, "text", rule_sentence(scenario, culprit->plan, rule, a->arena));
    cJSON_AddStringToObject(json, "holds", rule->text);
    cJSON_AddStringToObject(json, "source", rule_source_text(rule, a->arena));
    return json;
}

static Status answer_as_json(const Answer *a) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", 1);
    cJSON_AddStringToObject(json, "stack", a->scenario->execution.stack.name);
    cJSON_AddBoolToObject(json, "forbidden", a->verdict->forbidden);
    cJSON *rules = cJSON_AddArrayToObject(json, "rules");
    for (int i = 0; i < a->verdict->num_culprits; i++)
        cJSON_AddItemToArray(rules, culprit_to_json(a, &a->verdict->culprits[i]));
    if (a->other) cJSON_AddStringToObject(json, "not_a_rule", a->other);
    cJSON *legal = cJSON_AddObjectToObject(json, "legal");
    for (int i = 0; i < a->asked->num_asked && a->verdict->forbidden; i++)
        cJSON_AddStringToObject(legal, a->asked->paths[i], a->legal[i]);
    if (a->verdict->plan) cJSON_AddItemToObject(json, "parallel", plan_to_json(a->verdict->plan));
    return answer_json(json);
}

static void answer_print(const Answer *a, const char *text) {
    const Scenario *scenario = a->scenario;
    const char *stack = scenario->execution.stack.name;
    if (!a->verdict->forbidden) {
        shown_line(stdout, "No rule of %s forbids %s here: %s, for example, obeys all.", stack,
                   text, plan_describe(a->verdict->plan, a->arena));
        return;
    }
    if (a->other) shown_line(stdout, "No rule of %s forbids %s: %s.", stack, text, a->other);
    if (a->verdict->num_culprits > 0) shown_line(stdout, "%s: forbidden here.", text);
    for (int i = 0; i < a->verdict->num_culprits; i++) {
        const RuleCulprit *culprit = &a->verdict->culprits[i];
        printf("rule %s/%s\n  %s: %s\n  holds where %s\n  source: %s\n", stack, culprit->rule->id,
               culprit->rule->key, rule_sentence(scenario, culprit->plan, culprit->rule, a->arena),
               culprit->rule->text, rule_source_text(culprit->rule, a->arena));
    }
    for (int i = 0; i < a->asked->num_asked; i++)
        if (a->legal[i][0])
            shown_line(stdout, "legal here: %s %s", a->asked->paths[i], a->legal[i]);
}

Status rule_question_answer(const PlanOptions *options, const Scenario *scenario, Arena *arena) {
    Asked asked;
    Scenario with;
    RuleVerdict verdict;
    TRY(asked_parse(options->explain_rule, arena, &asked));
    TRY(asked_scenario(scenario, &asked, arena, &with));
    rule_verdict(&with, asked.paths, asked.num_asked, arena, &verdict);
    Answer answer = {.scenario = &with, .asked = &asked, .verdict = &verdict, .arena = arena};
    if (verdict.forbidden && verdict.num_culprits == 0) {
        const Status why = conflict_explain(&with);
        answer.other = arena_strdup(arena, status_text_within(&why, with.file));
    }
    for (int i = 0; i < asked.num_asked; i++)
        answer.legal[i] = verdict.forbidden ? legal_text(&with, asked.paths[i], arena) : "";
    if (options->common.json)
        TRY(answer_as_json(&answer));
    else
        answer_print(&answer, options->explain_rule);
    if (!verdict.forbidden) return status_ok();
    return status_at(STATUS_NO, scenario->file, "", "%s is forbidden here", options->explain_rule);
}
