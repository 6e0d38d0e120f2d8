#include "report/validate_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>

enum { MAX_REFUSALS = 10 };

// --- Scores

enum {
    SCORE_FAMILY,
    SCORE_CASES,
    SCORE_REFUSED,
    SCORE_MISFITS,
    SCORE_MAPE,
    SCORE_MEDIAN,
    SCORE_P90,
    SCORE_BIAS,
    SCORE_INSIDE,
    SCORE_MEMORY,
    SCORE_MEMORY_MAX,
    SCORE_TAU,
    SCORE_REGRET,
    NUM_SCORES
};

static const TableColumn SCORES[NUM_SCORES] = {
    [SCORE_FAMILY] = {"family", false, 0},
    [SCORE_CASES] = {"cases", true, 0},
    [SCORE_REFUSED] = {"refused", true, 3},
    [SCORE_MISFITS] = {"misfits", true, 3},
    [SCORE_MAPE] = {"MAPE", true, 0},
    [SCORE_MEDIAN] = {"median", true, 2},
    [SCORE_P90] = {"p90", true, 2},
    [SCORE_BIAS] = {"bias", true, 1},
    [SCORE_INSIDE] = {"in 80 %", true, 1},
    [SCORE_MEMORY] = {"memory", true, 4},
    [SCORE_MEMORY_MAX] = {"mem. max", true, 5},
    [SCORE_TAU] = {"tau", true, 5},
    [SCORE_REGRET] = {"regret", true, 5},
};

static const char *percent_text(double frac, Arena *arena) {
    char text[UNITS_SIZE];
    return isnan(frac) ? "-" : arena_strdup(arena, units_percent(frac, text));
}

static void score_add(Table *table, Style style, const char *name, const ValidateScore *s,
                      Arena *arena) {
    const char *cells[NUM_SCORES] = {
        [SCORE_FAMILY] = name,
        [SCORE_CASES] = arena_printf(arena, "%d", s->num_cases),
        [SCORE_REFUSED] = arena_printf(arena, "%d", s->num_refused),
        [SCORE_MISFITS] = arena_printf(arena, "%d", s->num_misfits),
        [SCORE_MAPE] = percent_text(s->mape_frac, arena),
        [SCORE_MEDIAN] = percent_text(s->median_frac, arena),
        [SCORE_P90] = percent_text(s->p90_frac, arena),
        [SCORE_BIAS] = percent_text(s->bias_frac, arena),
        [SCORE_INSIDE] = percent_text(s->inside_interval_frac, arena),
        [SCORE_MEMORY] = percent_text(s->memory_mape_frac, arena),
        [SCORE_MEMORY_MAX] = percent_text(s->memory_max_frac, arena),
        [SCORE_TAU] = s->num_jobs > 0 ? arena_printf(arena, "%.2f", s->kendall_tau) : "-",
        [SCORE_REGRET] = percent_text(s->regret_frac, arena),
    };
    table_add(table, style, cells, NULL);
}

static void print_part(const ValidatePart *part, const char *all, const Paper *paper,
                       Arena *arena) {
    Table table = table_new(arena, SCORES, NUM_SCORES);
    for (int f = 0; f < part->num_families; f++)
        score_add(&table, STYLE_PLAIN, part->families[f].family, &part->families[f], arena);
    score_add(&table, STYLE_BOLD, all, &part->all, arena);
    table_print(&table, paper);
    if (!isnan(part->mean_of_families_frac))
        fprintf(paper->stream, "mean of families with %d or more cases: %s\n",
                VALIDATE_FAMILY_CASES, percent_text(part->mean_of_families_frac, arena));
}

// --- Cases

enum {
    CASE_ERROR,
    CASE_MEASURED,
    CASE_PREDICTED,
    CASE_INTERVAL,
    CASE_ID,
    NUM_WORST_COLUMNS,
    CASE_MEMORY = NUM_WORST_COLUMNS, // not of the worst, whose notes say why their times differ
    NUM_CASE_COLUMNS
};

static const TableColumn CASE_COLUMNS[NUM_CASE_COLUMNS] = {
    [CASE_ERROR] = {"error", true, 0},         [CASE_MEASURED] = {"measured", true, 0},
    [CASE_PREDICTED] = {"predicted", true, 0}, [CASE_INTERVAL] = {"80 % interval", true, 1},
    [CASE_MEMORY] = {"memory", true, 2},       [CASE_ID] = {"case", false, 0},
};

// The larger of the errors of peak and reserved memory, where they were measured.
static const char *memory_text(const ValidateCase *c, Arena *arena) {
    const PublishedTruth *truth = &c->published->truth;
    const RankMemory *memory = &c->estimate.memory;
    double error = NAN;
    if (truth->memory_peak_bytes > 0) error = memory->peak_bytes / truth->memory_peak_bytes - 1;
    if (truth->memory_reserved_bytes > 0) {
        double reserved = memory->reserved_bytes / truth->memory_reserved_bytes - 1;
        if (isnan(error) || fabs(reserved) > fabs(error)) error = reserved;
    }
    return isnan(error) ? "-" : arena_printf(arena, "%+.1f %%", 100 * error);
}

static const char *breakdown_note(const ValidateCase *c, Arena *arena) {
    char compute[UNITS_SIZE];
    const Estimate *e = &c->estimate;
    units_percent(e->term_s[TERM_COMPUTE] / e->step_time_s, compute);
    const char *source = c->published->source;
    return arena_printf(arena, "compute %s, exposed: %s%s%s%s", compute,
                        report_exposed(e->term_s, e->step_time_s, arena),
                        e->fits ? "" : "; said not to fit", source ? "; " : "",
                        source ? source : "");
}

static void case_add(Table *table, const ValidateCase *c, const char *note, Arena *arena) {
    const char *cells[NUM_CASE_COLUMNS] = {[CASE_ID] = c->published->id};
    if (c->refusal) {
        table_add(table, STYLE_BAD, cells, "refused");
        return;
    }
    const Estimate *e = &c->estimate;
    char measured[UNITS_SIZE], predicted[UNITS_SIZE], low[UNITS_SIZE], high[UNITS_SIZE];
    cells[CASE_MEASURED] = units_seconds(c->measured_s, measured);
    cells[CASE_PREDICTED] = units_seconds(e->step_time_s, predicted);
    cells[CASE_INTERVAL] = arena_printf(arena, "%s - %s", units_seconds(e->step_time_low_s, low),
                                        units_seconds(e->step_time_high_s, high));
    cells[CASE_ERROR] = arena_printf(arena, "%+.1f %%", 100 * c->error_frac);
    cells[CASE_MEMORY] = memory_text(c, arena);
    table_add(table, e->fits ? STYLE_PLAIN : STYLE_BAD, cells,
              note      ? note
              : e->fits ? NULL
                        : "said not to fit");
}

static void print_cases(const ValidateResult *result, bool assumed, const Paper *paper,
                        Arena *arena) {
    Table table = table_new(arena, CASE_COLUMNS, NUM_CASE_COLUMNS);
    for (int i = 0; i < result->num_cases; i++)
        if (assumed || result->cases[i].published->stated)
            case_add(&table, &result->cases[i], NULL, arena);
    fputc('\n', paper->stream);
    table_print(&table, paper);
}

static void print_worst(const ValidateReport *what, const Paper *paper, Arena *arena) {
    Table table = table_new(arena, CASE_COLUMNS, NUM_WORST_COLUMNS);
    for (int i = 0; i < what->num_worst; i++)
        case_add(&table, what->worst[i], breakdown_note(what->worst[i], arena), arena);
    fputc('\n', paper->stream);
    paper_heading(paper, "Largest errors");
    table_print(&table, paper);
}

static void print_refusals(const ValidateResult *result, bool assumed, const Paper *paper,
                           Arena *arena) {
    int num_refused = 0;
    for (int i = 0; i < result->num_cases; i++) {
        const ValidateCase *c = &result->cases[i];
        if (!c->refusal || (!assumed && !c->published->stated)) continue;
        if (num_refused++ == 0) fputc('\n', paper->stream);
        if (num_refused <= MAX_REFUSALS)
            paper_wrap(paper, 0, STYLE_BAD,
                       arena_printf(arena, "refused %s: %s", c->published->id, c->refusal));
    }
    if (num_refused > MAX_REFUSALS)
        fprintf(paper->stream, "and %d more\n", num_refused - MAX_REFUSALS);
}

// --- All

void report_validate(const ValidateResult *result, const ValidateReport *what, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    int num_assumed = result->assumed.all.num_cases;
    if (result->stated.all.num_cases > 0) print_part(&result->stated, "ALL stated", &paper, &arena);
    if (what->assumed && num_assumed > 0) {
        fputc('\n', stream);
        print_part(&result->assumed, "ALL assumed", &paper, &arena);
    } else if (num_assumed > 0) {
        fprintf(stream, "left out: %d cases for which something was assumed (--all)\n",
                num_assumed);
    }
    if (what->cases) print_cases(result, what->assumed, &paper, &arena);
    if (what->num_worst > 0) print_worst(what, &paper, &arena);
    print_refusals(result, what->assumed, &paper, &arena);
    arena_free(&arena);
}
