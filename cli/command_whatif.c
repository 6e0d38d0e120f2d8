#include "base/data_dir.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/whatif_report.h"
#include "whatif/whatif.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common;
    const char *vary[WHATIF_MAX_AXES];
    int num_vary;
    bool replan;
    const char *folder;
} WhatifArguments;

enum { KEY_VARY = KEY_LONG, KEY_REPLAN };

static const struct argp_option OPTIONS[] = {
    {"vary", KEY_VARY, "PATH=V1,V2,...", 0,
     "a key of the scenario and its values; repeat for a grid", 0},
    {"replan", KEY_REPLAN, NULL, 0, "search the best plan at every point", 0},
    {"output", 'o', "DIR", 0, "writes whatif.json and whatif.txt there", 0},
    OPTION_JSON,
    OPTION_NOT_YET("sensitivity", 0, NULL),
    OPTION_NOT_YET("tokens", 1, "N"),
    OPTION_NOT_YET("days", 2, "D"),
    OPTION_NOT_YET("goodput", 3, NULL),
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    WhatifArguments *options = state->input;
    switch (key) {
    case KEY_VARY:
        if (options->num_vary == WHATIF_MAX_AXES)
            return parse_refuse(state, "whatif: more than %d --vary", WHATIF_MAX_AXES);
        options->vary[options->num_vary++] = arg;
        return 0;
    case KEY_REPLAN:
        options->replan = true;
        return 0;
    case 'o':
        options->folder = arg;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "SCENARIO",
    .doc = "Prices a grid of changes to a scenario; with --replan each point gets the plan that is "
           "best for it. A change names a key by its dotted path, as in cluster.num_gpus. Ranges: "
           "8..64:x2 is 8, 16, 32, 64; 1..7:+3 is 1, 4, 7.\v"
           "Examples:\n"
           "  meshwright whatif job.json --vary cluster.num_gpus=64,128,256 --replan\n"
           "  meshwright whatif out/plan.json --vary training.seq_len=4096..32768:x2\n"
           "  meshwright whatif out/plan.json --vary training.global_batch=64,128 \\\n"
           "      --vary parallel.recompute=none,full -o grid\n\n"
           "Exits with 1 where no point of the grid fits, with 2 where none is legal.",
};

static const char *const FILE_NAMES[] = {"whatif.json", "whatif.txt", NULL};

static Status whatif_save(const Scenario *scenario, const WhatifResult *result, const char *folder,
                          Arena *arena) {
    TRY(folder_make(folder));
    cJSON *tree = whatif_to_json(result);
    Status status = json_save(tree, arena_printf(arena, "%s/%s", folder, FILE_NAMES[0]));
    cJSON_Delete(tree);
    TRY(status);
    const char *path = arena_printf(arena, "%s/%s", folder, FILE_NAMES[1]);
    OutputFile file;
    TRY(output_open(path, &file));
    report_whatif(scenario, result, file.stream);
    return output_close(&file, status_ok());
}

// A value may name a file that a point is made of.
static Status values_check(const char *output, const WhatifAxis *axis, const Scenario *scenario,
                           Arena *arena) {
    static const char FILE_PREFIX[] = "file:";
    const size_t length = sizeof FILE_PREFIX - 1;
    for (int i = 0; i < axis->num_values; i++) {
        const char *value = cJSON_GetStringValue(axis->values[i]);
        if (!value) continue;
        if (strncmp(value, FILE_PREFIX, length) == 0) value += length;
        TRY(output_check_input(output, path_beside(arena, scenario->file, value), axis->path));
    }
    return status_ok();
}

// Nothing is written over the files of the scenario or of a point.
static Status output_folder_check(const WhatifArguments *options, const WhatifAxis *axes,
                                  const Scenario *scenario, Arena *arena) {
    TRY(folder_check_files(options->folder, FILE_NAMES, scenario, arena));
    for (int f = 0; FILE_NAMES[f]; f++) {
        const char *file = arena_printf(arena, "%s/%s", options->folder, FILE_NAMES[f]);
        for (int i = 0; i < options->num_vary; i++)
            TRY(values_check(file, &axes[i], scenario, arena));
    }
    return status_ok();
}

// A grid of which nothing is legal is bad input: the first refusal stands for all.
static Status whatif_check(const WhatifResult *result) {
    for (int64_t i = 0; i < result->num_points; i++)
        if (result->points[i].code != STATUS_INVALID) return status_ok();
    return status_error(STATUS_INVALID, "%s", result->points[0].message);
}

static Status whatif_answer(const WhatifArguments *options, Arena *arena) {
    if (options->num_vary == 0)
        return usage_error("whatif: no --vary given, as in --vary cluster.num_gpus=64,128");
    WhatifAxis axes[WHATIF_MAX_AXES];
    for (int i = 0; i < options->num_vary; i++)
        TRY(whatif_parse_axis(options->vary[i], arena, &axes[i]));
    Scenario scenario;
    TRY(scenario_open(options->common.scenario, arena, &scenario));
    if (options->folder) TRY(output_folder_check(options, axes, &scenario, arena));
    Progress progress = progress_start();
    WhatifOptions what = {
        .replan = options->replan,
        .planner = {.progress = progress_show, .progress_context = &progress},
    };
    WhatifResult result;
    Status status = whatif_run(&scenario, axes, options->num_vary, &what, arena, &result);
    progress_end(&progress);
    TRY(status);
    TRY(whatif_check(&result));
    if (options->folder) TRY(whatif_save(&scenario, &result, options->folder, arena));
    if (options->common.json)
        TRY(answer_json(whatif_to_json(&result)));
    else
        report_whatif(&scenario, &result, stdout);
    for (int64_t i = 0; i < result.num_points; i++)
        if (result.points[i].code == STATUS_OK) return status_ok();
    return status_at(STATUS_NO, scenario.file, "", "none of the %lld points fits",
                     (long long)result.num_points);
}

Status command_whatif(int argc, char **argv) {
    WhatifArguments options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = whatif_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
