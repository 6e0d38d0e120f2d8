// cli/progress.h - one line on standard error that says how far long work is.
//
// It appears after a second, only on a terminal, and is wiped before the answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool terminal;
    bool shown;
    double start_s, last_s;
} Progress;

Progress progress_start(void);

// A PlannerProgress; context is the Progress. total 0: unknown.
void progress_show(void *context, const char *what, int64_t done, int64_t total);

// Progress with more to say behind it: "configurations: 9000 of 12000, best 12.3 s (4 s)".
void progress_tell(Progress *progress, const char *what, int64_t done, int64_t total,
                   const char *tail);

// Shows a line at once, for work that cannot report.
void progress_announce(Progress *progress, const char *what);

void progress_end(Progress *progress);
