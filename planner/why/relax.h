// planner/why/relax.h - the scenario with some of its constraints given up, and what that changes.
#pragma once

#include "config/job/scenario.h"
#include "planner/harvest/harvest.h"

typedef enum {
    CONSTRAINT_INT,
    CONSTRAINT_SWITCH,
    CONSTRAINT_TEXT,
    CONSTRAINT_STAGES
} ConstraintKind;

// One field of `parallel` that the space knows as a dimension.
typedef struct {
    const char *key;
    ConstraintKind kind;
    size_t offset;            // of the field in ParallelSpec
    const char *const *names; // of its values; NULL for numbers
} Constraint;

enum { NUM_CONSTRAINTS = 19 };

// In the order in which giving them up changes least.
extern const Constraint CONSTRAINTS[NUM_CONSTRAINTS];

bool constraint_is_given(const Constraint *constraint, const ParallelSpec *spec);
void constraint_drop(const Constraint *constraint, ParallelSpec *spec);

// "recompute none", "tp 8": a given constraint as a sentence names it.
const char *constraint_text(const Constraint *constraint, const ParallelSpec *spec, Arena *arena);

// Gives up all constraints.
void constraints_drop_all(ParallelSpec *spec);

// Walks the space of a scenario until something is legal (HARVEST_LEGAL) or fits (HARVEST_FIT).
//   returns  whether that was so; *found is its plan where found is not NULL, in arena;
//            the same whatever the number of threads
bool relax_reaches(const Scenario *scenario, HarvestGoal goal, int num_threads, Arena *arena,
                   Plan *found);
