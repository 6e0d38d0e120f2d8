#include "sim/repetition.h"

#include "sim/disturb_compute.h"

#include <stdlib.h>
#include <string.h>

const char *const CAUSE_NAMES[NUM_CAUSES] = {"none", "stragglers", "jitter", "network"};

static DisturbCause cause_of(DisturbKind kind) {
    if (kind == DISTURB_SLOW_GPU) return CAUSE_STRAGGLERS;
    return kind == DISTURB_JITTER ? CAUSE_JITTER : CAUSE_NETWORK;
}

RunPlan runs_plan(const Disturb *disturb, int num_disturb, int num_repetitions) {
    RunPlan plan = {.num_repetitions = num_repetitions, .num_runs = 1};
    plan.num_runs_of[CAUSE_NONE] = 1;
    for (int cause = CAUSE_STRAGGLERS; cause < NUM_CAUSES; cause++) {
        plan.kinds[cause] = plan.kinds[cause - 1];
        for (int i = 0; i < num_disturb; i++) {
            if (cause_of(disturb[i].kind) == (DisturbCause)cause)
                plan.kinds[cause] |= 1u << disturb[i].kind;
        }
        plan.first_run_of[cause] = plan.first_run_of[cause - 1];
        if (plan.kinds[cause] == plan.kinds[cause - 1]) continue;
        bool random = disturb_is_random(disturb, num_disturb, plan.kinds[cause]);
        plan.num_runs_of[cause] = random ? num_repetitions : 1;
        plan.first_run_of[cause] = plan.num_runs;
        plan.num_runs += plan.num_runs_of[cause];
    }
    plan.shown_run = plan.first_run_of[NUM_CAUSES - 1];
    return plan;
}

DisturbCause run_cause(const RunPlan *plan, int run, int *repetition) {
    int cause = NUM_CAUSES - 1;
    while (plan->num_runs_of[cause] == 0 || plan->first_run_of[cause] > run) cause--;
    *repetition = run - plan->first_run_of[cause];
    return (DisturbCause)cause;
}

static int double_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double percentile(const double *numbers, int count, double frac, Arena *arena) {
    double *sorted = ARENA_ARRAY(arena, count, double);
    memcpy(sorted, numbers, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, double_compare);
    double place = frac * (count - 1);
    int below = (int)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

// As differences from the first, so that equal numbers have themselves as their mean.
static double mean(const double *numbers, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += numbers[i] - numbers[0];
    return numbers[0] + sum / count;
}

RunSummary runs_summarize(const RunPlan *plan, const double *step_s, Arena *arena) {
    RunSummary out = {.undisturbed_s = step_s[0]};
    double before_s = step_s[0];
    int num_last = 1;
    for (int cause = CAUSE_STRAGGLERS; cause < NUM_CAUSES; cause++) {
        if (plan->num_runs_of[cause] == 0) continue;
        num_last = plan->num_runs_of[cause];
        double mean_s = mean(&step_s[plan->first_run_of[cause]], num_last);
        out.cause_s[cause] = mean_s - before_s;
        before_s = mean_s;
    }
    double *steps = ARENA_ARRAY(arena, plan->num_repetitions, double);
    for (int i = 0; i < plan->num_repetitions; i++) {
        steps[i] = step_s[plan->shown_run + (num_last > 1 ? i : 0)];
    }
    out.step_s = steps;
    out.mean_s = mean(steps, plan->num_repetitions);
    out.p95_s = percentile(steps, plan->num_repetitions, 0.95, arena);
    return out;
}
