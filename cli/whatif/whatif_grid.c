#include "cli/whatif/whatif_grid.h"

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/share.h"
#include "base/shown_text.h"
#include "cli/output.h"
#include "cli/plan_view.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/whatif/whatif_questions.h"
#include "report/whatif_report.h"
#include "sim/sim.h"
#include "whatif/journal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const FILE_NAMES[] = {"whatif.json", "whatif.txt", "report.html", NULL};

// --- Before the work

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

// report.html where this build has its page.
static const char *const *file_names(Arena *arena) {
    const bool has_page = document_check_format(FORMAT_HTML).code == STATUS_OK;
    const char **names = ARENA_ARRAY(arena, 4, const char *);
    for (int i = 0; i < (has_page ? 3 : 2); i++) names[i] = FILE_NAMES[i];
    return names;
}

// Nothing is written over the files of the scenario or of a point.
static Status grid_folder_check(const WhatifArguments *options, const WhatifAxis *axes,
                                const Scenario *scenario, Arena *arena) {
    const AnswerSpec spec = whatif_answer_spec(options, scenario, arena);
    const char *const *names = file_names(arena);
    TRY(output_check_names(&spec, names, scenario, arena));
    for (int f = 0; FILE_NAMES[f]; f++) {
        const char *file = arena_printf(arena, "%s/%s", options->folder, FILE_NAMES[f]);
        for (int i = 0; i < options->num_vary; i++)
            TRY(values_check(file, &axes[i], scenario, arena));
    }
    return answer_folder_check(&spec, names, arena);
}

static Status ranks_check(const Ranks *ranks, const char *folder) {
    if (ranks->num_ranks == 1 || folder) return status_ok();
    return usage_error("whatif: started as %d processes, which share the points in a folder; "
                       "expected -o DIR, on a file system that all of them see",
                       ranks->num_ranks);
}

// --- Progress

typedef struct {
    Progress line;
    int64_t first; // points that were done when it was first called; -1
    double start_s;
} GridProgress;

static void grid_progress(void *context, const char *what, int64_t done, int64_t total) {
    GridProgress *progress = context;
    const double time_s = clock_now_s();
    char tail[64] = "";
    if (progress->first < 0) {
        progress->first = done;
        progress->start_s = time_s;
    }
    const int64_t here = done - progress->first;
    const double left_s =
        here > 0 ? (time_s - progress->start_s) / (double)here * (double)(total - done) : 0;
    if (left_s >= 7200)
        snprintf(tail, sizeof tail, ", %.1f hours left", left_s / 3600);
    else if (left_s >= 120)
        snprintf(tail, sizeof tail, ", %.0f min left", left_s / 60);
    else if (here > 0)
        snprintf(tail, sizeof tail, ", %.0f s left", left_s);
    progress_tell(&progress->line, what, done, total, tail);
}

// --- Disturbed points

// context is WhatifArguments.
static Status point_play(void *context, const Scenario *scenario, const Plan *plan, Arena *arena,
                         WhatifPlayed *out) {
    const WhatifArguments *options = context;
    const SimOptions sim = {.num_repetitions = options->repetitions, .keep = SIM_KEEP_NONE};
    SimResult result;
    cJSON *document = plan_document(scenario, plan, NULL);
    Status status = sim_run(document, scenario->file, &sim, arena, &result);
    cJSON_Delete(document);
    TRY(status);
    const bool repeated = result.disturbed.num_repetitions > 0;
    *out = (WhatifPlayed){
        .step_time_s = result.step_time_s,
        .p95_step_time_s = repeated ? result.disturbed.p95_step_time_s : result.step_time_s,
        .undisturbed_step_time_s =
            repeated ? result.disturbed.undisturbed_step_time_s : result.step_time_s,
        .num_repetitions = repeated ? result.disturbed.num_repetitions : 1,
        .not_played = result.not_played,
        .num_not_played = result.num_not_played};
    return status_ok();
}

// Reads the scenario; only a grid can be disturbed.
static Status grid_scenario(const WhatifArguments *options, const WhatifAxis *axes, Arena *arena,
                            Scenario *scenario, bool *disturbed) {
    TRY(scenario_take_given(&options->common, arena, scenario));
    *disturbed = whatif_is_disturbed(scenario, axes, options->num_vary);
    if (options->repetitions > 0 && !*disturbed)
        return status_at(STATUS_INVALID, scenario->file, "disturb",
                         "absent or empty: --repetitions would all be alike");
    TRY(*disturbed ? scenario_refuse_unsimulated(scenario) : scenario_refuse_unsupported(scenario));
    warnings_print(scenario, arena);
    return status_ok();
}

// --- The answer

typedef struct {
    const Scenario *scenario;
    const WhatifResult *result;
} GridFiles;

static void grid_print(const void *context, FILE *stream) {
    const GridFiles *files = context;
    report_whatif(files->scenario, files->result, stream);
}

// The page shows so many points, and says of all what their figures are.
static Status grid_page_save(AnswerFolder *folder, const void *context) {
    const GridFiles *files = context;
    cJSON *tree = whatif_to_brief_json(files->result, SECTION_MAX_ROWS);
    const Answer grid = {.kind = ANSWER_GRID, .root = {.file = "whatif", .item = tree}};
    const ReportContents contents = {
        .answers = &grid, .num_answers = 1, .scenario = files->scenario};
    const Status status = page_report_save(
        &contents, answer_folder_path(folder, FILE_NAMES[2], "whatif"), folder->arena);
    cJSON_Delete(tree);
    return status;
}

static Status whatif_save(const WhatifArguments *options, const Scenario *scenario,
                          const WhatifResult *result, Arena *arena) {
    const AnswerSpec spec = whatif_answer_spec(options, scenario, arena);
    cJSON *frame = whatif_to_frame(result);
    const GridFiles files = {scenario, result};
    const OutputAnswer answer = {FILE_NAMES, whatif_document(result, frame), grid_print, &files,
                                 grid_page_save};
    const Status status = output_answer_save(&spec, &answer, arena);
    cJSON_Delete(frame);
    return status;
}

static Status grid_json(const Scenario *scenario, const WhatifResult *result) {
    cJSON *frame = answer_with_warnings(whatif_to_frame(result), scenario);
    const JsonDocument document = whatif_document(result, frame);
    const Status status = json_document_write(&document, stdout);
    cJSON_Delete(frame);
    return status;
}

// A grid of which nothing is legal is bad input: the first refusal stands for all.
static Status result_legal(const WhatifResult *result) {
    for (int64_t i = 0; i < result->num_points; i++)
        if (result->points[i].code != STATUS_INVALID) return status_ok();
    return status_error(STATUS_INVALID, "%s", result->points[0].message);
}

static Status result_status(const Scenario *scenario, const WhatifResult *result) {
    TRY(result_legal(result));
    for (int64_t i = 0; i < result->num_points; i++)
        if (result->points[i].code == STATUS_OK) return status_ok();
    return status_at(STATUS_NO, scenario->file, "", "none of the %lld points fits",
                     (long long)result->num_points);
}

static Status result_show(const WhatifArguments *options, const Scenario *scenario,
                          const WhatifResult *result, Arena *arena) {
    TRY(result_legal(result));
    if (options->folder) TRY(whatif_save(options, scenario, result, arena));
    if (options->common.json) return grid_json(scenario, result);
    report_whatif(scenario, result, stdout);
    return status_ok();
}

// --- With others

typedef struct {
    Ranks ranks;
    struct Journal *journal; // NULL: without -o
    FolderMade made;         // folders of -o
    bool finished;           // another process of this job has answered
} Shared;

static Status shared_start(const WhatifArguments *options, const Scenario *scenario,
                           const WhatifAxis *axes, Arena *arena, Shared *shared) {
    if (!options->folder) return status_ok();
    TRY(folder_make(options->folder, arena, &shared->made));
    const bool disturbed = whatif_is_disturbed(scenario, axes, options->num_vary);
    const int num_repetitions = options->repetitions > 1 ? options->repetitions : 1;
    const PlannerOptions planner = {.fit_probability_frac = options->fit_probability_frac};
    const uint64_t question = whatif_question(
        scenario, axes, options->num_vary, options->replan ? planner_fit_probability(&planner) : 0,
        disturbed ? num_repetitions : 0);
    const JournalSpec spec = {.folder = options->folder,
                              .question = question,
                              .job = shared->ranks.job[0] ? shared->ranks.job : NULL,
                              .force = options->force};
    return journal_open(&spec, arena, &shared->journal, &shared->finished);
}

// Answers, unless another process does. What is bad input leaves no folder behind.
static Status shared_answer(const WhatifArguments *options, const Scenario *scenario,
                            const WhatifResult *result, Arena *arena, Shared *shared) {
    bool is_mine = true;
    if (shared->journal) TRY(journal_answer(shared->journal, &is_mine));
    if (!is_mine) {
        if (shared->ranks.num_ranks == 1)
            shown_line(stderr, "meshwright: another process has answered, in %s", options->folder);
        return result_status(scenario, result);
    }
    Status status = result_show(options, scenario, result, arena);
    if (status.code == STATUS_MACHINE) return status; // the points are kept
    if (shared->journal) TRY(journal_finish(shared->journal, status.code == STATUS_OK));
    if (status.code == STATUS_INVALID) folder_unmake(&shared->made);
    TRY(status);
    return result_status(scenario, result);
}

static void kept_tell(const WhatifResult *result, const char *folder) {
    if (result->num_kept > 0)
        shown_line(stderr, "meshwright: %lld of %lld points were done already (%s/whatif.journal)",
                   (long long)result->num_kept, (long long)result->num_points, folder);
}

Status whatif_grid_answer(const WhatifArguments *options, Arena *arena) {
    WhatifAxis axes[WHATIF_MAX_AXES];
    for (int i = 0; i < options->num_vary; i++)
        TRY(whatif_parse_axis(options->vary[i], arena, &axes[i]));
    Scenario scenario;
    bool disturbed;
    TRY(grid_scenario(options, axes, arena, &scenario, &disturbed));
    Shared shared = {.ranks = ranks_read()};
    TRY(ranks_check(&shared.ranks, options->folder));
    int64_t num_points;
    TRY(whatif_check(&scenario, axes, options->num_vary, &num_points));
    if (options->folder) TRY(grid_folder_check(options, axes, &scenario, arena));
    TRY(shared_start(options, &scenario, axes, arena, &shared));
    if (shared.finished) return status_ok();
    GridProgress progress = {.line = progress_start(), .first = -1};
    WhatifArguments own = *options;
    const WhatifOptions what = {
        .play = disturbed ? point_play : NULL,
        .play_context = &own,
        .replan = options->replan,
        .figures_only = !options->common.json && !options->folder,
        .num_threads = ranks_threads(&shared.ranks, SHARE_MAX_WORKERS),
        .planner = {.fit_probability_frac = options->fit_probability_frac,
                    .progress = grid_progress,
                    .progress_context = &progress},
        .journal = shared.journal,
    };
    WhatifResult result;
    Status status = whatif_run(&scenario, axes, options->num_vary, &what, arena, &result);
    progress_end(&progress.line);
    TRY(status);
    if (shared.ranks.num_ranks == 1) kept_tell(&result, options->folder);
    return shared_answer(options, &scenario, &result, arena, &shared);
}
