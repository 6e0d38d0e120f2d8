#include "planner/layerwise/layer_search.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/share.h"
#include "plan/layer_plans.h"
#include "planner/harvest/loose.h"
#include "planner/space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 5, ROUND_COMBINATIONS = 8 };

static const double LEAST_BUDGET_S = 1e-3; // 0 is none

// A plan of the space that may be a strategy.
typedef struct {
    Plan plan;
    double bound_s;
    int index; // order of generation
} Member;

// Members [first, first + num) of one combination.
typedef struct {
    int first, num;
    double bound_s;
} Combination;

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    Deadline deadline;
    Space space;
    LooseCosts loose;
    Member *members;
    int num_members, capacity;
    Combination *combinations;
    int num_combinations;
    LayerEntry *entries; // [top + 1]
    int num_entries, top;
    bool reshards;    // as that plan does: layers have no such choice
    double uniform_s; // the best plan of the whole search, which is listed first if it is; INFINITY
    LayerResult result;
    Arena arena;
} LayerSearch;

// --- Combinations

static ScheduleKind of_one_chunk(const ParallelSpec *spec) {
    if (spec->schedule == ABSENT) return schedule_default(1);
    return schedule_with_chunks((ScheduleKind)spec->schedule, 1);
}

static bool may_be_strategy(const LayerSearch *s, const Plan *plan) {
    return plan->vpp == 1 && plan->schedule == of_one_chunk(&s->scenario->parallel);
}

// Time of the fill and drain of 1F1B with equal stages, and no messages.
static double member_bound_s(const LayerSearch *s, const Plan *plan) {
    const double m = (double)plan->num_microbatches;
    return loose_bound_s(&s->loose, plan) * (m + plan->pp - 1) / m;
}

// Hybrid sharding where it is stated only.
static bool members_collect(void *context, const SpaceFamily *family) {
    LayerSearch *s = context;
    const Plan *plans = family->plans;
    if (deadline_is_over(&s->deadline)) return false;
    for (int i = 0; i < family->num_plans; i++) {
        if (plans[i].zero_group != plans[0].zero_group) continue;
        if (!may_be_strategy(s, &plans[i])) continue;
        if (s->num_members == s->capacity) {
            s->capacity = s->capacity ? 2 * s->capacity : 1024;
            s->members =
                arena_grow(&s->arena, s->members, (size_t)s->capacity * sizeof *s->members);
        }
        s->members[s->num_members] =
            (Member){plans[i], member_bound_s(s, &plans[i]), s->num_members};
        s->num_members++;
    }
    return true;
}

// What all members of a combination share.
static bool shards_on_all(const Plan *plan) {
    return plan->zero_group == plan->dp * plan->cp;
}

// What the members of a combination share. A list of layers (plan_resolve_layers) has no zero_group
// of its own: where the plan shards on all replicas its layers do, else all of them on as many
// ranks; and with stages that alternate it has no degrees of its own.
static int compare_combination(const Plan *a, const Plan *b) {
    if (a->pp != b->pp) return a->pp - b->pp;
    if (a->num_microbatches != b->num_microbatches)
        return a->num_microbatches < b->num_microbatches ? -1 : 1;
    if (a->ep != b->ep) return a->ep - b->ep;
    if (a->etp != b->etp) return a->etp - b->etp;
    if (shards_on_all(a) != shards_on_all(b)) return shards_on_all(a) - shards_on_all(b);
    if (a->pp > 1 && a->order == ORDER_PP_DP) {
        if (a->tp != b->tp) return a->tp - b->tp;
        if (a->cp != b->cp) return a->cp - b->cp;
    }
    for (int c = 0; c < a->num_chunks; c++)
        if (a->chunks[c].num_layers != b->chunks[c].num_layers)
            return a->chunks[c].num_layers - b->chunks[c].num_layers;
    return 0;
}

static int compare_members(const void *a, const void *b) {
    const Member *x = a, *y = b;
    const int order = compare_combination(&x->plan, &y->plan);
    return order != 0 ? order : x->index - y->index;
}

static int compare_combinations(const void *a, const void *b) {
    const Combination *x = a, *y = b;
    if (x->bound_s != y->bound_s) return x->bound_s < y->bound_s ? -1 : 1;
    return x->first - y->first;
}

static void combinations_build(LayerSearch *s) {
    if (s->num_members > 1)
        qsort(s->members, (size_t)s->num_members, sizeof *s->members, compare_members);
    s->combinations = ARENA_ARRAY(&s->arena, s->num_members, Combination);
    for (int i = 0; i < s->num_members; i++) {
        const Member *member = &s->members[i];
        const bool begins =
            i == 0 || compare_combination(&s->members[i - 1].plan, &member->plan) != 0;
        if (begins) s->combinations[s->num_combinations++] = (Combination){i, 0, INFINITY};
        Combination *own = &s->combinations[s->num_combinations - 1];
        own->num++;
        own->bound_s = fmin(own->bound_s, member->bound_s);
    }
    if (s->num_combinations > 1)
        qsort(s->combinations, (size_t)s->num_combinations, sizeof *s->combinations,
              compare_combinations);
}

// --- Choices

typedef struct {
    LayerSearch *search;
    const Combination *combinations; // of this round
    double limit_s;
    LayerEntry entries[ROUND_COMBINATIONS];
    bool fits[ROUND_COMBINATIONS];
    bool skipped[ROUND_COMBINATIONS]; // there was no time
    Arena arenas[ROUND_COMBINATIONS];
} Round;

static void round_work(void *context, int worker, int item) {
    (void)worker;
    Round *round = context;
    LayerSearch *s = round->search;
    const Combination *own = &round->combinations[item];
    round->skipped[item] = deadline_is_over(&s->deadline);
    if (round->skipped[item]) return;
    Arena *arena = &round->arenas[item];
    Plan *plans = ARENA_ARRAY(arena, own->num, Plan);
    for (int i = 0; i < own->num; i++) plans[i] = s->members[own->first + i].plan;
    LayerEntry *entry = &round->entries[item];
    *entry = (LayerEntry){.plans = plans, .num_plans = own->num};
    round->fits[item] = layer_choose(s->scenario, plans, own->num, round->limit_s, &s->deadline,
                                     arena, &entry->choice);
}

static LayerEntry entry_copy(const LayerEntry *entry, int num_layers, Arena *arena) {
    LayerEntry copy = *entry;
    LayerChoice *choice = &copy.choice;
    choice->base = plan_copy(&choice->base, arena);
    choice->uniform = plan_copy(&choice->uniform, arena);
    choice->plan = plan_copy(&choice->plan, arena);
    Plan *layers = ARENA_ARRAY(arena, num_layers, Plan);
    for (int l = 0; l < num_layers; l++) layers[l] = plan_copy(&choice->layers[l], arena);
    choice->layers = layers;
    Plan *plans = ARENA_ARRAY(arena, entry->num_plans, Plan);
    for (int i = 0; i < entry->num_plans; i++) plans[i] = plan_copy(&entry->plans[i], arena);
    copy.plans = plans;
    return copy;
}

static void entry_insert(LayerSearch *s, const LayerEntry *entry, Arena *arena) {
    int at = s->num_entries;
    while (at > 0 &&
           entry->choice.estimate.step_time_s < s->entries[at - 1].choice.estimate.step_time_s)
        at--;
    if (at == s->top) return;
    if (s->num_entries < s->top) s->num_entries++;
    memmove(&s->entries[at + 1], &s->entries[at],
            (size_t)(s->num_entries - 1 - at) * sizeof *s->entries);
    s->entries[at] = entry_copy(entry, s->scenario->model.num_layers, arena);
}

// The step that a combination must beat.
static double limit_s(const LayerSearch *s) {
    const double known_s = s->top == 1 ? s->uniform_s : INFINITY;
    if (s->num_entries < s->top) return known_s;
    return fmin(known_s, s->entries[s->top - 1].choice.estimate.step_time_s);
}

// The order of combinations is no bound of what is still open (planner/layerwise/layer_search.h).
static void progress_call(const LayerSearch *s, int num_done) {
    const PlannerOptions *options = s->options;
    if (options->standing) *options->standing = (SearchStanding){.best_value = INFINITY};
    if (options->progress)
        options->progress(options->progress_context, "combinations", num_done, s->num_combinations);
}

static void combinations_choose(LayerSearch *s, Arena *arena) {
    for (int first = 0; first < s->num_combinations; first += ROUND_COMBINATIONS) {
        if (s->combinations[first].bound_s > limit_s(s)) break;
        if (deadline_is_over(&s->deadline)) {
            s->result.stopped_early = true;
            break;
        }
        progress_call(s, first);
        Round *round = ARENA_NEW(&s->arena, Round);
        round->search = s;
        round->combinations = &s->combinations[first];
        round->limit_s = limit_s(s);
        int num = 0;
        while (num < ROUND_COMBINATIONS && first + num < s->num_combinations &&
               s->combinations[first + num].bound_s <= limit_s(s))
            num++;
        share_work(num, s->options->num_threads, round_work, round);
        for (int i = 0; i < num; i++) {
            s->result.num_looked_at += !round->skipped[i];
            s->result.stopped_early |= round->skipped[i];
            if (round->fits[i]) entry_insert(s, &round->entries[i], arena);
            arena_free(&round->arenas[i]);
        }
        if (s->num_entries > 0) deadline_arm(&s->deadline);
    }
}

// --- The whole

static Status option_refuse(const Scenario *scenario, const char *path, const char *value) {
    return status_at(STATUS_INVALID, scenario->file, path,
                     "%s is legal, but --layerwise does not support it yet", value);
}

static Status scope_check(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    TRY(scenario_refuse_unlike_groups(scenario, "plan --layerwise"));
    if (spec->vpp != ABSENT && spec->vpp != 1)
        return option_refuse(scenario, "parallel.vpp", "more than one chunk a rank");
    if (spec->num_layer_overrides > 0)
        return status_at(STATUS_INVALID, scenario->file, "parallel.layers",
                         "--layerwise chooses what each layer does itself; expected none");
    if (spec->recompute_layers != ABSENT)
        return status_at(STATUS_INVALID, scenario->file, "parallel.recompute_layers",
                         "--layerwise chooses the layers itself; expected none");
    if (spec->vocab_parallel == 1)
        return option_refuse(scenario, "parallel.vocab_parallel", "true");
    const Schedule *schedule = schedule_find(of_one_chunk(spec));
    if (!schedule || !schedule->layerwise)
        return option_refuse(scenario, "parallel.schedule", "a schedule but gpipe and 1f1b");
    return status_ok();
}

// What each layer of a plan does that says "the first k of each stage".
static const Plan *layers_of(const Plan *plan, Arena *arena) {
    Plan *layers = ARENA_ARRAY(arena, plan_num_layers(plan), Plan);
    for (int c = 0; c < plan->num_chunks; c++)
        for (int l = 0; l < plan->chunks[c].num_layers; l++) {
            Plan *own = &layers[plan->chunks[c].first_layer + l];
            *own = *plan;
            own->recompute_layers = ABSENT;
            own->recompute = plan_strategy(plan, plan_layer_strategy(plan, c, l)).recompute;
        }
    return layers;
}

// The best plan of the whole search takes the first place where no combination is as fast: it may
// have several chunks a rank, another schedule or other groups of shards than strategies have.
static void uniform_insert(LayerSearch *s, const PlannedEntry *uniform, bool optimal,
                           Arena *arena) {
    const double step_s = uniform->estimate.step_time_s;
    if (s->num_entries > 0 && s->entries[0].choice.estimate.step_time_s <= step_s) return;
    const LayerEntry entry = {.plans = &uniform->plan,
                              .num_plans = 1,
                              .choice = {.base = uniform->plan,
                                         .layers = layers_of(&uniform->plan, &s->arena),
                                         .uniform_step_s = step_s,
                                         .uniform = uniform->plan,
                                         .is_uniform = true,
                                         .plan = uniform->plan,
                                         .estimate = uniform->estimate,
                                         .optimal = optimal,
                                         .num_strategies = 1,
                                         .num_layouts = 1}};
    entry_insert(s, &entry, arena);
}

static void search_run(LayerSearch *s, Arena *arena) {
    space_build(space_narrow(s->scenario, s->reshards, &s->arena), &s->arena, &s->space);
    double *split_bound_s = ARENA_ARRAY(&s->arena, s->space.num_splits, double);
    loose_build(&s->space, s->options->num_threads, &s->deadline, NULL, &s->loose, split_bound_s);
    for (int i = 0; i < s->space.num_splits; i++)
        if (!space_visit(&s->space, i, &s->arena, members_collect, s))
            s->result.stopped_early = true;
    combinations_build(s);
    combinations_choose(s, arena);
    loose_free(&s->loose);
}

Status layer_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    LayerResult *out) {
    const double start_s = clock_now_s();
    TRY(scope_check(scenario));
    PlannerOptions one = *options;
    one.top = 1;
    one.brief = true;
    one.objective = OBJECTIVE_THROUGHPUT;
    PlannerResult uniform;
    TRY(planner_search(scenario, &one, arena, &uniform));

    const Scenario limited = planner_limited(scenario, options, arena);
    const double left_s = options->budget_s - uniform.stats.wall_s;
    const double budget_s = options->budget_s > 0 ? fmax(left_s, LEAST_BUDGET_S) : 0;
    LayerSearch s = {.scenario = &limited,
                     .options = options,
                     .top = options->top > 0 ? options->top : DEFAULT_TOP,
                     .uniform_s = uniform.num_entries > 0 ? uniform.entries[0].estimate.step_time_s
                                                          : INFINITY};
    deadline_start(&s.deadline, budget_s, options->end_soon);
    s.reshards = uniform.num_entries == 0 || uniform.entries[0].plan.reshard_after_forward;
    if (uniform.num_entries > 0) deadline_arm(&s.deadline);
    s.entries = ARENA_ARRAY(arena, s.top + 1, LayerEntry);
    search_run(&s, arena);
    if (uniform.num_entries > 0)
        uniform_insert(&s, &uniform.entries[0], uniform.stats.optimal, arena);
    *out = s.result;
    out->entries = s.entries;
    out->num_entries = s.num_entries;
    out->num_combinations = s.num_combinations;
    out->has_uniform = uniform.num_entries > 0;
    if (out->has_uniform) {
        out->uniform = uniform.entries[0].plan;
        out->uniform_estimate = uniform.entries[0].estimate;
    }
    arena_free(&s.arena);
    out->wall_s = clock_now_s() - start_s;
    return status_ok();
}

Status layer_result_write_lp(const Scenario *scenario, const PlannerOptions *options,
                             const LayerResult *result, const char *path) {
    int best = 0;
    while (best < result->num_entries && result->entries[best].choice.is_uniform) best++;
    if (best == result->num_entries)
        return status_error(STATUS_NO,
                            "meshwright: plan --write-lp: one strategy throughout is best and no "
                            "other plan is listed; expected --top 2 or more");
    Arena scratch = {0};
    const Scenario limited = planner_limited(scenario, options, &scratch);
    const LayerEntry *entry = &result->entries[best];
    const Status status =
        layer_choice_write_lp(&limited, entry->plans, entry->num_plans, &entry->choice, path);
    arena_free(&scratch);
    return status;
}
