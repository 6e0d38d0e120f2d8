// base/deadline.h - the end of a search's time budget, or of its user's patience.
//
// A search answers with the best it has found, so the time is up only once it has found something:
// until then it goes on, however late it is.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
    double end_s;                // of clock_now_s(); INFINITY without a budget
    const atomic_bool *end_soon; // set from elsewhere: the time is up; NULL: never
    atomic_bool armed;           // something was found
} Deadline;

//   budget_s  from now; 0: no end
void deadline_start(Deadline *deadline, double budget_s, const atomic_bool *end_soon);

// Something was found: from now on late means stop. Any thread may call it.
void deadline_arm(Deadline *deadline);

// Whether any search of this process that may be ended early has found something: what others find
// is a part of an answer at most. A signal handler may call it.
bool deadline_any_armed(void);

// Whether the time is up, found something or not: for work that only saves later work.
bool deadline_is_past(const Deadline *deadline);

// Whether to stop now. Cheap enough to ask for every family of configurations.
bool deadline_is_over(Deadline *deadline);
