#include "report/sensitivity_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <string.h>

enum { COLUMN_RESOURCE, COLUMN_BETTER, COLUMN_WORSE, COLUMN_TORNADO, NUM_COLUMNS };
enum { HALF_WIDTH = 20 };

static const char *change_text(const SensitivityCase *one, const SensitivityCase *base,
                               Arena *arena) {
    if (!one->has_answer || (one->code != STATUS_OK && base->code == STATUS_OK))
        return "does not fit";
    const double change = one->estimate.step_time_s / base->estimate.step_time_s - 1;
    if (fabs(change) < 5e-5) return "+-0.00 %";
    return arena_printf(arena, "%+.2f %%", 100 * change);
}

// What is saved to the left of the middle, what is added to the right; '>' where it does not fit.
static const char *tornado_text(const SensitivityRow *row, double most_frac, Arena *arena) {
    char text[2 * HALF_WIDTH + 2];
    memset(text, ' ', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[HALF_WIDTH] = '|';
    const double scale = most_frac > 0 ? HALF_WIDTH / most_frac : 0;
    const int saved = (int)lround(fmax(0, row->saves_frac) * scale);
    const bool fits = isfinite(row->costs_frac);
    const int added = fits ? (int)lround(fmax(0, row->costs_frac) * scale) : HALF_WIDTH;
    memset(text + HALF_WIDTH - saved, '-', (size_t)saved);
    memset(text + HALF_WIDTH + 1, fits ? '+' : '>', (size_t)added);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') text[--length] = '\0';
    return arena_strdup(arena, text);
}

static double most_frac(const Sensitivity *s) {
    double most = 0;
    for (int i = 0; i < s->num_rows; i++) {
        most = fmax(most, s->rows[i].saves_frac);
        if (isfinite(s->rows[i].costs_frac)) most = fmax(most, s->rows[i].costs_frac);
    }
    return most;
}

static const char *limit_text(const Sensitivity *s, Arena *arena) {
    const SensitivityRow *limit = sensitivity_limit(s);
    if (!limit)
        return arena_printf(arena, "None of these saves %.1f %% of the step.",
                            100 * SENSITIVITY_LEAST_FRAC);
    return arena_printf(arena, "Limited by %s: %.0f %% %s saves %.2f %% of the step.",
                        RESOURCE_TITLES[limit->resource], 100 * s->change_frac,
                        resource_more_is_better(limit->resource) ? "more" : "less",
                        100 * limit->saves_frac);
}

// A plan that changed is worth a line.
static const char *plans_text(const SensitivityRow *row, const SensitivityCase *base,
                              Arena *arena) {
    const char *own = plan_describe(&base->plan, arena), *note = NULL;
    const SensitivityCase *cases[] = {&row->better, &row->worse};
    static const char *const NAMES[] = {"better", "worse"};
    for (int i = 0; i < 2; i++) {
        if (!cases[i]->has_answer) continue;
        const char *plan = plan_describe(&cases[i]->plan, arena);
        if (strcmp(plan, own) != 0)
            note = arena_printf(arena, "%s%s%s: %s", note ? note : "", note ? "; " : "", NAMES[i],
                                plan);
    }
    return note;
}

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
    fputc('\n', stream);
    const TableColumn columns[NUM_COLUMNS] = {
        [COLUMN_RESOURCE] = {"resource", false, 0},
        [COLUMN_BETTER] = {"better", true, 0},
        [COLUMN_WORSE] = {"worse", true, 0},
        [COLUMN_TORNADO] = {"step: - saved | added +", false, 1},
    };
    Table table = table_new(&arena, columns, NUM_COLUMNS);
    for (int i = 0; i < s->num_rows; i++) {
        const SensitivityRow *row = &s->rows[i];
        const char *cells[NUM_COLUMNS] = {
            RESOURCE_TITLES[row->resource], change_text(&row->better, &s->base, &arena),
            change_text(&row->worse, &s->base, &arena), tornado_text(row, most_frac(s), &arena)};
        table_add(&table, STYLE_PLAIN, cells, plans_text(row, &s->base, &arena));
    }
    table_print(&table, &paper);
    fputc('\n', stream);
    paper_wrap(&paper, 0, STYLE_GOOD, limit_text(s, &arena));
    arena_free(&arena);
}
