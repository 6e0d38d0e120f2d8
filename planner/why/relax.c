#include "planner/why/relax.h"

#include "base/share.h"

#include <math.h>
#include <string.h>

#define FIELD(key, names)                                                                          \
    { #key, CONSTRAINT_INT, offsetof(ParallelSpec, key), names }

const Constraint CONSTRAINTS[NUM_CONSTRAINTS] = {
    FIELD(recompute, RECOMPUTE_NAMES),
    FIELD(zero_stage, NULL),
    FIELD(zero_group, NULL),
    {"reshard_after_forward", CONSTRAINT_SWITCH, offsetof(ParallelSpec, reshard_after_forward),
     NULL},
    FIELD(micro_batch, NULL),
    {"sequence_parallel", CONSTRAINT_SWITCH, offsetof(ParallelSpec, sequence_parallel), NULL},
    {"vocab_parallel", CONSTRAINT_SWITCH, offsetof(ParallelSpec, vocab_parallel), NULL},
    FIELD(schedule, SCHEDULE_NAMES),
    FIELD(cp_method, CP_METHOD_NAMES),
    {"order", CONSTRAINT_TEXT, offsetof(ParallelSpec, order), NULL},
    FIELD(recompute_layers, NULL),
    {"stages", CONSTRAINT_STAGES, offsetof(ParallelSpec, stages), NULL},
    FIELD(vpp, NULL),
    FIELD(etp, NULL),
    FIELD(ep, NULL),
    FIELD(cp, NULL),
    FIELD(tp, NULL),
    FIELD(pp, NULL),
    FIELD(dp, NULL),
};

static int field_value(const Constraint *constraint, const ParallelSpec *spec) {
    const char *field = (const char *)spec + constraint->offset;
    if (constraint->kind == CONSTRAINT_SWITCH) return *(const signed char *)field;
    int value;
    memcpy(&value, field, sizeof value);
    return value;
}

static const char *field_text(const Constraint *constraint, const ParallelSpec *spec) {
    const char *text;
    memcpy(&text, (const char *)spec + constraint->offset, sizeof text);
    return text;
}

bool constraint_is_given(const Constraint *constraint, const ParallelSpec *spec) {
    if (constraint->kind == CONSTRAINT_TEXT) return field_text(constraint, spec) != NULL;
    if (constraint->kind == CONSTRAINT_STAGES) return spec->stages != NULL;
    return field_value(constraint, spec) != ABSENT;
}

void constraint_drop(const Constraint *constraint, ParallelSpec *spec) {
    const int absent = ABSENT;
    char *field = (char *)spec + constraint->offset;
    if (constraint->kind == CONSTRAINT_STAGES) {
        spec->stages = NULL;
        spec->num_stages = 0;
    } else if (constraint->kind == CONSTRAINT_SWITCH) {
        *(signed char *)field = ABSENT;
    } else if (constraint->kind == CONSTRAINT_TEXT) {
        memset(field, 0, sizeof(const char *));
    } else {
        memcpy(field, &absent, sizeof absent);
    }
    // What only makes sense beside it.
    if (spec->recompute == ABSENT) spec->recompute_modules = ABSENT;
}

const char *constraint_text(const Constraint *constraint, const ParallelSpec *spec, Arena *arena) {
    if (constraint->kind == CONSTRAINT_STAGES)
        return arena_printf(arena, "a list of %d stages", spec->num_stages);
    if (constraint->kind == CONSTRAINT_TEXT)
        return arena_printf(arena, "%s %s", constraint->key, field_text(constraint, spec));
    int value = field_value(constraint, spec);
    if (constraint->kind == CONSTRAINT_SWITCH)
        return arena_printf(arena, "%s %s", constraint->key, value ? "true" : "false");
    if (constraint->names)
        return arena_printf(arena, "%s %s", constraint->key, constraint->names[value]);
    return arena_printf(arena, "%s %d", constraint->key, value);
}

void constraints_drop_all(ParallelSpec *spec) {
    for (int i = 0; i < NUM_CONSTRAINTS; i++) constraint_drop(&CONSTRAINTS[i], spec);
}

enum { ROUND_SPLITS = 16 };

typedef struct {
    const HarvestTask *task;
    int first;
    Harvest harvests[ROUND_SPLITS];
    bool reached[ROUND_SPLITS];
} Round;

static void round_work(void *context, int worker, int item) {
    (void)worker;
    Round *round = context;
    round->reached[item] = harvest_split(round->task, round->first + item, &round->harvests[item]);
}

static void plan_keep(const Harvest *harvest, Arena *arena, Plan *found) {
    *found = plan_copy(&harvest->candidates[0].plan, arena);
}

bool relax_reaches(const Scenario *scenario, HarvestGoal goal, int num_threads, Arena *arena,
                   Plan *found) {
    Arena scratch = {0};
    Space space;
    space_build(scenario, &scratch, &space);
    space.any_split = true;
    HarvestTask task = {.space = &space, .goal = goal, .value_limit = INFINITY};
    bool reached = false;
    // One thread looks at one split after the other and stops at the first that reaches; more look
    // at a round of them and take the same one.
    const int most = num_threads > 1 ? ROUND_SPLITS : 1;
    for (int first = 0; first < space.num_splits && !reached; first += most) {
        Round round = {.task = &task, .first = first};
        int num_splits = space.num_splits - first < most ? space.num_splits - first : most;
        share_work(num_splits, num_threads, round_work, &round);
        for (int i = 0; i < num_splits; i++) {
            if (round.reached[i] && !reached && found) plan_keep(&round.harvests[i], arena, found);
            reached |= round.reached[i];
            harvest_free(&round.harvests[i]);
        }
    }
    arena_free(&scratch);
    return reached;
}
