#include "planner/groups/group_answer.h"
#include "planner/questions/switch_advice.h"
#include "planner/space/space_text.h"
#include "report/plan_table.h"
#include "report/report.h"
#include "report/units.h"

// The answer's document, with what the text says beyond it.
static cJSON *result_tree(const PlannerResult *result, Arena *arena) {
    cJSON *tree = planner_to_json(result);
    cJSON *plan = cJSON_GetObjectItemCaseSensitive(tree, "plans")->child;
    for (int i = 0; i < result->num_entries; i++, plan = plan->next) {
        const PlannedEntry *entry = &result->entries[i];
        cJSON *advice = cJSON_GetObjectItemCaseSensitive(plan, "advice");
        cJSON_AddStringToObject(plan, PLAN_TABLE_NAME, plan_describe(&entry->plan, arena));
        if (advice) cJSON_AddBoolToObject(advice, PLAN_TABLE_OF_JOB, entry->advice.is_of_job);
    }
    json_own(arena, tree);
    return tree;
}

// The table, with an empty line before it.
static void print_table(const JsonNode *root, bool frontier, const Paper *paper, Arena *arena) {
    const JsonNode plans = json_get(root, "plans");
    Document document = document_new("");
    cJSON *section;
    document_part(&document, "", NULL);
    const Status status =
        plans_table(&document, &plans, frontier, json_size(&plans), arena, &section);
    if (status.code != STATUS_OK) paper_wrap(paper, 0, STYLE_BAD, status.text);
    document_print(&document, paper);
    cJSON_Delete(document.root);
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
static void print_extrapolated(const JsonNode *root, const Paper *paper, Arena *arena) {
    const JsonNode plans = json_get(root, "plans");
    const char *last = NULL;
    for (int i = 0; i < json_size(&plans); i++) {
        const JsonNode plan = json_at(&plans, i);
        const char *text = plan_extrapolated(&plan, i + 1, &last, arena);
        if (text) paper_wrap(paper, 0, STYLE_PLAIN, text);
    }
}

// What each GPU has for the job.
static void print_machine(const Scenario *scenario, const PlannerResult *result, const Paper *paper,
                          Arena *arena) {
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
    const JsonNode root = {.file = "the answer", .item = result_tree(result, &arena)};
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    const char *calibration = report_calibration(scenario, &arena);
    if (calibration)
        paper_wrap(&paper, 0, STYLE_PLAIN, arena_printf(&arena, "calibration: %s", calibration));
    if (result->num_entries > 0) {
        print_table(&root, false, &paper, &arena);
        print_machine(scenario, result, &paper, &arena);
        print_extrapolated(&root, &paper, &arena);
        if (result->entries[0].placement)
            print_placement(result->entries[0].placement, result->num_entries, &paper, &arena);
    } else {
        fputc('\n', stream);
        paper_wrap(&paper, 0, STYLE_BAD, planner_miss_text(result, &arena));
    }
    if (result->num_riskier > 0) print_riskier(result, &paper, &arena);
    paper_wrap(&paper, 0, STYLE_PLAIN, search_text(&root, &arena));
    if (result->num_entries > 0)
        paper_wrap(&paper, 0, STYLE_PLAIN, space_text(scenario, result, &arena));
    print_idle(scenario, result, &paper, &arena);
    print_switches(result, &paper, &arena);
    arena_free(&arena);
}

void report_frontier(const Scenario *scenario, const PlannerResult *result, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    const JsonNode root = {.file = "the answer", .item = result_tree(result, &arena)};
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    print_table(&root, true, &paper, &arena);
    fputc('\n', stream);
    paper_wrap(&paper, 0, STYLE_PLAIN, search_text(&root, &arena));
    paper_wrap(&paper, 0, STYLE_PLAIN, space_text(scenario, result, &arena));
    arena_free(&arena);
}

void report_line(const char *text, FILE *stream) {
    const Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_PLAIN, text);
}
