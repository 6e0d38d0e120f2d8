#include "tests/planner/space_case.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static bool is_default_chunks(const SpaceWalk *walk, const Plan *plan) {
    const PlanChunk *even;
    Arena arena = {0};
    const int num_stages = plan_num_stages(plan);
    bool same =
        plan_default_chunks(&walk->scenario->model, num_stages, &arena, &even).code == STATUS_OK;
    for (int c = 0; c < plan->num_chunks && same; c++)
        same = even[c % num_stages].num_layers == plan->chunks[c].num_layers;
    arena_free(&arena);
    return same;
}

static bool kept(int given, int value) {
    return given == ABSENT || given == value;
}

static bool keeps_constraints(const ParallelSpec *spec, const Plan *plan) {
    return kept(spec->tp, plan->tp) && kept(spec->pp, plan->pp) && kept(spec->cp, plan->cp) &&
           kept(spec->dp, plan->dp) && kept(spec->ep, plan->ep) && kept(spec->etp, plan->etp) &&
           kept(spec->vpp, plan->vpp) && kept(spec->micro_batch, plan->micro_batch) &&
           kept(spec->zero_stage, plan->zero_stage) && kept(spec->zero_group, plan->zero_group) &&
           kept(spec->recompute, (int)plan->recompute) &&
           kept(spec->recompute_layers, plan->recompute_layers) &&
           kept(spec->schedule, (int)plan->schedule) &&
           kept(spec->cp_method, (int)plan->cp_method) &&
           (!spec->order || strcmp(spec->order, PLAN_ORDER_NAMES[plan->order]) == 0) &&
           kept(spec->sequence_parallel, plan->sequence_parallel);
}

static bool visit(void *context, const SpaceFamily *family) {
    SpaceWalk *walk = context;
    const int micro_batch = family->plans[0].micro_batch;
    walk->num_out_of_order += micro_batch <= walk->last_micro_batch[family->series];
    walk->last_micro_batch[family->series] = micro_batch;
    for (int i = 0; i < case_num_plans(family); i++) {
        const Plan plan = case_plan(family, i);
        if (walk->num_keys == walk->capacity) {
            int capacity = walk->capacity ? 2 * walk->capacity : 1024;
            const char **grown = ARENA_ARRAY(walk->arena, capacity, const char *);
            if (walk->num_keys) memcpy(grown, walk->keys, (size_t)walk->num_keys * sizeof *grown);
            walk->keys = grown;
            walk->capacity = capacity;
        }
        walk->keys[walk->num_keys++] = case_key(&plan, walk->arena);
        walk->num_illegal += plan_check(walk->scenario, &plan).code != STATUS_OK;
        walk->num_not_kept += !keeps_constraints(&walk->scenario->parallel, &plan);
        walk->num_default_chunks += is_default_chunks(walk, &plan);
    }
    return true;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

SpaceWalk *space_walk(const Scenario *scenario, Arena *arena) {
    SpaceWalk *walk = ARENA_NEW(arena, SpaceWalk);
    walk->scenario = scenario;
    walk->arena = arena;
    Space space;
    space_build(scenario, arena, &space);
    for (int split = 0; split < space.num_splits; split++) {
        memset(walk->last_micro_batch, 0, sizeof walk->last_micro_batch);
        CU_ASSERT_TRUE(space_visit(&space, split, arena, visit, walk));
    }
    if (walk->num_keys) qsort(walk->keys, (size_t)walk->num_keys, sizeof *walk->keys, compare_keys);
    return walk;
}

const SpaceWalk *space_walk_given(const char *parallel, Arena *arena) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    Status status = case_preset("llama-3.1-8b", "dgx-h100:2", 8192, 64, parallel, arena, scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return space_walk(scenario, arena);
}

bool space_walk_has(const SpaceWalk *walk, const char *text) {
    for (int i = 0; i < walk->num_keys; i++)
        if (strstr(walk->keys[i], text)) return true;
    return false;
}
