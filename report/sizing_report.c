#include "report/sizing_report.h"

#include "report/table.h"
#include "report/units.h"

#include <math.h>

// The fastest of what was tried.
static const char *trials_text(const Sizing *sizing, Arena *arena) {
    const SizingTrial *fastest = &sizing->trials[0];
    int most = 0;
    for (int i = 0; i < sizing->num_trials; i++) {
        const SizingTrial *trial = &sizing->trials[i];
        if (trial->step_time_s < fastest->step_time_s) fastest = trial;
        if (trial->num_gpus > most) most = trial->num_gpus;
    }
    char step[UNITS_SIZE];
    if (!isfinite(fastest->step_time_s))
        return arena_printf(arena, "nothing fits on any of the %d numbers up to %d",
                            sizing->num_trials, most);
    return arena_printf(arena, "the fastest of the %d numbers up to %d is %d GPUs with %s",
                        sizing->num_trials, most, fastest->num_gpus,
                        units_seconds(fastest->step_time_s, step));
}

static const char *below_text(const Sizing *s, Arena *arena) {
    const int num_below = s->num_gpus / s->node_gpus - 1;
    if (num_below == 0) return "One node is the least there is.";
    const char *counts = arena_printf(
        arena,
        "Of the %d smaller numbers of whole nodes %d would have to compute above their peak rate, "
        "%d cannot be filled, %d are too slow by a lower bound and %d by their best plan",
        num_below, s->num_above_peak, s->num_unfillable, s->num_by_bound, s->num_by_search);
    if (s->is_proven) return arena_printf(arena, "%s: none is fast enough.", counts);
    return arena_printf(arena, "%s; %d were not decided, as the search was ended.", counts,
                        s->num_open);
}

static const char *run_text(const Scenario *scenario, const PlannerResult *result, double tokens,
                            Arena *arena) {
    const RunTotals t = run_totals(scenario, &result->entries[0].estimate, tokens);
    char count[UNITS_SIZE], hours[UNITS_SIZE], usd[UNITS_SIZE];
    const char *text = arena_printf(arena, "%s tokens are %.0f steps: %.2f days, %s GPU hours",
                                    units_count(tokens, count), t.num_steps, t.run_s / 86400,
                                    units_count(t.gpu_hours, hours));
    if (t.cost_usd > 0) text = arena_printf(arena, "%s, %s", text, units_usd(t.cost_usd, usd));
    if (t.energy_joules > 0)
        text = arena_printf(arena, "%s, %.4g MWh", text, t.energy_joules / 3.6e9);
    return arena_printf(arena, "%s.", text);
}

void report_sizing(const Scenario *scenario, const Sizing *sizing, const PlannerResult *result,
                   double run_tokens, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    char wanted[UNITS_SIZE];
    units_seconds(sizing->wanted_step_time_s, wanted);
    if (sizing->num_gpus == 0) {
        paper_wrap(&paper, 0, STYLE_BAD,
                   arena_printf(&arena, "No number of GPUs tried takes %s or less for a step: %s.",
                                wanted, trials_text(sizing, &arena)));
    } else {
        paper_wrap(&paper, 0, STYLE_GOOD,
                   arena_printf(&arena,
                                "%d GPUs are the fewest%s with which a step takes no more than %s.",
                                sizing->num_gpus, sizing->is_proven ? "" : " found", wanted));
        paper_wrap(&paper, 0, STYLE_PLAIN, below_text(sizing, &arena));
        if (run_tokens > 0 && result->num_entries > 0)
            paper_wrap(&paper, 0, STYLE_PLAIN, run_text(scenario, result, run_tokens, &arena));
        fputc('\n', stream);
    }
    arena_free(&arena);
}
