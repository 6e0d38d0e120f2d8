// The integer program of a layer-wise problem.
#include "planner/layerwise/layerwise.h"

#include <math.h>

// Of seconds and bytes in the file: numbers near 1 suit the solvers' tolerances.
static const double PER_SECOND = 1e3, PER_BYTE = 1e-9;

typedef struct {
    const LayerwiseProblem *problem;
    FILE *stream;
    int num_terms; // of the row at hand
} Writer;

static void row_begin(Writer *w, const char *name, int i, int j) {
    fprintf(w->stream, " %s_%d_%d:", name, i, j);
    w->num_terms = 0;
}

// Lines of an LP file are short.
static void term_begin(Writer *w, double value) {
    if (w->num_terms++ % 6 == 5) fputs("\n  ", w->stream);
    fprintf(w->stream, " %c %.15g ", value < 0 ? '-' : '+', fabs(value));
}

static void x_add(Writer *w, double value, int layer, int s) {
    if (value == 0) return;
    term_begin(w, value);
    fprintf(w->stream, "x_%d_%d", layer, s);
}

static void y_add(Writer *w, double value, int layer, int from, int to) {
    if (value == 0) return;
    term_begin(w, value);
    fprintf(w->stream, "y_%d_%d_%d", layer, from, to);
}

static void z_add(Writer *w, double value, int level) {
    if (value == 0) return;
    term_begin(w, value);
    fprintf(w->stream, "z_%d", level);
}

static void row_end(Writer *w, const char *sense, double value) {
    if (w->num_terms == 0) fputs(" 0 z_0", w->stream);
    fprintf(w->stream, " %s %.15g\n", sense, value);
}

static bool is_open(const LayerwiseProblem *p, int layer, int s) {
    return isfinite(p->time_s[layer * p->num_strategies + s]);
}

// Terms of all strategies of a layer with these figures.
static void layer_add(Writer *w, int layer, const double *values, double scale) {
    const LayerwiseProblem *p = w->problem;
    for (int s = 0; s < p->num_strategies; s++)
        if (is_open(p, layer, s)) x_add(w, scale * values[layer * p->num_strategies + s], layer, s);
}

static void changes_add(Writer *w, const double *values, double scale) {
    const LayerwiseProblem *p = w->problem;
    for (int l = 0; l + 1 < p->num_layers; l++)
        for (int a = 0; a < p->num_layouts; a++)
            for (int b = 0; b < p->num_layouts; b++)
                y_add(w, scale * values[a * p->num_layouts + b], l, a, b);
}

static void objective_write(Writer *w) {
    const LayerwiseProblem *p = w->problem;
    fputs("Minimize\n", w->stream);
    fputs(" milliseconds:", w->stream);
    w->num_terms = 0;
    for (int l = 0; l < p->num_layers; l++) layer_add(w, l, p->time_s, PER_SECOND);
    changes_add(w, p->reshard_s, PER_SECOND);
    for (int k = 0; k < p->num_levels; k++) z_add(w, PER_SECOND * p->level_s[k], k);
    if (w->num_terms == 0) fputs(" 0 z_0", w->stream);
    fputs("\nSubject To\n", w->stream);
}

// One strategy a layer, one highest level, and no layer above it.
static void choices_write(Writer *w) {
    const LayerwiseProblem *p = w->problem;
    for (int l = 0; l < p->num_layers; l++) {
        row_begin(w, "one", l, 0);
        for (int s = 0; s < p->num_strategies; s++)
            if (is_open(p, l, s)) x_add(w, 1, l, s);
        row_end(w, "=", 1);
    }
    row_begin(w, "highest", 0, 0);
    for (int k = 0; k < p->num_levels; k++) z_add(w, 1, k);
    row_end(w, "=", 1);
    for (int l = 0; l < p->num_layers; l++) {
        for (int k = 1; k < p->num_levels; k++) {
            row_begin(w, "level", l, k);
            for (int s = 0; s < p->num_strategies; s++)
                if (is_open(p, l, s) && p->level[l * p->num_strategies + s] >= k) x_add(w, 1, l, s);
            for (int above = k; above < p->num_levels; above++) z_add(w, -1, above);
            row_end(w, "<=", 0);
        }
    }
}

// What leaves a layout is what the layer's strategies of that layout are; and what arrives.
static void flow_write(Writer *w, int layer) {
    const LayerwiseProblem *p = w->problem;
    for (int end = 0; end < 2; end++) {
        for (int c = 0; c < p->num_layouts; c++) {
            row_begin(w, end ? "arrives" : "leaves", layer, c);
            for (int other = 0; other < p->num_layouts; other++)
                y_add(w, 1, layer, end ? other : c, end ? c : other);
            for (int s = 0; s < p->num_strategies; s++)
                if (p->layout[s] == c && is_open(p, layer + end, s)) x_add(w, -1, layer + end, s);
            row_end(w, "=", 0);
        }
    }
}

static void memory_write(Writer *w, int peak_at) {
    const LayerwiseProblem *p = w->problem;
    row_begin(w, "gigabytes", peak_at, 0);
    for (int l = 0; l < p->num_layers; l++) {
        for (int s = 0; s < p->num_strategies; s++) {
            const int i = l * p->num_strategies + s;
            if (!is_open(p, l, s)) continue;
            double bytes = p->lasts_bytes[i];
            if (l < peak_at) bytes += p->saved_bytes[i];
            if (l == peak_at) bytes += p->peak_bytes[i];
            x_add(w, PER_BYTE * bytes, l, s);
        }
    }
    changes_add(w, p->reshard_bytes, PER_BYTE);
    for (int k = 0; k < p->num_levels; k++) z_add(w, PER_BYTE * p->level_bytes[k], k);
    row_end(w, "<=", PER_BYTE * p->limit_bytes);
}

static void binaries_write(Writer *w) {
    const LayerwiseProblem *p = w->problem;
    fputs("Binary\n", w->stream);
    for (int l = 0; l < p->num_layers; l++)
        for (int s = 0; s < p->num_strategies; s++)
            if (is_open(p, l, s)) fprintf(w->stream, " x_%d_%d\n", l, s);
    for (int k = 0; k < p->num_levels; k++) fprintf(w->stream, " z_%d\n", k);
    fputs("End\n", w->stream);
}

void layerwise_write_lp(const LayerwiseProblem *problem, const char *comment, FILE *stream) {
    Writer w = {.problem = problem, .stream = stream};
    if (comment) fputs(comment, stream);
    objective_write(&w);
    choices_write(&w);
    for (int l = 0; l + 1 < problem->num_layers; l++) flow_write(&w, l);
    for (int l = 0; l < problem->num_layers; l++) memory_write(&w, l);
    binaries_write(&w);
}
