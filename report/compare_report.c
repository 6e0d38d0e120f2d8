#include "report/compare_report.h"

#include "report/answer_sections.h"
#include "report/report.h"

static void side_print(const Paper *paper, const char *name, const CompareSide *side,
                       Arena *arena) {
    const char *what = report_question(side->scenario, arena);
    const bool fits = !side->miss && side->estimate.fits;
    const char *plan = side->miss ? side->miss : plan_describe(&side->plan, arena);
    paper_wrap(paper, 0, fits ? STYLE_PLAIN : STYLE_BAD,
               arena_printf(arena, "%s  %s: %s; %s%s", name, side->scenario->file, what, plan,
                            side->miss || fits ? "" : "; does not fit"));
}

void report_comparison(const Comparison *c, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    side_print(&paper, "A", &c->a, &arena);
    side_print(&paper, "B", &c->b, &arena);
    answer_print(ANSWER_COMPARISON, compare_to_json(c), &paper);
    arena_free(&arena);
}
