#include "calibrate/step_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const STEP_BY_NAMES[] = {"kind", "gpu", "tp", NULL};

// Up to so many experts are few: each then has products as large as a dense model's.
enum { FEW_EXPERTS = 16 };

typedef struct {
    int order; // among groups; of equal order by name
    const char *name;
    int row;
} Place;

static Place place_of(const StepRow *row, StepBy by, Arena *arena) {
    const int kind = row->num_experts == 0 ? 0 : row->num_experts <= FEW_EXPERTS ? 1 : 2;
    static const char *const KINDS[] = {"dense", "at most 16 experts", "more than 16 experts"};
    switch (by) {
    case STEP_BY_KIND:
        return (Place){kind, KINDS[kind], 0};
    case STEP_BY_GPU:
        return (Place){0, row->gpu, 0};
    default:
        return (Place){row->tp, arena_printf(arena, "tp %d", row->tp), 0};
    }
}

static int compare_places(const void *a, const void *b) {
    const Place *x = a, *y = b;
    if (x->order != y->order) return x->order - y->order;
    const int names = strcmp(x->name, y->name);
    return names ? names : x->row - y->row;
}

static void error_add(StepErrors *errors, double log_ratio, int num_rows) {
    const double error = exp(-log_ratio) - 1;
    errors->bias_frac += error / num_rows;
    errors->mean_frac += fabs(error) / num_rows;
}

static bool is_new_family(const StepFit *fit, const Place *places, int i) {
    const char *own = fit->rows.rows[places[i].row].published->family;
    for (int k = 0; k < i; k++)
        if (strcmp(fit->rows.rows[places[k].row].published->family, own) == 0) return false;
    return true;
}

static StepGroup group_of(const StepFit *fit, const Place *places, int num) {
    StepGroup group = {.name = places->name, .num_rows = num};
    for (int i = 0; i < num; i++) {
        const int row = places[i].row;
        error_add(&group.in_files, fit->in_files[row], num);
        error_add(&group.included, fit->rows.rows[row].log_ratio, num);
        error_add(&group.left_out, fit->left_out[row], num);
        group.num_families += is_new_family(fit, places, i);
    }
    return group;
}

int step_groups(const StepFit *fit, StepBy by, Arena *arena, const StepGroup **out) {
    const int num_rows = fit->rows.num_rows;
    Place *places = ARENA_ARRAY(arena, num_rows, Place);
    for (int i = 0; i < num_rows; i++) {
        places[i] = place_of(&fit->rows.rows[i], by, arena);
        places[i].row = i;
    }
    qsort(places, (size_t)num_rows, sizeof *places, compare_places);
    StepGroup *groups = ARENA_ARRAY(arena, num_rows / STEP_GROUP_LEAST_ROWS + 1, StepGroup);
    int num_groups = 0;
    for (int first = 0, num = 0; first < num_rows; first += num) {
        for (num = 1; first + num < num_rows; num++)
            if (strcmp(places[first + num].name, places[first].name) != 0) break;
        if (num >= STEP_GROUP_LEAST_ROWS) groups[num_groups++] = group_of(fit, &places[first], num);
    }
    *out = groups;
    return num_groups;
}
