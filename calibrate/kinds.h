// calibrate/kinds.h - the kinds of measured kernels: one row each in kinds.c.
//
// A kind is a file KIND.csv[.gz] and a section KIND of a kernel profile (config/kernels/kernels.h).
// To add one: a reader of its section in config/, its formula in costmodel/kernel/kernel_KIND.h, a
// file calibrate/fit_*.c with the two functions below, and a row in kinds.c.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "calibrate/fit.h"
#include "calibrate/kernel_table.h"
#include "config/kernels/kernels.h" // cJSON comes with it
#include "config/machine/gpu.h"
#include "costmodel/kernel/kernel_edge.h"

// What a fit hands back.
typedef struct {
    cJSON *section;         // owned by the caller; as config/ reads it
    int num_groups;         // of shapes, left out as a whole in cross-validation
    FitScore left_out;      // predictions of rows whose group was left out of the fit
    FitScore all;           // of all rows with the final fit
    const double *fitted_s; // [num_rows], predictions of all rows with the final fit
    bool too_few;           // refused because of min_shapes alone
    int num_skipped;        // rows of formats that are not modelled (calibrate/known_formats.h)
    const char *skipped;    // what is said of them; NULL: there are none
} KindFit;

// The edges of one row's dimensions, by their columns.
typedef struct {
    int num_edges;
    const KernelEdge *edges; // [num_edges]
    double formula_s; // of a product: before it was made to rise, as estimate takes it; else 0
} RowEdges;

// A copy.
RowEdges row_edges(const KernelEdges *edges, Arena *arena);

typedef struct {
    const char *name;           // of the file and of the profile's section
    const char *backward;       // of a further file with its backward products; NULL: none
    const char *const *columns; // that a table must have beside latency_ms; ends with NULL
    int min_shapes;             // that differ in columns; fewer are refused
    // latency_s [num_rows] is checked already to be a time; the fit refuses what is beyond the
    // hardware (kernel_table_check_limits).
    Status (*fit)(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                  KindFit *out);
    // predicted_s [num_rows]; NAN where the row cannot be priced. edges [num_rows], zeroed: those
    // of the row's dimensions, by their columns, up to twice each; NULL: nobody asks.
    Status (*price)(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                    Arena *arena, double *predicted_s, RowEdges *edges);
} Kind;

extern const Kind KINDS[];
extern const int NUM_KINDS;

// The kind of a name, or NULL.
const Kind *kind_find(const char *name);

// Names of all kinds, ending with NULL.
const char *const *kind_names(Arena *arena);

// Loads a table and, where backward is not NULL, its backward products (calibrate/backward_rows.h);
// leaves out rows of formats that are not modelled; checks columns, latencies, number of shapes and
// that rows of one shape agree, fits, and checks that no row contradicts the fit.
Status kind_fit_file(const Kind *kind, const char *path, const char *backward, const Gpu *gpu,
                     Arena *arena, int *num_rows, KindFit *out);
