#include "calibrate/fit_segment.h"

#include <math.h>

enum { SAMPLE_ROWS = 800, SURFACE_ROUNDS = 5 };
static const double OUTLIER = 0.03;

static FitProblem problem_of(const Segment *segment, const double *weights) {
    return (FitProblem){
        .num_rows = segment->num_rows,
        .target = segment->log_latency,
        .weights = weights,
        .model = segment->model,
        .context = segment->context,
        .num_parameters = segment->num_parameters,
        .parameters = segment->parameters,
    };
}

double segment_start(const Segment *segment, double *values) {
    Arena scratch = {0};
    double *sample = ARENA_ARRAY(&scratch, segment->num_rows, double);
    int stride = segment->num_rows / SAMPLE_ROWS + 1;
    for (int i = 0; i < segment->num_rows; i += stride) sample[i] = 1;
    FitProblem sampled = problem_of(segment, sample), whole = problem_of(segment, NULL);
    fit_simplex(&sampled, values);
    fit_gradient(&whole, values);
    arena_free(&scratch);
    return fit_loss(&whole, values);
}

static void rows_fit(const Segment *segment, const double *weights, Arena *arena, double *values,
                     Surface *surface) {
    Arena scratch = {0};
    FitProblem problem = problem_of(segment, weights);
    fit_gradient(&problem, values);
    double *residual = ARENA_ARRAY(&scratch, segment->num_rows, double);
    for (int i = 0; i < segment->num_rows; i++)
        residual[i] = segment->log_latency[i] - segment->model(segment->context, i, values);
    SurfaceData data = {segment->num_rows, residual, weights, OUTLIER, SURFACE_ROUNDS};
    fit_surfaces(&segment->spec, &segment->places, 1, &data, arena, surface);
    arena_free(&scratch);
}

bool segment_fit(const Segment *segment, int fold, Arena *arena, double *values, Surface *surface) {
    Arena scratch = {0};
    double *weights = ARENA_ARRAY(&scratch, segment->num_rows, double);
    int num_kept = 0;
    for (int i = 0; i < segment->num_rows; i++) {
        weights[i] = segment->folds[i] != fold;
        num_kept += weights[i] > 0;
    }
    bool enough = num_kept >= SEGMENT_FEWEST_ROWS || fold < 0;
    if (enough) rows_fit(segment, weights, arena, values, surface);
    arena_free(&scratch);
    return enough;
}

SurfaceAxis surface_octaves(const char *name, int first, int last, Arena *arena) {
    double *knots = ARENA_ARRAY(arena, last - first + 1, double);
    for (int i = first; i <= last; i++) knots[i - first] = i;
    return (SurfaceAxis){name, last - first + 1, knots};
}
