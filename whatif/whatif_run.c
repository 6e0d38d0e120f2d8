// Prices or plans every point of a grid.
#include "whatif/change.h"
#include "whatif/whatif.h"

#include <string.h>
#include <time.h>

typedef struct {
    const Scenario *scenario;
    const WhatifAxis *axes;
    int num_axes;
    const WhatifOptions *options;
    const char *paths[WHATIF_MAX_AXES];
    const cJSON *base;
    Arena *arena;
} Grid;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- The grid

static Status axes_check(const WhatifAxis *axes, int num_axes, int64_t *num_points) {
    if (num_axes < 1)
        return status_error(STATUS_INVALID, "whatif needs at least one --vary PATH=v1,v2,...");
    if (num_axes > WHATIF_MAX_AXES)
        return status_error(STATUS_INVALID, "%d --vary; expected at most %d", num_axes,
                            WHATIF_MAX_AXES);
    double points = 1;
    for (int i = 0; i < num_axes; i++) {
        points *= axes[i].num_values;
        for (int j = 0; j < i; j++)
            if (strcmp(axes[i].path, axes[j].path) == 0)
                return status_error(STATUS_INVALID, "--vary %s is given twice", axes[i].path);
    }
    if (points > WHATIF_MAX_POINTS)
        return status_error(STATUS_INVALID, "the grid has %.0f points; expected at most %d", points,
                            WHATIF_MAX_POINTS);
    *num_points = (int64_t)points;
    return status_ok();
}

static const cJSON *const *point_values(const Grid *grid, int64_t index) {
    const cJSON **values = ARENA_ARRAY(grid->arena, grid->num_axes, const cJSON *);
    for (int i = grid->num_axes - 1; i >= 0; i--) {
        values[i] = grid->axes[i].values[index % grid->axes[i].num_values];
        index /= grid->axes[i].num_values;
    }
    return values;
}

// --- One point

static void tree_free(void *tree) {
    cJSON_Delete(tree);
}

static Status point_scenario(const Grid *grid, const cJSON *const *values, Arena *scratch,
                             Scenario *out) {
    cJSON *document = cJSON_Duplicate(grid->base, true);
    arena_own(scratch, tree_free, document);
    change_derive(document, grid->paths, grid->num_axes);
    for (int i = 0; i < grid->num_axes; i++)
        TRY(change_set(grid->scenario, document, grid->paths[i], values[i]));
    JsonNode *root = ARENA_NEW(scratch, JsonNode);
    *root = (JsonNode){.file = grid->scenario->file, .item = document};
    TRY(scenario_read(root, scratch, out));
    return scenario_refuse_unsupported(out);
}

static void point_answer(const Grid *grid, const Plan *plan, const Estimate *estimate,
                         WhatifPoint *point) {
    point->has_answer = true;
    point->plan = plan_copy(plan, grid->arena);
    point->estimate = *estimate;
}

static Status point_estimate(const Grid *grid, const Scenario *scenario, Arena *scratch,
                             WhatifPoint *point) {
    Plan plan;
    Estimate estimate;
    TRY(plan_resolve(scenario, scratch, &plan));
    TRY(estimate_plan(scenario, &plan, scratch, &estimate, NULL));
    point_answer(grid, &plan, &estimate, point);
    if (estimate.fits) return status_ok();
    return status_error(STATUS_NO, "does not fit: needs %.2f GB of %.2f GB",
                        estimate.memory.device_bytes / 1e9, estimate.memory_available_bytes / 1e9);
}

static Status point_replan(const Grid *grid, const Scenario *scenario, Arena *scratch,
                           WhatifPoint *point) {
    PlannerOptions options = grid->options->planner;
    options.top = 1;
    options.brief = true;
    options.progress = NULL;
    PlannerResult result;
    TRY(planner_search(scenario, &options, scratch, &result));
    if (result.num_entries == 0)
        return status_error(STATUS_NO, "%s", planner_miss_text(&result, scratch));
    point_answer(grid, &result.entries[0].plan, &result.entries[0].estimate, point);
    return status_ok();
}

static void point_run(const Grid *grid, int64_t index, Arena *scratch, WhatifPoint *point) {
    point->values = point_values(grid, index);
    Scenario scenario;
    Status status = point_scenario(grid, point->values, scratch, &scenario);
    if (status.code == STATUS_OK)
        status = grid->options->replan ? point_replan(grid, &scenario, scratch, point)
                                       : point_estimate(grid, &scenario, scratch, point);
    point->code = status.code;
    if (status.code != STATUS_OK) point->message = arena_strdup(grid->arena, status.text);
}

// --- All

Status whatif_run(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                  const WhatifOptions *options, Arena *arena, WhatifResult *out) {
    double start_s = now_s();
    int64_t num_points = 0;
    TRY(axes_check(axes, num_axes, &num_points));
    Grid grid = {.scenario = scenario,
                 .axes = axes,
                 .num_axes = num_axes,
                 .options = options,
                 .arena = arena};
    for (int i = 0; i < num_axes; i++) grid.paths[i] = axes[i].path;
    TRY(change_base(scenario, grid.paths, num_axes, options->replan, arena, &grid.base));
    for (int i = 0; i < num_axes; i++)
        TRY(change_check_path(scenario, grid.base, axes[i].path, axes[i].values[0]));

    WhatifPoint *points = ARENA_ARRAY(arena, num_points, WhatifPoint);
    Arena scratch = {0};
    for (int64_t i = 0; i < num_points; i++) {
        if (options->planner.progress)
            options->planner.progress(options->planner.progress_context, "points", i, num_points);
        arena_reset(&scratch);
        point_run(&grid, i, &scratch, &points[i]);
    }
    arena_free(&scratch);
    *out = (WhatifResult){.axes = axes,
                          .num_axes = num_axes,
                          .points = points,
                          .num_points = num_points,
                          .replan = options->replan,
                          .wall_s = now_s() - start_s};
    return status_ok();
}
