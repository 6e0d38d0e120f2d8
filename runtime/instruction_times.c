#include "runtime/instruction_times.h"

#include "backend/mpi_comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void event_at(InstructionTimes *times, int k) {
    Backend *b = times->backend;
    b->table->event_record(b, times->events[k], b->stream);
}

// Numbers of a process: a begin and an end of each instruction, and when its step began.
static size_t times_row(const InstructionTimes *t) {
    return 2 * (size_t)t->most + 1;
}

// CPUs of one machine have one clock, whatever time processes take to leave a step.
static Status clock_find(const World *world, bool *shared) {
    double num_here = 1;
    if (world->size > 1) TRY(world_machine_sum(world, &num_here));
    *shared = !world->cuda && (int)num_here == world->size;
    return status_ok();
}

Status instruction_times_create(const char *path, Backend *backend, const World *world,
                                const int *num_of, InstructionTimes *out) {
    InstructionTimes *t = out;
    *t = (InstructionTimes){.backend = backend, .num = num_of[world->rank]};
    for (int r = 0; r < world->size; r++)
        if (num_of[r] > t->most) t->most = num_of[r];
    const size_t num_events = 1 + 2 * (size_t)t->num, row = times_row(t);
    const bool first = world->rank == 0;
    t->events = calloc(num_events, sizeof *t->events);
    t->together = calloc((size_t)t->num, sizeof *t->together);
    t->pairs = calloc(row, sizeof *t->pairs);
    if (first) t->all = calloc((size_t)world->size * row, sizeof *t->all);
    if (!t->events || !t->together || !t->pairs || (first && !t->all))
        return status_error(STATUS_MACHINE, "no memory for times of instructions");
    for (size_t k = 0; k < num_events; k++)
        t->events[k] = backend->table->event_create(backend, true);
    TRY(backend->failure);
    TRY(clock_find(world, &t->one_clock));
    return first ? times_file_create(path, world->size, num_of, &t->file) : status_ok();
}

Status instruction_times_free(InstructionTimes *times) {
    Backend *b = times->backend;
    for (int k = 0; times->events && k <= 2 * times->num; k++)
        if (times->events[k]) b->table->event_free(b, times->events[k]);
    free(times->events);
    free(times->together);
    free(times->pairs);
    free(times->all);
    const Status closed = times_file_close(&times->file);
    *times = (InstructionTimes){0};
    return closed;
}

void instruction_times_step(InstructionTimes *times) {
    if (!times) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    times->pairs[times_row(times) - 1] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    event_at(times, 0);
}

void instruction_times_begin(InstructionTimes *times, int instruction) {
    if (times) event_at(times, 1 + 2 * instruction);
}

void instruction_times_end(InstructionTimes *times, int instruction, int num_together) {
    if (!times) return;
    event_at(times, 2 + 2 * instruction);
    times->together[instruction] = num_together;
}

// From the begin of the first process's step on.
static void times_shift(InstructionTimes *times, int num_processes) {
    const size_t row = times_row(times);
    double first_s = INFINITY;
    for (int r = 0; r < num_processes; r++)
        first_s = fmin(first_s, times->all[row * ((size_t)r + 1) - 1]);
    for (int r = 0; r < num_processes; r++) {
        double *all = times->all + row * (size_t)r;
        for (size_t k = 0; k + 1 < row; k++) all[k] += all[row - 1] - first_s;
    }
}

Status instruction_times_write(InstructionTimes *times, const World *world) {
    Backend *b = times->backend;
    for (int n = 0, num = 1; n < times->num; n += num) {
        double pair[2];
        num = times->together[n];
        for (int k = 0; k < 2; k++)
            pair[k] = b->table->event_interval_s(b, times->events[0], times->events[1 + 2 * n + k]);
        for (int k = n; k < n + num; k++) memcpy(&times->pairs[2 * k], pair, sizeof pair);
    }
    TRY(b->failure);
    if (world->size == 1) return times_file_add(&times->file, 0, times->pairs);
    const size_t row = times_row(times);
    TRY(mpi_gather(times->pairs, (int)row, times->all));
    if (world->rank == 0 && times->one_clock) times_shift(times, world->size);
    for (int r = 0; world->rank == 0 && r < world->size; r++)
        TRY(times_file_add(&times->file, r, times->all + row * (size_t)r));
    return status_ok();
}
