#include "report/goodput_report.h"

#include "report/answer_sections.h"
#include "report/report.h"
#include "report/units.h"

static const char *span_text(double time_s, Arena *arena) {
    char text[UNITS_SIZE];
    return arena_strdup(arena, units_span(time_s, text));
}

static void whole_print(const Goodput *g, const Estimate *estimate, const Paper *paper,
                        Arena *arena) {
    char tokens[UNITS_SIZE], rate[UNITS_SIZE];
    fputc('\n', paper->stream);
    paper_wrap(paper, 0, STYLE_GOOD,
               arena_printf(arena,
                            "Goodput %.2f %%, %.2f +- %.2f %% over %d runs played: %s tokens take "
                            "%s instead of %s, with %.1f failures; %s tokens/s in the mean.",
                            100 * g->goodput_frac, 100 * g->whole.goodput_frac,
                            100 * g->whole.goodput_error_frac, g->whole.num_runs,
                            units_count(g->used.num_tokens, tokens),
                            span_text(g->whole.mean.wall_s, arena),
                            span_text(g->num_steps * g->step_time_s, arena),
                            (double)g->whole.mean.num_failures / g->whole.num_runs,
                            units_count(estimate->tokens_per_s * g->goodput_frac, rate)));
}

// The section that the page has, too.
static void basis_print(const Goodput *g, const Paper *paper, Arena *arena) {
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddItemToObject(tree, "goodput", goodput_to_json(g));
    const Answer answer = {.kind = ANSWER_GOODPUT, .root = {.file = "the answer", .item = tree}};
    Document document = document_new("");
    const Status status = goodput_sections(&document, &answer, arena);
    if (status.code != STATUS_OK) paper_wrap(paper, 0, STYLE_BAD, status.text);
    document_print(&document, paper);
    cJSON_Delete(document.root);
    cJSON_Delete(tree);
}

void report_goodput(const Scenario *scenario, const Plan *plan, const Estimate *estimate,
                    const Goodput *g, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    char step[UNITS_SIZE];
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(&arena, "%s: %s a step", plan_describe(plan, &arena),
                            units_seconds(estimate->step_time_s, step)));
    basis_print(g, &paper, &arena);
    whole_print(g, estimate, &paper, &arena);
    arena_free(&arena);
}
