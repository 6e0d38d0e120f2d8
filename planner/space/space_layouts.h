// planner/space/space_layouts.h - the ways to lay ranks out that a space has: space_build and
// space_narrow of planner/space/space.h are in space_layouts.c.
#pragma once

#include "planner/space/space.h"

// Whether sequence parallelism is on: as stated, else where tp > 1.
bool layout_splits_sequence(const Scenario *scenario, int tp);
