#include "report/sensitivity_report.h"

#include "report/answer_sections.h"
#include "report/report.h"
#include "report/units.h"

void report_sensitivity(const Scenario *scenario, const Sensitivity *s, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    if (s->num_rows == 0) {
        paper_wrap(&paper, 0, STYLE_BAD, s->base.message);
        arena_free(&arena);
        return;
    }
    char step[UNITS_SIZE];
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(&arena, "%s: %s a step%s; each resource changed by %.4g %%, %s",
                            plan_describe(&s->base.plan, &arena),
                            units_seconds(s->base.estimate.step_time_s, step),
                            s->base.code == STATUS_OK ? "" : ", though it does not fit",
                            100 * s->change_frac,
                            s->replan ? "planned anew each time" : "the plan kept"));
    answer_print(ANSWER_SENSITIVITY, sensitivity_to_json(s), &paper);
    arena_free(&arena);
}
