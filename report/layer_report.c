#include "planner/space/space_text.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>

// "1.234 s (layer-wise), 5.6 % faster than one strategy throughout (1.300 s: tp 8 ...)".
static const char *gain_text(const LayerChoice *choice, Arena *arena) {
    char uniform[UNITS_SIZE];
    const char *plan = plan_describe(&choice->uniform, arena);
    if (choice->is_uniform)
        return arena_printf(arena, "one strategy throughout, of all schedules: %s", plan);
    if (isinf(choice->uniform_step_s))
        return "no one strategy throughout fits with this pp and micro-batch";
    const double gain = 1 - choice->estimate.step_time_s / choice->uniform_step_s;
    units_seconds(choice->uniform_step_s, uniform);
    if (gain <= 0) return arena_printf(arena, "one strategy throughout is best here: %s", plan);
    return arena_printf(arena, "%.1f %% less than the best single strategy: %s, %s", 100 * gain,
                        uniform, plan);
}

static const char *proof_text(const LayerChoice *choice, Arena *arena) {
    if (choice->is_uniform)
        return "no plan whose layers differ, of those that were looked at, is faster";
    const char *proof =
        choice->optimal
            ? arena_printf(arena, "proven best of %d strategies a layer for the costs as stated",
                           choice->num_strategies)
            : arena_printf(arena, "not proven: at most %.2f %% of a stage's time is left",
                           100 * choice->gap_frac);
    return arena_printf(arena,
                        "%s; priced by estimate, from which the sum of costs differs by "
                        "%+.2f %%",
                        proof, 100 * choice->cost_error_frac);
}

static void entry_print(const LayerChoice *choice, int rank, const Paper *paper, Arena *arena) {
    char step[UNITS_SIZE], memory[UNITS_SIZE];
    const double bytes = choice->estimate.memory.device_bytes;
    units_seconds(choice->estimate.step_time_s, step);
    units_bytes(bytes, memory);
    const Plan *base = &choice->base;
    const double sequences = (double)base->micro_batch * base->dp;
    const char *cp = base->cp == 1 ? "" : arena_printf(arena, " cp %d", base->cp);
    const char *experts =
        base->ep * base->etp == 1 ? "" : arena_printf(arena, " ep %d etp %d", base->ep, base->etp);
    paper_wrap(paper, 0, rank == 1 ? STYLE_GOOD : STYLE_PLAIN,
               arena_printf(arena,
                            "%d. pp %d%s, %.0f sequences a micro-batch (%lld of them): %s, "
                            "%s on the worst GPU",
                            rank, base->pp, experts, sequences, (long long)base->num_microbatches,
                            step, memory));
    paper_wrap(paper, 3, STYLE_PLAIN, gain_text(choice, arena));
    const int num_layers = plan_num_layers(base);
    for (int from = 0; from < num_layers;) {
        const char *text;
        from = layer_run_text(choice, num_layers, from, arena, &text);
        paper_wrap(paper, 3, STYLE_PLAIN, text);
    }
    paper_wrap(paper, 3, STYLE_PLAIN,
               arena_printf(arena,
                            "embedding, head and messages between stages: tp %d%s dp %d, "
                            "zero %d",
                            base->tp, cp, base->dp, base->zero_stage));
    paper_wrap(paper, 3, STYLE_PLAIN, proof_text(choice, arena));
}

static const char *uniform_text(const LayerResult *result, Arena *arena) {
    if (!result->has_uniform) return "No plan with one strategy throughout fits.";
    char step[UNITS_SIZE];
    units_seconds(result->uniform_estimate.step_time_s, step);
    return arena_printf(arena,
                        "The best plan with one strategy throughout, all schedules "
                        "searched: %s, %s.",
                        step, plan_describe(&result->uniform, arena));
}

void report_layers(const Scenario *scenario, const LayerResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    fputc('\n', stream);
    for (int i = 0; i < result->num_entries; i++)
        entry_print(&result->entries[i].choice, i + 1, &paper, &arena);
    if (result->num_entries == 0)
        paper_wrap(&paper, 0, STYLE_BAD,
                   "nothing fits with a strategy a layer and room for what the allocator caches");
    fputc('\n', stream);
    paper_wrap(&paper, 0, STYLE_PLAIN, uniform_text(result, &arena));
    paper_wrap(&paper, 0, STYLE_PLAIN,
               arena_printf(&arena,
                            "Looked at %d of %d combinations of pp, split, experts and "
                            "micro-batch%s.",
                            result->num_looked_at, result->num_combinations,
                            result->stopped_early
                                ? "; the budget ended before the rest"
                                : "; in the rest no strategy throughout, with free memory and even "
                                  "stages, is as fast"));
    paper_wrap(&paper, 0, STYLE_PLAIN, space_text_of_layers());
    arena_free(&arena);
}
