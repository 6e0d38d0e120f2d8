// sim/client_find.h - where meshwright-sim is.
#pragma once

#include "base/arena.h"
#include "base/status.h"

// The places are those of sim/sim.h. Fails (STATUS_MACHINE) where it is in none of them.
Status sim_find(Arena *arena, const char **path);
