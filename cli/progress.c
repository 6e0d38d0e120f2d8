#include "cli/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

Progress progress_start(void) {
    return (Progress){.terminal = isatty(STDERR_FILENO) == 1, .start_s = clock_now_s()};
}

void progress_show(void *context, const char *what, int64_t done, int64_t total) {
    progress_tell(context, what, done, total, "");
}

void progress_tell(Progress *progress, const char *what, int64_t done, int64_t total,
                   const char *tail) {
    if (!progress->terminal) return;
    double now = clock_now_s();
    if (now - progress->start_s < 1 || now - progress->last_s < 0.1) return;
    progress->last_s = now;
    progress->shown = true;
    if (total > 0)
        fprintf(stderr, "\r\033[K%s: %" PRId64 " of %" PRId64 "%s (%.0f s)", what, done, total,
                tail, now - progress->start_s);
    else
        fprintf(stderr, "\r\033[K%s: %" PRId64 "%s (%.0f s)", what, done, tail,
                now - progress->start_s);
    fflush(stderr);
}

void progress_announce(Progress *progress, const char *what) {
    if (!progress->terminal) return;
    progress->shown = true;
    fprintf(stderr, "\r\033[K%s ...", what);
    fflush(stderr);
}

void progress_end(Progress *progress) {
    if (!progress->shown) return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    progress->shown = false;
}
