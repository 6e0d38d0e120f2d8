#include "base/shown_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_check.h"
#include "cli/stack_choice.h"
#include "costmodel/step/estimate.h"
#include "launch/launch.h"
#include "planner/planner.h"

#include <stdio.h>

typedef struct {
    CommonOptions common;
    int target, scheduler; // LaunchTarget, LaunchScheduler
    const char *folder;
    bool dry_run, force;
} LaunchOptions;

enum { KEY_FOR = KEY_LONG, KEY_SCHEDULER, KEY_DRY_RUN, KEY_FORCE };

static const struct argp_option OPTIONS[] = {
    {"for", KEY_FOR, "STACK", 0,
     "software that shall run it (default: megatron; nemo is Megatron Bridge), one of"
#define X(kind, name) " " name
#include "launch/targets.def"
#undef X
     ,
     0},
    {"scheduler", KEY_SCHEDULER, "NAME", 0,
     "what starts it: torchrun (default), slurm, mpirun, k8s", 0},
    {"output", 'o', "DIR", 0, "folder for the files (default: the current one)", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "print the files instead of writing them", 0},
    {"force", KEY_FORCE, NULL, 0,
     "overwrite existing files and remove those of another answer; write a plan that does not fit",
     0},
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
        "Writes the files that start a plan on your software. A plan that the software cannot "
        "run exactly as priced is refused, with the nearest that it can; one that does not fit in "
        "memory too, unless --force.\v"
        "Examples:\n"
        "  meshwright launch out/plan.json --dry-run\n"
        "  meshwright launch out/plan.json --for megatron --scheduler torchrun -o out\n"
        "  meshwright launch out/plan.json --scheduler slurm && sbatch launch.sbatch\n"
        "  meshwright launch out/plan.json --scheduler k8s --dry-run\n\n"
        "Every flag and key that is written, and its meaning: docs/launch/. A plan is written for "
        "the software that it was priced for (training.stack). Without parallel the best plan is "
        "searched first. Exits with 1, and writes nothing, "
        "where the plan does not fit.",
};

static Status answer_files_json(const LaunchOptions *options, const LaunchFiles *files) {
    cJSON *document = cJSON_CreateObject();
    cJSON_AddNumberToObject(document, "schema", 1);
    cJSON_AddStringToObject(document, "for", LAUNCH_TARGET_NAMES[options->target]);
    cJSON_AddStringToObject(document, "scheduler", LAUNCH_SCHEDULER_NAMES[options->scheduler]);
    cJSON *list = cJSON_AddArrayToObject(document, "files");
    for (int i = 0; i < files->num_files; i++) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "name", files->files[i].name);
        cJSON_AddStringToObject(entry, "text", files->files[i].text);
        cJSON_AddItemToArray(list, entry);
    }
    return answer_json(document);
}

static Status answer(const LaunchOptions *options, const LaunchFiles *files,
                     const AnswerFolder *folder) {
    if (options->common.json) return answer_files_json(options, files);
    for (int i = 0; i < files->num_files; i++) {
        const LaunchFile *file = &files->files[i];
        if (!options->dry_run) {
            shown_line(stdout, "%s/%s %s", options->folder, file->name,
                       answer_folder_unchanged(folder, file->name) ? "unchanged" : "written");
            continue;
        }
        if (i > 0) printf("\n# --- %s ---\n\n", file->name);
        fputs(file->text, stdout);
    }
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

static Status files_save(const LaunchOptions *options, const Scenario *scenario, const Plan *plan,
                         const LaunchFiles *files, Arena *arena, AnswerFolder *folder) {
    AnswerSpec spec = {.folder = options->folder,
                       .parts = {launch_part(scenario, plan, (LaunchTarget)options->target, arena)},
                       .num_parts = 1,
                       .of = plan_id(scenario, plan, arena),
                       .keeps = true,
                       .force = options->force};
    output_add_inputs(&spec, scenario, arena);
    for (int i = 0; i < files->num_files; i++) {
        const char *path = arena_printf(arena, "%s/%s", options->folder, files->files[i].name);
        TRY(output_check_scenario(path, scenario, arena));
    }
    TRY(folder_check(options->folder)); // whether it is a folder, before one is made
    TRY(answer_folder_open(&spec, arena, folder));
    TRY(answer_folder_close(folder, launch_save(files, folder)));
    output_tell_removed(folder);
    return status_ok();
}

// The best plan of a scenario that states none.
static Status plan_first(const Scenario *stated, Arena *arena, Scenario *scenario, Plan *plan) {
    const PlannerOptions options = {.top = 1, .num_threads = 1};
    StackChoice stack;
    PlannerResult result;
    TRY(stack_choose(stated, arena, scenario, &stack));
    if (stack.note) shown_line(stderr, "%s", stack.note);
    TRY(planner_search(scenario, &options, arena, &result));
    if (result.num_entries == 0)
        return status_at(STATUS_NO, scenario->file, "", "nothing fits: `plan` says what would");
    *plan = result.entries[0].plan;
    shown_line(stderr, "%s: parallel: absent, so planned first: %s (`plan` shows others)",
               scenario->file, plan_describe(plan, arena));
    return status_ok();
}

static Status plan_take(const LaunchOptions *options, Arena *arena, Scenario *scenario,
                        Plan *plan) {
    Scenario stated;
    TRY(scenario_open(options->common.scenario, arena, &stated));
    const cJSON *parallel = cJSON_GetObjectItemCaseSensitive(stated.document, "parallel");
    if (!parallel || cJSON_IsNull(parallel)) return plan_first(&stated, arena, scenario, plan);
    *scenario = stated;
    return plan_resolve(scenario, arena, plan);
}

static Status launch_answer(const LaunchOptions *options, Arena *arena) {
    Scenario scenario;
    Plan plan;
    LaunchFiles files;
    AnswerFolder folder = {0};
    TRY(plan_take(options, arena, &scenario, &plan));
    TRY(launch_make(&scenario, &plan, (LaunchTarget)options->target,
                    (LaunchScheduler)options->scheduler, arena, &files));
    TRY(fit_check(options, &scenario, &plan, arena));
    if (!options->dry_run) TRY(files_save(options, &scenario, &plan, &files, arena, &folder));
    return answer(options, &files, &folder);
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
