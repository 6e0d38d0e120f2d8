#include "base/shown_text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/named_plan.h"
#include "cli/plan/plan_answer.h"
#include "cli/plan/plan_files.h"
#include "cli/plan/plan_layers.h"
#include "cli/plan/plan_lengths.h"
#include "cli/plan/plan_options.h"
#include "cli/plan/rule_question.h"
#include "cli/progress.h"
#include "cli/stack_choice.h"
#include "planner/groups/group_answer.h"
#include "planner/harvest/price_shelf.h"
#include "planner/questions/advice.h"
#include "planner/questions/frontier.h"
#include "planner/questions/idle.h"
#include "planner/questions/place_best.h"
#include "planner/questions/riskier.h"
#include "planner/questions/switch_advice.h"
#include "planner/questions/tune.h"
#include "report/units.h"
#include "whatif/change.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };

// --- Progress

typedef struct {
    Progress line;
    SearchStanding standing;
    PlanObjective objective;
} PlanProgress;

static const char *value_text(PlanObjective objective, double value, char *text) {
    switch (objective) {
    case OBJECTIVE_COST:
        return units_usd(value, text);
    case OBJECTIVE_ENERGY:
        snprintf(text, UNITS_SIZE, "%.4g J", value);
        return text;
    case OBJECTIVE_MEMORY:
        return units_bytes(value, text);
    case OBJECTIVE_THROUGHPUT:
    case NUM_OBJECTIVES:
        break;
    }
    return units_seconds(value, text);
}

// ": best 12.3 s, bound 11.9 s, gap 3.3 %".
static void plan_progress(void *context, const char *what, int64_t done, int64_t total) {
    PlanProgress *progress = context;
    const double best = progress->standing.best_value, bound = progress->standing.bound_value;
    char tail[128] = "", a[UNITS_SIZE], b[UNITS_SIZE], c[UNITS_SIZE];
    if (isfinite(best) && best > 0)
        snprintf(tail, sizeof tail, ", best %s, bound %s, gap %s",
                 value_text(progress->objective, best, a),
                 value_text(progress->objective, fmin(best, bound), b),
                 units_percent(fmax(0, 1 - bound / best), c));
    progress_tell(&progress->line, what, done, total, tail);
}

// --- Questions

// The scenario on another number of GPUs; dp and zero_group follow it.
static Status scenario_resize(const Scenario *scenario, int num_gpus, Arena *arena, Scenario *out) {
    const char *const path = "cluster.num_gpus";
    const cJSON *document;
    TRY(change_base(scenario, &path, 1, false, arena, &document));
    cJSON *changed = (cJSON *)document; // ours: change_base made it
    change_derive(changed, &path, 1);
    cJSON *number = cJSON_CreateNumber(num_gpus);
    Status status = change_set(scenario, changed, path, number);
    cJSON_Delete(number);
    TRY(status);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    TRY(scenario_read(root, arena, out));
    return scenario_refuse_unsupported(out);
}

// Of the search for the plans of an answer that is chosen already: it has its own time, but not
// much where somebody waits.
static PlannerOptions last_search(const PlannerOptions *options) {
    static const double LITTLE_S = 0.1;
    PlannerOptions last = *options;
    const bool waited_for = options->end_soon && atomic_load(options->end_soon);
    last.budget_s = waited_for ? LITTLE_S : 0;
    last.end_soon = NULL;
    return last;
}

static Status sizing_answer(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    const TrainingJob *training = &answer->scenario->training;
    const double step_tokens = (double)training->seq_len * (double)training->global_batch;
    double step_time_s = step_tokens / options->min_tokens_per_s;
    if (options->deadline_tokens > 0)
        step_time_s = options->deadline_s / ceil(options->deadline_tokens / step_tokens);
    Sizing *sizing = ARENA_NEW(arena, Sizing);
    TRY(planner_size(answer->scenario, step_time_s, &options->planner, sizing));
    answer->sizing = sizing;
    answer->run_tokens = options->deadline_tokens;
    if (sizing->num_gpus == 0) return status_ok();
    Scenario *resized = ARENA_NEW(arena, Scenario);
    TRY(scenario_resize(answer->scenario, sizing->num_gpus, arena, resized));
    answer->scenario = resized;
    // What the budget or Ctrl-C ended was the look at other numbers.
    const PlannerOptions planner = last_search(&options->planner);
    return planner_search(resized, &planner, arena, &answer->result);
}

// The scenario with the switches that were chosen, as if it stated them.
static Status scenario_tuned(const Scenario *scenario, const Tuning *tuning, Arena *arena,
                             Scenario *out) {
    const char *paths[MAX_SWITCHES];
    for (int i = 0; i < tuning->num_choices; i++)
        paths[i] = arena_printf(arena, "training.%s", tuning->choices[i].row->key);
    const cJSON *document;
    TRY(change_base(scenario, paths, tuning->num_choices, false, arena, &document));
    for (int i = 0; i < tuning->num_choices; i++) {
        cJSON *value = switch_to_json(tuning->choices[i]);
        Status status = change_set(scenario, (cJSON *)document, paths[i], value);
        cJSON_Delete(value);
        TRY(status);
    }
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    return scenario_read(root, arena, out);
}

static Status tuned_answer(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    Tuning *tuning = ARENA_NEW(arena, Tuning);
    TRY(planner_tune(answer->scenario, &options->planner, arena, tuning));
    answer->tuning_text = tuning_text(tuning, &answer->scenario->execution, arena);
    answer->tuning = tuning;
    // What the budget or Ctrl-C ended was the look at other switches.
    const PlannerOptions planner = last_search(&options->planner);
    if (tuning->num_choices > 0) {
        Scenario *tuned = ARENA_NEW(arena, Scenario);
        TRY(scenario_tuned(answer->scenario, tuning, arena, tuned));
        answer->scenario = tuned;
    }
    return planner_search(answer->scenario, &planner, arena, &answer->result);
}

// What would help the plans, what groups of different machines are worth, and which nodes run the
// best.
static Status advice_finish(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    planner_advise(answer->scenario, &options->planner, arena, &answer->result);
    if (!options->tune)
        TRY(planner_advise_switches(answer->scenario, &options->planner, arena, &answer->result));
    TRY(planner_compare_groups(answer->scenario, &options->planner, arena, &answer->result));
    return planner_place_best(answer->scenario, &options->planner, arena, &answer->result);
}

static Status best_finish(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    TRY(planner_find_riskier(answer->scenario, &options->planner, arena, &answer->result));
    return advice_finish(options, arena, answer);
}

// The best plans, on the GPUs that they use.
static Status best_search(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    Scenario *used = ARENA_NEW(arena, Scenario);
    TRY(planner_search_idle(answer->scenario, &options->planner, arena, used, &answer->result));
    answer->scenario = used;
    return status_ok();
}

static Status rival_answer(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    Scenario *named = ARENA_NEW(arena, Scenario);
    TRY(best_search(options, arena, answer));
    TRY(named_scenario(answer->scenario, options->compare, arena, named));
    TRY(best_finish(options, arena, answer));
    if (answer->result.num_entries == 0) return status_ok();
    Rival *rival = ARENA_NEW(arena, Rival);
    TRY(planner_rival(named, &options->planner, &answer->result, arena, rival));
    answer->rival = rival;
    answer->rival_text = options->compare;
    return status_ok();
}

// The best plans and those that may fit; both searches are of one job and share its prices.
static Status best_answer(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    PriceShelf *shelf = price_shelf_new();
    const PriceSource source = {shelf, "", answer->scenario->cluster.num_gpus};
    PlanOptions sharing = *options;
    if (shelf) sharing.planner.prices = &source;
    Status status = best_search(&sharing, arena, answer);
    if (status.code == STATUS_OK)
        status = planner_find_riskier(answer->scenario, &sharing.planner, arena, &answer->result);
    price_shelf_free(shelf);
    return status.code == STATUS_OK ? advice_finish(options, arena, answer) : status;
}

static bool has_lengths(const Scenario *scenario) {
    return scenario->training.num_sequence_lengths > 0;
}

static Status question_answer(const PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    if (has_lengths(answer->scenario)) return plan_lengths_search(options, arena, answer);
    if (options->layerwise) return plan_layers_search(options, arena, answer);
    if (options->compare) return rival_answer(options, arena, answer);
    if (options->pareto)
        return planner_frontier(answer->scenario, &options->planner, arena, &answer->result);
    if (options->min_tokens_per_s > 0 || options->deadline_tokens > 0)
        TRY(sizing_answer(options, arena, answer));
    else if (options->tune)
        TRY(tuned_answer(options, arena, answer));
    else
        return best_answer(options, arena, answer);
    return best_finish(options, arena, answer);
}

static Status question_search(PlanOptions *options, Arena *arena, PlanAnswer *answer) {
    PlannerOptions *planner = &options->planner;
    const long num_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    PlanProgress progress = {.line = progress_start(), .objective = planner->objective};
    planner->num_threads = num_cpus > MAX_THREADS ? MAX_THREADS : (int)num_cpus;
    planner->progress = plan_progress;
    planner->progress_context = &progress;
    planner->standing = &progress.standing;
    planner->end_soon = interrupt_watch();
    Status status = question_answer(options, arena, answer);
    interrupt_leave();
    progress_end(&progress.line);
    return status;
}

// --- The answer

static Status plan_print(const PlanOptions *options, const PlanAnswer *answer, bool launchable) {
    if (options->common.json) return answer_json(plan_answer_to_json(answer));
    plan_answer_print(answer, stdout);
    if (options->folder && answer->result.num_entries > 0)
        shown_line(stdout,
                   "The %s plan is %s/plan.json; its %strace and this report are beside it.",
                   options->pareto ? "fastest" : "best", options->folder,
                   launchable ? "launch files, " : "");
    return status_ok();
}

// What was asked for is not to be had.
static Status answer_is_no(const PlanAnswer *answer) {
    const char *file = answer->scenario->file;
    const PlannerResult *result = &answer->result;
    char missing[UNITS_SIZE];
    if (answer->layers) return plan_layers_refuse(answer);
    if (answer->lengths && !lengths_fits(answer->lengths))
        return lengths_refuse(answer->scenario, answer->lengths);
    if (answer->lengths) return status_ok();
    if (answer->sizing && answer->sizing->num_gpus == 0)
        return status_at(STATUS_NO, file, "", "no number of GPUs looked at is fast enough");
    if (result->num_entries == 0 && result->num_riskier > 0)
        return status_at(STATUS_NO, file, "",
                         "nothing fits with %g %%; the best that may fits with %.0f %%: "
                         "--fit-probability 0.5 plans with it",
                         result->fit_probability_frac * 100,
                         floor(result->riskier[0].estimate.fits_probability_frac * 100));
    if (result->num_entries == 0)
        return status_at(STATUS_NO, file, "", "nothing fits; the closest plan misses by %s",
                         units_bytes(result->miss.missing_bytes, missing));
    if (!answer->rival) return status_ok();
    if (answer->rival->refusal)
        return status_at(STATUS_NO, file, "", "no plan with %s is legal", answer->rival_text);
    if (answer->rival->found.num_entries > 0) return status_ok();
    return status_at(STATUS_NO, file, "", "no plan with %s fits; the closest misses by %s",
                     answer->rival_text,
                     units_bytes(answer->rival->found.miss.missing_bytes, missing));
}

// Nothing is written; what lies there is not of this scenario.
static void note_earlier_plan(const char *folder, Arena *arena) {
    const char *path = arena_printf(arena, "%s/plan.json", folder);
    if (access(path, F_OK) == 0) shown_line(stderr, "%s: is of an earlier answer, and stays", path);
}

static Status plan_answer(PlanOptions *options, Arena *arena) {
    Scenario stated, scenario;
    StackChoice stack;
    TRY(scenario_take_given(&options->common, arena, &stated));
    if (options->explain_rule) return rule_question_answer(options, &stated, arena);
    TRY(stack_choose(&stated, arena, &scenario, &stack));
    TRY(has_lengths(&scenario) ? plan_lengths_check(options)
                               : scenario_refuse_unsupported(&scenario));
    if (!has_lengths(&scenario)) warnings_print(&scenario, arena);
    if (options->folder) TRY(plan_files_check(&scenario, options->folder, options->force, arena));
    TRY(plan_layers_check(options, &scenario, arena));
    PlanAnswer answer = {.scenario = &scenario, .stack = stack};
    TRY(question_search(options, arena, &answer));
    if (answer.layers) TRY(plan_layers_finish(options, &answer));
    bool launchable = false;
    if (options->folder && answer.result.num_entries > 0)
        TRY(plan_files_save(&answer, options->folder, options->force,
                            atomic_load(options->planner.end_soon), arena, &launchable));
    TRY(plan_print(options, &answer, launchable));
    if (options->folder && answer.result.num_entries == 0)
        note_earlier_plan(options->folder, arena);
    return answer_is_no(&answer);
}

Status command_plan(int argc, char **argv) {
    PlanOptions options;
    TRY(plan_options_read(argc, argv, &options));
    Arena arena = {0};
    Status status = plan_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
