#include "report/sim_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>

enum { LABEL = 16, MAX_LINKS = 8 };

static void print_links(const Paper *paper, const SimResult *result) {
    if (result->num_links == 0) return;
    paper_heading(paper, "Busiest links over the step");
    for (int i = 0; i < result->num_links && i < MAX_LINKS; i++)
        paper_bar(paper, result->links[i].name, "", result->links[i].utilization_frac, STYLE_PLAIN);
}

void report_simulation(const Scenario *scenario, const Plan *plan, const SimResult *result,
                       FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    char a[UNITS_SIZE], b[UNITS_SIZE];
    double difference = result->step_time_s / result->estimate_step_time_s - 1;
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(scenario, &arena));
    fprintf(stream, "%-*s%s\n", LABEL, "plan", plan_describe(plan, &arena));
    fprintf(stream, "%-*s%s simulated, %s estimated (%+.2f %%)\n", LABEL, "step time",
            units_seconds(result->step_time_s, a), units_seconds(result->estimate_step_time_s, b),
            difference * 100);
    fprintf(stream, "%-*s%" PRId64 " activities; folding %s: %s\n", LABEL, "simulated",
            result->num_activities, result->folding, result->folding_reason);
    if (result->contended)
        fprintf(stream, "%-*smessages took %.1f %% longer than granted, %.1f %% shorter\n", LABEL,
                "contention", result->flow_lost_frac * 100, result->flow_gained_frac * 100);
    else
        fprintf(stream, "%-*snone: every message had the bandwidth that the estimate grants it\n",
                LABEL, "contention");
    fputc('\n', stream);
    print_links(&paper, result);
    arena_free(&arena);
}
