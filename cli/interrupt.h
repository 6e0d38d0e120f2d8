// cli/interrupt.h - Ctrl-C that asks for the answer so far.
//
// While it is watched the first SIGINT sets a flag and says so on standard error; the second ends
// the program as ever. Where INTERRUPT_WAIT_S later no search has found anything that it could
// answer with, the program ends with 130, as shells have it, and has written nothing.
#pragma once

#include <stdatomic.h>

#define INTERRUPT_WAIT_S 0.4

// Starts to watch.
//   returns  the flag, for PlannerOptions.end_soon
const atomic_bool *interrupt_watch(void);

// SIGINT ends the program again.
void interrupt_leave(void);
