// Prices or plans every point of a grid, on threads, and beside other processes.
#include "base/clock.h"
#include "base/data_dir.h"
#include "base/json_shelf.h"
#include "base/share.h"
#include "config/job/scenario_inputs.h"
#include "whatif/change.h"
#include "whatif/journal.h"
#include "whatif/point.h"
#include "whatif/rays.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// --- The grid

// Whether a path is of something inside what another sets: "training.seq_len" in "training".
static bool lies_in(const char *inner, const char *outer) {
    const size_t length = strlen(outer);
    return strncmp(inner, outer, length) == 0 && (inner[length] == '.' || inner[length] == '[');
}

// Of two paths that set the same the second would be priced, and the first shown beside it.
static Status pair_check(const char *path, const char *other) {
    if (strcmp(path, other) == 0)
        return status_error(STATUS_INVALID, "--vary %s is given twice", path);
    if (lies_in(other, path)) return pair_check(other, path);
    if (!lies_in(path, other)) return status_ok();
    return status_error(STATUS_INVALID, "--vary %s is part of --vary %s: vary one of them", path,
                        other);
}

static Status axes_check(const WhatifAxis *axes, int num_axes, int64_t *num_points) {
    if (num_axes < 1)
        return status_error(STATUS_INVALID, "whatif needs at least one --vary PATH=v1,v2,...");
    if (num_axes > WHATIF_MAX_AXES)
        return status_error(STATUS_INVALID, "%d --vary; expected at most %d", num_axes,
                            WHATIF_MAX_AXES);
    double points = 1;
    for (int i = 0; i < num_axes; i++) {
        points *= axes[i].num_values;
        for (int j = 0; j < i; j++) TRY(pair_check(axes[i].path, axes[j].path));
    }
    if (points > WHATIF_MAX_POINTS)
        return status_error(STATUS_INVALID, "the grid has %.0f points; expected at most %d", points,
                            WHATIF_MAX_POINTS);
    *num_points = (int64_t)points;
    return status_ok();
}

static Status grid_build(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                         bool replan, Arena *arena, Grid *out) {
    *out = (Grid){.scenario = scenario, .axes = axes, .num_axes = num_axes, .replan = replan};
    for (int i = 0; i < num_axes; i++) out->paths[i] = axes[i].path;
    return change_base(scenario, out->paths, num_axes, replan, arena, &out->base);
}

Status whatif_check(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                    int64_t *num_points) {
    TRY(axes_check(axes, num_axes, num_points));
    Arena arena = {0};
    Grid grid;
    Status status = grid_build(scenario, axes, num_axes, false, &arena, &grid);
    for (int i = 0; i < num_axes && status.code == STATUS_OK; i++)
        status = change_check_path(scenario, grid.base, axes[i].path, axes[i].values[0]);
    arena_free(&arena);
    return status;
}

// FNV-1a, 64 bits (Fowler, Noll, Vo, RFC 9923).
static void hash_bytes(uint64_t *hash, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) *hash = (*hash ^ (unsigned char)bytes[i]) * 1099511628211u;
}

static void hash_text(uint64_t *hash, const char *text) {
    hash_bytes(hash, text, strlen(text) + 1);
}

static void hash_tree(uint64_t *hash, const cJSON *tree) {
    char *text = cJSON_PrintUnformatted(tree);
    hash_text(hash, text ? text : "");
    cJSON_free(text);
}

static void hash_file(uint64_t *hash, const char *path) {
    char bytes[1 << 14];
    FILE *stream = fopen(path, "rb");
    if (!stream) return;
    for (size_t size; (size = fread(bytes, 1, sizeof bytes, stream)) > 0;)
        hash_bytes(hash, bytes, size);
    fclose(stream);
}

bool whatif_is_disturbed(const Scenario *scenario, const WhatifAxis *axes, int num_axes) {
    for (int i = 0; i < num_axes; i++)
        if (strncmp(axes[i].path, "disturb", strlen("disturb")) == 0) return true;
    return scenario->num_disturb > 0;
}

uint64_t whatif_question(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                         double replan_probability_frac, int num_repetitions) {
    uint64_t hash = 14695981039346656037u;
    Arena arena = {0};
    hash_text(&hash, "meshwright " MESHWRIGHT_VERSION);
    hash_text(&hash, replan_probability_frac > 0 ? "replan" : "keep");
    hash_bytes(&hash, (const char *)&replan_probability_frac, sizeof replan_probability_frac);
    hash_bytes(&hash, (const char *)&num_repetitions, sizeof num_repetitions);
    hash_tree(&hash, scenario->document);
    hash_tree(&hash, scenario->model_document);
    const ScenarioInput *inputs;
    const int num_inputs = scenario_inputs(scenario, &arena, &inputs);
    for (int i = 0; i < num_inputs; i++)
        if (strcmp(inputs[i].path, "-") != 0) hash_file(&hash, inputs[i].path);
    for (int p = 0; p < scenario->cluster.num_pools; p++)
        hash_file(&hash, scenario->cluster.pools[p].gpu.file);
    for (int i = 0; i < num_axes; i++) {
        hash_text(&hash, axes[i].path);
        for (int v = 0; v < axes[i].num_values; v++) {
            const char *text = cJSON_GetStringValue(axes[i].values[v]);
            hash_tree(&hash, axes[i].values[v]);
            if (text && value_is_path(text))
                hash_file(&hash, path_beside(&arena, scenario->file, text));
        }
    }
    arena_free(&arena);
    return hash;
}

// --- Blocks of points

enum {
    MAX_BLOCK_POINTS = 64,
    MIN_BLOCKS = 256,
    WAIT_NS = 20000000,
    MAX_LIKES = 4 // each is priced before a search
};

typedef struct {
    Grid grid;
    const WhatifOptions *options;
    WhatifPoint *points;
    int64_t num_points, num_done, block_points, num_blocks;
    int64_t next;     // block to look at first
    bool *taken;      // [num_blocks] by a thread of this process, now or before
    Status failure;   // of the machine: ends it all
    pthread_t caller; // may call progress
    Arena *arena;     // of the points
    Spill *answers;   // of the points
    Arena lines;      // of what is read from the journal
    Arena scratch[SHARE_MAX_WORKERS];
    const WhatifPoint *like[SHARE_MAX_WORKERS]; // the last good point of each thread
    pthread_mutex_t mutex;                      // of all but grid, options, scratch and like
} Run;

static int64_t block_end(const Run *run, int64_t block) {
    const int64_t end = (block + 1) * run->block_points;
    return end < run->num_points ? end : run->num_points;
}

static bool block_is_done(const Run *run, int64_t block) {
    for (int64_t i = block * run->block_points; i < block_end(run, block); i++)
        if (!run->points[i].done) return false;
    return true;
}

// Where it cannot be kept the run has failed.
static void point_keep(Run *run, int64_t index, const WhatifPoint *point) {
    WhatifPoint copy;
    if (run->points[index].done || run->failure.code != STATUS_OK) return;
    run->failure = point_copy(point, run->arena, run->answers, &copy);
    if (run->failure.code != STATUS_OK) return;
    run->points[index] = copy;
    run->num_done++;
}

static void line_visit(void *context, const char *line) {
    Run *run = context;
    int64_t index;
    WhatifPoint point;
    if (point_read(line, run->num_points, &run->lines, &index, &point))
        point_keep(run, index, &point);
    arena_reset(&run->lines);
}

static void journal_look(Run *run) {
    if (!run->options->journal || run->failure.code != STATUS_OK) return;
    const Status status = journal_read(run->options->journal, line_visit, run);
    if (run->failure.code == STATUS_OK) run->failure = status;
}

// Takes a block that is open and that nobody has.
static bool block_take(Run *run, int64_t block) {
    struct Journal *journal = run->options->journal;
    if (run->taken[block] || block_is_done(run, block)) return false;
    if (journal && !journal_claim(journal, block)) return false;
    journal_look(run); // who had it before may be done with it
    if (block_is_done(run, block)) {
        if (journal) journal_release(journal, block);
        return false;
    }
    run->taken[block] = true;
    return true;
}

// The next block for a thread, waiting for those that other processes have; -1: there is none.
static int64_t block_next(Run *run) {
    for (;;) {
        bool elsewhere = false;
        for (int64_t i = 0; i < run->num_blocks && run->failure.code == STATUS_OK; i++) {
            const int64_t block = (run->next + i) % run->num_blocks;
            if (block_take(run, block)) {
                run->next = block + 1;
                return block;
            }
            elsewhere = elsewhere || (!run->taken[block] && !block_is_done(run, block));
        }
        if (!elsewhere || run->failure.code != STATUS_OK) return -1;
        const struct timespec wait = {.tv_nsec = WAIT_NS};
        pthread_mutex_unlock(&run->mutex);
        nanosleep(&wait, NULL);
        pthread_mutex_lock(&run->mutex);
        journal_look(run);
    }
}

// A failure of the machine is no answer: it is not kept.
//   returns  whether the work goes on
static bool point_done(Run *run, int64_t index, const WhatifPoint *point) {
    const PlannerOptions *planner = &run->options->planner;
    pthread_mutex_lock(&run->mutex);
    if (point->code != STATUS_MACHINE)
        point_keep(run, index, point);
    else if (run->failure.code == STATUS_OK)
        run->failure = status_error(STATUS_MACHINE, "%s", point->message);
    const bool goes_on = run->failure.code == STATUS_OK;
    if (planner->progress && pthread_equal(pthread_self(), run->caller))
        planner->progress(planner->progress_context, "points", run->num_done, run->num_points);
    pthread_mutex_unlock(&run->mutex);
    return goes_on;
}

// A point with a plan that none of the others has.
static void like_add(const WhatifPoint *point, const WhatifPoint **likes, int *num) {
    if (!point || !point->done || point->code != STATUS_OK || *num == MAX_LIKES) return;
    for (int i = 0; i < *num; i++)
        if (strcmp(likes[i]->plan, point->plan) == 0) return;
    likes[(*num)++] = point;
}

// Points that are done and differ least from this one: its neighbours along each axis, and the one
// that the thread did last.
static int likes_find(Run *run, int64_t index, const WhatifPoint *last, const WhatifPoint **likes) {
    int num = 0;
    if (!run->grid.replan) return 0;
    pthread_mutex_lock(&run->mutex);
    int64_t stride = 1;
    for (int axis = run->grid.num_axes - 1; axis >= 0; axis--) {
        const int num_values = run->grid.axes[axis].num_values;
        const int64_t place = index / stride % num_values;
        if (place > 0) like_add(&run->points[index - stride], likes, &num);
        if (place + 1 < num_values) like_add(&run->points[index + stride], likes, &num);
        stride *= num_values;
    }
    like_add(last, likes, &num);
    pthread_mutex_unlock(&run->mutex);
    return num;
}

static const char *lines_join(const char *const *lines, int num_lines, Arena *arena) {
    size_t size = 1;
    for (int i = 0; i < num_lines; i++) size += strlen(lines[i]);
    char *text = arena_alloc(arena, size), *end = text;
    for (int i = 0; i < num_lines; i++) end = stpcpy(end, lines[i]);
    *end = '\0';
    return text;
}

static void block_run(Run *run, int worker, int64_t block) {
    Arena *scratch = &run->scratch[worker], text = {0};
    const char *lines[MAX_BLOCK_POINTS]; // of the journal
    int num_lines = 0;
    const WhatifPoint *likes[MAX_LIKES];
    bool goes_on = true;
    for (int64_t i = block * run->block_points; i < block_end(run, block) && goes_on; i++) {
        WhatifPoint point;
        const int num_likes = likes_find(run, i, run->like[worker], likes);
        point_run(&run->grid, i, likes, num_likes, scratch, &point);
        if (run->options->journal && point.code != STATUS_MACHINE)
            lines[num_lines++] = point_line(i, &point, &text);
        goes_on = point_done(run, i, &point);
        if (point.code == STATUS_OK) run->like[worker] = &run->points[i]; // it stays as it is
        arena_reset(scratch);
    }
    pthread_mutex_lock(&run->mutex);
    if (run->options->journal && run->failure.code == STATUS_OK)
        run->failure = journal_add(run->options->journal, lines_join(lines, num_lines, &text));
    if (run->options->journal) journal_release(run->options->journal, block);
    pthread_mutex_unlock(&run->mutex);
    arena_free(&text);
}

static void worker_run(void *context, int worker, int item) {
    Run *run = context;
    (void)item;
    for (;;) {
        pthread_mutex_lock(&run->mutex);
        const int64_t block = block_next(run);
        pthread_mutex_unlock(&run->mutex);
        if (block < 0) return;
        block_run(run, worker, block);
    }
}

// --- All

static int64_t block_size(int64_t num_points) {
    const int64_t size = num_points / MIN_BLOCKS;
    return size < 1 ? 1 : size > MAX_BLOCK_POINTS ? MAX_BLOCK_POINTS : size;
}

static void run_start(Run *run, int64_t num_points, const WhatifOptions *options, Arena *arena) {
    run->options = options;
    run->arena = arena;
    run->answers = spill_new(arena);
    run->num_points = num_points;
    run->points = ARENA_ARRAY(arena, num_points, WhatifPoint);
    run->block_points = block_size(num_points);
    run->num_blocks = (num_points + run->block_points - 1) / run->block_points;
    run->taken = ARENA_ARRAY(arena, run->num_blocks, bool);
    run->caller = pthread_self();
    run->failure = status_ok();
    json_shelf_open();
    run->grid.shelf = kernel_shelf_new();
    run->grid.prices = options->replan ? price_shelf_new() : NULL;
    run->grid.planner = options->planner;
    run->grid.planner.top = 1;
    run->grid.planner.brief = true;
    run->grid.planner.uncounted = true;
    run->grid.planner.progress = NULL;
    // Threads are for points; where there are fewer of these, each gets several.
    const int64_t spare = options->num_threads / num_points;
    run->grid.planner.num_threads = spare > 1 ? (int)spare : 1;
    run->grid.rays = rays_new(&run->grid, num_points);
    pthread_mutex_init(&run->mutex, NULL);
}

static void run_end(Run *run) {
    pthread_mutex_destroy(&run->mutex);
    kernel_shelf_free(run->grid.shelf);
    rays_free(run->grid.rays);
    price_shelf_free(run->grid.prices);
    for (int i = 0; i < SHARE_MAX_WORKERS; i++) arena_free(&run->scratch[i]);
    arena_free(&run->lines);
    json_shelf_close();
}

Status whatif_run(const Scenario *scenario, const WhatifAxis *axes, int num_axes,
                  const WhatifOptions *options, Arena *arena, WhatifResult *out) {
    const double start_s = clock_now_s();
    int64_t num_points;
    TRY(whatif_check(scenario, axes, num_axes, &num_points));
    Run *run = ARENA_NEW(arena, Run);
    TRY(grid_build(scenario, axes, num_axes, options->replan, arena, &run->grid));
    run->grid.play = options->play;
    run->grid.figures_only =
        options->figures_only && !options->replan && !options->journal && !options->play;
    run->grid.play_context = options->play_context;
    run_start(run, num_points, options, arena);
    journal_look(run);
    const int64_t num_kept = run->num_done;
    const int num_threads = options->num_threads > 1 ? options->num_threads : 1;
    share_work(num_threads, num_threads, worker_run, run);
    const Status failure = run->failure;
    run_end(run);
    TRY(failure);
    *out = (WhatifResult){.axes = axes,
                          .num_axes = num_axes,
                          .points = run->points,
                          .num_points = num_points,
                          .num_kept = num_kept,
                          .answers = run->answers,
                          .replan = options->replan,
                          .played = options->play != NULL,
                          .wall_s = clock_now_s() - start_s};
    return status_ok();
}
