#include "report/compare_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <string.h>

enum { COLUMN_NAME, COLUMN_A, COLUMN_B, COLUMN_DIFFERENCE, COLUMN_RATIO, NUM_COLUMNS };

static const char *value_text(CompareUnit unit, double value, char *text) {
    switch (unit) {
    case COMPARE_SECONDS:
        return units_seconds(value, text);
    case COMPARE_BYTES:
        return units_bytes(value, text);
    case COMPARE_NUMBER:
        break;
    }
    return value >= 1000 ? units_count(value, text) : units_plain(value, text);
}

static void row_print(Table *table, const CompareRow *row, Arena *arena) {
    char a[UNITS_SIZE], b[UNITS_SIZE], size[UNITS_SIZE];
    const double difference = row->b - row->a;
    const char *cells[NUM_COLUMNS] = {row->name, value_text(row->unit, row->a, a),
                                      value_text(row->unit, row->b, b)};
    cells[COLUMN_DIFFERENCE] = difference == 0
                                   ? "0"
                                   : arena_printf(arena, "%s%s", difference < 0 ? "-" : "+",
                                                  value_text(row->unit, fabs(difference), size));
    if (row->a > 0)
        cells[COLUMN_RATIO] = arena_printf(arena, "%+.1f %%", 100 * (row->b / row->a - 1));
    table_add(table, STYLE_PLAIN, cells, NULL);
}

static const char *verdict(const Comparison *c, Arena *arena) {
    const double more = c->tokens_ratio - 1, cost_a = c->a.estimate.usd_per_1e9_tokens;
    const char *text = arena_printf(arena, "B trains %.2f %% %s tokens a second than A",
                                    100 * fabs(more), more < 0 ? "fewer" : "more");
    if (fabs(more) < 5e-5) text = "B trains as many tokens a second as A";
    if (cost_a > 0 && c->b.estimate.usd_per_1e9_tokens > 0) {
        const double cost = c->b.estimate.usd_per_1e9_tokens / cost_a - 1;
        text = arena_printf(arena, "%s, for %.2f %% %s a token", text, 100 * fabs(cost),
                            cost < 0 ? "less" : "more");
    }
    return arena_printf(arena, "%s%s.%s", text,
                        c->within_noise ? "; the estimate cannot tell them apart" : "",
                        compare_misfit_text(c->a.estimate.fits, c->b.estimate.fits));
}

static void side_print(const Paper *paper, const char *name, const CompareSide *side,
                       Arena *arena) {
    const char *what = report_question(side->scenario, arena);
    const bool fits = !side->miss && side->estimate.fits;
    const char *plan = side->miss ? side->miss : plan_describe(&side->plan, arena);
    paper_wrap(paper, 0, fits ? STYLE_PLAIN : STYLE_BAD,
               arena_printf(arena, "%s  %s: %s; %s%s", name, side->scenario->file, what, plan,
                            side->miss || fits ? "" : "; does not fit"));
}

// At most MAX_VALUE letters of a long value, from shortly before the first that differs.
static const char *value_cut(const char *value, const char *other, Arena *arena) {
    enum { MAX_VALUE = 40, BEFORE = 12 };
    const size_t size = strlen(value);
    size_t from = 0;
    if (size <= MAX_VALUE) return value;
    while (value[from] && value[from] == other[from]) from++;
    from = from > BEFORE ? from - BEFORE : 0;
    if (from + MAX_VALUE > size) from = size - MAX_VALUE;
    size_t end = from + MAX_VALUE;
    while ((value[from] & 0xC0) == 0x80) from++; // not inside a letter of UTF-8
    while (end < size && (value[end] & 0xC0) == 0x80) end--;
    return arena_printf(arena, "%s%.*s%s", from > 0 ? "..." : "", (int)(end - from), value + from,
                        end < size ? "..." : "");
}

static void changes_print(const Comparison *c, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"what differs", false, 0}, {"A", false, 0}, {"B", false, 0}};
    if (c->num_changes == 0) {
        paper_wrap(paper, 0, STYLE_PLAIN, "They ask the same.");
        return;
    }
    Table table = table_new(arena, COLUMNS, 3);
    for (int i = 0; i < c->num_changes; i++) {
        const CompareChange *change = &c->changes[i];
        const char *a = change->a ? change->a : "-", *b = change->b ? change->b : "-";
        const char *cells[] = {change->path, value_cut(a, b, arena), value_cut(b, a, arena)};
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    table_print(&table, paper);
}

void report_comparison(const Comparison *c, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    side_print(&paper, "A", &c->a, &arena);
    side_print(&paper, "B", &c->b, &arena);
    fputc('\n', stream);
    changes_print(c, &paper, &arena);
    if (c->num_rows > 0) {
        static const TableColumn COLUMNS[NUM_COLUMNS] = {
            [COLUMN_NAME] = {"term", false, 0},  [COLUMN_A] = {"A", true, 0},
            [COLUMN_B] = {"B", true, 0},         [COLUMN_DIFFERENCE] = {"B - A", true, 0},
            [COLUMN_RATIO] = {"B / A", true, 0},
        };
        fputc('\n', stream);
        Table table = table_new(&arena, COLUMNS, NUM_COLUMNS);
        for (int i = 0; i < c->num_rows; i++)
            if (c->rows[i].a != 0 || c->rows[i].b != 0) row_print(&table, &c->rows[i], &arena);
        table_print(&table, &paper);
        fputc('\n', stream);
        paper_wrap(&paper, 0, STYLE_GOOD, verdict(c, &arena));
    }
    arena_free(&arena);
}
