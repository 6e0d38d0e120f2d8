// tests/bench/bench_timeline.c - nanoseconds per instruction to build a Program and to run its
// timeline. Prints median and range of nine runs after a warm-up, and names the machine.
#include "costmodel/step/timeline.h"
#include "tests/bench/measure.h"

enum { NUM_RUNS = 9, INSTRUCTIONS_PER_RUN = 2000000 };

static void runs_print(const char *what, double *run_s, double num_instructions) {
    Spread spread = measure_spread(run_s, NUM_RUNS);
    const double ns = 1e9 / num_instructions;
    printf("  %-8s %6.1f ns (%.1f to %.1f)", what, spread.median * ns, spread.least * ns,
           spread.most * ns);
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
        const double start_s = measure_now_s();
        for (int i = 0; i < repeats; i++) {
            arena_reset(&scratch);
            program_build(&scenario, &plan, &workload, &scratch);
        }
        const double built_s = measure_now_s();
        for (int i = 0; i < repeats; i++) {
            Timeline timeline;
            arena_reset(&scratch);
            must(timeline_run(&program, &prices, false, &scratch, &timeline));
        }
        if (run < 0) continue;
        build_s[run] = built_s - start_s;
        run_s[run] = measure_now_s() - built_s;
    }
    printf("%-52s %7d instructions", plan_describe(&plan, &inputs), num);
    runs_print("build", build_s, (double)num * repeats);
    runs_print("timeline", run_s, (double)num * repeats);
    printf("\n");
    arena_free(&scratch);
    arena_free(&inputs);
}

int main(void) {
    measure_print_machine();
    bench("{\"tp\": 8, \"pp\": 1}", 256);
    bench("{\"tp\": 8, \"pp\": 4}", 128);
    bench("{\"tp\": 8, \"pp\": 8}", 128);
    bench("{\"tp\": 8, \"pp\": 8, \"schedule\": \"gpipe\"}", 128);
    bench("{\"tp\": 8, \"pp\": 4, \"vpp\": 5}", 128);
    bench("{\"tp\": 2, \"pp\": 16}", 4096);
    return 0;
}
