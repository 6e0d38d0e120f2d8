#include "cli/command.h"
#include "cli/plan_check.h"
#include "costmodel/estimate.h"
#include "report/report.h"

#include <stdio.h>

static const struct argp_option OPTIONS[] = {OPTION_JSON, {0}};

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = common_parse,
    .args_doc = "SCENARIO",
    .doc = "Prices the one parallel configuration that a scenario or plan.json states: step time, "
           "throughput, memory of the worst GPU, and where the time goes. What `parallel` leaves "
           "out has the defaults of the contract (1 for every degree).\v"
           "Examples:\n"
           "  meshwright estimate job.json\n"
           "  meshwright estimate out/plan.json --json\n"
           "  generate-job | meshwright estimate - --json\n\n"
           "Exits with 1 where the configuration does not fit in memory, after the full answer.",
};

static Status estimate_answer(const CommonOptions *options, Arena *arena) {
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    TRY(scenario_open_plan(options->scenario, arena, &scenario, &plan));
    TRY(estimate_plan(&scenario, &plan, arena, &estimate, NULL));
    plan_warn_changed(&scenario, &estimate);
    if (options->json) {
        cJSON *tree = estimate_to_json(&estimate, &plan);
        answer_add_calibration(tree, &scenario);
        TRY(answer_json(tree));
    } else {
        report_estimate(&scenario, &plan, &estimate, stdout);
    }
    if (estimate.fits) return status_ok();
    return status_does_not_fit(scenario.file, estimate.memory.device_bytes,
                               estimate.memory_available_bytes);
}

Status command_estimate(int argc, char **argv) {
    CommonOptions options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options));
    Arena arena = {0};
    Status status = estimate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
