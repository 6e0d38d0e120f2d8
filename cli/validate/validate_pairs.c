#include "cli/validate/validate_pairs.h"

#include "calibrate/run_pairs.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "report/table.h"

#include <math.h>
#include <stdio.h>

static void score_add(Table *table, const PairsScore *s, Style style, Arena *arena) {
    const double fracs[] = {s->before_median_frac, s->after_median_frac,  s->before_mean_frac,
                            s->after_mean_frac,    s->before_inside_frac, s->after_inside_frac,
                            s->before_width_frac,  s->after_width_frac};
    const char *cells[10] = {s->family ? s->family : "ALL",
                             arena_printf(arena, "%d", s->num_pairs)};
    for (int i = 0; i < 8; i++) cells[2 + i] = arena_printf(arena, "%.1f %%", 100 * fracs[i]);
    table_add(table, style, cells, NULL);
}

static void pairs_print(const PairsResult *result, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"family", false, 0},        {"pairs", true, 0},       {"median error before", true, 0},
        {"after", true, 0},          {"mean before", true, 0}, {"after", true, 0},
        {"in 80 % before", true, 0}, {"after", true, 0},       {"width before", true, 1},
        {"after", true, 1},
    };
    Paper paper = paper_of(stdout);
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int f = 0; f < result->num_families; f++)
        score_add(&table, &result->families[f], STYLE_PLAIN, arena);
    score_add(&table, &result->all, STYLE_BOLD, arena);
    paper_heading(&paper, "Calibrated on one run, another one predicted");
    table_print(&table, &paper);
    if (isnan(result->after_families_frac)) return;
    printf("families with 8 or more pairs: mean %.1f %% before, %.1f %% after; median change %+.2f "
           "points\n",
           100 * result->before_families_frac, 100 * result->after_families_frac,
           100 * result->change_median_frac);
}

static cJSON *score_to_json(const PairsScore *s) {
    cJSON *json = cJSON_CreateObject();
    if (s->family) cJSON_AddStringToObject(json, "family", s->family);
    json_add_number(json, "num_pairs", s->num_pairs);
    json_add_number(json, "before_median_frac", s->before_median_frac);
    json_add_number(json, "after_median_frac", s->after_median_frac);
    json_add_number(json, "before_mean_frac", s->before_mean_frac);
    json_add_number(json, "after_mean_frac", s->after_mean_frac);
    json_add_number(json, "before_inside_interval_frac", s->before_inside_frac);
    json_add_number(json, "after_inside_interval_frac", s->after_inside_frac);
    json_add_number(json, "before_width_frac", s->before_width_frac);
    json_add_number(json, "after_width_frac", s->after_width_frac);
    return json;
}

static Status pairs_print_json(const PairsResult *result) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON *families = cJSON_AddArrayToObject(tree, "families");
    for (int f = 0; f < result->num_families; f++)
        cJSON_AddItemToArray(families, score_to_json(&result->families[f]));
    cJSON_AddItemToObject(tree, "all", score_to_json(&result->all));
    json_add_number(tree, "before_mean_of_families_frac", result->before_families_frac);
    json_add_number(tree, "after_mean_of_families_frac", result->after_families_frac);
    json_add_number(tree, "median_change_of_families_frac", result->change_median_frac);
    return answer_json(tree);
}

Status validate_pairs(const PublishedCase *published, int num_cases, bool json, Arena *arena) {
    PairsResult result;
    Progress progress = progress_start();
    Status status = run_pairs(published, num_cases, progress_show, &progress, arena, &result);
    progress_end(&progress);
    TRY(status);
    if (json)
        TRY(pairs_print_json(&result));
    else
        pairs_print(&result, arena);
    bool by_family = !isnan(result.after_families_frac);
    double change_frac = by_family ? result.change_median_frac
                                   : result.all.after_mean_frac - result.all.before_mean_frac;
    if (change_frac < 0) return status_ok();
    return status_error(STATUS_NO, "meshwright: calibrating does not make predictions better");
}
