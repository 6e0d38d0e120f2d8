// tests/bench/measure.h - what the benchmarks share: a clock, median and range, the machine's name.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    double median, least, most;
} Spread;

static inline double measure_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int measure_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the figures of num_runs > 0 runs.
static inline Spread measure_spread(double *figures, int num_runs) {
    qsort(figures, (size_t)num_runs, sizeof *figures, measure_compare);
    return (Spread){figures[num_runs / 2], figures[0], figures[num_runs - 1]};
}

static inline void measure_print_machine(void) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        printf("machine: %ld x%s", sysconf(_SC_NPROCESSORS_ONLN), strchr(line, ':') + 1);
        break;
    }
    if (file) fclose(file);
}
