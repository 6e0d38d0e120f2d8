// The `layers` of a scenario: what each entry makes of the plan, and what of it is refused.
#include "plan/layer_plans.h"

#include <stdio.h>

static int value_or(int given, int otherwise) {
    return given == ABSENT ? otherwise : given;
}

// An entry of the list and the plan that does throughout what it says.
typedef struct {
    const Scenario *scenario;
    const Plan *plan; // without layers
    const LayerOverride *entry;
    int index;
    Plan own;
} Entry;

static Status entry_refuse(const Entry *e, const char *key, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "parallel.layers[%d]%s%s", e->index, key[0] ? "." : "", key);
    return status_at(STATUS_INVALID, e->scenario->file, path, "%s", text);
}

#define REFUSE(key, ...)                                                                           \
    do {                                                                                           \
        char text_[400];                                                                           \
        snprintf(text_, sizeof text_, __VA_ARGS__);                                                \
        return entry_refuse(e, key, text_);                                                        \
    } while (0)

// Experts of a stage lie on the same ranks in all of its layers.
static Status experts_check(const Entry *e) {
    const int ep = value_or(e->entry->ep, e->plan->ep), etp = value_or(e->entry->etp, e->plan->etp);
    if (ep != e->plan->ep)
        REFUSE("ep",
               "%d, but the plan has ep %d: other experts than those of the plan are legal, "
               "but not supported yet",
               ep, e->plan->ep);
    if (etp != e->plan->etp)
        REFUSE("etp",
               "%d, but the plan has etp %d: other experts than those of the plan are legal, but "
               "not supported yet",
               etp, e->plan->etp);
    return status_ok();
}

// The GPUs of a stage and the sequences of a micro-batch over all of them stay.
static Status degrees_resolve(Entry *e) {
    Plan *own = &e->own;
    own->tp = value_or(e->entry->tp, own->tp);
    own->cp = value_or(e->entry->cp, own->cp);
    const char *key = e->entry->tp != ABSENT ? "tp" : "cp";
    const int64_t ranks = (int64_t)own->tp * own->cp, gpus = plan_stage_gpus(e->plan);
    if (gpus % ranks != 0)
        REFUSE(key,
               "tp %d x cp %d does not divide the %lld GPUs of a stage (tp %d x cp %d x dp %d)",
               own->tp, own->cp, (long long)gpus, e->plan->tp, e->plan->cp, e->plan->dp);
    own->dp = (int)(gpus / ranks);
    const int64_t sequences = (int64_t)e->plan->micro_batch * e->plan->dp;
    if (sequences % own->dp != 0)
        REFUSE(key,
               "tp %d x cp %d makes dp %d, which does not divide the %lld sequences of a "
               "micro-batch (micro_batch %d x dp %d)",
               own->tp, own->cp, own->dp, (long long)sequences, e->plan->micro_batch, e->plan->dp);
    own->micro_batch = (int)(sequences / own->dp);
    if (own->tp == e->plan->tp && own->cp == e->plan->cp) return status_ok();
    if (e->plan->pp > 1 && e->plan->order != ORDER_DP_PP)
        REFUSE(key,
               "other degrees than the plan's with order %s are legal, but not supported yet; "
               "expected %s",
               PLAN_ORDER_NAMES[e->plan->order], PLAN_ORDER_NAMES[ORDER_DP_PP]);
    return status_ok();
}

static Status recompute_resolve(Entry *e) {
    const int modules = e->entry->recompute_modules;
    e->own.recompute = (Recompute)value_or(e->entry->recompute, (int)e->own.recompute);
    if (e->own.recompute == RECOMPUTE_SELECTIVE)
        e->own.recompute_modules =
            value_or(modules, value_or(e->scenario->parallel.recompute_modules,
                                       plan_default_modules(e->scenario)));
    else if (modules != ABSENT)
        REFUSE("recompute_modules", "goes with recompute selective only; here it is %s",
               RECOMPUTE_NAMES[e->own.recompute]);
    return status_ok();
}

static void options_resolve(Entry *e) {
    const LayerOverride *entry = e->entry;
    Plan *own = &e->own;
    if (entry->tp != ABSENT) own->sequence_parallel = plan_splits_sequence(e->scenario, own->tp);
    own->sequence_parallel = value_or(entry->sequence_parallel, own->sequence_parallel);
    own->cp_method = (CpMethod)value_or(entry->cp_method, (int)own->cp_method);
    own->zero_stage = value_or(entry->zero_stage, own->zero_stage);
    if (e->plan->zero_group == e->plan->dp * e->plan->cp) // shards on all replicas, here too
        own->zero_group = own->dp * own->cp;
}

// The rules of a plan, of one that has the strategy throughout.
static Status rules_check(const Entry *e) {
    const Status status = plan_check(e->scenario, &e->own);
    if (status.code == STATUS_OK) return status;
    REFUSE("", "as a plan throughout: %.300s", status_text_within(&status, e->scenario->file));
}

static Status entry_resolve(Entry *e) {
    e->own = *e->plan;
    TRY(experts_check(e));
    TRY(degrees_resolve(e));
    TRY(recompute_resolve(e));
    options_resolve(e);
    TRY(rules_check(e));
    plan_derive(e->scenario, &e->own);
    e->own.reduces_once = e->plan->reduces_once;
    return status_ok();
}

Status plan_resolve_layers(const Scenario *scenario, Arena *arena, Plan *plan) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->num_layer_overrides == 0) return status_ok();
    Arena scratch = {0};
    const int num_layers = scenario->model.num_layers;
    Plan *own = ARENA_ARRAY(&scratch, num_layers, Plan);
    for (int l = 0; l < num_layers; l++) own[l] = *plan;
    Status status = status_ok();
    for (int i = 0; i < spec->num_layer_overrides && status.code == STATUS_OK; i++) {
        Entry e = {scenario, plan, &spec->layers[i], i, *plan};
        status = entry_resolve(&e);
        for (int l = spec->layers[i].from; l <= spec->layers[i].to; l++) own[l] = e.own;
    }
    if (status.code == STATUS_OK) plan_set_layers(plan, own, num_layers, arena);
    arena_free(&scratch);
    return status;
}
