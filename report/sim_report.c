#include "report/sim_report.h"

#include "base/shown_text.h"

#include "report/path_report.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 16, MAX_LINKS = 8, MAX_DIFFERENCES = 8 };

// Between uneven links and groups of machines exchanges inside layers are no flows
// (sim/not_played.h): no link carries them, however much of the step they take.
static void print_uncounted(const Paper *paper, const SimComparison *c, Arena *arena) {
    static const double LEAST_FRAC = 0.005;
    const Cluster *cluster = &c->scenario->cluster;
    const double *term_s = c->estimate->term_s;
    const double inside_s = term_s[TERM_TP] + term_s[TERM_CP] + term_s[TERM_EP];
    if ((cluster->num_pools == 1 && !cluster->pools[0].wires) ||
        inside_s < LEAST_FRAC * c->estimate->step_time_s)
        return;
    paper_wrap(
        paper, 0, STYLE_PLAIN,
        arena_printf(arena,
                     "Not counted here: the exchanges of tp, cp and ep inside layers. Waiting "
                     "for them takes %.1f %% of the step; it is part of the computations.",
                     100 * inside_s / c->estimate->step_time_s));
}

static void print_links(const Paper *paper, const SimResult *result) {
    if (result->num_links == 0) return;
    paper_heading(paper, "Busiest links over the step");
    for (int i = 0; i < result->num_links && i < MAX_LINKS; i++)
        paper_bar(paper, result->links[i].name, "", result->links[i].utilization_frac, STYLE_PLAIN);
}

// Time of one class of work on one pipeline rank, in both timelines.
typedef struct {
    const char *name;
    double estimate_s, simulated_s;
} Difference;

static const char *class_name(const Program *program, const Instruction *in) {
    if (in->kind == INSTRUCTION_COLLECTIVE) return program->collectives[in->collective].name;
    return INSTRUCTION_NAMES[in->kind];
}

static int difference_compare(const void *a, const void *b) {
    const Difference *x = a, *y = b;
    double dx = fabs(x->simulated_s - x->estimate_s), dy = fabs(y->simulated_s - y->estimate_s);
    if (dx != dy) return dx < dy ? 1 : -1;
    return strcmp(x->name, y->name);
}

// Fills the classes of a rank's instructions, the largest difference first.
static int differences_of(const SimComparison *c, int rank, Difference *out, int max) {
    const RankProgram *program = &c->program->ranks[rank];
    int n = 0;
    for (int i = 0; i < program->num_instructions; i++) {
        const char *name = class_name(c->program, &program->instructions[i]);
        int at = 0;
        while (at < n && strcmp(out[at].name, name) != 0) at++;
        if (at == max) continue;
        if (at == n) out[n++] = (Difference){.name = name};
        out[at].estimate_s += c->timeline->end_s[rank][i] - c->timeline->start_s[rank][i];
        out[at].simulated_s += c->result->end_s[rank][i] - c->result->start_s[rank][i];
    }
    qsort(out, (size_t)n, sizeof *out, difference_compare);
    return n;
}

static void print_differences(const Paper *paper, const SimComparison *c) {
    static const double LEAST_FRAC = 0.001; // of the step
    static const TableColumn columns[] = {{"work", false, 0},
                                          {"simulated", true, 0},
                                          {"estimated", true, 0},
                                          {"difference", true, 0}};
    enum { MAX_CLASSES = 64 };
    Difference differences[MAX_CLASSES];
    int rank = c->timeline->slowest_rank;
    int n = differences_of(c, rank, differences, MAX_CLASSES), num_shown = 0;
    Arena arena = {0};
    Table table = table_new(&arena, columns, 4);
    for (int i = 0; i < n && num_shown < MAX_DIFFERENCES; i++) {
        double more_s = differences[i].simulated_s - differences[i].estimate_s;
        if (fabs(more_s) < LEAST_FRAC * c->result->step_time_s) break;
        char a[UNITS_SIZE], b[UNITS_SIZE], d[UNITS_SIZE];
        const char *cells[] = {differences[i].name, units_seconds(differences[i].simulated_s, a),
                               units_seconds(differences[i].estimate_s, b),
                               units_seconds(more_s, d)};
        table_add(&table, STYLE_PLAIN, cells, NULL);
        num_shown++;
    }
    paper_heading(paper, "Where simulation and estimate disagree, over the slowest rank's step");
    if (num_shown > 0)
        table_print(&table, paper);
    else
        fprintf(paper->stream, "  nowhere by more than 0.1 %% of the step\n");
    fputc('\n', paper->stream);
    arena_free(&arena);
}

// Where something is disturbed: over the repetitions, and by cause.
static void print_disturbed(const Paper *paper, const SimDisturbed *disturbed) {
    if (disturbed->num_repetitions == 0) return;
    char a[UNITS_SIZE], b[UNITS_SIZE];
    double undisturbed_s = disturbed->undisturbed_step_time_s;
    fprintf(paper->stream, "%-*s%s in the mean of %d repetition%s, %s at the 95th percentile\n",
            LABEL, "disturbed", units_seconds(disturbed->mean_step_time_s, a),
            disturbed->num_repetitions, disturbed->num_repetitions > 1 ? "s" : "",
            units_seconds(disturbed->p95_step_time_s, b));
    fprintf(paper->stream, "%-*s%s (mean %+.2f %%)\n", LABEL, "undisturbed",
            units_seconds(undisturbed_s, a),
            (disturbed->mean_step_time_s / undisturbed_s - 1) * 100);
    fprintf(paper->stream,
            "%-*sstragglers %+.2f %%, jitter %+.2f %%, network %+.2f %% of the undisturbed step\n",
            LABEL, "by cause", disturbed->stragglers_s / undisturbed_s * 100,
            disturbed->jitter_s / undisturbed_s * 100, disturbed->network_s / undisturbed_s * 100);
}

// A share of a step; what rounding makes is none.
static double percent_of(double part_s, double step_s) {
    return fabs(part_s) < 1e-9 * step_s ? 0 : part_s / step_s * 100;
}

// What the difference from the estimate is made of; it adds up.
static void print_effects(const Paper *paper, const SimResult *result) {
    const SimDifference *d = &result->difference;
    double estimate_s = result->estimate_step_time_s;
    fprintf(paper->stream,
            "%-*scontention %+.2f %%, spare bandwidth %+.2f %%, "
            "latency and overlap %+.2f %%",
            LABEL, "difference", percent_of(d->contention_s, estimate_s),
            percent_of(d->spare_bandwidth_s, estimate_s), percent_of(d->model_s, estimate_s));
    if (result->disturbed.num_repetitions > 0)
        fprintf(paper->stream, ", disturbances %+.2f %%",
                percent_of(d->stragglers_s + d->jitter_s + d->network_s, estimate_s));
    fprintf(paper->stream, " of the estimate\n");
}

// Transfers that were shorter by less than this are as granted.
static const double SPARE_FRAC = 5e-4;

static void print_outcome(const Paper *paper, const SimResult *result) {
    char a[UNITS_SIZE], b[UNITS_SIZE];
    double difference = result->step_time_s / result->estimate_step_time_s - 1;
    fprintf(paper->stream, "%-*s%s simulated, %s estimated (%+.2f %%)\n", LABEL, "step time",
            units_seconds(result->step_time_s, a), units_seconds(result->estimate_step_time_s, b),
            difference * 100);
    print_effects(paper, result);
    print_disturbed(paper, &result->disturbed);
    fprintf(paper->stream, "%-*s%" PRId64 " activities; folding %s: %s\n", LABEL, "simulated",
            result->num_activities, result->folding, result->folding_reason);
    if (result->num_links == 0)
        fprintf(paper->stream,
                "%-*snone: nothing of this plan's traffic crosses the simulated "
                "network (collectives inside\n%-*slayers and scale-up domains are part of the "
                "computations' prices)\n",
                LABEL, "contention", LABEL, "");
    else if (result->contended || result->flow_gained_frac > SPARE_FRAC)
        fprintf(paper->stream, "%-*stransfers took %.1f %% longer than granted, %.1f %% shorter\n",
                LABEL, "contention", result->flow_lost_frac * 100, result->flow_gained_frac * 100);
    else
        fprintf(paper->stream,
                "%-*snone: every transfer had the bandwidth that the estimate grants "
                "it\n",
                LABEL, "contention");
    fputc('\n', paper->stream);
}

static void print_unplayed(const Paper *paper, const SimResult *result) {
    for (int i = 0; i < result->num_not_played; i++)
        fprintf(paper->stream, "%-*s%s\n\n", LABEL, "not played", result->not_played[i]);
}

void report_simulation(const SimComparison *comparison, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    paper_wrap(&paper, 0, STYLE_BOLD, report_question(comparison->scenario, &arena));
    fprintf(stream, "%-*s%s\n", LABEL, "plan",
            shown_text(plan_describe(comparison->plan, &arena), &arena));
    print_outcome(&paper, comparison->result);
    print_unplayed(&paper, comparison->result);
    // The estimate knows nothing of disturbances: all that they touch would stand there.
    if (comparison->result->start_s && comparison->result->disturbed.num_repetitions == 0)
        print_differences(&paper, comparison);
    print_links(&paper, comparison->result);
    if (comparison->result->num_links > 0) {
        print_uncounted(&paper, comparison, &arena);
        fputc('\n', stream);
    }
    report_path(comparison->result, &paper);
    arena_free(&arena);
}
