#include "report/report_document.h"

#include "report/assumption_sections.h"
#include "report/report.h"
#include "report/summary.h"

static const char *title_of(const ReportContents *contents, Arena *arena) {
    if (contents->title) return contents->title;
    if (contents->num_plans > 0) return report_question(contents->plans[0].scenario, arena);
    if (contents->scenario) return report_question(contents->scenario, arena);
    return contents->num_answers > 0 && contents->answers[0].name ? contents->answers[0].name
                                                                  : "meshwright";
}

static void summaries_say(Document *document, const ReportContents *contents, Arena *arena) {
    for (int i = 0; i < contents->num_plans; i++) {
        document_say(document, summary_of_plan(&contents->plans[i], arena));
        const char *simulation = summary_of_simulation(&contents->plans[i], arena);
        if (simulation) document_say(document, simulation);
    }
    for (int i = 0; i < contents->num_answers; i++) {
        const char *text = summary_of_answer(&contents->answers[i], contents->num_plans > 0, arena);
        if (text && contents->answers[i].kind == ANSWER_COMPARISON)
            text = arena_printf(arena, "Of the two that are compared: %s", text);
        if (text) document_say(document, text);
    }
}

// A simulation made for this report reads like one from a file.
static Status view_simulation(Document *document, const PlanView *view, Arena *arena) {
    if (!view->simulation) return status_ok();
    cJSON *tree = sim_result_to_json(view->simulation);
    const Answer answer = {.kind = ANSWER_SIMULATION,
                           .name = view->file,
                           .root = {.file = "simulation", .item = tree}};
    const Status status = simulation_sections(document, &answer, arena);
    cJSON_Delete(tree);
    return status;
}

static Status parts_add(Document *document, const ReportContents *contents, Arena *arena) {
    for (int i = 0; i < contents->num_plans; i++) {
        plan_sections(document, &contents->plans[i], arena);
        TRY(view_simulation(document, &contents->plans[i], arena));
    }
    for (int i = 0; i < contents->num_answers; i++)
        TRY(answer_sections(document, &contents->answers[i], arena));
    for (int i = 0; i < contents->num_plans; i++)
        TRY(assumption_sections(document, contents->plans[i].scenario, contents->plans[i].plan,
                                arena));
    if (contents->num_plans == 0 && contents->scenario)
        TRY(assumption_sections(document, contents->scenario, NULL, arena));
    return accuracy_sections(document, arena);
}

Status report_document(const ReportContents *contents, Arena *arena, Document *out) {
    *out = document_new(title_of(contents, arena));
    summaries_say(out, contents, arena);
    const Status status = parts_add(out, contents, arena);
    if (status.code == STATUS_OK) return status;
    cJSON_Delete(out->root);
    out->root = NULL;
    return status;
}
