// `calibrate --run`: the parts of a step after one measured run.
#include "calibrate/run_log.h"
#include "calibrate/run_update.h"
#include "cli/calibrate.h"
#include "cli/command.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *log_path;
    Scenario scenario;
    RunLog log;
    RunUpdate update;
} Run;

static double low_of(const Calibration *c, int part) {
    return c->factor[part] * exp(-1.2816 * sqrt(c->covariance[part][part]));
}

static double high_of(const Calibration *c, int part) {
    return c->factor[part] * exp(1.2816 * sqrt(c->covariance[part][part]));
}

static const char *range_text(const Calibration *c, int part, Arena *arena) {
    return arena_printf(arena, "%.2f - %.2f", low_of(c, part), high_of(c, part));
}

static void factors_print(const Run *run, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"part", false, 0}, {"of the step", true, 0}, {"factor before", true, 0},
        {"80 %", true, 0},  {"after", true, 0},       {"80 %", true, 0},
    };
    const Calibration *prior = run->scenario.calibration, *posterior = &run->update.posterior;
    const Estimate *before = &run->update.before;
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int k = 0; k < NUM_PARTS; k++) {
        const char *cells[] = {
            PART_NAMES[k],
            arena_printf(arena, "%.1f %%", 100 * before->part_s[k] / before->step_time_s),
            arena_printf(arena, "%.3f", prior->factor[k]),
            range_text(prior, k, arena),
            arena_printf(arena, "%.3f", posterior->factor[k]),
            range_text(posterior, k, arena),
        };
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    table_print(&table, paper);
}

static void step_print(const char *what, double step_s, double low_s, double high_s) {
    char step[UNITS_SIZE], low[UNITS_SIZE], high[UNITS_SIZE];
    printf("%-17s %s   (80 %%: %s - %s)\n", what, units_seconds(step_s, step),
           units_seconds(low_s, low), units_seconds(high_s, high));
}

static void run_print(const Run *run, Arena *arena) {
    const RunLog *log = &run->log;
    const Estimate *before = &run->update.before, *after = &run->update.after;
    Paper paper = paper_of(stdout);
    char step[UNITS_SIZE];
    printf("%s: %d lines of %s, the first %d left out as warm-up\n\n", run->log_path,
           log->num_lines, RUN_LOG_NAMES[log->kind], RUN_LOG_WARM_UP);
    printf("%-17s %s   (median; spread %.1f %%)\n", "measured", units_seconds(log->step_s, step),
           100 * log->spread);
    step_print("predicted before", before->step_time_s, before->step_time_low_s,
               before->step_time_high_s);
    step_print("predicted after", after->step_time_s, after->step_time_low_s,
               after->step_time_high_s);
    putchar('\n');
    factors_print(run, &paper, arena);
}

static cJSON *estimate_part(const Estimate *e) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "step_time_s", e->step_time_s);
    json_add_number(json, "step_time_low_s", e->step_time_low_s);
    json_add_number(json, "step_time_high_s", e->step_time_high_s);
    return json;
}

// What was measured, and how well it was predicted.
static cJSON *measured_to_json(const Run *run) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "command", "meshwright calibrate --run LOG SCENARIO");
    cJSON_AddStringToObject(json, "version", MESHWRIGHT_VERSION);
    cJSON_AddStringToObject(json, "log", run->log_path);
    cJSON_AddStringToObject(json, "log_of", RUN_LOG_NAMES[run->log.kind]);
    cJSON_AddStringToObject(json, "scenario", run->scenario.file);
    json_add_number(json, "num_lines", run->log.num_lines);
    json_add_number(json, "step_time_s", run->log.step_s);
    json_add_number(json, "spread", run->log.spread);
    cJSON_AddItemToObject(json, "before", estimate_part(&run->update.before));
    cJSON_AddItemToObject(json, "after", estimate_part(&run->update.after));
    return json;
}

static cJSON *document(const Run *run) {
    cJSON *tree = calibration_to_json(&run->update.posterior);
    cJSON_AddItemToObject(tree, "measured", measured_to_json(run));
    return tree;
}

static Status run_print_json(const Run *run) {
    const Calibration *prior = run->scenario.calibration, *posterior = &run->update.posterior;
    cJSON *tree = measured_to_json(run);
    cJSON *parts = cJSON_AddObjectToObject(tree, "parts");
    for (int k = 0; k < NUM_PARTS; k++) {
        cJSON *part = cJSON_AddObjectToObject(parts, PART_NAMES[k]);
        json_add_number(part, "before_factor", prior->factor[k]);
        json_add_number(part, "before_low_factor", low_of(prior, k));
        json_add_number(part, "before_high_factor", high_of(prior, k));
        json_add_number(part, "after_factor", posterior->factor[k]);
        json_add_number(part, "after_low_factor", low_of(posterior, k));
        json_add_number(part, "after_high_factor", high_of(posterior, k));
    }
    return answer_json(tree);
}

// Of the log of the median of n lines: pi / 2 of the mean's (Kendall and Stuart, "The Advanced
// Theory of Statistics", vol. 1, section 10.10).
static double median_variance(const RunLog *log) {
    int n = log->num_lines - RUN_LOG_WARM_UP;
    return 1.5708 * log->spread * log->spread / n;
}

Status calibrate_run(const char *log, const char *scenario, const char *output, bool json,
                     Arena *arena) {
    Run run = {.log_path = log};
    Plan plan;
    if (strcmp(log, "-") == 0 && strcmp(scenario, "-") == 0)
        return usage_error("calibrate: log and scenario are both -; expected one of them");
    TRY(scenario_open_plan(scenario, arena, &run.scenario, &plan));
    TRY(run_log_load(log, &run.scenario, arena, &run.log));
    TRY(run_update(&run.scenario, &plan, run.log.step_s, median_variance(&run.log), &run.update));
    run.update.posterior.title = arena_printf(arena, "after the run of %s", log);
    if (output) {
        cJSON *tree = document(&run);
        Status status = json_save(tree, output);
        cJSON_Delete(tree);
        TRY(status);
    }
    if (json) return run_print_json(&run);
    run_print(&run, arena);
    return status_ok();
}
