#include "base/deadline.h"

#include "base/clock.h"

#include <math.h>

static atomic_bool any_armed;

void deadline_start(Deadline *deadline, double budget_s, const atomic_bool *end_soon) {
    deadline->end_s = budget_s > 0 ? clock_now_s() + budget_s : INFINITY;
    deadline->end_soon = end_soon;
    atomic_init(&deadline->armed, false);
}

bool deadline_any_armed(void) {
    return atomic_load_explicit(&any_armed, memory_order_relaxed);
}

void deadline_arm(Deadline *deadline) {
    if (deadline->end_soon && !deadline_any_armed())
        atomic_store_explicit(&any_armed, true, memory_order_relaxed);
    atomic_store_explicit(&deadline->armed, true, memory_order_relaxed);
}

bool deadline_is_past(const Deadline *deadline) {
    if (deadline->end_soon && atomic_load_explicit(deadline->end_soon, memory_order_relaxed))
        return true;
    return isfinite(deadline->end_s) && clock_now_s() > deadline->end_s;
}

bool deadline_is_over(Deadline *deadline) {
    return atomic_load_explicit(&deadline->armed, memory_order_relaxed) &&
           deadline_is_past(deadline);
}
