#include "report/frontier_report.h"

#include "planner/space/space_text.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>

enum {
    COLUMN_RANK,
    COLUMN_PLAN,
    COLUMN_STEP,
    COLUMN_HIGH,
    COLUMN_SLOWER,
    COLUMN_MEMORY,
    COLUMN_ENERGY,
    COLUMN_COST,
    NUM_COLUMNS
};

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_RANK] = {"#", true, 0},         [COLUMN_PLAN] = {"plan", false, 0},
    [COLUMN_STEP] = {"step time", true, 0}, [COLUMN_HIGH] = {"at most (80 %)", true, 3},
    [COLUMN_SLOWER] = {"slower", true, 1},  [COLUMN_MEMORY] = {"memory", true, 0},
    [COLUMN_ENERGY] = {"J/token", true, 2}, [COLUMN_COST] = {"USD/1e9", true, 4},
};

static void add_entry(Table *table, const PlannedEntry *entry, int rank, Arena *arena) {
    const Estimate *e = &entry->estimate;
    char text[NUM_COLUMNS][UNITS_SIZE];
    const char *cells[NUM_COLUMNS];
    for (int c = 0; c < NUM_COLUMNS; c++) cells[c] = text[c];
    snprintf(text[COLUMN_RANK], UNITS_SIZE, "%d", rank);
    cells[COLUMN_PLAN] = plan_describe(&entry->plan, arena);
    units_seconds(e->step_time_s, text[COLUMN_STEP]);
    units_seconds(e->step_time_high_s, text[COLUMN_HIGH]);
    units_percent(entry->loses_frac, text[COLUMN_SLOWER]);
    units_bytes(e->memory.device_bytes, text[COLUMN_MEMORY]);
    snprintf(text[COLUMN_ENERGY], UNITS_SIZE, "%.4g", e->joules_per_token);
    units_plain(e->usd_per_1e9_tokens, text[COLUMN_COST]);
    table_add(table, rank == 1 ? STYLE_GOOD : STYLE_PLAIN, cells, NULL);
}

static const char *proof_text(const SearchStats *stats, Arena *arena) {
    if (stats->optimal)
        return "by this model of the machine each other configuration is no better than one of "
               "these on every axis";
    if (stats->gap_frac >= 1) return "stopped early; not all configurations were looked at";
    return arena_printf(arena,
                        "stopped early; each configuration left out improves on one of these by at "
                        "most %.1f %% on any axis",
                        stats->gap_frac * 100);
}

void report_frontier(const Scenario *scenario, const PlannerResult *result, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    const SearchStats *stats = &result->stats;
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    fputc('\n', stream);
    Table table = table_new(&arena, COLUMNS, NUM_COLUMNS);
    for (int i = 0; i < result->num_entries; i++)
        add_entry(&table, &result->entries[i], i + 1, &arena);
    table_print(&table, &paper);
    fputc('\n', stream);
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(&arena,
                            "The frontier of %s%s: %d of %" PRId64 " configurations, %" PRId64
                            " of which do not fit in memory and %" PRId64 " were priced (%s).",
                            result->robust ? "the upper end of the step time" : "step time",
                            result->num_axes > 2 ? ", memory and energy" : " and memory",
                            result->num_entries, stats->considered, stats->pruned_by_memory,
                            stats->priced, proof_text(stats, &arena)));
    paper_wrap(&paper, 0, STYLE_PLAIN, space_text(scenario, result, &arena));
    arena_free(&arena);
}
