#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "costmodel/estimate.h"
#include "launch/launch.h"

#include <stdio.h>

typedef struct {
    CommonOptions common;
    int target, scheduler; // LaunchTarget, LaunchScheduler
    const char *folder;
    bool dry_run, force;
} LaunchOptions;

enum { KEY_FOR = KEY_LONG, KEY_SCHEDULER, KEY_DRY_RUN, KEY_FORCE };

static const struct argp_option OPTIONS[] = {
    {"for", KEY_FOR, "STACK", 0, "software that shall run it: megatron (default)", 0},
    {"scheduler", KEY_SCHEDULER, "NAME", 0, "what starts it: torchrun (default), slurm", 0},
    {"output", 'o', "DIR", 0, "folder for the file (default: the current one)", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "print the file instead of writing it", 0},
    {"force", KEY_FORCE, NULL, 0, "overwrite an existing file; write a plan that does not fit", 0},
    OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    LaunchOptions *options = state->input;
    switch (key) {
    case KEY_FOR:
        return parse_name(state, "for", arg, LAUNCH_TARGET_NAMES, &options->target);
    case KEY_SCHEDULER:
        return parse_name(state, "scheduler", arg, LAUNCH_SCHEDULER_NAMES, &options->scheduler);
    case 'o':
        options->folder = arg;
        return 0;
    case KEY_DRY_RUN:
        options->dry_run = true;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "PLAN",
    .doc =
        "Writes the file that starts a plan on your software. A plan that the software cannot "
        "run exactly as priced is refused, with the nearest that it can; one that does not fit in "
        "memory too, unless --force.\v"
        "Examples:\n"
        "  meshwright launch out/plan.json --dry-run\n"
        "  meshwright launch out/plan.json --for megatron --scheduler torchrun -o out\n"
        "  meshwright launch out/plan.json --scheduler slurm && sbatch launch.sbatch\n\n"
        "The flags of Megatron-LM and their meaning: docs/launch/megatron.md. Exits with 1, "
        "and writes nothing, where the plan does not fit.",
};

static Status answer(const LaunchOptions *options, const LaunchFile *file, bool unchanged) {
    if (options->common.json) {
        cJSON *document = cJSON_CreateObject();
        cJSON_AddNumberToObject(document, "schema", 1);
        cJSON_AddStringToObject(document, "for", LAUNCH_TARGET_NAMES[options->target]);
        cJSON_AddStringToObject(document, "scheduler", LAUNCH_SCHEDULER_NAMES[options->scheduler]);
        cJSON *files = cJSON_AddArrayToObject(document, "files"), *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "name", file->name);
        cJSON_AddStringToObject(entry, "text", file->text);
        cJSON_AddItemToArray(files, entry);
        return answer_json(document);
    }
    if (options->dry_run)
        fputs(file->text, stdout);
    else
        printf("%s/%s %s\n", options->folder, file->name, unchanged ? "unchanged" : "written");
    return status_ok();
}

// A plan that does not fit is started only by --force.
static Status fit_check(const LaunchOptions *options, const Scenario *scenario, const Plan *plan,
                        Arena *arena) {
    Estimate estimate;
    TRY(estimate_plan(scenario, plan, arena, &estimate, NULL));
    plan_warn_changed(scenario, &estimate);
    if (estimate.fits) return status_ok();
    if (!options->force)
        return status_does_not_fit(scenario->file, estimate.memory.device_bytes,
                                   estimate.memory_available_bytes);
    plan_warn_misfit(scenario, &estimate);
    return status_ok();
}

static Status launch_answer(const LaunchOptions *options, Arena *arena) {
    Scenario scenario;
    Plan plan;
    LaunchFile file;
    bool unchanged = false;
    TRY(scenario_open_plan(options->common.scenario, arena, &scenario, &plan));
    TRY(launch_make(&scenario, &plan, (LaunchTarget)options->target,
                    (LaunchScheduler)options->scheduler, arena, &file));
    TRY(fit_check(options, &scenario, &plan, arena));
    if (!options->dry_run) {
        const char *const names[] = {file.name, NULL};
        TRY(folder_check_files(options->folder, names, &scenario, arena));
        TRY(folder_make(options->folder));
        TRY(launch_save(&file, options->folder, options->force, arena, &unchanged));
    }
    return answer(options, &file, unchanged);
}

Status command_launch(int argc, char **argv) {
    LaunchOptions options = {
        .target = LAUNCH_MEGATRON, .scheduler = LAUNCH_TORCHRUN, .folder = "."};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = launch_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
