#include "base/output_file.h"
#include "base/shown_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "cli/plan_view.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILES = 64 };

typedef struct {
    CommonOptions common;
    const char *files[MAX_FILES];
    int num_files;
    int format; // DocumentFormat
    const char *output;
    bool no_simulation;
} ReportOptions;

enum { KEY_FORMAT = KEY_LONG, KEY_NO_SIMULATION };

static const struct argp_option OPTIONS[] = {
    {"format", KEY_FORMAT, "html|md|csv|json", 0, "of the report (default: html)", 0},
    {"output", 'o', "FILE", 0, "writes it there (default: standard output)", 0},
    {"no-simulation", KEY_NO_SIMULATION, NULL, 0, "price plans, but do not play them", 0},
    OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    ReportOptions *options = state->input;
    switch (key) {
    case KEY_FORMAT:
        return parse_name(state, "format", arg, FORMAT_NAMES, &options->format);
    case 'o':
        if (arg[0] == '\0') return parse_refuse(state, "--output: the name is empty");
        options->output = arg;
        return 0;
    case 'j':
        options->format = FORMAT_JSON;
        return 0;
    case KEY_NO_SIMULATION:
        options->no_simulation = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->num_files == MAX_FILES)
            return parse_refuse(state, "report: more than %d files", MAX_FILES);
        options->files[options->num_files++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->num_files == 0)
            return parse_refuse(state, "report: no FILE given; meshwright report --help shows "
                                       "examples");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "FILE...",
    .doc = "Makes one report of any number of plans, simulations and grids: a plan.json (priced "
           "and simulated anew), and what plan, estimate, simulate, whatif (grids, --sensitivity, "
           "--goodput) and compare print with --json. html is one page that needs no network; md, "
           "csv and json have the same tables.\v"
           "Examples:\n"
           "  meshwright report out/plan.json -o report.html\n"
           "  meshwright plan job.json --pareto --json >plans.json; \\\n"
           "      meshwright report out/plan.json plans.json -o report.html\n"
           "  meshwright report out/plan.json --format md\n\n"
           "Exits with 3 where the HTML page was not built in (node and npm were missing).",
};

// What was read.
typedef struct {
    PlanView plans[MAX_FILES];
    Answer answers[MAX_FILES];
    int num_plans, num_answers;
} ReportInputs;

static Status output_checks(const ReportOptions *options, Arena *arena) {
    if (!options->output || strcmp(options->output, "-") == 0) return status_ok();
    TRY(output_check(options->output, arena));
    for (int i = 0; i < options->num_files; i++)
        TRY(output_check_input(options->output, options->files[i], "input"));
    return status_ok();
}

// A scenario that only the simulator takes (something is disturbed) is priced as if it were not.
static Status plan_read(const ReportOptions *options, const JsonNode *root, Arena *arena,
                        PlanView *out) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    Plan *plan = ARENA_NEW(arena, Plan);
    TRY(scenario_read(root, arena, scenario));
    const Status priced = scenario_refuse_unsupported(scenario);
    if (options->no_simulation || scenario_refuse_unsimulated(scenario).code != STATUS_OK)
        TRY(priced);
    TRY(plan_resolve(scenario, arena, plan));
    if (options->output && strcmp(options->output, "-") != 0)
        TRY(output_check_scenario(options->output, scenario, arena));
    TRY(plan_view_make(scenario, plan, !options->no_simulation, arena, out));
    plan_warn_changed(scenario, out->estimate);
    plan_warn_misfit(scenario, out->estimate);
    return status_ok();
}

static Status file_read(const ReportOptions *options, const char *file, Arena *arena,
                        ReportInputs *inputs) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    AnswerKind kind;
    TRY(json_load(file, arena, root));
    TRY(answer_recognize(root, &kind));
    const char *name = options->num_files > 1 ? root->file : NULL;
    if (kind != ANSWER_SCENARIO) {
        inputs->answers[inputs->num_answers++] = (Answer){kind, name, *root};
        return status_ok();
    }
    PlanView *view = &inputs->plans[inputs->num_plans];
    TRY(plan_read(options, root, arena, view));
    inputs->num_plans++;
    view->file = name;
    return status_ok();
}

static Status report_write(const ReportOptions *options, const Document *document) {
    OutputFile file;
    if (!options->output || strcmp(options->output, "-") == 0)
        return document_write(document, (DocumentFormat)options->format, stdout);
    TRY(output_open(options->output, &file));
    TRY(output_close(&file,
                     document_write(document, (DocumentFormat)options->format, file.stream)));
    answer_folder_rewrote(options->output);
    shown_line(stdout, "The report is %s.", options->output);
    return status_ok();
}

static Status report_answer(const ReportOptions *options, Arena *arena) {
    ReportInputs *inputs = ARENA_NEW(arena, ReportInputs);
    TRY(document_check_format((DocumentFormat)options->format));
    TRY(output_checks(options, arena));
    for (int i = 0; i < options->num_files; i++)
        TRY(file_read(options, options->files[i], arena, inputs));
    const ReportContents contents = {
        .plans = inputs->plans,
        .num_plans = inputs->num_plans,
        .answers = inputs->answers,
        .num_answers = inputs->num_answers,
    };
    Document document;
    TRY(report_document(&contents, arena, &document));
    const Status status = report_write(options, &document);
    cJSON_Delete(document.root);
    return status;
}

Status command_report(int argc, char **argv) {
    ReportOptions options = {.format = FORMAT_HTML};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = report_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
