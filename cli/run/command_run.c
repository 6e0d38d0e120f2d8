// `run`: executes a plan with the bundled runtime and sets measured beside predicted.
#include "base/shown_text.h"
#include "calibrate/run_log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/run/run_compare.h"
#include "cli/run/run_start.h"
#include "workload/step/runtime_limits.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    CommonOptions common;
    RunStart start;
    const char *trace;
    bool compare;
} RunOptions;

enum {
    KEY_STEPS = KEY_LONG,
    KEY_DATA,
    KEY_COMPARE,
    KEY_DEVICE,
    KEY_DTYPE,
    KEY_LOG,
    KEY_TRACE,
    KEY_ROUTING
};

static const struct argp_option OPTIONS[] = {
    {"steps", KEY_STEPS, "N", 0, "steps to train (default: 10)", 0},
    {"data", KEY_DATA, "FILE", 0, "text to train on, a token for each byte (default: made up)", 0},
    {"device", KEY_DEVICE, "cpu|cuda", 0, "what computes (default: cpu)", 0},
    {"dtype", KEY_DTYPE, "fp64|fp32|bf16", 0, "format of activations (default: the plan's)", 0},
    {"routing", KEY_ROUTING, "learned|balanced", 0,
     "who a token's experts are: as the router learns, or in turn (default: learned)", 0},
    {"log", KEY_LOG, "FILE", 0, "write a JSON line for each step there", 0},
    {"compare", KEY_COMPARE, NULL, 0, "set what was measured beside what was predicted", 0},
    {"trace", KEY_TRACE, "FILE", 0,
     "write a Chrome trace: predicted, simulated and measured (ui.perfetto.dev)", 0},
    OPTION_JSON,
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    static const char *const DEVICES[] = {"cpu", "cuda", NULL};
    static const char *const DTYPES[] = {"fp64", "fp32", "bf16", NULL};
    static const char *const ROUTINGS[] = {"learned", "balanced", NULL};
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
    case KEY_ROUTING:
        if (!(error = parse_name(state, "routing", arg, ROUTINGS, &choice)))
            start->routing = ROUTINGS[choice];
        return error;
    case KEY_LOG:
        return parse_file(state, "log", arg, &start->log);
    case KEY_TRACE:
        return parse_file(state, "trace", arg, &options->trace);
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
        "  meshwright run plan.json --device cuda --compare --trace trace.json\n"
        "  meshwright run plan.json --log steps.jsonl && "
        "meshwright calibrate --run steps.jsonl plan.json -o machine.json\n\n"
        "More processes than cores are for correctness only. Exits with 3 where the run fails.",
};

// --- The command

// A file for the time of the run, in the folder for such files.
static Status temporary(const char *what, Arena *arena, const char **path) {
    const char *folder = getenv("TMPDIR");
    char *name =
        arena_printf(arena, "%s/meshwright_%s_XXXXXX", folder && *folder ? folder : "/tmp", what);
    int descriptor = mkstemp(name);
    if (descriptor < 0) return status_error(STATUS_MACHINE, "%s: cannot be made", name);
    close(descriptor);
    *path = name;
    return status_ok();
}

static Status options_check(const RunOptions *options, const Scenario *scenario, Arena *arena) {
    const char *const written[] = {options->start.log, options->trace};
    if (strcmp(options->common.scenario, "-") == 0)
        return usage_error("run: the processes read the plan themselves; give a file, not -");
    for (int i = 0; i < 2; i++) {
        if (!written[i]) continue;
        TRY(output_check_scenario(written[i], scenario, arena));
        if (options->start.data) TRY(output_check_input(written[i], options->start.data, "text"));
        TRY(output_check(written[i], arena));
    }
    if (!written[0] || !written[1]) return status_ok();
    return output_check_input(written[1], written[0], "log");
}

// Runs it with its times, and looks at them.
static Status run_measured(RunOptions *options, const Scenario *scenario, const Plan *plan,
                           Arena *arena) {
    RunStart *start = &options->start;
    const char *log = NULL;
    TRY(temporary("times", arena, &start->times));
    Status status = start->log ? status_ok() : temporary("log", arena, &log);
    if (log) start->log = log;
    const RunCompare compare = {.log = start->log,
                                .times = start->times,
                                .trace = options->trace,
                                .prints = options->compare,
                                .json = options->common.json};
    if (status.code == STATUS_OK) status = run_start(start, arena);
    if (status.code == STATUS_OK) status = run_compare(&compare, scenario, plan, arena);
    if (log) unlink(log);
    unlink(start->times);
    return status;
}

// What is predicted is what runs: --dtype in the place of the scenario's precision. Returns the
// document with it, to be freed.
static cJSON *dtype_take(const char *dtype, Scenario *scenario) {
    int precision = 0;
    while (strcmp(PRECISION_NAMES[precision], dtype) != 0) precision++; // it is one of them
    if (precision == scenario->execution.precision) return NULL;
    for (int i = 0; i < scenario->cluster.num_pools; i++) {
        const Gpu *gpu = &scenario->cluster.pools[i].gpu;
        if (gpu->peak_flops_per_s[precision] > 0) continue;
        shown_line(stderr, "%s: predicted in %s, since %s has no %s", scenario->file,
                   PRECISION_NAMES[scenario->execution.precision], gpu->name, dtype);
        return NULL;
    }
    cJSON *document = cJSON_Duplicate(scenario->document, true);
    cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training");
    cJSON_DeleteItemFromObjectCaseSensitive(training, "precision");
    cJSON_AddStringToObject(training, "precision", dtype);
    scenario->execution.precision = precision;
    scenario->document = document;
    return document;
}

static Status run_answer(RunOptions *options, Arena *arena) {
    RunStart *start = &options->start;
    const bool measures = options->compare || options->trace;
    Scenario scenario;
    Plan plan;
    if (measures && start->num_steps < RUN_LOG_LEAST_STEPS)
        return usage_error("--%s: needs --steps of %d or more, of which %d are warm-up",
                           options->compare ? "compare" : "trace", RUN_LOG_LEAST_STEPS,
                           RUN_LOG_WARM_UP);
    if (options->common.json && !options->compare)
        return usage_error("--json: goes with --compare; --log writes each step as JSON");
    TRY(scenario_open_plan(options->common.scenario, arena, &scenario, &plan));
    TRY(options_check(options, &scenario, arena));
    TRY(runtime_supports(&scenario, &plan)); // as every process would say
    start->plan = options->common.scenario;
    start->num_ranks = scenario.cluster.num_gpus;
    start->quiet = options->common.json;
    if (!measures) return run_start(start, arena);
    cJSON *document = start->dtype ? dtype_take(start->dtype, &scenario) : NULL;
    const Status status = run_measured(options, &scenario, &plan, arena);
    cJSON_Delete(document);
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
