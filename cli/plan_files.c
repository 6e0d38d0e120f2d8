#include "cli/plan_files.h"

#include "base/data_dir.h"
#include "base/file_hash.h"
#include "base/output_file.h"
#include "cli/output.h"
#include "cli/plan_view.h"
#include "launch/launch.h"
#include "planner/group_orders.h"
#include "report/trace.h"

#include <stdio.h>
#include <string.h>

static const char *gpu_profile_path(const Scenario *scenario, Arena *arena) {
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(scenario->document, "cluster");
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive(cluster, "gpu");
    if (cJSON_IsString(cluster) && value_is_json_path(cluster->valuestring))
        return scenario->cluster.gpu.file;
    if (cJSON_IsString(gpu) && value_is_path(gpu->valuestring))
        return path_beside(arena, scenario->file, gpu->valuestring);
    return data_path(arena, "hw-profiles/gpus", scenario->cluster.gpu.name);
}

// Of groups of different machines of all profiles, in their order.
static const char *profiles_hash(const Scenario *scenario, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const int num = cluster->groups ? cluster_num_groups(cluster) : 1;
    const char **paths = ARENA_ARRAY(arena, num, const char *);
    paths[0] = gpu_profile_path(scenario, arena);
    for (int i = 0; cluster->groups && i < num; i++) paths[i] = cluster->groups[i].gpu.file;
    return files_hash(paths, num, arena);
}

static cJSON *provenance(const Scenario *scenario, const PlannedEntry *best, Arena *arena) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "version", "meshwright " MESHWRIGHT_VERSION);
    cJSON_AddStringToObject(object, "profile", scenario_gpus(scenario, arena));
    const char *hash = profiles_hash(scenario, arena);
    if (hash) cJSON_AddStringToObject(object, "profile_fnv1a64", hash);
    cJSON *predicted = estimate_to_json(&best->estimate, &best->plan);
    cJSON_DeleteItemFromObjectCaseSensitive(predicted, "parallel"); // it stands beside
    cJSON_DeleteItemFromObjectCaseSensitive(predicted, "schema");
    cJSON_AddItemToObject(object, "predicted", predicted);
    return object;
}

static Status plan_save(const Scenario *scenario, const PlannedEntry *best, const char *path,
                        Arena *arena) {
    cJSON *origin = provenance(scenario, best, arena);
    cJSON *document = plan_document(scenario, &best->plan, origin);
    Status status = json_save(document, path);
    cJSON_Delete(document);
    cJSON_Delete(origin);
    return status;
}

static Status launch_files_save(const Scenario *scenario, const Plan *plan, const char *folder,
                                Arena *arena, bool *launchable) {
    LaunchTarget target;
    *launchable = launch_target_of(scenario, &target);
    if (!*launchable) {
        fprintf(stderr, "meshwright: no launch files: nothing here starts %s\n",
                scenario->training.stack.name);
        return status_ok();
    }
    const LaunchScheduler schedulers[] = {
        target == LAUNCH_RUNTIME ? LAUNCH_MPIRUN : LAUNCH_TORCHRUN, LAUNCH_SLURM};
    for (int i = 0; i < 2; i++) {
        LaunchFiles files;
        bool unchanged[LAUNCH_MAX_FILES];
        Status status = launch_make(scenario, plan, target, schedulers[i], arena, &files);
        if (status.code != STATUS_OK) {
            *launchable = false;
            fprintf(stderr, "meshwright: no launch files: %s\n", status.text);
            return status_ok();
        }
        TRY(launch_save(&files, folder, true, arena, unchanged));
    }
    return status_ok();
}

static Status estimate_trace_save(const PlanView *view, const char *path, Arena *arena) {
    const EstimateParts *parts = view->parts;
    const TraceTimeline timeline =
        trace_estimate(&parts->program, &parts->prices, &parts->timeline, NULL, arena);
    const TraceContext context = {.scenario = view->scenario,
                                  .plan = view->plan,
                                  .program = &parts->program,
                                  .workload = &parts->workload};
    return trace_save(path, &context, &timeline, 1);
}

static Status page_save(const PlanAnswer *answer, const PlanView *view, const char *path,
                        Arena *arena) {
    cJSON *tree = plan_answer_to_json(answer);
    const Answer plans = {.kind = ANSWER_PLANS, .root = {.file = "plans", .item = tree}};
    const ReportContents contents = {
        .plans = view, .num_plans = 1, .answers = &plans, .num_answers = 1};
    const Status status = page_report_save(&contents, path, arena);
    cJSON_Delete(tree);
    return status;
}

static Status report_save(const PlanAnswer *answer, const char *path) {
    OutputFile file;
    TRY(output_open(path, &file));
    plan_answer_print(answer, file.stream);
    return output_close(&file, status_ok());
}

Status plan_files_check(const Scenario *scenario, const char *folder, Arena *arena) {
    static const char *const NAMES[] = {
        "plan.json",        "launch.sh",  "launch.sbatch", "launch-mpirun.sh", "torchtitan.toml",
        "launch.plan.json", "trace.json", "report.txt",    "report.html",      NULL};
    return folder_check_files(folder, NAMES, scenario, arena);
}

Status plan_files_save(const PlanAnswer *answer, const char *folder, Arena *arena,
                       bool *launchable) {
    const Scenario *scenario = answer->scenario;
    const PlannedEntry *best = &answer->result.entries[0];
    const Scenario placed = scenario->cluster.groups
                                ? group_plan_scenario(scenario, &best->plan, arena)
                                : placement_scenario(scenario, best->plan.node_order);
    TRY(folder_make(folder));
    TRY(plan_save(scenario, best, arena_printf(arena, "%s/plan.json", folder), arena));
    TRY(launch_files_save(&placed, &best->plan, folder, arena, launchable));
    PlanView view;
    TRY(plan_view_make(&placed, &best->plan, true, arena, &view));
    TRY(estimate_trace_save(&view, arena_printf(arena, "%s/trace.json", folder), arena));
    TRY(report_save(answer, arena_printf(arena, "%s/report.txt", folder)));
    return page_save(answer, &view, arena_printf(arena, "%s/report.html", folder), arena);
}
