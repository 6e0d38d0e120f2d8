#include "base/output_file.h"
#include "cli/job_options.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "costmodel/step/estimate.h"
#include "plan/plan_orders.h"
#include "report/report.h"

#include <stdio.h>

typedef struct {
    CommonOptions common;
    const char *order_path;
} EstimateOptions;

enum { KEY_WRITE_SCHEDULE = KEY_LONG };

static const struct argp_option OPTIONS[] = {
    {"write-schedule", KEY_WRITE_SCHEDULE, "FILE", 0,
     "write the pipeline's order there, to be changed and given as schedule file:FILE", 0},
    OPTION_JSON,
    OPTIONS_JOB,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    if (key != KEY_WRITE_SCHEDULE) return common_parse(key, arg, state);
    EstimateOptions *options = state->input;
    return parse_file(state, "write-schedule", arg, &options->order_path);
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc =
        "Prices the one parallel configuration that a scenario or plan.json states: step time, "
        "throughput, memory of the worst GPU, and where the time goes. What `parallel` leaves "
        "out has the defaults of the contract (1 for every degree).\v"
        "Examples:\n"
        "  meshwright estimate job.json\n"
        "  meshwright estimate out/plan.json --json\n"
        "  generate-job | meshwright estimate - --json\n"
        "  meshwright estimate job.json --write-schedule order.txt\n\n"
        "Whether it fits in memory is a probability: below 90 % it may not, below a half it does "
        "not, and then exits with 1, after the full answer.",
};

static Status order_save(const Plan *plan, const char *path, Arena *arena) {
    ScheduleShape shape = schedule_shape(plan->pp, plan->vpp, (int)plan->num_microbatches);
    shape.vocab.barriers = plan->vocab_barriers;
    const char *text = schedule_file_text(plan, plan_chunk_orders(plan, &shape, arena),
                                          plan_schedule_traits(plan).receives_ahead, arena);
    OutputFile file;
    TRY(output_open(path, &file));
    fputs(text, file.stream);
    return output_close(&file, status_ok());
}

static Status estimate_answer(const EstimateOptions *given, Arena *arena) {
    const CommonOptions *options = &given->common;
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    TRY(scenario_open_plan_given(options, arena, &scenario, &plan));
    if (given->order_path) {
        TRY(output_check_scenario(given->order_path, &scenario, arena));
        TRY(output_check(given->order_path, arena));
    }
    TRY(estimate_plan(&scenario, &plan, arena, &estimate, NULL));
    if (given->order_path) TRY(order_save(&plan, given->order_path, arena));
    plan_warn_changed(&scenario, &estimate);
    plan_warn_rules(&scenario, &plan, arena);
    if (options->json) {
        cJSON *tree = estimate_to_json(&estimate, &plan);
        cJSON *broken = plan_broken_rules_json(&scenario, &plan, arena);
        if (broken) cJSON_AddItemToObject(tree, "broken_rules", broken);
        answer_add_calibration(tree, &scenario);
        answer_with_warnings(tree, &scenario);
        TRY(answer_json(tree));
    } else {
        report_estimate(&scenario, &plan, &estimate, stdout);
    }
    if (estimate.fits) return status_ok();
    return status_does_not_fit(scenario.file, estimate.memory.device_bytes,
                               estimate.memory_available_bytes);
}

Status command_estimate(int argc, char **argv) {
    EstimateOptions options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = estimate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
