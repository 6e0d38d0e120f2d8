#include "cli/command.h"
#include "cli/plan_files.h"
#include "cli/progress.h"
#include "planner/planner.h"
#include "report/report.h"
#include "report/units.h"

#include <stdio.h>
#include <unistd.h>

typedef struct {
    CommonOptions common;
    PlannerOptions planner;
    int objective; // PlanObjective
    const char *folder;
} PlanOptions;

enum {
    KEY_TOP = KEY_LONG,
    KEY_OBJECTIVE,
    KEY_EXHAUSTIVE,
    KEY_BUDGET,
    KEY_MAX_MEMORY,
    KEY_VARIANTS,
};
enum { MAX_TOP = 1000, MAX_THREADS = 16 };

static const struct argp_option OPTIONS[] = {
    {"top", KEY_TOP, "K", 0, "how many of the best plans are wanted (default: 5)", 0},
    {"objective", KEY_OBJECTIVE, "throughput|cost|energy|memory", 0,
     "what is best (default: throughput)", 0},
    {"output", 'o', "DIR", 0, "writes plan.json, the launch files, trace.json and report.txt there",
     0},
    {"max-memory", KEY_MAX_MEMORY, "BYTES", 0, "a plan may not need more on one GPU", 0},
    {"budget", KEY_BUDGET, "SECONDS", 0, "stop searching after this time", 0},
    {"variants", KEY_VARIANTS, NULL, 0,
     "also list plans that differ only in chunks, schedule, ZeRO stage or context-parallel method",
     0},
    {"exhaustive", KEY_EXHAUSTIVE, NULL, 0, "price everything that fits, for doubters", 0},
    OPTION_JSON,
    OPTION_NOT_YET("layerwise", 0, NULL),
    OPTION_NOT_YET("pareto", 1, NULL),
    OPTION_NOT_YET("robust", 2, NULL),
    OPTION_NOT_YET("min-gpus-for", 3, "TOKENS_PER_S"),
    OPTION_NOT_YET("deadline", 4, "TOKENS,SECONDS"),
    OPTION_NOT_YET("compare", 5, "CONFIGURATION"),
    OPTION_NOT_YET("write-lp", 6, "FILE"),
    {0},
};

// No plan runs in less than a megabyte: a smaller number is in other units.
static error_t parse_bytes(struct argp_state *state, const char *text, double *out) {
    error_t error = parse_double(state, "max-memory", text, 1, out);
    if (error || *out >= 1e6) return error;
    return parse_refuse(state,
                        "--max-memory: \"%.60s\" is less than a megabyte; write bytes, as in "
                        "70e9",
                        text);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    PlanOptions *options = state->input;
    PlannerOptions *planner = &options->planner;
    switch (key) {
    case KEY_TOP:
        return parse_int(state, "top", arg, 1, MAX_TOP, &planner->top);
    case KEY_OBJECTIVE:
        return parse_name(state, "objective", arg, OBJECTIVE_NAMES, &options->objective);
    case 'o':
        options->folder = arg;
        return 0;
    case KEY_MAX_MEMORY:
        return parse_bytes(state, arg, &planner->max_memory_bytes);
    case KEY_BUDGET:
        return parse_double(state, "budget", arg, 0.001, &planner->budget_s);
    case KEY_EXHAUSTIVE:
        planner->exhaustive = true;
        return 0;
    case KEY_VARIANTS:
        planner->distinct = false;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc = "Searches all ways to split and schedule the training job of a scenario and prints the "
           "best, why the runners-up lose, and what was searched. What the scenario's `parallel` "
           "states is kept; the rest is free.\v"
           "Examples:\n"
           "  meshwright plan job.json\n"
           "  meshwright plan job.json -o out && meshwright launch out/plan.json --dry-run\n"
           "  meshwright plan job.json --top 10 --objective cost\n"
           "  meshwright plan job.json --max-memory 70e9 --json\n\n"
           "Files of an earlier plan in DIR are replaced, but none that SCENARIO is made of. Exits "
           "with 1 where nothing fits, after "
           "saying what is missing and what would fit.",
};

static Status plan_print(const PlanOptions *options, const Scenario *scenario,
                         const PlannerResult *result, bool launchable) {
    if (options->common.json) {
        cJSON *tree = planner_to_json(result);
        answer_add_calibration(tree, scenario);
        return answer_json(tree);
    }
    report_plans(scenario, result, stdout);
    if (options->folder && result->num_entries > 0)
        printf("The best plan is %s/plan.json; its %strace and this report are beside it.\n",
               options->folder, launchable ? "launch files, " : "");
    return status_ok();
}

static Status plan_answer(PlanOptions *options, Arena *arena) {
    Scenario scenario;
    TRY(scenario_open(options->common.scenario, arena, &scenario));
    if (options->folder) TRY(plan_files_check(&scenario, options->folder, arena));
    long num_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    Progress progress = progress_start();
    PlannerOptions *planner = &options->planner;
    planner->objective = (PlanObjective)options->objective;
    planner->num_threads = num_cpus > MAX_THREADS ? MAX_THREADS : (int)num_cpus;
    planner->progress = progress_show;
    planner->progress_context = &progress;
    bool launchable = false;
    PlannerResult result;
    Status status = planner_search(&scenario, planner, arena, &result);
    progress_end(&progress);
    TRY(status);
    if (options->folder && result.num_entries > 0)
        TRY(plan_files_save(&scenario, &result, options->folder, arena, &launchable));
    TRY(plan_print(options, &scenario, &result, launchable));
    if (result.num_entries > 0) return status_ok();
    char missing[UNITS_SIZE];
    return status_at(STATUS_NO, scenario.file, "", "nothing fits; the closest plan misses by %s",
                     units_bytes(result.miss.missing_bytes, missing));
}

Status command_plan(int argc, char **argv) {
    PlanOptions options = {.objective = OBJECTIVE_THROUGHPUT, .planner.distinct = true};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = plan_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
