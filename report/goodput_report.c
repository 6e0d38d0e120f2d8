#include "report/goodput_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>

static const char *span_text(double time_s, Arena *arena) {
    char text[UNITS_SIZE];
    return arena_strdup(arena, units_span(time_s, text));
}

static void line(const Paper *paper, const char *name, const char *text, Arena *arena) {
    paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(arena, "%-16s%s", name, text));
}

static void inputs_print(const Goodput *g, const Paper *paper, Arena *arena) {
    char bytes[UNITS_SIZE], rate[UNITS_SIZE];
    line(paper, "failures",
         arena_printf(arena,
                      "%.3g per GPU-hour: one in %s on %d GPUs, %.0f %% of them take a node "
                      "out for %s",
                      g->used.failures_per_gpu_hour, span_text(g->mtbf_s, arena), g->num_gpus,
                      100 * g->used.hardware_frac, span_text(g->used.repair_s, arena)),
         arena);
    line(paper, "checkpoint",
         arena_printf(arena, "%s, written at %s/s in %s", units_bytes(g->checkpoint_bytes, bytes),
                      units_bytes(g->used.storage_bytes_per_s, rate), span_text(g->write_s, arena)),
         arena);
    line(paper, "restart",
         arena_printf(arena, "%s, reading the checkpoint included", span_text(g->restart_s, arena)),
         arena);
}

static void interval_print(const Goodput *g, const Paper *paper, Arena *arena) {
    const GoodputInterval *best = &g->intervals[g->best];
    line(paper, "checkpoint",
         arena_printf(arena,
                      "every %lld steps, %s (Young %s, Daly %s): %.2f %% of the time is progress, "
                      "%.2f +- %.2f %% played",
                      (long long)best->num_steps, span_text(best->interval_s, arena),
                      span_text(g->young_s, arena), span_text(g->daly_s, arena),
                      100 * best->formula_frac, 100 * best->runs.goodput_frac,
                      100 * best->runs.goodput_error_frac),
         arena);
    line(paper, "the rest",
         arena_printf(arena, "%.2f %% writing, %.2f %% restarting, %.2f %% lost",
                      100 * g->daly.write_frac, 100 * g->daly.restart_frac,
                      100 * g->daly.lost_frac),
         arena);
}

static void spares_print(const Goodput *g, const Paper *paper, Arena *arena) {
    const char *text =
        arena_printf(arena, "%d worth the price, for %d nodes of which %.2g are under repair; ",
                     g->best_spares, g->num_nodes, g->load);
    if (g->used.num_spares > 0)
        text = arena_printf(arena, "%swith %d the job waits %.2f %% of the time, with none %.1f %%",
                            text, g->used.num_spares, 100 * (1 - g->available_frac),
                            100 * (1 - g->without_spares_frac));
    else
        text = arena_printf(arena, "%swith none the job waits %.2f %% of the time", text,
                            100 * (1 - g->without_spares_frac));
    line(paper, "spare nodes", text, arena);
}

static void whole_print(const Goodput *g, const Estimate *estimate, const Paper *paper,
                        Arena *arena) {
    char tokens[UNITS_SIZE], rate[UNITS_SIZE];
    fputc('\n', paper->stream);
    paper_wrap(paper, 0, STYLE_GOOD,
               arena_printf(arena,
                            "Goodput %.2f %%, %.2f +- %.2f %% over %d runs played: %s tokens take "
                            "%s instead of %s, with %.1f failures; %s tokens/s in the mean.",
                            100 * g->goodput_frac, 100 * g->whole.goodput_frac,
                            100 * g->whole.goodput_error_frac, g->whole.num_runs,
                            units_count(g->used.num_tokens, tokens),
                            span_text(g->whole.mean.wall_s, arena),
                            span_text(g->num_steps * g->step_time_s, arena),
                            (double)g->whole.mean.num_failures / g->whole.num_runs,
                            units_count(estimate->tokens_per_s * g->goodput_frac, rate)));
}

void report_goodput(const Scenario *scenario, const Plan *plan, const Estimate *estimate,
                    const Goodput *g, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    char step[UNITS_SIZE];
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(&arena, "%s: %s a step", plan_describe(plan, &arena),
                            units_seconds(estimate->step_time_s, step)));
    fputc('\n', stream);
    inputs_print(g, &paper, &arena);
    interval_print(g, &paper, &arena);
    spares_print(g, &paper, &arena);
    whole_print(g, estimate, &paper, &arena);
    arena_free(&arena);
}
