// `calibrate --run`: the parts of a step after one measured run.
#include "base/shown_text.h"
#include "calibrate/run_log.h"
#include "calibrate/run_update.h"
#include "cli/calibrate/calibrate.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *log_path;
    Scenario scenario;
    Plan plan;
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
    printf("%s: %d lines of %s, the first %d left out as warm-up\n\n",
           shown_text(run->log_path, arena), log->num_lines, RUN_LOG_NAMES[log->kind],
           RUN_LOG_WARM_UP);
    printf("%-17s %s\n", "plan", shown_text(plan_describe(&run->plan, arena), arena));
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
    cJSON_AddItemToObject(json, "parallel", plan_to_json(&run->plan));
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

// --- What cannot be the run

static Status parallel_check(const Scenario *scenario) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(scenario->document, "parallel");
    if (item && !cJSON_IsNull(item)) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "parallel",
                     "is absent; state the one that ran, or give the plan.json of the run");
}

// A run has fitted. The account of its memory may miss by a few percent (docs/accuracy.md).
static Status fit_check(const Scenario *scenario, const Estimate *estimate) {
    static const double ACCOUNT_FRAC = 1.1;
    double device_bytes = estimate->memory.device_bytes;
    if (device_bytes > ACCOUNT_FRAC * estimate->memory_available_bytes)
        return status_does_not_fit(scenario->file, device_bytes, estimate->memory_available_bytes);
    plan_warn_misfit(scenario, estimate);
    return status_ok();
}

static const char *log_name(const Run *run) {
    return strcmp(run->log_path, "-") == 0 ? "standard input" : run->log_path;
}

// No published step is predicted more than 1.6 times too fast or slow (docs/accuracy.md): so far
// off, it is another run.
static const double MAX_STEP_RATIO = 4;

// Refuses a step that needs more than the peak, or that cannot be of this scenario; points out one
// beyond the interval.
static Status step_check(const Run *run, const Estimate *estimate, Arena *arena) {
    const RunLog *log = &run->log;
    double peak_frac = estimate->mfu_frac * estimate->step_time_s / log->step_s;
    char step[UNITS_SIZE], low[UNITS_SIZE], high[UNITS_SIZE], percent[UNITS_SIZE];
    units_seconds(log->step_s, step);
    if (peak_frac > 1)
        return status_at(
            STATUS_INVALID, arena_printf(arena, "%s:%d", log_name(run), log->line), "",
            "a step of %s needs %s of the GPUs' peak rate in %s; %s", step,
            units_percent(peak_frac, percent), PRECISION_NAMES[run->scenario.execution.precision],
            log->kind == RUN_LOG_TORCHTITAN ? "is tps that of all GPUs?" : "is it in seconds?");
    const double ratio = log->step_s / estimate->step_time_s;
    if (ratio > MAX_STEP_RATIO || ratio < 1 / MAX_STEP_RATIO)
        return status_at(STATUS_INVALID, arena_printf(arena, "%s:%d", log_name(run), log->line), "",
                         "a step of %s is not one of %s, which is predicted to take %s; check the "
                         "model, the batch, the GPUs and the unit of the log",
                         step, run->scenario.file, units_seconds(estimate->step_time_s, low));
    if (log->step_s < estimate->step_time_low_s || log->step_s > estimate->step_time_high_s)
        fprintf(stderr,
                "%s: measured %s lies outside the 80 %% interval before (%s - %s): is %s the "
                "scenario that ran?\n",
                log_name(run), step, units_seconds(estimate->step_time_low_s, low),
                units_seconds(estimate->step_time_high_s, high), run->scenario.file);
    return status_ok();
}

// A document of other factors could not be read again (config/job/calibration.c).
static Status factors_check(const Run *run) {
    for (int k = 0; k < NUM_PARTS; k++) {
        double factor = run->update.posterior.factor[k];
        if (factor < 0.01 || factor > 100)
            return status_at(STATUS_INVALID, log_name(run), "",
                             "needs a factor of %.3g for %s; is %s the scenario that ran?", factor,
                             PART_NAMES[k], run->scenario.file);
    }
    return status_ok();
}

static Status run_load(const char *scenario, const char *output, Arena *arena, Run *run) {
    Estimate estimate;
    TRY(scenario_open(scenario, arena, &run->scenario));
    TRY(parallel_check(&run->scenario));
    TRY(plan_resolve(&run->scenario, arena, &run->plan));
    if (output) {
        TRY(output_check_input(output, run->log_path, "log"));
        TRY(output_check_scenario(output, &run->scenario, arena));
    }
    TRY(run_log_load(run->log_path, &run->scenario, &run->plan, arena, &run->log));
    if (run->log.moe_imbalance > 0) // what it cost is not the machine's
        run->scenario.training.moe_imbalance = run->log.moe_imbalance;
    TRY(estimate_plan(&run->scenario, &run->plan, arena, &estimate, NULL));
    TRY(fit_check(&run->scenario, &estimate));
    return step_check(run, &estimate, arena);
}

Status calibrate_run(const char *log, const char *scenario, const char *output, bool json,
                     Arena *arena) {
    Run run = {.log_path = log};
    if (strcmp(log, "-") == 0 && strcmp(scenario, "-") == 0)
        return usage_error("calibrate: log and scenario are both -; expected one of them");
    TRY(run_load(scenario, output, arena, &run));
    TRY(run_update(&run.scenario, &run.plan, run.log.step_s, median_variance(&run.log),
                   &run.update));
    TRY(factors_check(&run));
    run.update.posterior.title = arena_printf(arena, "after the run of %s", log);
    run.update.posterior.gpu = scenario_gpus(&run.scenario, arena);
    run.update.posterior.stack = run.scenario.execution.stack.name;
    run.update.posterior.stack_version = run.scenario.execution.stack_version;
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
