// planner/space_rules.h - which values of a dimension are worth configurations of their own: what
// the scenario states, else what makes a difference and its software can run. For space.c.
#pragma once

#include "planner/stack_rules.h"

typedef struct {
    const Scenario *scenario;
    const StackRules *stack;
} SpaceRules;

// The ZeRO stages of plans with these degrees, ascending: fills stages, returns how many.
int space_zero_stages(const SpaceRules *rules, const Plan *plan, int stages[4]);

// Whether a schedule is open to a plan with these chunks; its legality is plan_check's.
bool space_has_schedule(const SpaceRules *rules, const Plan *plan, int kind);

// Whether first layers of each stage may be recomputed alone: recomputation that is stated is of
// all layers, or of as many as are stated.
bool space_has_first_layers(const SpaceRules *rules, const Plan *plan);

// Most first layers of each stage that may be recomputed alone; 0 where none may be.
int space_most_layers(const SpaceRules *rules, const Plan *plan);

// Whether sequences may be split over cp ranks by this method.
bool space_has_method(const SpaceRules *rules, int cp, int method);
