#include "planner/groups/group_answer.h"
#include "planner/questions/advice.h"
#include "planner/questions/switch_advice.h"
#include "planner/space/space_text.h"
#include "report/fit_text.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>
#include <math.h>
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
    [COLUMN_STEP] = {"step time", true, 0},  [COLUMN_INTERVAL] = {"80 % interval", true, 4},
    [COLUMN_TOKENS] = {"tokens/s", true, 2}, [COLUMN_MFU] = {"MFU", true, 1},
    [COLUMN_MEMORY] = {"memory", true, 3},   [COLUMN_COST] = {"USD/1e9", true, 5},
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

// "stages of 8, 10 x 2, 8 layers; " where they are not all alike.
static const char *stages_text(const Plan *plan, Arena *arena) {
    const char *text = "";
    bool alike = true;
    for (int c = 0, next; c < plan->num_chunks; c = next) {
        const int layers = plan->chunks[c].num_layers;
        for (next = c + 1; next < plan->num_chunks; next++)
            if (plan->chunks[next].num_layers != layers) break;
        alike = c == 0 && next == plan->num_chunks;
        text = arena_printf(arena, "%s%s%d", text, c > 0 ? ", " : "", layers);
        if (next - c > 1) text = arena_printf(arena, "%s x %d", text, next - c);
    }
    if (alike || plan_is_dual(plan)) return "";
    return arena_printf(arena, "%s of %s layers; ", plan->vpp > 1 ? "chunks" : "stages", text);
}

// A plan that is less sure to fit says so.
static const double SURE_FRAC = 0.99;

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
    const bool sure = e->fits_probability_frac >= SURE_FRAC;
    const bool covered = evidence_covers(e->evidence, e->ingredients);
    const char *note = arena_printf(
        arena, "%s%s%sexposed: %s%s%s%s%s%s%s", why, why[0] ? "; " : "",
        stages_text(&entry->plan, arena), report_exposed(e, arena), advice ? "; " : "",
        advice ? advice : "",
        rank > 1 && entry->within_noise_of_best ? "; within the noise of the best" : "",
        sure ? "" : "; fits with ", sure ? "" : fit_percent(e->fits_probability_frac, arena),
        covered ? "" : "; extrapolated");
    table_add(table, rank == 1 ? STYLE_GOOD : STYLE_PLAIN, cells, note);
}

// Where the stages of the best plan lie, and what else the groups could do.
static void print_groups(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                         Arena *arena) {
    const PlannedEntry *best = &result->entries[0];
    const Cluster *cluster = &scenario->cluster;
    char available[UNITS_SIZE];
    fputc('\n', paper->stream);
    paper_wrap(paper, 0, STYLE_PLAIN, "The best plan's pipeline:");
    for (int i = 0; i < best->num_shares; i++)
        paper_wrap(paper, 2, STYLE_PLAIN, group_share_text(&best->shares[i], arena));
    if (result->groups) paper_wrap(paper, 0, STYLE_PLAIN, groups_answer_text(result, arena));
    for (int i = 0; i < cluster->num_pools; i++) {
        const Gpu *gpu = &cluster->pools[i].gpu;
        units_memory(gpu->memory_available_bytes, available);
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena, "Each of the %d %s has %s for the job.",
                                cluster->pools[i].num_gpus, gpu->name, available));
    }
}

// Each reason once, whatever the plans.
static void print_extrapolated(const PlannerResult *result, const Paper *paper, Arena *arena) {
    const char *last = NULL;
    for (int i = 0; i < result->num_entries; i++) {
        const char *text = extrapolated_text(&result->entries[i].estimate, arena);
        if (!text || (last && strcmp(text, last) == 0)) continue;
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena, "Plan %d is extrapolated, so with wider intervals: %s.",
                                i + 1, text));
        last = text;
    }
}

static void print_plans(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                        Arena *arena) {
    Table table = table_new(arena, COLUMNS, NUM_COLUMNS);
    for (int i = 0; i < result->num_entries; i++)
        add_entry(&table, &result->entries[i], i + 1, arena);
    table_print(&table, paper);
    char available[UNITS_SIZE];
    if (scenario->cluster.num_pools > 1) {
        print_groups(scenario, result, paper, arena);
        return;
    }
    units_memory(result->entries[0].estimate.memory_available_bytes, available);
    fprintf(paper->stream, "\nEach of the %d GPUs has %s for the job.\n",
            scenario->cluster.num_gpus, available);
    const char *price = report_price(&result->entries[0].estimate, arena);
    if (price) paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(arena, "Price: %s.", price));
}

// Faster than the best, and less sure to fit.
static void print_riskier(const PlannerResult *result, const Paper *paper, Arena *arena) {
    const char *asked = arena_printf(arena, "%g %%", result->fit_probability_frac * 100);
    paper_wrap(paper, 0, STYLE_PLAIN,
               result->num_entries > 0
                   ? arena_printf(arena,
                                  "Riskier, and faster (a plan counts as fitting where it does "
                                  "with %s; --fit-probability):",
                                  asked)
                   : arena_printf(arena,
                                  "No plan fits with %s. These may (--fit-probability 0.5 plans "
                                  "with them):",
                                  asked));
    for (int i = 0; i < result->num_riskier; i++) {
        const PlannedEntry *entry = &result->riskier[i];
        char step[UNITS_SIZE], memory[UNITS_SIZE];
        paper_wrap(paper, 2, STYLE_BAD,
                   arena_printf(arena, "%s: %s, %s; %s", plan_describe(&entry->plan, arena),
                                units_seconds(entry->estimate.step_time_s, step),
                                units_bytes(entry->estimate.memory.device_bytes, memory),
                                entry->why));
    }
}

// "256 and 244": smaller numbers of GPUs that were ruled out, or not.
static const char *numbers_text(const IdleAnswer *idle, bool late, Arena *arena) {
    const char *text = "";
    for (int i = 0; i < idle->num_looks; i++) {
        const IdleLook *look = &idle->looks[i];
        if (!look->ruled_out_by || look->is_open != late) continue;
        text = arena_printf(arena, "%s%s%d", text, text[0] ? ", " : "", look->num_gpus);
    }
    return text;
}

// "8 of each of 2 nodes and 4 of each of 3 nodes": by pool.
static const char *used_text(const Cluster *cluster, Arena *arena) {
    const char *text = "";
    for (int i = 0; i < cluster->num_pools; i++) {
        const Pool *pool = &cluster->pools[i];
        text = arena_printf(arena, "%s%s%d of each of %d node%s", text, i ? " and " : "",
                            pool->gpus_per_node, pool->num_nodes, pool->num_nodes == 1 ? "" : "s");
    }
    return text;
}

// How many GPUs the plans use, and why.
static void print_idle(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                       Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const IdleAnswer *idle = &result->idle;
    if (cluster->idle_gpus > 0) {
        const char *why = "";
        if (cluster->num_gpus < idle->all_gpus)
            why = idle->all_are_legal ? " No plan on all of them is faster."
                                      : " No plan on all of them is legal.";
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena,
                                "%d of %d GPUs stay idle: ranks run on %s. Prices are those of "
                                "all %d.%s",
                                cluster->idle_gpus, cluster_total_gpus(cluster),
                                used_text(cluster, arena), cluster_total_gpus(cluster), why));
    }
    const char *slower = numbers_text(idle, false, arena), *open = numbers_text(idle, true, arena);
    if (slower[0] && result->num_entries > 0)
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena, "Fewer GPUs were looked at, too: on %s no plan is faster.",
                                slower));
    if (open[0] && result->num_entries > 0)
        paper_wrap(paper, 0, STYLE_PLAIN,
                   arena_printf(arena, "The time given ended before %s GPUs were decided.", open));
}

static void print_search(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                         Arena *arena) {
    const SearchStats *stats = &result->stats;
    const int num_entries = result->num_entries;
    const char *counts = arena_printf(
        arena,
        "Searched %" PRId64 " configurations: %" PRId64 " do not fit in memory, %" PRId64
        " cannot be among the best by their lower bound, %" PRId64 " were priced",
        stats->considered, stats->pruned_by_memory, stats->pruned_by_bound, stats->priced);
    const char *proof = "";
    if (num_entries > 0 && stats->optimal)
        proof = " (by this model of the machine nothing better was left out)";
    else if (num_entries > 0 && !stats->stopped_early)
        proof = arena_printf(arena,
                             " (of some of these not every split of the layers was tried; what was "
                             "left out is at most %.1f %% better)",
                             stats->gap_frac * 100);
    else if (num_entries > 0)
        proof = arena_printf(arena, " (stopped early; what was left out is at most %.1f %% better)",
                             stats->gap_frac * 100);
    if (stats->stopped_early && num_entries < stats->wanted)
        proof = arena_printf(arena, "%s; the budget ended before %d plans were priced", proof,
                             stats->wanted);
    paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(arena, "%s%s.", counts, proof));
    if (num_entries > 0) paper_wrap(paper, 0, STYLE_PLAIN, space_text(scenario, result, arena));
}

// "3 0 1-5 2": nodes in the order of their ranks.
static const char *nodes_text(const NodeOrder *order, Arena *arena) {
    const char *text = "";
    for (int i = 0, last; i < order->num_nodes; i = last + 1) {
        for (last = i; last + 1 < order->num_nodes; last++)
            if (order->node[last + 1] != order->node[last] + 1) break;
        text = arena_printf(arena, "%s%s%d", text, i ? " " : "", order->node[i]);
        if (last > i) text = arena_printf(arena, "%s-%d", text, order->node[last]);
    }
    return text;
}

static void print_placement(const PlacementResult *placement, int num_entries, const Paper *paper,
                            Arena *arena) {
    char own[UNITS_SIZE], bound[UNITS_SIZE], gap[UNITS_SIZE], gain[UNITS_SIZE];
    units_seconds(placement->default_step_time_s, own);
    units_seconds(placement->bound_step_time_s, bound);
    units_percent(placement->gap_frac, gap);
    units_percent(1 - placement->estimate.step_time_s / placement->default_step_time_s, gain);
    const char *what =
        placement->order
            ? arena_printf(arena,
                           "Its nodes, in the order of the ranks: %s. In their own order the "
                           "step takes %s: %s are gained.",
                           nodes_text(placement->order, arena), own, gain)
            : "No order of its nodes that was tried is better than their own.";
    const char *others =
        num_entries > 1
            ? " The other plans, and what the search left out, have theirs in their own order."
            : "";
    paper_wrap(paper, 0, STYLE_PLAIN,
               arena_printf(arena, "%s No order takes less than %s (gap %s).%s", what, bound, gap,
                            others));
}

// What of the software the scenario leaves open, and what it would bring.
static void print_switches(const PlannerResult *result, const Paper *paper, Arena *arena) {
    if (result->num_switches == 0) return;
    paper_wrap(paper, 0, STYLE_PLAIN,
               "Switches that the scenario leaves open, each on top of those before (plan --tune "
               "searches them all):");
    for (int i = 0; i < result->num_switches; i++)
        paper_wrap(paper, 2, STYLE_PLAIN, switch_advice_text(&result->switches[i], arena));
}

void report_plans(const Scenario *scenario, const PlannerResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    const char *calibration = report_calibration(scenario, &arena);
    if (calibration)
        paper_wrap(&paper, 0, STYLE_PLAIN, arena_printf(&arena, "calibration: %s", calibration));
    fputc('\n', stream);
    if (result->num_entries > 0) print_plans(scenario, result, &paper, &arena);
    print_extrapolated(result, &paper, &arena);
    if (result->num_entries > 0 && result->entries[0].placement)
        print_placement(result->entries[0].placement, result->num_entries, &paper, &arena);
    if (result->num_entries == 0)
        paper_wrap(&paper, 0, STYLE_BAD, planner_miss_text(result, &arena));
    if (result->num_riskier > 0) print_riskier(result, &paper, &arena);
    print_search(scenario, result, &paper, &arena);
    print_idle(scenario, result, &paper, &arena);
    print_switches(result, &paper, &arena);
    arena_free(&arena);
}

void report_line(const char *text, FILE *stream) {
    const Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_PLAIN, text);
}
