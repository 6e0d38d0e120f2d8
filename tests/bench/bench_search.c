// bench_search - how fast plans are found. Prints the median of 5 runs and their range, after one
// to warm up:
//   configurations priced per second and core: everything that fits is priced, nothing is pruned
//   searches with their proof of optimality
#include "planner/planner.h"
#include "tests/bench/measure.h"

#include <string.h>

enum { NUM_RUNS = 5 };

typedef struct {
    const char *title;
    const char *model;
    const char *cluster;
    const char *training;
    const char *parallel;
} Job;

static const Job JOBS[] = {
    {"Llama-3.1-70B, 128 H100 (the demo)", "llama-3.1-70b", "dgx-h100:16",
     "{\"seq_len\": 8192, \"global_batch\": 1024, \"precision\": \"bf16\"}", "null"},
    {"Llama-3.1-405B, 16384 H100", "llama-3.1-405b", "dgx-h100:2048",
     "{\"seq_len\": 8192, \"global_batch\": 2048, \"precision\": \"bf16\"}", "null"},
    {"Mixtral-8x7B, 256 H100", "mixtral-8x7b", "dgx-h100:32",
     "{\"seq_len\": 4096, \"global_batch\": 1024, \"precision\": \"bf16\"}", "null"},
    {"DeepSeek-V3, 2048 H100", "deepseek-v3", "dgx-h100:256",
     "{\"seq_len\": 4096, \"global_batch\": 15360, \"precision\": \"bf16\"}", "null"},
    {"Llama-3.1-405B, 16 H100 (nothing fits)", "llama-3.1-405b", "dgx-h100:2",
     "{\"seq_len\": 8192, \"global_batch\": 128, \"precision\": \"bf16\"}", "null"},
};

// Every configuration of these is priced: one with a pipeline, one without.
static const Job EXHAUSTIVE[] = {
    {"Llama-3.1-8B, 64 H100, with pipelines", "llama-3.1-8b", "dgx-h100:8",
     "{\"seq_len\": 8192, \"global_batch\": 512, \"precision\": \"bf16\"}", "{\"micro_batch\": 1}"},
    {"Llama-3.1-8B, 64 H100, no pipeline", "llama-3.1-8b", "dgx-h100:8",
     "{\"seq_len\": 8192, \"global_batch\": 512, \"precision\": \"bf16\"}", "{\"pp\": 1}"},
};

static int fail(const Status *status) {
    fprintf(stderr, "bench_search: %s\n", status->text);
    return (int)status->code;
}

static Status job_open(const Job *job, Arena *arena, Scenario *out) {
    const char *text = arena_printf(arena,
                                    "{\"schema\": 1, \"model\": \"%s\", \"cluster\": \"%s\", "
                                    "\"training\": %s, \"parallel\": %s}",
                                    job->model, job->cluster, job->training, job->parallel);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_parse(text, strlen(text), job->title, arena, root));
    return scenario_read(root, arena, out);
}

// Runs a search NUM_RUNS + 1 times; *stats are those of the last.
static Status job_measure(const Job *job, const PlannerOptions *options, Spread *seconds,
                          SearchStats *stats) {
    double figures[NUM_RUNS];
    for (int run = -1; run < NUM_RUNS; run++) {
        Arena arena = {0};
        Scenario scenario;
        PlannerResult result;
        Status status = job_open(job, &arena, &scenario);
        if (status.code == STATUS_OK) status = planner_search(&scenario, options, &arena, &result);
        arena_free(&arena);
        TRY(status);
        *stats = result.stats;
        if (run >= 0) figures[run] = result.stats.wall_s;
    }
    *seconds = measure_spread(figures, NUM_RUNS);
    return status_ok();
}

int main(void) {
    measure_print_machine();
    printf("\nconfigurations priced per second and core (exhaustive, 1 thread)\n");
    for (size_t i = 0; i < sizeof EXHAUSTIVE / sizeof *EXHAUSTIVE; i++) {
        const PlannerOptions options = {.exhaustive = true, .num_threads = 1};
        Spread seconds;
        SearchStats stats;
        Status status = job_measure(&EXHAUSTIVE[i], &options, &seconds, &stats);
        if (status.code != STATUS_OK) return fail(&status);
        double priced = (double)stats.priced;
        printf("  %-40s %8.0f /s (%.0f - %.0f), %lld priced of %lld\n", EXHAUSTIVE[i].title,
               priced / seconds.median, priced / seconds.most, priced / seconds.least,
               (long long)stats.priced, (long long)stats.considered);
    }
    printf("\nsearches for the best 5, 2 threads\n");
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        const PlannerOptions options = {.num_threads = 2, .brief = true};
        Spread seconds;
        SearchStats stats;
        Status status = job_measure(&JOBS[i], &options, &seconds, &stats);
        if (status.code != STATUS_OK) return fail(&status);
        printf("  %-40s %7.3f s (%.3f - %.3f), %lld considered, %lld priced%s\n", JOBS[i].title,
               seconds.median, seconds.least, seconds.most, (long long)stats.considered,
               (long long)stats.priced, stats.optimal ? ", proven" : "");
    }
    return 0;
}
