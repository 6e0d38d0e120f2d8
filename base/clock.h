// base/clock.h - the time that passes, for deadlines and reports of progress.
#pragma once

// Seconds of a clock that never goes back, from some moment on.
double clock_now_s(void);
