#include "report/answer_sections.h"

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
