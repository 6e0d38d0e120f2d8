// cli/interrupt.h - Ctrl-C that asks for the answer so far.
//
// While it is watched the first SIGINT sets a flag and says so on standard error; the second ends
// the program as ever.
#pragma once

#include <stdatomic.h>

// Starts to watch.
//   returns  the flag, for PlannerOptions.end_soon
const atomic_bool *interrupt_watch(void);

// SIGINT ends the program again.
void interrupt_leave(void);
