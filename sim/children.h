// sim/children.h - one function run many times, each time in a child process of its own.
#pragma once

#include "base/status.h"

#include <stddef.h>

// Runs body(context, 0) ... body(context, num_runs - 1), as many at once as there are cores. A body
// answers through memory from shared_open; its Status is handed on, and an exit with STATUS_MACHINE
// without one means that it had no memory (base/arena.h). The first failure stops all
// that still run; they also end, at once, when this process does.
Status children_run(int num_runs, Status (*body)(void *context, int run), void *context);

// Zeroed memory that children write for their parent; it stays until the process ends.
Status shared_open(size_t size, void **out);
