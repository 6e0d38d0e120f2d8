#include "report/fleet_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_CLUSTER,
    COLUMN_GPUS,
    COLUMN_DAYS,
    COLUMN_COST,
    COLUMN_ENERGY,
    COLUMN_HOURS,
    COLUMN_PLAN,
    NUM_COLUMNS
};

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_CLUSTER] = {"cluster", false, 0}, [COLUMN_GPUS] = {"GPUs", true, 0},
    [COLUMN_DAYS] = {"days", true, 0},        [COLUMN_COST] = {"USD", true, 0},
    [COLUMN_ENERGY] = {"MWh", true, 0},       [COLUMN_HOURS] = {"GPU hours", true, 1},
    [COLUMN_PLAN] = {"plan", false, 2},
};

static const char *or_dash(double value, char *text) {
    return value > 0 ? units_count(value, text) : "-";
}

static void size_add(Table *table, const FleetEntry *entry, const FleetSize *size, Style style,
                     Arena *arena) {
    char cost[UNITS_SIZE], energy[UNITS_SIZE], hours[UNITS_SIZE];
    const char *cells[NUM_COLUMNS] = {
        [COLUMN_CLUSTER] = entry->preset,
        [COLUMN_GPUS] = arena_printf(arena, "%d", size->num_gpus),
        [COLUMN_DAYS] = arena_printf(arena, "%.2f", size->run.run_s / 86400),
        [COLUMN_COST] = or_dash(size->run.cost_usd, cost),
        [COLUMN_ENERGY] = or_dash(size->run.energy_joules / 3.6e9, energy),
        [COLUMN_HOURS] = units_count(size->run.gpu_hours, hours),
        [COLUMN_PLAN] = plan_describe(&size->plan, arena),
    };
    table_add(table, style, cells, NULL);
}

const char *report_fleet_row(const FleetEntry *entry, Arena *arena) {
    char cost[UNITS_SIZE];
    if (entry->num_sizes == 0)
        return arena_printf(arena, "%s: %s (%.1f s)", entry->preset,
                            entry->refusal ? "the job cannot run there" : "not fast enough",
                            entry->wall_s);
    const FleetSize *size = &entry->sizes[entry->wanted];
    const char *price = size->run.cost_usd > 0
                            ? arena_printf(arena, ", %s", units_usd(size->run.cost_usd, cost))
                            : "";
    return arena_printf(arena, "%s: %d GPUs%s, %.2f days%s (%.1f s)", entry->preset, size->num_gpus,
                        entry->sizing.is_proven ? "" : " or fewer", size->run.run_s / 86400, price,
                        entry->wall_s);
}

static void entry_add(Table *table, const FleetEntry *entry, Arena *arena) {
    if (entry->num_sizes > 0) {
        size_add(table, entry, &entry->sizes[entry->wanted], STYLE_PLAIN, arena);
        return;
    }
    const char *cells[NUM_COLUMNS] = {entry->preset};
    table_add(table, STYLE_BAD, cells,
              entry->refusal ? entry->refusal : "no number of GPUs looked at is fast enough");
}

typedef struct {
    const FleetEntry *entry;
    const FleetSize *size;
} Corner;

static int compare_corners(const void *a, const void *b) {
    const double x = ((const Corner *)a)->size->run.run_s, y = ((const Corner *)b)->size->run.run_s;
    return (x > y) - (x < y);
}

static void frontier_print(const Fleet *fleet, const Paper *paper, Arena *arena) {
    Corner *corners = ARENA_ARRAY(arena, fleet->num_entries * FLEET_NUM_SIZES + 1, Corner);
    int n = 0;
    for (int e = 0; e < fleet->num_entries; e++)
        for (int i = 0; i < fleet->entries[e].num_sizes; i++)
            if (fleet->entries[e].sizes[i].is_on_frontier)
                corners[n++] = (Corner){&fleet->entries[e], &fleet->entries[e].sizes[i]};
    if (n == 0) return;
    qsort(corners, (size_t)n, sizeof *corners, compare_corners);
    fputc('\n', paper->stream);
    paper_heading(paper, "Cost against time: no size looked at is both faster and cheaper");
    Table table = table_new(arena, COLUMNS, NUM_COLUMNS);
    for (int i = 0; i < n; i++)
        size_add(&table, corners[i].entry, corners[i].size, STYLE_PLAIN, arena);
    table_print(&table, paper);
}

// What the dollars of the rows rest on; rows of one price and source share a line.
static void print_prices(const Fleet *fleet, const Paper *paper, Arena *arena) {
    bool *told = ARENA_ARRAY(arena, fleet->num_entries + 1, bool);
    for (int e = 0; e < fleet->num_entries; e++) {
        const FleetEntry *entry = &fleet->entries[e];
        const char *price =
            entry->num_sizes > 0 ? report_price(&entry->sizes[0].estimate, arena) : NULL;
        if (!price || told[e]) continue;
        const char *names = entry->preset;
        for (int f = e + 1; f < fleet->num_entries; f++) {
            const FleetEntry *other = &fleet->entries[f];
            if (other->num_sizes == 0) continue;
            const char *same = report_price(&other->sizes[0].estimate, arena);
            if (!same || strcmp(same, price) != 0) continue;
            names = arena_printf(arena, "%s, %s", names, other->preset);
            told[f] = true;
        }
        paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(arena, "%s: %s", names, price));
    }
}

// Where the time of a row, or the user's patience, ended before all was decided.
static void print_unproven(const Fleet *fleet, const Paper *paper, Arena *arena) {
    const char *names = "";
    for (int e = 0; e < fleet->num_entries; e++) {
        const FleetEntry *entry = &fleet->entries[e];
        if (entry->num_sizes == 0 || entry->sizing.is_proven) continue;
        names = arena_printf(arena, "%s%s%s", names, names[0] ? ", " : "", entry->preset);
    }
    if (names[0])
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena,
                                "Fewer GPUs may do, as not every smaller number was decided in %d "
                                "s: %s. plan --deadline on one of them takes the time it needs.",
                                FLEET_BUDGET_S, names));
    if (fleet->num_entries < fleet->num_asked)
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena, "Stopped early: %d of %d kinds of clusters were looked at.",
                                fleet->num_entries, fleet->num_asked));
}

void report_fleet(const Scenario *scenario, const Fleet *fleet, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    char tokens[UNITS_SIZE];
    paper_wrap(&paper, 0, STYLE_BOLD,
               arena_printf(&arena,
                            "%s: the smallest cluster of each kind that trains %s tokens in %.4g "
                            "days, computing alone",
                            scenario->model.name, units_count(fleet->num_tokens, tokens),
                            fleet->days));
    fputc('\n', stream);
    Table table = table_new(&arena, COLUMNS, NUM_COLUMNS);
    for (int i = 0; i < fleet->num_entries; i++) entry_add(&table, &fleet->entries[i], &arena);
    table_print(&table, &paper);
    print_prices(fleet, &paper, &arena);
    print_unproven(fleet, &paper, &arena);
    frontier_print(fleet, &paper, &arena);
    arena_free(&arena);
}
