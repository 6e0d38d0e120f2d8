#include "base/share.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "report/compare_report.h"
#include "whatif/change.h"
#include "whatif/compare.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common;
    const char *other; // the second document
    bool replan;
    const char *folder;
    bool force;
} CompareArguments;

enum { KEY_REPLAN = KEY_LONG, KEY_FORCE };

static const struct argp_option OPTIONS[] = {
    {"replan", KEY_REPLAN, NULL, 0, "search the best plan of each", 0},
    {"output", 'o', "DIR", 0, "writes compare.json and compare.txt there", 0},
    OPTION_FORCE(KEY_FORCE, 0),
    OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    CompareArguments *options = state->input;
    switch (key) {
    case KEY_REPLAN:
        options->replan = true;
        return 0;
    case 'o':
        options->folder = arg;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!options->common.scenario || options->other) break;
        options->other = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->other) return 0;
        return parse_refuse(state, "compare: expected two plans or scenarios, as in compare "
                                   "out/plan.json job.json");
    default:
        break;
    }
    return common_parse(key, arg, state);
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "A B",
    .doc = "Sets two plans or scenarios side by side: what they ask differently, each term of the "
           "step, the memory, cost and energy. A scenario is priced as estimate does.\v"
           "Examples:\n"
           "  meshwright compare out/plan.json job.json\n"
           "  meshwright compare job.json out/plan.json --replan --json\n\n"
           "Exits with 1 where one of them does not fit.",
};

static const char *const FILE_NAMES[] = {"compare.json", "compare.txt", NULL};

static AnswerSpec answer_spec(const CompareArguments *options, const Scenario *a, const Scenario *b,
                              Arena *arena) {
    AnswerSpec spec = {.folder = options->folder,
                       .parts = {{.name = "compare"}},
                       .num_parts = 1,
                       .force = options->force};
    output_add_inputs(&spec, a, arena);
    output_add_inputs(&spec, b, arena);
    return spec;
}

static void comparison_print(const void *context, FILE *stream) {
    report_comparison(context, stream);
}

static Status comparison_save(const CompareArguments *options, const Scenario *a, const Scenario *b,
                              const Comparison *comparison, Arena *arena) {
    cJSON *tree = compare_to_json(comparison);
    const AnswerSpec spec = answer_spec(options, a, b, arena);
    const OutputAnswer answer = {FILE_NAMES, {.tree = tree}, comparison_print, comparison, NULL};
    const Status status = output_answer_save(&spec, &answer, arena);
    cJSON_Delete(tree);
    return status;
}

static Status sides_price(const CompareArguments *options, const Scenario *a, const Scenario *b,
                          Arena *arena, Comparison *out) {
    const Ranks alone = {.num_ranks = 1, .num_local = 1};
    Progress progress = progress_start();
    const PlannerOptions planner = {.num_threads = ranks_threads(&alone, SHARE_MAX_WORKERS),
                                    .progress = progress_show,
                                    .progress_context = &progress};
    CompareSide sides[2];
    Status status = compare_side(a, options->replan ? &planner : NULL, arena, &sides[0]);
    if (status.code == STATUS_OK)
        status = compare_side(b, options->replan ? &planner : NULL, arena, &sides[1]);
    progress_end(&progress);
    TRY(status);
    *out = compare_sides(&sides[0], &sides[1], arena);
    return status_ok();
}

static Status side_fits(const CompareSide *side) {
    if (side->miss) return status_at(STATUS_NO, side->scenario->file, "", "%s", side->miss);
    if (side->estimate.fits) return status_ok();
    return status_does_not_fit(side->scenario->file, side->estimate.memory.device_bytes,
                               side->estimate.memory_available_bytes);
}

static Status compare_answer(const CompareArguments *options, Arena *arena) {
    Scenario a, b;
    if (strcmp(options->common.scenario, "-") == 0 && strcmp(options->other, "-") == 0)
        return usage_error("compare: both are standard input; expected a file for one of them");
    TRY(scenario_open(options->common.scenario, arena, &a));
    TRY(scenario_open(options->other, arena, &b));
    if (options->folder) {
        const AnswerSpec spec = answer_spec(options, &a, &b, arena);
        TRY(output_check_names(&spec, FILE_NAMES, &a, arena));
        TRY(output_check_names(&spec, FILE_NAMES, &b, arena));
        TRY(answer_folder_check(&spec, FILE_NAMES, arena));
    }
    const Scenario read_a = a, read_b = b;
    if (options->replan) TRY(change_replan(&a, arena, &a));
    if (options->replan) TRY(change_replan(&b, arena, &b));
    Comparison comparison;
    TRY(sides_price(options, &a, &b, arena, &comparison));
    if (options->folder) TRY(comparison_save(options, &read_a, &read_b, &comparison, arena));
    if (options->common.json)
        TRY(answer_json(compare_to_json(&comparison)));
    else
        report_comparison(&comparison, stdout);
    TRY(side_fits(&comparison.a));
    return side_fits(&comparison.b);
}

Status command_compare(int argc, char **argv) {
    CompareArguments options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = compare_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
