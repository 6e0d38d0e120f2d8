#include "report/lengths_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

enum { COLUMN_ROUNDS, COLUMN_GROUPS, COLUMN_TIME, COLUMN_SEQUENCES, COLUMN_TOKENS, NUM_COLUMNS };

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_ROUNDS] = {"round", true, 0},
    [COLUMN_GROUPS] = {"cp of the groups side by side", false, 0},
    [COLUMN_TIME] = {"time", true, 0},
    [COLUMN_SEQUENCES] = {"sequences of", false, 2},
    [COLUMN_TOKENS] = {"tokens", true, 1},
};

const char *lengths_layout_text(const LengthsProblem *problem, const LengthsRound *round,
                                Arena *arena) {
    const char *text = "";
    for (int g = 0, same; g < round->num_groups; g += same) {
        const int size = problem->sizes[round->groups[g].size].size;
        for (same = 1; g + same < round->num_groups; same++)
            if (round->groups[g + same].size != round->groups[g].size) break;
        const char *separator = g > 0 ? ", " : "";
        text = same > 1 ? arena_printf(arena, "%s%s%d x %d", text, separator, same, size)
                        : arena_printf(arena, "%s%s%d", text, separator, size);
    }
    return text;
}

// Sequences, their shortest and longest length and their tokens.
typedef struct {
    int num_sequences;
    int64_t shortest, longest;
    double tokens;
} RoundContent;

static RoundContent round_content(const LengthsProblem *p, const LengthsRound *round) {
    RoundContent content = {0};
    for (int i = 0; i < p->num_buckets; i++)
        for (int g = 0; g < round->num_groups; g++) {
            const int count = round->groups[g].counts[i];
            if (count == 0) continue;
            if (content.num_sequences == 0) content.longest = p->buckets[i].length;
            content.shortest = p->buckets[i].length;
            content.num_sequences += count;
            content.tokens += (double)count * (double)p->buckets[i].length;
        }
    return content;
}

static void round_add(Table *table, const LengthsAnswer *answer, int number, Arena *arena) {
    const LengthsRound *round = &answer->schedule.rounds[number];
    const RoundContent content = round_content(&answer->problem, round);
    char time[UNITS_SIZE], tokens[UNITS_SIZE];
    const char *lengths =
        content.shortest == content.longest
            ? arena_printf(arena, "%d of %lld", content.num_sequences, (long long)content.longest)
            : arena_printf(arena, "%d of %lld to %lld", content.num_sequences,
                           (long long)content.shortest, (long long)content.longest);
    const char *cells[NUM_COLUMNS] = {
        [COLUMN_ROUNDS] = arena_printf(arena, "%d", number + 1),
        [COLUMN_GROUPS] = lengths_layout_text(&answer->problem, round, arena),
        [COLUMN_TIME] = units_seconds(round->time_s, time),
        [COLUMN_SEQUENCES] = lengths,
        [COLUMN_TOKENS] = units_count(content.tokens, tokens),
    };
    table_add(table, STYLE_PLAIN, cells, NULL);
}

static void print_answer(const LengthsAnswer *answer, const char *title, double num_tokens,
                         const Paper *paper, Arena *arena) {
    const LengthsSchedule *schedule = &answer->schedule;
    char step[UNITS_SIZE], rate[UNITS_SIZE];
    const Plan *plan = answer->plans[schedule->rounds[0].groups[0].size];
    paper_heading(paper, title);
    paper_wrap(paper, 0, STYLE_GOOD,
               arena_printf(arena, "%s a step, %s tokens/s: tp %d, %s, zero%d, recompute %s",
                            units_seconds(schedule->step_time_s, step),
                            units_count(num_tokens / schedule->step_time_s, rate), plan->tp,
                            CP_METHOD_NAMES[plan->cp_method], plan->zero_stage,
                            RECOMPUTE_NAMES[plan->recompute]));
    Table table = table_new(arena, COLUMNS, NUM_COLUMNS);
    for (int m = 0; m < schedule->num_rounds; m++) round_add(&table, answer, m, arena);
    table_print(&table, paper);
    fputc('\n', paper->stream);
}

static void print_gain(const LengthsResult *result, const Paper *paper, Arena *arena) {
    char gain[UNITS_SIZE], gap[UNITS_SIZE], bound[UNITS_SIZE];
    if (result->stopped_early)
        paper_wrap(
            paper, 0, STYLE_PLAIN,
            arena_printf(arena, "Stopped early: the best of %d shapes.", result->num_scheduled));
    paper_wrap(
        paper, 0, STYLE_PLAIN,
        arena_printf(arena,
                     "Groups of several sizes gain %s. By this model of the machine no assignment "
                     "takes less than %s (linear program over all of %d shapes): this one is at "
                     "most %s slower than the best.",
                     units_percent(lengths_gain_frac(result), gain),
                     units_seconds(result->bound_s, bound), result->num_shapes,
                     units_percent(result->gap_frac, gap)));
}

// Lengths of which a step has less than one sequence; NULL for none.
static const char *left_out_text(const LengthsResult *result, Arena *arena) {
    if (result->num_left_out == 0) return NULL;
    const char *text = "of these a step has less than one sequence, and this one none:";
    for (int i = 0; i < result->num_left_out; i++)
        text = arena_printf(arena, "%s%s %lld", text, i > 0 ? "," : "",
                            (long long)result->left_out[i]);
    return text;
}

void report_lengths(const Scenario *scenario, const LengthsResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    char tokens[UNITS_SIZE];
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(
                   &arena, "%d lengths from %lld to %lld, %s tokens a step", result->num_buckets,
                   (long long)result->buckets[result->num_buckets - 1].length,
                   (long long)result->buckets[0].length, units_count(result->num_tokens, tokens)));
    const char *left_out = left_out_text(result, &arena);
    if (left_out) paper_wrap(&paper, 0, STYLE_PLAIN, left_out);
    fputc('\n', stream);
    if (result->one_size.schedule.num_rounds > 0)
        print_answer(&result->one_size, "Groups of one size", result->num_tokens, &paper, &arena);
    if (lengths_fits(result)) {
        print_answer(&result->many_sizes, "Groups of several sizes", result->num_tokens, &paper,
                     &arena);
        print_gain(result, &paper, &arena);
    } else {
        paper_wrap(&paper, 0, STYLE_BAD, lengths_refuse(scenario, result).text);
    }
    arena_free(&arena);
}
