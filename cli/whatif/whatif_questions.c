#include "cli/whatif/whatif_questions.h"

#include "base/share.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "planner/questions/idle.h"
#include "report/fleet_report.h"
#include "report/goodput_report.h"
#include "report/sensitivity_report.h"
#include "whatif/change.h"

#include <stdio.h>
#include <string.h>

static const char *const FILE_NAMES[] = {"whatif.json", "whatif.txt", NULL};

static int threads(void) {
    const Ranks alone = {.num_ranks = 1, .num_local = 1};
    return ranks_threads(&alone, SHARE_MAX_WORKERS);
}

AnswerSpec whatif_answer_spec(const WhatifArguments *options, const Scenario *scenario,
                              Arena *arena) {
    AnswerSpec spec = {.folder = options->folder,
                       .parts = {{.name = "whatif"}},
                       .num_parts = 1,
                       .force = options->force};
    output_add_inputs(&spec, scenario, arena);
    return spec;
}

static Status question_open(const WhatifArguments *options, Arena *arena, Scenario *out) {
    TRY(scenario_open_given(&options->common, arena, out));
    if (options->replan) TRY(change_replan(out, arena, out));
    if (!options->folder) return status_ok();
    const AnswerSpec spec = whatif_answer_spec(options, out, arena);
    TRY(output_check_names(&spec, FILE_NAMES, out, arena));
    return answer_folder_check(&spec, FILE_NAMES, arena);
}

// An answer as both a document and a text.
typedef struct {
    cJSON *tree;
    void (*print)(const void *context, FILE *stream);
    const void *context;
} Answer;

// Frees the tree.
static Status answer_give(const WhatifArguments *options, const Scenario *scenario,
                          const Answer *answer, Arena *arena) {
    Status status = status_ok();
    if (options->folder) {
        const AnswerSpec spec = whatif_answer_spec(options, scenario, arena);
        const OutputAnswer files = {
            FILE_NAMES, {.tree = answer->tree}, answer->print, answer->context, NULL};
        status = output_answer_save(&spec, &files, arena);
    }
    if (status.code == STATUS_OK && options->common.json) return answer_json(answer->tree);
    cJSON_Delete(answer->tree);
    TRY(status);
    answer->print(answer->context, stdout);
    return status_ok();
}

// --- Sensitivity

typedef struct {
    const Scenario *scenario;
    const Sensitivity *sensitivity;
} Limits;

static void limits_print(const void *context, FILE *stream) {
    const Limits *limits = context;
    report_sensitivity(limits->scenario, limits->sensitivity, stream);
}

Status whatif_sensitivity_answer(const WhatifArguments *options, Arena *arena) {
    Scenario scenario;
    TRY(question_open(options, arena, &scenario));
    const SensitivityOptions what = {
        .change_frac = (options->percent > 0 ? options->percent : 10) / 100,
        .replan = options->replan,
        .planner = {.fit_probability_frac = options->fit_probability_frac},
        .num_threads = threads(),
    };
    Sensitivity sensitivity;
    TRY(sensitivity_run(&scenario, &what, arena, &sensitivity));
    const Limits limits = {&scenario, &sensitivity};
    const Answer answer = {sensitivity_to_json(&sensitivity), limits_print, &limits};
    TRY(answer_give(options, &scenario, &answer, arena));
    if (sensitivity.base.code == STATUS_OK) return status_ok();
    return status_at(STATUS_NO, scenario.file, "", "%s", sensitivity.base.message);
}

// --- Goodput

typedef struct {
    const Scenario *scenario;
    Plan plan;
    Estimate estimate;
    Goodput goodput;
} Failures;

static void failures_print(const void *context, FILE *stream) {
    const Failures *f = context;
    report_goodput(f->scenario, &f->plan, &f->estimate, &f->goodput, stream);
}

static Status plan_find(const WhatifArguments *options, const Scenario *scenario, Arena *arena,
                        Failures *out) {
    if (!options->replan) {
        TRY(plan_resolve(scenario, arena, &out->plan));
        return estimate_plan(scenario, &out->plan, arena, &out->estimate, NULL);
    }
    const PlannerOptions planner = {
        .top = 1, .fit_probability_frac = options->fit_probability_frac, .num_threads = threads()};
    PlannerResult result;
    Scenario *used = ARENA_NEW(arena, Scenario);
    TRY(planner_search_idle(scenario, &planner, arena, used, &result));
    if (result.num_entries == 0)
        return status_at(STATUS_NO, scenario->file, "", "%s", planner_miss_text(&result, arena));
    out->scenario = used;
    out->plan = result.entries[0].plan;
    out->estimate = result.entries[0].estimate;
    return status_ok();
}

Status whatif_goodput_answer(const WhatifArguments *options, Arena *arena) {
    Scenario scenario;
    TRY(question_open(options, arena, &scenario));
    Failures *failures = ARENA_NEW(arena, Failures);
    failures->scenario = &scenario;
    TRY(plan_find(options, &scenario, arena, failures));
    GoodputOptions what = options->goodput;
    what.num_threads = threads();
    TRY(goodput_run(failures->scenario, &failures->estimate, &what, &failures->goodput));
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddItemToObject(tree, "goodput", goodput_to_json(&failures->goodput));
    cJSON_AddItemToObject(tree, "answer", estimate_to_json(&failures->estimate, &failures->plan));
    const Answer answer = {tree, failures_print, failures};
    TRY(answer_give(options, &scenario, &answer, arena));
    if (failures->estimate.fits) return status_ok();
    return status_does_not_fit(scenario.file, failures->estimate.memory.device_bytes,
                               failures->estimate.memory_available_bytes);
}

// --- Sizing

typedef struct {
    const Scenario *scenario;
    const Fleet *fleet;
} Clusters;

static void clusters_print(const void *context, FILE *stream) {
    const Clusters *clusters = context;
    report_fleet(clusters->scenario, clusters->fleet, stream);
}

// names ends with NULL.
static Status preset_check(const char *name, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return status_ok();
    const char *nearest = name_nearest(name, names);
    if (nearest)
        return usage_error("--on: unknown cluster \"%.60s\"; the nearest is %s", name, nearest);
    return usage_error("--on: unknown cluster \"%.60s\"; meshwright clusters lists them, without a "
                       "number of nodes",
                       name);
}

static Status presets_known(Arena *arena, const char *const **names) {
    ClusterSummary *clusters;
    int num_clusters;
    TRY(cluster_list(arena, &clusters, &num_clusters));
    const char **known = ARENA_ARRAY(arena, num_clusters + 1, const char *);
    for (int i = 0; i < num_clusters; i++) known[i] = clusters[i].name;
    *names = known;
    return status_ok();
}

static Status presets_read(const char *list, Arena *arena, const char *const **names,
                           int *num_names) {
    if (!list) return fleet_presets(arena, names, num_names);
    const char *const *known;
    TRY(presets_known(arena, &known));
    const char **found = ARENA_ARRAY(arena, FLEET_MAX_PRESETS, const char *);
    char *rest = arena_strdup(arena, list);
    int n = 0;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        TRY(preset_check(name, known));
        for (int i = 0; i < n; i++)
            if (strcmp(found[i], name) == 0)
                return usage_error("--on: %s stands there twice", name);
        if (n == FLEET_MAX_PRESETS)
            return usage_error("--on: more than %d clusters", FLEET_MAX_PRESETS);
        found[n++] = name;
    }
    *names = found;
    *num_names = n;
    return status_ok();
}

// A row as soon as it is known; the table comes at the end.
static void row_tell(void *context, const FleetEntry *entry) {
    Arena arena = {0};
    progress_end(context);
    fprintf(stderr, "%s\n", report_fleet_row(entry, &arena));
    arena_free(&arena);
}

Status whatif_sizing_answer(const WhatifArguments *options, Arena *arena) {
    Scenario scenario;
    const char *const *presets;
    int num_presets;
    TRY(presets_read(options->on, arena, &presets, &num_presets));
    TRY(question_open(options, arena, &scenario));
    Progress progress = progress_start();
    const PlannerOptions planner = {.fit_probability_frac = options->fit_probability_frac,
                                    .num_threads = threads(),
                                    .progress = progress_show,
                                    .progress_context = &progress,
                                    .end_soon = interrupt_watch()};
    Fleet fleet;
    Status status = fleet_run(&scenario, presets, num_presets, options->tokens, options->days,
                              &planner, row_tell, &progress, arena, &fleet);
    interrupt_leave();
    progress_end(&progress);
    TRY(status);
    const Clusters clusters = {&scenario, &fleet};
    const Answer answer = {fleet_to_json(&fleet), clusters_print, &clusters};
    TRY(answer_give(options, &scenario, &answer, arena));
    if (fleet.num_found > 0) return status_ok();
    return status_at(STATUS_NO, scenario.file, "", "no cluster looked at is fast enough");
}
