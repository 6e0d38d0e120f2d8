// tests/bench/bench_timeline.c - nanoseconds per instruction to build a Program and to run its
// timeline. Prints median and range of nine runs after a warm-up, and names the machine.
#include "costmodel/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUM_RUNS = 9, INSTRUCTIONS_PER_RUN = 2000000 };

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void machine_print(void) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        printf("machine: %s", strchr(line, ':') + 2);
        break;
    }
    if (file) fclose(file);
}

static int double_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void runs_print(const char *what, double *run_s, double num_instructions) {
    qsort(run_s, NUM_RUNS, sizeof *run_s, double_compare);
    const double ns = 1e9 / num_instructions;
    printf("  %-8s %6.1f ns (%.1f to %.1f)", what, run_s[NUM_RUNS / 2] * ns, run_s[0] * ns,
           run_s[NUM_RUNS - 1] * ns);
}

static int total_instructions(const Program *program) {
    int num = 0;
    for (int r = 0; r < program->num_ranks; r++) num += program->ranks[r].num_instructions;
    return num;
}

// Exits where a scenario of this file is refused: that is our own mistake.
static void must(Status status) {
    if (status.code == STATUS_OK) return;
    fprintf(stderr, "bench_timeline: %s\n", status.text);
    exit(1);
}

static void bench(const char *parallel, int global_batch) {
    Arena inputs = {0}, scratch = {0};
    const char *text = arena_printf(
        &inputs,
        "{\"schema\": 1, \"model\": \"llama-3.1-70b\", \"cluster\": \"dgx-h100:16\", \"training\": "
        "{\"seq_len\": 4096, \"global_batch\": %d, \"precision\": \"bf16\"}, \"parallel\": %s}",
        global_batch, parallel);
    JsonNode root;
    Scenario scenario;
    Plan plan;
    must(json_parse(text, strlen(text), "bench", &inputs, &root));
    must(scenario_read(&root, &inputs, &scenario));
    must(plan_resolve(&scenario, &inputs, &plan));
    const Workload workload = workload_build(&scenario, &plan, &inputs);
    const Program program = program_build(&scenario, &plan, &workload, &inputs);
    Prices prices = chunks_price(&scenario, &plan, &workload, &inputs);
    program_price(&scenario, &plan, &program, &inputs, &prices);

    const int num = total_instructions(&program), repeats = INSTRUCTIONS_PER_RUN / num + 1;
    double build_s[NUM_RUNS], run_s[NUM_RUNS];
    for (int run = -1; run < NUM_RUNS; run++) { // the first warms up
        const double start_s = now_s();
        for (int i = 0; i < repeats; i++) {
            arena_reset(&scratch);
            program_build(&scenario, &plan, &workload, &scratch);
        }
        const double built_s = now_s();
        for (int i = 0; i < repeats; i++) {
            Timeline timeline;
            arena_reset(&scratch);
            must(timeline_run(&program, &prices, false, &scratch, &timeline));
        }
        if (run < 0) continue;
        build_s[run] = built_s - start_s;
        run_s[run] = now_s() - built_s;
    }
    printf("%-52s %7d instructions", plan_describe(&plan, &inputs), num);
    runs_print("build", build_s, (double)num * repeats);
    runs_print("timeline", run_s, (double)num * repeats);
    printf("\n");
    arena_free(&scratch);
    arena_free(&inputs);
}

int main(void) {
    machine_print();
    bench("{\"tp\": 8, \"pp\": 1}", 256);
    bench("{\"tp\": 8, \"pp\": 4}", 128);
    bench("{\"tp\": 8, \"pp\": 8}", 128);
    bench("{\"tp\": 8, \"pp\": 8, \"schedule\": \"gpipe\"}", 128);
    bench("{\"tp\": 8, \"pp\": 4, \"vpp\": 5}", 128);
    bench("{\"tp\": 2, \"pp\": 16}", 4096);
    return 0;
}
