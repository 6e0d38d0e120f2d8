#include "planner/why/conflict.h"

#include "planner/why/relax.h"
#include "planner/why/rule_verdict.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const Scenario *scenario;
    Arena *arena;
    const Constraint *given[NUM_CONSTRAINTS];
    int num_given;
} Conflict;

static bool opens_without(const Conflict *c, const Constraint *first, const Constraint *second) {
    Scenario changed = *c->scenario;
    constraint_drop(first, &changed.parallel);
    if (second) constraint_drop(second, &changed.parallel);
    return relax_reaches(&changed, HARVEST_LEGAL, 1, c->arena, NULL);
}

// A given degree that no choice of the others could make legal: " (dp 3 does not divide num_gpus
// 128)"; "" for none.
static const char *degree_text(const Conflict *c) {
    const ParallelSpec *spec = &c->scenario->parallel;
    const int64_t batch = c->scenario->training.global_batch;
    const int num_gpus = c->scenario->cluster.num_gpus;
    const struct {
        const char *key;
        int value;
    } degrees[] = {{"tp", spec->tp}, {"pp", spec->pp}, {"cp", spec->cp}, {"dp", spec->dp}};
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        if (degrees[i].value != ABSENT && num_gpus % degrees[i].value != 0)
            return arena_printf(c->arena, " (%s %d does not divide num_gpus %d)", degrees[i].key,
                                degrees[i].value, num_gpus);
    if (spec->dp != ABSENT && batch % spec->dp != 0)
        return arena_printf(c->arena, " (dp %d does not divide global_batch %lld)", spec->dp,
                            (long long)batch);
    if (spec->micro_batch != ABSENT && batch % spec->micro_batch != 0)
        return arena_printf(c->arena, " (micro_batch %d does not divide global_batch %lld)",
                            spec->micro_batch, (long long)batch);
    return "";
}

// What is wrong with the constraints: a single degree, else what plan_resolve finds with everything
// else at its default; "" where that is nothing. With dp given and other degrees free, those
// defaults would be found wrong, not the constraints.
//   names_tps  whether it names the values that tp could have
static const char *rule_text(const Conflict *c, bool *names_tps) {
    const ParallelSpec *spec = &c->scenario->parallel;
    const char *degree = degree_text(c);
    *names_tps = false;
    if (degree[0]) return degree;
    if (spec->dp != ABSENT && (spec->tp == ABSENT || spec->pp == ABSENT || spec->cp == ABSENT))
        return "";
    Plan ignored;
    const Status status = plan_resolve(c->scenario, c->arena, &ignored);
    if (status.code == STATUS_OK) return "";
    *names_tps = status.reason == REASON_TENSOR_PARALLEL_VALUES;
    return arena_printf(c->arena, " (%s)", status_text_within(&status, c->scenario->file));
}

// "; expected tp 1, 2 or 4": the values with which something is legal, where only tp is at fault.
static const char *tps_text(const Conflict *c) {
    const char *list = "";
    Scenario changed = *c->scenario;
    for (int tp = 1; tp <= model_mixer(&changed.model)->num_heads; tp++) {
        changed.parallel.tp = tp;
        if (changed.cluster.num_gpus % tp != 0) continue;
        if (plan_check_tp(&changed, &(Plan){.tp = tp}).code != STATUS_OK) continue;
        if (relax_reaches(&changed, HARVEST_LEGAL, 1, c->arena, NULL))
            list = arena_printf(c->arena, "%s%s%d", list, list[0] ? ", " : "", tp);
    }
    return list[0] ? arena_printf(c->arena, "; expected one of tp %s", list) : "";
}

static Status refuse_with(const Conflict *c, const Constraint *first, const char *text) {
    char path[64];
    bool ignored;
    snprintf(path, sizeof path, "parallel.%s", first->key);
    return status_at(STATUS_INVALID, c->scenario->file, path, "%s%s", text, rule_text(c, &ignored));
}

static Status explain_one(const Conflict *c, bool *explained) {
    const char *names = "";
    const Constraint *first = NULL;
    int num_found = 0;
    for (int i = 0; i < c->num_given; i++) {
        if (!opens_without(c, c->given[i], NULL)) continue;
        const char *text = constraint_text(c->given[i], &c->scenario->parallel, c->arena);
        names = first ? arena_printf(c->arena, "%s or %s", names, text) : text;
        if (!first) first = c->given[i];
        num_found++;
    }
    *explained = first != NULL;
    if (!first) return status_ok();
    bool names_tps;
    rule_text(c, &names_tps);
    bool only_tp = num_found == 1 && strcmp(first->key, "tp") == 0 && !names_tps;
    return refuse_with(c, first,
                       arena_printf(c->arena,
                                    "no configuration of %d GPUs is legal with these constraints; "
                                    "there are some without %s%s",
                                    c->scenario->cluster.num_gpus, names,
                                    only_tp ? tps_text(c) : ""));
}

static Status explain_two(const Conflict *c, bool *explained) {
    for (int i = 0; i < c->num_given; i++)
        for (int j = i + 1; j < c->num_given; j++) {
            if (!opens_without(c, c->given[i], c->given[j])) continue;
            *explained = true;
            const ParallelSpec *spec = &c->scenario->parallel;
            return refuse_with(
                c, c->given[i],
                arena_printf(c->arena,
                             "no configuration of %d GPUs is legal with these constraints; there "
                             "are some without both %s and %s",
                             c->scenario->cluster.num_gpus,
                             constraint_text(c->given[i], spec, c->arena),
                             constraint_text(c->given[j], spec, c->arena)));
        }
    return status_ok();
}

enum { MAX_FEWER = 64 }; // numbers of GPUs tried

// Not the constraints: the number of GPUs has no legal factors. The nearest smaller one that has.
static Status explain_gpus(const Conflict *c) {
    if (c->scenario->cluster.num_pools > 1)
        return status_at(STATUS_INVALID, c->scenario->file, "cluster.groups",
                         "no tp x cp x dp divides the GPUs of each group into whole pipeline "
                         "stages, no more than num_hidden_layers %d + 2, with global_batch %lld",
                         c->scenario->model.num_layers,
                         (long long)c->scenario->training.global_batch);
    Scenario changed = *c->scenario;
    constraints_drop_all(&changed.parallel);
    int num_gpus = changed.cluster.num_gpus;
    for (int fewer = num_gpus - 1; fewer > 0 && fewer >= num_gpus - MAX_FEWER; fewer--) {
        changed.cluster = cluster_with_gpus(&c->scenario->cluster, fewer, c->arena);
        if (!relax_reaches(&changed, HARVEST_LEGAL, 1, c->arena, NULL)) continue;
        return status_at(STATUS_INVALID, c->scenario->file, "cluster.num_gpus",
                         "%d GPUs cannot be filled by any legal tp x cp x dp x pp with "
                         "global_batch %lld; %d could",
                         num_gpus, (long long)changed.training.global_batch, fewer);
    }
    return status_at(STATUS_INVALID, c->scenario->file, "training",
                     "no configuration is legal on %d GPUs, nor on a few less", num_gpus);
}

// The rule of the software without which something would be legal.
static Status explain_rule(const Scenario *scenario, Arena *arena, bool *explained) {
    RulesInForce rules;
    RuleCulprit culprit;
    rules_in_force(scenario, &rules);
    *explained = rules.never != NULL;
    if (rules.never) {
        Plan plan;
        Scenario without = *scenario;
        without.execution.stack.rules = NULL;
        const bool found = relax_reaches(&without, HARVEST_LEGAL, 1, arena, &plan);
        return rule_refusal(STATUS_INVALID, scenario, found ? &plan : NULL, rules.never, arena);
    }
    *explained = rule_blame(scenario, arena, &culprit);
    if (!*explained) return status_ok();
    return rule_refusal(STATUS_INVALID, scenario, culprit.plan, culprit.rule, arena);
}

Status conflict_explain(const Scenario *scenario) {
    Arena arena = {0};
    Conflict c = {.scenario = scenario, .arena = &arena};
    for (int i = 0; i < NUM_CONSTRAINTS; i++)
        if (constraint_is_given(&CONSTRAINTS[i], &scenario->parallel))
            c.given[c.num_given++] = &CONSTRAINTS[i];
    bool explained = false;
    Status status = explain_rule(scenario, &arena, &explained);
    if (!explained) status = explain_one(&c, &explained);
    if (!explained) status = explain_two(&c, &explained);
    if (!explained && c.num_given > 2) {
        Scenario changed = *scenario;
        constraints_drop_all(&changed.parallel);
        explained = relax_reaches(&changed, HARVEST_LEGAL, 1, &arena, NULL);
        if (explained)
            status = refuse_with(&c, c.given[0],
                                 "these constraints leave no legal configuration, nor would they "
                                 "without any two of them");
    }
    if (!explained) status = explain_gpus(&c);
    arena_free(&arena);
    return status;
}
