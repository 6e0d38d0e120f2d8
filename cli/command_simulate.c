#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "cli/progress.h"
#include "report/report.h"
#include "report/sim_report.h"
#include "report/trace.h"
#include "sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common;
    const char *trace;
    bool operators;
    int fold; // index into FOLDS
    int repetitions;
    double timeout_s, tolerance_frac;
} SimulateOptions;

static const char *const FOLDS[] = {"auto", "none", "tp", "full", NULL};
enum { FOLD_INDEX_FULL = 3 };

enum { KEY_TRACE = KEY_LONG, KEY_OPERATORS, KEY_FOLD, KEY_REPETITIONS, KEY_TIMEOUT, KEY_TOLERANCE };

static const struct argp_option OPTIONS[] = {
    {"trace", KEY_TRACE, "FILE", 0, "writes both timelines as a Chrome trace (ui.perfetto.dev)", 0},
    {"operators", KEY_OPERATORS, NULL, 0, "with --trace: the operators inside each computation", 0},
    {"fold", KEY_FOLD, "auto|none|tp", 0, "GPUs that do the same simulated once (default: auto)",
     0},
    {"repetitions", KEY_REPETITIONS, "N", 0, "runs of a disturbed cluster (default: 1)", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "gives up after so many seconds (default: never)", 0},
    {"tolerance", KEY_TOLERANCE, "F", 0,
     "difference from the estimate that is accepted where nothing contends (default: 0.03)", 0},
    OPTION_JSON,
    {0},
};

static error_t parse_fold(struct argp_state *state, const char *arg, int *out) {
    error_t error = parse_name(state, "fold", arg, FOLDS, out);
    if (!error && *out == FOLD_INDEX_FULL)
        return parse_refuse(state, "simulate --fold full is not supported yet");
    return error;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    SimulateOptions *options = state->input;
    switch (key) {
    case KEY_TRACE:
        options->trace = arg;
        return 0;
    case KEY_OPERATORS:
        options->operators = true;
        return 0;
    case KEY_FOLD:
        return parse_fold(state, arg, &options->fold);
    case KEY_REPETITIONS:
        return parse_int(state, "repetitions", arg, 1, 1000000, &options->repetitions);
    case KEY_TIMEOUT:
        return parse_double(state, "timeout", arg, 0, &options->timeout_s);
    case KEY_TOLERANCE:
        return parse_double(state, "tolerance", arg, 0, &options->tolerance_frac);
    case ARGP_KEY_END:
        if (options->operators && !options->trace)
            return parse_refuse(state, "simulate: --operators needs --trace FILE");
        return common_parse(key, arg, state);
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc = "Plays one parallel configuration on a simulated network whose links are shared, and "
           "says where that and the estimate disagree.\v"
           "Examples:\n"
           "  meshwright simulate out/plan.json\n"
           "  meshwright simulate out/plan.json --trace out/trace.json --operators\n"
           "  meshwright simulate job.json --fold none --timeout 60 --json\n"
           "  meshwright simulate job.json --repetitions 20\n\n"
           "Exits with 1 where the two differ by more than the tolerance although no link is "
           "contended and nothing is disturbed. What crosses the simulated network: messages "
           "between pipeline stages and "
           "collectives beside the computations; those of tp, cp, ep and ZeRO-3 are part of the "
           "computations' prices (network_used is false where nothing else is left).",
};

typedef struct {
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    EstimateParts parts;
} Question;

static Status times_check(const Program *program, const SimResult *result) {
    bool same = result->num_ranks == program->num_ranks;
    for (int r = 0; same && r < program->num_ranks; r++)
        same = result->num_instructions[r] == program->ranks[r].num_instructions;
    if (same) return status_ok();
    return status_error(STATUS_MACHINE,
                        "meshwright: the simulator played another program; are meshwright and "
                        "meshwright-sim of one version?");
}

static Status simulate_trace(const SimulateOptions *options, const Question *question,
                             const SimResult *result) {
    const Timeline *timeline = &question->parts.timeline;
    const bool repeated = result->disturbed.num_repetitions > 0;
    const TraceTimeline timelines[] = {
        {"estimate", (const double *const *)timeline->start_s,
         (const double *const *)timeline->end_s, timeline->step_time_s},
        {"simulation", result->start_s, result->end_s,
         repeated ? result->disturbed.step_times_s[0] : result->step_time_s},
    };
    const TraceContext context = {
        .scenario = &question->scenario,
        .plan = &question->plan,
        .program = &question->parts.program,
        .workload = &question->parts.workload,
        .operators = options->operators,
    };
    return trace_save(options->trace, &context, timelines, 2);
}

// People are told which work takes another time, where that costs little.
static bool program_is_short(const Question *question) {
    enum { MAX_INSTRUCTIONS = 200000 };
    const Program *program = &question->parts.program;
    int64_t num_instructions = 0;
    for (int r = 0; r < program->num_ranks; r++)
        num_instructions += program->ranks[r].num_instructions;
    return num_instructions <= MAX_INSTRUCTIONS;
}

static Status simulate_play(const SimulateOptions *options, const Question *question, Arena *arena,
                            SimResult *out) {
    const SimOptions sim = {
        .fold = FOLDS[options->fold],
        .num_repetitions = options->repetitions,
        .timeout_s = options->timeout_s,
        .keep_times = options->trace || (!options->common.json && program_is_short(question)),
    };
    Progress progress = progress_start();
    progress_announce(&progress, "simulating");
    cJSON *document = plan_document(&question->scenario, &question->plan, NULL);
    Status status = sim_run(document, question->scenario.file, &sim, arena, out);
    cJSON_Delete(document);
    progress_end(&progress);
    return status;
}

static Status simulate_answer(const SimulateOptions *options, Arena *arena) {
    Question q;
    TRY(scenario_load(options->common.scenario, arena, &q.scenario));
    TRY(scenario_refuse_unsimulated(&q.scenario));
    TRY(plan_resolve(&q.scenario, arena, &q.plan));
    if (options->trace) TRY(folder_check_of(options->trace, arena));
    TRY(estimate_plan(&q.scenario, &q.plan, arena, &q.estimate, &q.parts));
    plan_warn_changed(&q.scenario, &q.estimate);
    plan_warn_misfit(&q.scenario, &q.estimate);
    SimResult result;
    TRY(simulate_play(options, &q, arena, &result));
    if (result.start_s) TRY(times_check(&q.parts.program, &result));
    if (options->trace) TRY(simulate_trace(options, &q, &result));
    if (options->common.json)
        TRY(answer_json(sim_result_to_json(&result)));
    else
        report_simulation(
            &(SimComparison){&q.scenario, &q.plan, &q.parts.program, &q.parts.timeline, &result},
            stdout);
    double difference = result.step_time_s / result.estimate_step_time_s - 1;
    bool disturbed = q.scenario.num_disturb > 0;
    if (disturbed || result.contended || fabs(difference) <= options->tolerance_frac)
        return status_ok();
    return status_at(STATUS_NO, q.scenario.file, "",
                     "simulation and estimate differ by %.1f %% although no link is contended; "
                     "tolerance %.1f %%",
                     difference * 100, options->tolerance_frac * 100);
}

Status command_simulate(int argc, char **argv) {
    SimulateOptions options = {.repetitions = 1, .tolerance_frac = 0.03};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = simulate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
