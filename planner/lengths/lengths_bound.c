#include "planner/lengths/lengths_bound.h"

#include <glpk.h>
#include <math.h>

// The simplex method alone: no branching, so the limits hold without a process of its own.
enum { MAX_PIVOTS = 200000, MAX_MILLISECONDS = 10000 };

// GLPK accepts solutions that break a row by 1e-7 of its size.
static const double TOLERANCE = 1e-6;

// Columns are numbered from 1: W, then the packs of each size, then the sequences of each bucket.
typedef struct {
    glp_prob *lp;
    int num_sizes;
    double scale_s; // W in the program is in units of this
    Arena *arena;
} Program;

static int pack_column(int size) {
    return 2 + size;
}

static int sequence_column(const Program *program, int bucket, int size) {
    return 2 + program->num_sizes * (bucket + 1) + size;
}

static int row_add(Program *program, int type, double bound, int length, const int *columns,
                   const double *values) {
    const int row = glp_add_rows(program->lp, 1);
    glp_set_row_bnds(program->lp, row, type, bound, bound);
    glp_set_mat_row(program->lp, row, length, columns, values);
    return row;
}

static void columns_add(Program *program, const LengthsProblem *p) {
    glp_add_cols(program->lp, 1 + p->num_sizes * (p->num_buckets + 1));
    glp_set_obj_dir(program->lp, GLP_MIN);
    glp_set_obj_coef(program->lp, 1, 1);
    for (int c = 1; c < 2 + p->num_sizes; c++) glp_set_col_bnds(program->lp, c, GLP_LO, 0, 0);
    for (int i = 0; i < p->num_buckets; i++)
        for (int d = 0; d < p->num_sizes; d++) {
            const bool fits = isfinite(p->sizes[d].sequence_s[i]);
            glp_set_col_bnds(program->lp, sequence_column(program, i, d), fits ? GLP_LO : GLP_FX, 0,
                             0);
        }
}

// Every sequence runs; no pack holds more than its memory.
static void rows_of_sequences(Program *program, const LengthsProblem *p, const int *counts) {
    const int longest = 1 + (p->num_sizes > p->num_buckets ? p->num_sizes : p->num_buckets);
    int *columns = ARENA_ARRAY(program->arena, longest + 1, int);
    double *values = ARENA_ARRAY(program->arena, longest + 1, double);
    for (int i = 0; i < p->num_buckets; i++) {
        for (int d = 0; d < p->num_sizes; d++) {
            columns[1 + d] = sequence_column(program, i, d);
            values[1 + d] = 1;
        }
        row_add(program, GLP_FX, counts[i], p->num_sizes, columns, values);
    }
    for (int d = 0; d < p->num_sizes; d++) {
        columns[1] = pack_column(d);
        values[1] = -1;
        for (int i = 0; i < p->num_buckets; i++) {
            columns[2 + i] = sequence_column(program, i, d);
            values[2 + i] = p->sizes[d].tokens[i] / p->sizes[d].capacity_tokens;
        }
        row_add(program, GLP_UP, 0, 1 + p->num_buckets, columns, values);
    }
}

// All places together have the work, and the floors, of all packs.
static void rows_of_time(Program *program, const LengthsProblem *p) {
    const int most = 1 + p->num_sizes * (p->num_buckets + 1);
    int *columns = ARENA_ARRAY(program->arena, most + 1, int), length = 1;
    double *values = ARENA_ARRAY(program->arena, most + 1, double);
    columns[1] = 1;
    values[1] = -1;
    for (int d = 0; d < p->num_sizes; d++) {
        const double unit = p->sizes[d].size / program->scale_s;
        columns[++length] = pack_column(d);
        values[length] = unit * p->sizes[d].floor_s;
    }
    row_add(program, GLP_UP, 0, length, columns, values);
    for (int d = 0; d < p->num_sizes; d++) {
        const LengthsSize *size = &p->sizes[d];
        const double unit = size->size / program->scale_s;
        values[pack_column(d)] = unit * size->fixed_s; // the second entry on, as above
        for (int i = 0; i < p->num_buckets; i++) {
            if (!isfinite(size->sequence_s[i])) continue;
            columns[++length] = sequence_column(program, i, d);
            values[length] = unit * size->sequence_s[i];
        }
    }
    row_add(program, GLP_UP, 0, length, columns, values);
}

// No sequence runs faster than alone on the group that suits it best. Also the unit of W.
static double longest_s(const LengthsProblem *p, const int *counts) {
    double longest = 0;
    for (int i = 0; i < p->num_buckets; i++) {
        double best_s = INFINITY;
        for (int d = 0; d < p->num_sizes; d++)
            best_s = fmin(best_s, lengths_alone_s(&p->sizes[d], i));
        if (counts[i] > 0) longest = fmax(longest, best_s);
    }
    return longest;
}

int lengths_fewest_rounds(const LengthsProblem *p, const int *counts) {
    double tokens = 0, place_tokens = 0;
    for (int i = 0; i < p->num_buckets; i++) tokens += (double)p->buckets[i].length * counts[i];
    for (int d = 0; d < p->num_sizes; d++)
        place_tokens = fmax(place_tokens, p->sizes[d].capacity_tokens / p->sizes[d].size);
    const double rounds = ceil(tokens / (place_tokens * p->num_places) * (1 - TOLERANCE));
    return rounds > 1 ? (int)fmin(rounds, 1e9) : 1;
}

// The round of the longest sequence, and the floors of the others.
static double rounds_bound_s(const LengthsProblem *p, const int *counts) {
    double floor_s = INFINITY;
    for (int d = 0; d < p->num_sizes; d++) floor_s = fmin(floor_s, p->sizes[d].floor_s);
    return longest_s(p, counts) + (lengths_fewest_rounds(p, counts) - 1) * floor_s;
}

LengthsBound lengths_bound(const LengthsProblem *p, const int *counts, Arena *arena) {
    LengthsBound out = {.step_time_s = rounds_bound_s(p, counts),
                        .packs = ARENA_ARRAY(arena, p->num_sizes, double)};
    if (out.step_time_s <= 0) return out;
    glp_term_out(GLP_OFF);
    Program program = {.lp = glp_create_prob(),
                       .num_sizes = p->num_sizes,
                       .scale_s = p->num_places * out.step_time_s,
                       .arena = arena};
    columns_add(&program, p);
    rows_of_sequences(&program, p, counts);
    rows_of_time(&program, p);
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.it_lim = MAX_PIVOTS;
    options.tm_lim = MAX_MILLISECONDS;
    const bool solved =
        glp_simplex(program.lp, &options) == 0 && glp_get_status(program.lp) == GLP_OPT;
    if (solved) {
        const double work_s = glp_get_obj_val(program.lp) * program.scale_s / p->num_places;
        out.step_time_s = fmax(out.step_time_s, work_s * (1 - TOLERANCE));
        for (int d = 0; d < p->num_sizes; d++)
            out.packs[d] = glp_get_col_prim(program.lp, pack_column(d));
    }
    glp_delete_prob(program.lp);
    double step_s = INFINITY;
    for (int d = 0; d < p->num_sizes; d++) step_s = fmin(step_s, p->sizes[d].step_s);
    out.step_time_s += step_s;
    return out;
}
