#include "planner/why/explain.h"

#include "planner/harvest/harvest.h"
#include "planner/why/robust.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// An 80 % half-width over a median absolute deviation, of a normal distribution.
static const double MEDIAN_TO_80 = 1.2816 / 0.6745;

// Differences below this fraction of the objective are called a tie.
static const double TIE_FRAC = 5e-4;

static const char *const TERM_TEXTS[NUM_TERMS] = {
    [TERM_COMPUTE] = "compute",
    [TERM_TP] = "exposed tensor-parallel communication",
    [TERM_CP] = "exposed context-parallel communication",
    [TERM_EP] = "exposed expert-parallel communication",
    [TERM_DP] = "exposed data-parallel communication",
    [TERM_PP] = "exposed pipeline messages",
    [TERM_BUBBLE] = "pipeline bubble",
    [TERM_OPTIMIZER] = "optimizer",
    [TERM_OTHER] = "host and other",
};

// --- Text

typedef struct {
    const char *text;
    double amount; // seconds or bytes
} Part;

static int compare_parts(const void *a, const void *b) {
    double x = fabs(((const Part *)a)->amount), y = fabs(((const Part *)b)->amount);
    return (x < y) - (x > y);
}

static const char *seconds_text(double seconds, Arena *arena) {
    double size = fabs(seconds);
    if (size >= 1) return arena_printf(arena, "%+.2f s", seconds);
    if (size >= 1e-3) return arena_printf(arena, "%+.*f ms", size < 1e-2, seconds * 1e3);
    return arena_printf(arena, "%+.0f us", seconds * 1e6);
}

static const char *bytes_text(double bytes, Arena *arena) {
    if (fabs(bytes) < 5e6) return "the same";
    return arena_printf(arena, "%+.2f GB", bytes / 1e9);
}

// The largest parts, until they make up most of what changes; then the sum of the rest, where it
// matters.
static const char *parts_text(Part *parts, int num_parts,
                              const char *(*amount_text)(double, Arena *), Arena *arena) {
    enum { MAX_PARTS = 4 };
    double all = 0, told = 0, rest = 0;
    qsort(parts, (size_t)num_parts, sizeof *parts, compare_parts);
    for (int i = 0; i < num_parts; i++) {
        all += fabs(parts[i].amount);
        rest += parts[i].amount;
    }
    const char *text = "";
    for (int i = 0; i < num_parts && i < MAX_PARTS && told < 0.9 * all; i++) {
        told += fabs(parts[i].amount);
        rest -= parts[i].amount;
        text = arena_printf(arena, "%s%s%s %s", text, i ? ", " : "",
                            amount_text(parts[i].amount, arena), parts[i].text);
    }
    if (fabs(rest) <= 0.05 * all) return text;
    return arena_printf(arena, "%s, %s in other terms", text, amount_text(rest, arena));
}

static const char *time_parts(const Estimate *best, const Estimate *other, Arena *arena) {
    Part parts[NUM_TERMS];
    for (int t = 0; t < NUM_TERMS; t++)
        parts[t] = (Part){TERM_TEXTS[t], other->term_s[t] - best->term_s[t]};
    return parts_text(parts, NUM_TERMS, seconds_text, arena);
}

static const char *memory_parts(const RankMemory *best, const RankMemory *other, Arena *arena) {
    Part parts[] = {
        {"weights", other->weights_bytes - best->weights_bytes},
        {"gradients", other->gradients_bytes - best->gradients_bytes},
        {"optimizer state", other->optimizer_bytes - best->optimizer_bytes},
        {"activations", other->activations_bytes - best->activations_bytes},
        {"buffers", other->buffers_bytes - best->buffers_bytes},
    };
    return parts_text(parts, sizeof parts / sizeof *parts, bytes_text, arena);
}

const char *explain_loss(PlanObjective objective, const PlannedEntry *best,
                         const PlannedEntry *other, Arena *arena) {
    static const char *const WORSE[NUM_OBJECTIVES] = {"slower", "more expensive", "more energy",
                                                      "more memory"};
    const Estimate *a = &best->estimate, *b = &other->estimate;
    double memory_bytes = b->memory.device_bytes - a->memory.device_bytes;
    double time_s = b->step_time_s - a->step_time_s;
    if (other->loses_frac < TIE_FRAC) {
        const char *tie = objective == OBJECTIVE_MEMORY ? "the same memory" : "equal";
        if (objective == OBJECTIVE_MEMORY)
            return arena_printf(arena, "%s; %s a step", tie, seconds_text(time_s, arena));
        return arena_printf(arena, "%s within 0.05 %%; %s memory", tie,
                            bytes_text(memory_bytes, arena));
    }
    bool of_memory = objective == OBJECTIVE_MEMORY;
    const char *parts =
        of_memory ? memory_parts(&a->memory, &b->memory, arena) : time_parts(a, b, arena);
    const char *rest = "";
    if (of_memory)
        rest = arena_printf(arena, "; %s a step", seconds_text(time_s, arena));
    else if (memory_bytes < -0.05 * a->memory_available_bytes)
        rest = arena_printf(arena, "; %s memory", bytes_text(memory_bytes, arena));
    return arena_printf(arena, "%.1f %% %s: %s%s", other->loses_frac * 100, WORSE[objective], parts,
                        rest);
}

// To a tenth, and never minus nothing.
static double percent_of(double ratio) {
    return round((ratio - 1) * 1000) / 10 + 0.0;
}

const char *explain_robust(const PlannedEntry *best, const PlannedEntry *other, Arena *arena) {
    const Estimate *a = &best->estimate, *b = &other->estimate;
    return arena_printf(arena,
                        "%.1f %% slower at the upper end of its interval: the step %+.1f %%, the "
                        "width above it %+.1f %%",
                        other->loses_frac * 100, percent_of(b->step_time_s / a->step_time_s),
                        percent_of(robust_raise(b) / robust_raise(a)));
}

double explain_value(const PlannerResult *result, const PlannedEntry *entry) {
    const double raise = result->robust ? robust_raise(&entry->estimate) : 1;
    return objective_value(result->objective, &entry->estimate) * raise;
}

const char *explain_worse(const PlannerResult *result, const PlannedEntry *better,
                          const PlannedEntry *worse, Arena *arena) {
    return result->robust ? explain_robust(better, worse, arena)
                          : explain_loss(result->objective, better, worse, arena);
}

// --- Noise

static bool same_shapes(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp &&
           a->micro_batch == b->micro_batch && a->sequence_parallel == b->sequence_parallel &&
           a->cp_method == b->cp_method && a->recompute == b->recompute;
}

// Of the GPU whose kernels are known least: which of several the difference is on is not asked.
static double kernel_residual_frac(const Cluster *cluster) {
    double most = 0;
    for (int i = 0; i < cluster->num_pools; i++)
        most = fmax(most, cluster->pools[i].gpu.efficiency.residual_median_frac);
    return most;
}

double explain_difference_uncertainty_s(const Scenario *scenario, const PlannedEntry *a,
                                        const PlannedEntry *b) {
    const Estimate *x = &a->estimate, *y = &b->estimate;
    double relative = (x->step_time_high_s - x->step_time_low_s) / (2 * x->step_time_s);
    double jitter_s = EXPLAIN_JITTER_FRAC * x->step_time_s;
    double variance = jitter_s * jitter_s;
    for (int t = 0; t < NUM_TERMS; t++) {
        double difference_s = relative * (x->term_s[t] - y->term_s[t]);
        variance += difference_s * difference_s;
    }
    if (!same_shapes(&a->plan, &b->plan)) {
        double kernel = kernel_residual_frac(&scenario->cluster) * MEDIAN_TO_80;
        double layer = kernel / sqrt(EXPLAIN_NUM_KERNELS);
        double compute_a = layer * x->term_s[TERM_COMPUTE];
        double compute_b = layer * y->term_s[TERM_COMPUTE];
        variance += compute_a * compute_a + compute_b * compute_b;
    }
    return sqrt(variance);
}

bool explain_within_noise(const Scenario *scenario, PlanObjective objective,
                          const PlannedEntry *best, const PlannedEntry *other) {
    if (objective == OBJECTIVE_MEMORY)
        return other->estimate.memory.device_bytes <= best->estimate.memory.device_bytes;
    double difference_s = other->estimate.step_time_s - best->estimate.step_time_s;
    double floor_s = EXPLAIN_FLOOR_FRAC * best->estimate.step_time_s;
    return fabs(difference_s) <=
           fmax(floor_s, explain_difference_uncertainty_s(scenario, best, other));
}
