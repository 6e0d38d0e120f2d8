// `run`: executes a plan with the bundled runtime and sets measured beside predicted.
#include "base/json.h"
#include "calibrate/run_log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/run_start.h"
#include "costmodel/estimate.h"
#include "report/table.h"
#include "report/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    CommonOptions common;
    RunStart start;
    bool compare;
} RunOptions;

enum { KEY_STEPS = KEY_LONG, KEY_DATA, KEY_COMPARE, KEY_DEVICE, KEY_DTYPE, KEY_LOG };

static const struct argp_option OPTIONS[] = {
    {"steps", KEY_STEPS, "N", 0, "steps to train (default: 10)", 0},
    {"data", KEY_DATA, "FILE", 0, "text to train on, a token for each byte (default: made up)", 0},
    {"device", KEY_DEVICE, "cpu|cuda", 0, "what computes (default: cpu)", 0},
    {"dtype", KEY_DTYPE, "fp64|fp32|bf16", 0, "format of activations (default: the plan's)", 0},
    {"log", KEY_LOG, "FILE", 0, "write a JSON line for each step there", 0},
    {"compare", KEY_COMPARE, NULL, 0, "set what was measured beside what was predicted", 0},
    OPTION_JSON,
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    static const char *const DEVICES[] = {"cpu", "cuda", NULL};
    static const char *const DTYPES[] = {"fp64", "fp32", "bf16", NULL};
    RunOptions *options = state->input;
    RunStart *start = &options->start;
    int choice;
    error_t error = 0;
    switch (key) {
    case KEY_STEPS:
        return parse_int(state, "steps", arg, 1, 1000000000, &start->num_steps);
    case KEY_DATA:
        start->data = arg;
        return 0;
    case KEY_DEVICE:
        if (!(error = parse_name(state, "device", arg, DEVICES, &choice)))
            start->device = DEVICES[choice];
        return error;
    case KEY_DTYPE:
        if (!(error = parse_name(state, "dtype", arg, DTYPES, &choice)))
            start->dtype = DTYPES[choice];
        return error;
    case KEY_LOG:
        return parse_file(state, "log", arg, &start->log);
    case KEY_COMPARE:
        options->compare = true;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc =
        "Trains the model of a scenario or plan.json on this computer as the plan splits it: one "
        "process a GPU of the plan, by mpirun where there are several.\v"
        "Examples:\n"
        "  meshwright run plan.json --steps 20 --data text.txt\n"
        "  meshwright run plan.json --device cuda --compare\n"
        "  meshwright run plan.json --log steps.jsonl && "
        "meshwright calibrate --run steps.jsonl plan.json -o machine.json\n\n"
        "More processes than cores are for correctness only. Exits with 3 where the run fails.",
};

// --- Measured beside predicted

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Estimate *estimate;
    RunLog log;
    double peak_bytes; // of the rank that held most; 0 where the log does not say
} Comparison;

static Status peak_read(const char *path, Arena *arena, double *peak_bytes) {
    JsonNode *lines;
    int num_lines;
    TRY(json_load_lines(path, arena, &lines, &num_lines));
    *peak_bytes = 0;
    if (num_lines == 0) return status_ok();
    JsonNode peak = json_get(&lines[num_lines - 1], "memory_peak_bytes");
    return json_is_present(&peak) ? json_read_double(&peak, 0, 1e18, peak_bytes) : status_ok();
}

static void comparison_print(const Comparison *c) {
    const Estimate *e = c->estimate;
    char low[UNITS_SIZE], high[UNITS_SIZE], text[UNITS_SIZE], measured[UNITS_SIZE];
    double step_s = c->log.step_s;
    bool inside = step_s >= e->step_time_low_s && step_s <= e->step_time_high_s;
    printf("\n%-10s %12s %12s  %s\n", "", "predicted", "measured", "measured over predicted");
    printf("%-10s %12s %12s  %.3f; %s the 80 %% interval, %s to %s\n", "step",
           units_seconds(e->step_time_s, text), units_seconds(step_s, measured),
           step_s / e->step_time_s, inside ? "inside" : "outside",
           units_seconds(e->step_time_low_s, low), units_seconds(e->step_time_high_s, high));
    double tokens = e->tokens_per_s * e->step_time_s;
    printf("%-10s %12s %12s\n", "tokens/s", units_count(e->tokens_per_s, text),
           units_count(tokens / step_s, measured));
    if (c->peak_bytes > 0)
        printf("%-10s %12s %12s  %.3f\n", "memory", units_bytes(e->memory.peak_bytes, text),
               units_bytes(c->peak_bytes, measured), c->peak_bytes / e->memory.peak_bytes);
    printf("(median of %d steps, the first %d left out; spread %.1f %%)\n",
           c->log.num_lines - RUN_LOG_WARM_UP, RUN_LOG_WARM_UP, 100 * c->log.spread);
}

static Status comparison_print_json(const Comparison *c) {
    const Estimate *e = c->estimate;
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddItemToObject(tree, "parallel", plan_to_json(c->plan));
    cJSON *predicted = cJSON_AddObjectToObject(tree, "predicted");
    json_add_number(predicted, "step_time_s", e->step_time_s);
    json_add_number(predicted, "step_time_low_s", e->step_time_low_s);
    json_add_number(predicted, "step_time_high_s", e->step_time_high_s);
    json_add_number(predicted, "memory_peak_bytes", e->memory.peak_bytes);
    cJSON *measured = cJSON_AddObjectToObject(tree, "measured");
    json_add_number(measured, "step_time_s", c->log.step_s);
    json_add_number(measured, "spread", c->log.spread);
    json_add_number(measured, "num_steps", c->log.num_lines);
    if (c->peak_bytes > 0) json_add_number(measured, "memory_peak_bytes", c->peak_bytes);
    return answer_json(tree);
}

static Status compare(const RunOptions *options, const Scenario *scenario, const Plan *plan,
                      Arena *arena) {
    Estimate estimate;
    Comparison comparison = {.scenario = scenario, .plan = plan, .estimate = &estimate};
    TRY(estimate_plan(scenario, plan, arena, &estimate, NULL));
    TRY(run_log_load(options->start.log, scenario, plan, arena, &comparison.log));
    TRY(peak_read(options->start.log, arena, &comparison.peak_bytes));
    if (options->common.json) return comparison_print_json(&comparison);
    comparison_print(&comparison);
    return status_ok();
}

// --- The command

static Status run_answer(RunOptions *options, Arena *arena) {
    RunStart *start = &options->start;
    Scenario scenario;
    Plan plan;
    if (options->compare && start->num_steps < RUN_LOG_LEAST_STEPS)
        return usage_error("--compare: needs --steps of %d or more, of which %d are warm-up",
                           RUN_LOG_LEAST_STEPS, RUN_LOG_WARM_UP);
    if (options->common.json && !options->compare)
        return usage_error("--json: goes with --compare; --log writes each step as JSON");
    TRY(scenario_open_plan(options->common.scenario, arena, &scenario, &plan));
    if (strcmp(options->common.scenario, "-") == 0)
        return usage_error("run: the processes read the plan themselves; give a file, not -");
    if (start->log) {
        TRY(output_check_scenario(start->log, &scenario, arena));
        TRY(output_check(start->log, arena));
    }
    start->plan = options->common.scenario;
    start->num_ranks = scenario.cluster.num_gpus;
    start->quiet = options->common.json;
    if (!options->compare || start->log) {
        TRY(run_start(start, arena));
        return options->compare ? compare(options, &scenario, &plan, arena) : status_ok();
    }
    char path[] = "/tmp/meshwright_run_XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0) return status_error(STATUS_MACHINE, "%s: cannot be made", path);
    close(descriptor);
    start->log = path;
    Status status = run_start(start, arena);
    if (status.code == STATUS_OK) status = compare(options, &scenario, &plan, arena);
    unlink(path);
    return status;
}

Status command_run(int argc, char **argv) {
    RunOptions options = {.start = {.num_steps = 10, .device = "cpu"}};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = run_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
