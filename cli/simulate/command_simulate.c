#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "cli/progress.h"
#include "cli/sim_timeline.h"
#include "cli/simulate/trace_ranks.h"
#include "costmodel/network/message.h"
#include "report/report.h"
#include "report/sim_report.h"
#include "report/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common;
    const char *trace, *trace_ranks;
    bool operators;
    int fold; // index into FOLDS
    int repetitions;
    double timeout_s, tolerance_frac;
} SimulateOptions;

static const char *const FOLDS[] = {"auto", "none", "tp", "full", NULL};

enum {
    KEY_TRACE = KEY_LONG,
    KEY_TRACE_RANKS,
    KEY_OPERATORS,
    KEY_FOLD,
    KEY_REPETITIONS,
    KEY_TIMEOUT,
    KEY_TOLERANCE
};

static const struct argp_option OPTIONS[] = {
    {"trace", KEY_TRACE, "FILE", 0, "writes both timelines as a Chrome trace (ui.perfetto.dev)", 0},
    {"trace-ranks", KEY_TRACE_RANKS, "LIST|all", 0,
     "with --trace: these GPUs, as in 0-7,64 (default: of each stage the one that ends last)", 0},
    {"operators", KEY_OPERATORS, NULL, 0, "with --trace: the operators inside each computation", 0},
    {"fold", KEY_FOLD, "auto|none|tp|full", 0,
     "GPUs that do the same simulated once (default: auto)", 0},
    {"repetitions", KEY_REPETITIONS, "N", 0, "runs of a disturbed cluster (default: 1)", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "gives up after so many seconds (default: 0, which is never)",
     0},
    {"tolerance", KEY_TOLERANCE, "F", 0,
     "difference from the estimate that is accepted where nothing contends (default: 0.03)", 0},
    OPTION_JSON,
    OPTIONS_JOB,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    SimulateOptions *options = state->input;
    switch (key) {
    case KEY_TRACE:
        return parse_file(state, "trace", arg, &options->trace);
    case KEY_TRACE_RANKS:
        options->trace_ranks = arg;
        return 0;
    case KEY_OPERATORS:
        options->operators = true;
        return 0;
    case KEY_FOLD:
        return parse_name(state, "fold", arg, FOLDS, &options->fold);
    case KEY_REPETITIONS:
        return parse_int(state, "repetitions", arg, 1, 1000000, &options->repetitions);
    case KEY_TIMEOUT:
        return parse_quantity(state, "timeout", arg, QUANTITY_SECONDS, 0, &options->timeout_s);
    case KEY_TOLERANCE:
        return parse_quantity(state, "tolerance", arg, QUANTITY_FRAC, 0, &options->tolerance_frac);
    case ARGP_KEY_END:
        if (options->operators && !options->trace)
            return parse_refuse(state, "simulate: --operators needs --trace FILE");
        if (options->trace_ranks && !options->trace)
            return parse_refuse(state, "simulate: --trace-ranks needs --trace FILE");
        return common_parse(key, arg, state);
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc =
        "Plays one parallel configuration on a simulated network whose links are shared, and "
        "says where that and the estimate disagree.\v"
        "Examples:\n"
        "  meshwright simulate out/plan.json\n"
        "  meshwright simulate out/plan.json --trace out/trace.json --operators\n"
        "  meshwright simulate out/plan.json --trace t.json --trace-ranks 0-3,8\n"
        "  meshwright simulate job.json --fold none --timeout 60 --json\n"
        "  meshwright simulate slow.json --repetitions 20\n\n"
        "Exits with 1 where the two differ by more than the tolerance although no link is "
        "contended and nothing is disturbed. What crosses the simulated network: messages "
        "between pipeline stages, collectives beside the computations, and those inside layers "
        "between scale-up domains; what layers move inside a domain is part of the computations' "
        "prices (network_used is false where nothing else is left).",
};

typedef struct {
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    EstimateParts parts;
    bool *shown; // [num_gpus] by the trace; NULL: one of each stage
} Question;

// --- The trace

static Status simulate_trace(const SimulateOptions *options, const Question *question,
                             const SimResult *result, Arena *arena) {
    const EstimateParts *parts = &question->parts;
    const TraceTimeline simulation =
        sim_timeline(result, &parts->program, parts->prices.step_s, question->shown, arena);
    bool *stages = ARENA_ARRAY(arena, parts->program.num_ranks, bool);
    for (int i = 0; i < simulation.num_rows; i++) stages[simulation.rows[i].stage] = true;
    const TraceTimeline timelines[] = {
        trace_estimate(&parts->program, &parts->prices, &parts->timeline, stages, arena),
        simulation,
    };
    const TraceContext context = {
        .scenario = &question->scenario,
        .plan = &question->plan,
        .program = &parts->program,
        .workload = &parts->workload,
        .operators = options->operators,
    };
    TRY(trace_save(options->trace, &context, timelines, 2));
    answer_folder_rewrote(options->trace);
    return status_ok();
}

// --- The simulation

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
    bool one_lane = options->trace || (!options->common.json && program_is_short(question));
    const SimOptions sim = {
        .fold = FOLDS[options->fold],
        .num_repetitions = options->repetitions,
        .timeout_s = options->timeout_s,
        .keep = question->shown ? SIM_KEEP_ALL
                : one_lane      ? SIM_KEEP_LAST
                                : SIM_KEEP_NONE,
    };
    Progress progress = progress_start();
    progress_announce(&progress, "simulating");
    cJSON *document = plan_document(&question->scenario, &question->plan, NULL);
    Status status = sim_run(document, question->scenario.file, &sim, arena, out);
    cJSON_Delete(document);
    progress_end(&progress);
    return status;
}

static Status ranks_choose(const SimulateOptions *options, Question *question, Arena *arena) {
    if (!options->trace_ranks) return status_ok();
    const int num_gpus = question->parts.program.num_ranks * question->parts.program.multiplicity;
    question->shown = ARENA_ARRAY(arena, num_gpus, bool);
    return trace_ranks_read(options->trace_ranks, num_gpus, question->shown);
}

// Where nothing is disturbed, what contention does not explain is a bug of one of the two.
static Status difference_check(const SimulateOptions *options, const Scenario *scenario,
                               const Plan *plan, const SimResult *result) {
    const double estimate_s = result->estimate_step_time_s, tolerance = options->tolerance_frac;
    const double spare_s =
        stages_share_nics(&scenario->cluster, plan) ? result->difference.spare_bandwidth_s : 0;
    const double difference = (result->step_time_s - spare_s) / estimate_s - 1;
    const double model = result->difference.model_s / estimate_s;
    if (scenario->num_disturb > 0) return status_ok();
    if (fabs(model) > tolerance)
        return status_at(STATUS_NO, scenario->file, "",
                         "simulation and estimate differ by %.1f %% with every transfer as long "
                         "as granted; tolerance %.1f %%",
                         model * 100, tolerance * 100);
    if (result->contended || fabs(difference) <= tolerance) return status_ok();
    return status_at(STATUS_NO, scenario->file, "",
                     "simulation and estimate differ by %.1f %% although no link is contended; "
                     "tolerance %.1f %%",
                     difference * 100, tolerance * 100);
}

static Status simulate_answer(const SimulateOptions *options, Arena *arena) {
    Question q = {0};
    TRY(scenario_take_given(&options->common, arena, &q.scenario));
    TRY(scenario_refuse_unsimulated(&q.scenario));
    warnings_print(&q.scenario, arena);
    if (options->repetitions > 1 && q.scenario.num_disturb == 0)
        return status_at(STATUS_INVALID, q.scenario.file, "disturb",
                         "absent or empty: --repetitions would all be alike");
    TRY(plan_resolve(&q.scenario, arena, &q.plan));
    if (options->trace) {
        TRY(output_check_scenario(options->trace, &q.scenario, arena));
        TRY(output_check(options->trace, arena));
    }
    TRY(estimate_plan(&q.scenario, &q.plan, arena, &q.estimate, &q.parts));
    TRY(ranks_choose(options, &q, arena));
    plan_warn_changed(&q.scenario, &q.estimate);
    plan_warn_misfit(&q.scenario, &q.estimate);
    SimResult result;
    TRY(simulate_play(options, &q, arena, &result));
    if (result.start_s) TRY(sim_timeline_check(&result, &q.parts.program));
    if (options->trace) TRY(simulate_trace(options, &q, &result, arena));
    if (options->common.json)
        TRY(answer_json(answer_with_warnings(sim_result_to_json(&result), &q.scenario)));
    else
        report_simulation(&(SimComparison){&q.scenario, &q.plan, &q.parts.program,
                                           &q.parts.timeline, &q.estimate, &result},
                          stdout);
    return difference_check(options, &q.scenario, &q.plan, &result);
}

Status command_simulate(int argc, char **argv) {
    SimulateOptions options = {.repetitions = 1, .tolerance_frac = 0.03};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = simulate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
