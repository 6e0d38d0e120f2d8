#include "cli/run/work_times.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

// What an instruction counts as; NULL: as waiting.
static const char *class_of(const Program *program, const Instruction *i) {
    if (i->kind == INSTRUCTION_SEND || i->kind == INSTRUCTION_RECV) return NULL;
    if (i->kind == INSTRUCTION_COLLECTIVE) return program->collectives[i->collective].name;
    return INSTRUCTION_NAMES[i->kind];
}

static double *class_seconds(WorkTimes *times, const char *name) {
    for (int k = 0; k < MAX_WORK_CLASSES; k++) {
        if (!times->names[k]) times->names[k] = name;
        if (strcmp(times->names[k], name) == 0) return &times->seconds[k];
    }
    return &times->waiting_s;
}

static void row_add(const Program *program, int stage, double weight, const double *start_s,
                    const double *end_s, WorkTimes *out) {
    const RankProgram *rank = &program->ranks[stage];
    for (int i = 0; i < rank->num_instructions; i++) {
        const char *name = class_of(program, &rank->instructions[i]);
        if (name) *class_seconds(out, name) += weight * (end_s[i] - start_s[i]);
    }
}

Status work_times_of(const Program *program, const TraceTimeline *timeline, WorkTimes *out) {
    const double weight = 1.0 / timeline->num_rows;
    Arena scratch = {0};
    Status status = status_ok();
    *out = (WorkTimes){0};
    for (int r = 0; r < timeline->num_rows && status.code == STATUS_OK; r++) {
        const TraceRow *row = &timeline->rows[r];
        const int num = program->ranks[row->stage].num_instructions;
        double *start_s = ARENA_ARRAY(&scratch, num, double);
        double *end_s = ARENA_ARRAY(&scratch, num, double);
        status = timeline->read(timeline->context, row, start_s, end_s);
        if (status.code == STATUS_OK) row_add(program, row->stage, weight, start_s, end_s, out);
        arena_reset(&scratch);
    }
    arena_free(&scratch);
    out->waiting_s += timeline->step_time_s;
    for (int k = 0; k < MAX_WORK_CLASSES; k++) out->waiting_s -= out->seconds[k];
    return status;
}

WorkTimes work_times_median(const WorkTimes *times, int num) {
    Arena scratch = {0};
    double *list = ARENA_ARRAY(&scratch, num, double);
    WorkTimes out = times[0];
    for (int k = 0; k <= MAX_WORK_CLASSES; k++) {
        const bool waiting = k == MAX_WORK_CLASSES;
        for (int n = 0; n < num; n++) list[n] = waiting ? times[n].waiting_s : times[n].seconds[k];
        *(waiting ? &out.waiting_s : &out.seconds[k]) = gsl_stats_median(list, 1, (size_t)num);
    }
    arena_free(&scratch);
    return out;
}
