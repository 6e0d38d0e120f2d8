#include "report/answer_sections.h"

#include "plan/plan.h"
#include "report/summary.h"

#include <float.h>
#include <math.h>
#include <string.h>

Status answer_recognize(const JsonNode *root, AnswerKind *out) {
    static const struct {
        AnswerKind kind;
        const char *keys[2]; // the document has them
    } marks[] = {
        {ANSWER_SCENARIO, {"model", "cluster"}},
        {ANSWER_GRID, {"vary", "points"}},
        {ANSWER_SENSITIVITY, {"sensitivity", "sensitivity"}},
        {ANSWER_GOODPUT, {"goodput", "goodput"}},
        {ANSWER_COMPARISON, {"terms", "changes"}},
        {ANSWER_PLANS, {"plans", "plans"}},
        {ANSWER_SIMULATION, {"estimate_step_time_s", "links"}},
        {ANSWER_ESTIMATE, {"step_time_s", "breakdown_s"}},
    };
    for (size_t i = 0; cJSON_IsObject(root->item) && i < sizeof marks / sizeof *marks; i++) {
        if (!cJSON_GetObjectItemCaseSensitive(root->item, marks[i].keys[0])) continue;
        if (!cJSON_GetObjectItemCaseSensitive(root->item, marks[i].keys[1])) continue;
        *out = marks[i].kind;
        return status_ok();
    }
    return json_error(root, "is nothing a report is made of; expected a plan.json, or what plan, "
                            "estimate, simulate, whatif or compare print with --json");
}

const char *answer_title(const Answer *answer, const char *what, Arena *arena) {
    return answer->name ? arena_printf(arena, "%s (%s)", what, answer->name) : what;
}

Status number_at(const JsonNode *parent, const char *key, bool required, double *out) {
    const JsonNode node = json_get(parent, key);
    *out = NAN;
    if (!json_is_present(&node) && !required) return status_ok();
    return json_read_double(&node, -DBL_MAX, DBL_MAX, out);
}

// --- The name of a plan

static int degree(const cJSON *parallel, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(parallel, key);
    return cJSON_IsNumber(item) ? item->valueint : 1;
}

static const char *degree_text(const cJSON *parallel, const char *key, Arena *arena) {
    const int value = degree(parallel, key);
    return value == 1 ? "" : arena_printf(arena, " %s %d", key, value);
}

static const char *text_of(const cJSON *object, const char *key, const char *otherwise) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : otherwise;
}

// " full", " selective:3"; where layers differ, how they do is in the document alone.
static const char *recompute_text(const cJSON *parallel, Arena *arena) {
    const char *recompute = text_of(parallel, "recompute", "none");
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(parallel, "recompute_layers");
    if (cJSON_GetObjectItemCaseSensitive(parallel, "layers")) return " by layer";
    if (strcmp(recompute, "none") == 0) return "";
    if (!cJSON_IsNumber(layers)) return arena_printf(arena, " %s", recompute);
    return arena_printf(arena, " %s:%d", recompute, layers->valueint);
}

// ":8" where fewer ranks than all replicas share the shards.
static const char *zero_group_text(const cJSON *p, Arena *arena) {
    const cJSON *zero = cJSON_GetObjectItemCaseSensitive(p, "zero_stage");
    const cJSON *group = cJSON_GetObjectItemCaseSensitive(p, "zero_group");
    if (!cJSON_IsNumber(zero) || zero->valueint == 0 || !cJSON_IsNumber(group)) return "";
    if (group->valueint == degree(p, "dp") * degree(p, "cp")) return "";
    return arena_printf(arena, ":%d", group->valueint);
}

// Where gathered weights stay after the forward.
static const char *kept_text(const cJSON *p) {
    const cJSON *zero = cJSON_GetObjectItemCaseSensitive(p, "zero_stage");
    const cJSON *reshard = cJSON_GetObjectItemCaseSensitive(p, "reshard_after_forward");
    return cJSON_IsNumber(zero) && zero->valueint == 3 && cJSON_IsFalse(reshard) ? " kept" : "";
}

static bool stages_alternate(const cJSON *p) {
    return strcmp(text_of(p, "order", ""), PLAN_ORDER_NAMES[ORDER_PP_DP]) == 0 &&
           degree(p, "pp") > 1 && degree(p, "dp") > 1;
}

const char *parallel_text(const cJSON *p, Arena *arena) {
    const char *method = text_of(p, "cp_method", "ring");
    const bool says_method = degree(p, "cp") > 1 && strcmp(method, "ring") != 0;
    const cJSON *zero = cJSON_GetObjectItemCaseSensitive(p, "zero_stage");
    return arena_printf(
        arena, "tp %d%s%s%s pp %d%s dp %d%s%s mb %d zero%d%s%s%s %s%s%s", degree(p, "tp"),
        degree_text(p, "cp", arena), says_method ? " " : "",
        !says_method                        ? ""
        : strcmp(method, "all-gather") == 0 ? "gather"
                                            : method,
        degree(p, "pp"), degree_text(p, "vpp", arena), degree(p, "dp"), degree_text(p, "ep", arena),
        degree_text(p, "etp", arena), degree(p, "micro_batch"),
        cJSON_IsNumber(zero) ? zero->valueint : 0, zero_group_text(p, arena), kept_text(p),
        recompute_text(p, arena), text_of(p, "schedule", "1f1b"),
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(p, "vocab_parallel")) ? " vocab" : "",
        stages_alternate(p) ? " pp-dp" : "");
}

Status answer_sections(Document *document, const Answer *answer, Arena *arena) {
    switch (answer->kind) {
    case ANSWER_PLANS:
    case ANSWER_ESTIMATE:
        return plans_sections(document, answer, arena);
    case ANSWER_SIMULATION:
        return simulation_sections(document, answer, arena);
    case ANSWER_GRID:
        return grid_sections(document, answer, arena);
    case ANSWER_SENSITIVITY:
        return sensitivity_sections(document, answer, arena);
    case ANSWER_GOODPUT:
        return goodput_sections(document, answer, arena);
    case ANSWER_COMPARISON:
        return compare_sections(document, answer, arena);
    case ANSWER_SCENARIO:
    case NUM_ANSWER_KINDS:
        break;
    }
    return status_ok();
}

void answer_print(AnswerKind kind, cJSON *tree, const Paper *paper) {
    Arena arena = {0};
    const Answer answer = {.kind = kind, .root = {.file = "the answer", .item = tree}};
    Document document = document_new("");
    const Status status = answer_sections(&document, &answer, &arena);
    const char *summary = summary_of_answer(&answer, true, &arena);
    if (summary) document_say(&document, summary);
    if (status.code == STATUS_OK)
        document_print(&document, paper);
    else // not of an answer that was just made
        paper_wrap(paper, 0, STYLE_BAD, status.text);
    cJSON_Delete(document.root);
    cJSON_Delete(tree);
    arena_free(&arena);
}
