#include "planner/advice.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>
#include <string.h>

enum {
    COLUMN_RANK,
    COLUMN_PLAN,
    COLUMN_STEP,
    COLUMN_INTERVAL,
    COLUMN_TOKENS,
    COLUMN_MFU,
    COLUMN_MEMORY,
    COLUMN_COST,
    NUM_COLUMNS
};

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_RANK] = {"#", true, 0},          [COLUMN_PLAN] = {"plan", false, 0},
    [COLUMN_STEP] = {"step time", true, 0},  [COLUMN_INTERVAL] = {"80 % interval", true, 3},
    [COLUMN_TOKENS] = {"tokens/s", true, 1}, [COLUMN_MFU] = {"MFU", true, 0},
    [COLUMN_MEMORY] = {"memory", true, 2},   [COLUMN_COST] = {"USD/1e9", true, 4},
};

// "11.6 - 13.1 s", or with both units where they differ.
static void interval_text(const Estimate *e, char *text, size_t size) {
    char low[UNITS_SIZE], high[UNITS_SIZE];
    units_seconds(e->step_time_low_s, low);
    units_seconds(e->step_time_high_s, high);
    char *unit = strchr(low, ' ');
    if (unit && strcmp(unit, strchr(high, ' ')) == 0) *unit = '\0';
    snprintf(text, size, "%s - %s", low, high);
}

// The account is right to a few percent (docs/accuracy.md): beyond this a plan may fail to
// allocate.
static const double TIGHT_MEMORY_FRAC = 0.95;

static void add_entry(Table *table, const PlannedEntry *entry, int rank, Arena *arena) {
    const Estimate *e = &entry->estimate;
    char text[NUM_COLUMNS][2 * UNITS_SIZE + 4];
    const char *cells[NUM_COLUMNS];
    for (int c = 0; c < NUM_COLUMNS; c++) cells[c] = text[c];
    snprintf(text[COLUMN_RANK], sizeof text[0], "%d", rank);
    cells[COLUMN_PLAN] = plan_describe(&entry->plan, arena);
    units_seconds(e->step_time_s, text[COLUMN_STEP]);
    interval_text(e, text[COLUMN_INTERVAL], sizeof text[0]);
    units_count(e->tokens_per_s, text[COLUMN_TOKENS]);
    units_percent(e->mfu_frac, text[COLUMN_MFU]);
    units_bytes(e->memory.device_bytes, text[COLUMN_MEMORY]);
    units_plain(e->usd_per_1e9_tokens, text[COLUMN_COST]);
    const char *why = entry->why ? entry->why : "";
    const char *advice = advice_text(&entry->advice, arena);
    bool tight = e->memory.device_bytes > TIGHT_MEMORY_FRAC * e->memory_available_bytes;
    const char *note = arena_printf(
        arena, "%s%sexposed: %s%s%s%s%s", why, why[0] ? "; " : "", report_exposed(e, arena),
        advice ? "; " : "", advice ? advice : "",
        rank > 1 && entry->within_noise_of_best ? "; within the noise of the best" : "",
        tight ? "; tight: over 95 % of the memory" : "");
    table_add(table, rank == 1 ? STYLE_GOOD : STYLE_PLAIN, cells, note);
}

static void print_plans(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                        Arena *arena) {
    Table table = table_new(arena, COLUMNS, NUM_COLUMNS);
    for (int i = 0; i < result->num_entries; i++)
        add_entry(&table, &result->entries[i], i + 1, arena);
    table_print(&table, paper);
    char available[UNITS_SIZE];
    units_bytes(result->entries[0].estimate.memory_available_bytes, available);
    fprintf(paper->stream, "\nEach of the %d GPUs has %s for the job.\n",
            scenario->cluster.num_gpus, available);
}

static void print_search(const SearchStats *stats, int num_entries, const Paper *paper,
                         Arena *arena) {
    const char *counts = arena_printf(
        arena,
        "Searched %" PRId64 " configurations: %" PRId64 " do not fit in memory, %" PRId64
        " cannot be among the best by their lower bound, %" PRId64 " were priced",
        stats->considered, stats->pruned_by_memory, stats->pruned_by_bound, stats->priced);
    const char *proof = "";
    if (num_entries > 0 && stats->optimal)
        proof = " (by this model of the machine nothing better was left out)";
    else if (num_entries > 0)
        proof = arena_printf(arena, " (stopped early; what was left out is at most %.1f %% better)",
                             stats->gap_frac * 100);
    if (stats->stopped_early && num_entries < stats->wanted)
        proof = arena_printf(arena, "%s; the budget ended before %d plans were priced", proof,
                             stats->wanted);
    paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(arena, "%s%s.", counts, proof));
}

void report_plans(const Scenario *scenario, const PlannerResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    const char *calibration = report_calibration(scenario, &arena);
    if (calibration)
        paper_wrap(&paper, 0, STYLE_PLAIN, arena_printf(&arena, "calibration: %s", calibration));
    fputc('\n', stream);
    if (result->num_entries > 0)
        print_plans(scenario, result, &paper, &arena);
    else
        paper_wrap(&paper, 0, STYLE_BAD, planner_miss_text(result, &arena));
    print_search(&result->stats, result->num_entries, &paper, &arena);
    arena_free(&arena);
}
