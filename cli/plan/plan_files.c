#include "cli/plan/plan_files.h"

#include "base/data_dir.h"
#include "base/file_hash.h"
#include "base/output_file.h"
#include "base/shown_text.h"
#include "cli/output.h"
#include "cli/plan_view.h"
#include "launch/launch.h"
#include "planner/groups/group_orders.h"
#include "report/trace.h"

#include <stdio.h>
#include <string.h>

static const char *gpu_profile_path(const Scenario *scenario, Arena *arena) {
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(scenario->document, "cluster");
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive(cluster, "gpu");
    if (cJSON_IsString(cluster) && value_is_json_path(cluster->valuestring))
        return scenario->cluster.pools[0].gpu.file;
    if (cJSON_IsString(gpu) && value_is_path(gpu->valuestring))
        return path_beside(arena, scenario->file, gpu->valuestring);
    return data_path(arena, "hw-profiles/gpus", scenario->cluster.pools[0].gpu.name);
}

// Of groups of different machines of all profiles, in their order.
static const char *profiles_hash(const Scenario *scenario, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const int num = cluster->num_pools;
    const char **paths = ARENA_ARRAY(arena, num, const char *);
    for (int i = 0; i < num; i++) paths[i] = cluster->pools[i].gpu.file;
    if (num == 1) paths[0] = gpu_profile_path(scenario, arena);
    return files_hash(paths, num, arena);
}

static cJSON *provenance(const Scenario *scenario, const PlannedEntry *best, Arena *arena) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "version", "meshwright " MESHWRIGHT_VERSION);
    cJSON_AddStringToObject(object, "answer", plan_id(scenario, &best->plan, arena));
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

// --- Launch files

// What starts the scenario's software under two schedulers.
typedef struct {
    bool possible;
    LaunchTarget target;
    LaunchFiles files[2];
} Launches;

static void launches_make(const Scenario *scenario, const Plan *plan, Arena *arena, Launches *out) {
    *out = (Launches){0};
    out->possible = launch_target_of(scenario, &out->target);
    if (!out->possible) {
        shown_line(stderr, "meshwright: no launch files: nothing here starts %s",
                   scenario->execution.stack.name);
        return;
    }
    const LaunchScheduler schedulers[] = {launch_plain_scheduler(out->target), LAUNCH_SLURM};
    for (int i = 0; i < 2 && out->possible; i++) {
        const Status status =
            launch_make(scenario, plan, out->target, schedulers[i], arena, &out->files[i]);
        out->possible = status.code == STATUS_OK;
        if (!out->possible) fprintf(stderr, "meshwright: no launch files: %s\n", status.text);
    }
}

static Status launches_save(const Launches *launches, AnswerFolder *folder) {
    for (int i = 0; i < 2 && launches->possible; i++) TRY(launch_save(&launches->files[i], folder));
    return status_ok();
}

// --- Trace and reports

static Status estimate_trace_save(const PlanView *view, const char *path, const char *answer,
                                  Arena *arena) {
    const EstimateParts *parts = view->parts;
    const TraceTimeline timeline =
        trace_estimate(&parts->program, &parts->prices, &parts->timeline, NULL, arena);
    const TraceContext context = {.scenario = view->scenario,
                                  .plan = view->plan,
                                  .program = &parts->program,
                                  .workload = &parts->workload,
                                  .answer = answer};
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

static Status report_save(const PlanAnswer *answer, const char *path, const char *id) {
    OutputFile file;
    TRY(output_open(path, &file));
    plan_answer_print(answer, file.stream);
    fprintf(file.stream, "Answer %s, as plan.json names it.\n", id);
    return output_close(&file, status_ok());
}

// --- The folder

static AnswerSpec plan_spec(const Scenario *scenario, const char *folder, bool force,
                            Arena *arena) {
    AnswerSpec spec = {.folder = folder,
                       .parts = {{.name = "plan"}, {.name = "launch"}},
                       .num_parts = 2,
                       .force = force};
    output_add_inputs(&spec, scenario, arena);
    return spec;
}

// What may be written: the launch files are of the target's, whatever the plan is.
static const char *const *file_names(const Scenario *scenario, Arena *arena) {
    LaunchTarget target;
    const char **names = ARENA_ARRAY(arena, 8 + LAUNCH_MAX_FILES, const char *);
    int n = 0;
    names[n++] = "plan.json";
    if (launch_target_of(scenario, &target)) n += launch_file_names(target, names + n);
    names[n++] = "trace.json";
    names[n++] = "report.txt";
    if (document_check_format(FORMAT_HTML).code == STATUS_OK) names[n++] = "report.html";
    return names;
}

Status plan_files_check(const Scenario *scenario, const char *folder, bool force, Arena *arena) {
    const AnswerSpec spec = plan_spec(scenario, folder, force, arena);
    const char *const *names = file_names(scenario, arena);
    TRY(output_check_names(&spec, names, scenario, arena));
    return answer_folder_check(&spec, names, arena);
}

static Status files_write(const PlanAnswer *answer, const PlanView *view, const Launches *launches,
                          AnswerFolder *folder) {
    Arena *arena = folder->arena;
    const char *id = folder->spec.of;
    TRY(plan_save(answer->scenario, &answer->result.entries[0],
                  answer_folder_path(folder, "plan.json", "plan"), arena));
    TRY(launches_save(launches, folder));
    TRY(estimate_trace_save(view, answer_folder_path(folder, "trace.json", "plan"), id, arena));
    TRY(report_save(answer, answer_folder_path(folder, "report.txt", "plan"), id));
    return page_save(answer, view, answer_folder_path(folder, "report.html", "plan"), arena);
}

Status plan_files_save(const PlanAnswer *answer, const char *path, bool force, bool interrupted,
                       Arena *arena, bool *launchable) {
    const Scenario *scenario = answer->scenario;
    const Plan *plan = &answer->result.entries[0].plan;
    const Scenario placed = scenario->cluster.num_pools > 1
                                ? group_plan_scenario(scenario, plan, arena)
                                : placement_scenario(scenario, plan->node_order);
    Launches launches;
    PlanView view;
    launches_make(&placed, plan, arena, &launches);
    *launchable = launches.possible;
    TRY(plan_view_make(&placed, plan, !interrupted, arena, &view));
    if (interrupted) view.not_played = "the search was interrupted.";
    AnswerSpec spec = plan_spec(scenario, path, force, arena);
    spec.of = spec.parts[0].id = plan_id(scenario, plan, arena);
    spec.parts[1] = launch_part(scenario, plan, launches.target, arena);
    AnswerFolder folder;
    TRY(answer_folder_open(&spec, arena, &folder));
    TRY(answer_folder_close(&folder, files_write(answer, &view, &launches, &folder)));
    output_tell_removed(&folder);
    return status_ok();
}
