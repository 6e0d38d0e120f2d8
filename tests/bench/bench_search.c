// bench_search - how fast plans are found. Prints the median of 5 runs and their range, after one
// to warm up:
//   searches with their proof of optimality, on one thread and on two
//   configurations priced per second of a core: all that fit, by their step times alone, in the
//   order of the space (neighbours share their blocks) and in that of their bounds (as the search
//   asks for them: they share little); beside it how many whole estimates there would be
#include "planner/planner.h"
#include "planner/search/pricing.h"
#include "tests/bench/measure.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>

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
    {"DeepSeek-V3, 2048 H800", "deepseek-v3", "hgx-h800:256",
     "{\"seq_len\": 4096, \"global_batch\": 15360, \"precision\": \"bf16\"}", "null"},
    // Bars of two cores: 2 s and 1 s.
    {"DeepSeek-V3 in fp8, 2048 H800", "deepseek-v3", "hgx-h800:256",
     "{\"seq_len\": 4096, \"global_batch\": 15360, \"precision\": \"fp8\"}", "null"},
    {"Llama-3.1-405B, 131072 H100", "llama-3.1-405b", "dgx-h100:16384",
     "{\"seq_len\": 8192, \"global_batch\": 16384, \"precision\": \"bf16\"}", "null"},
    {"Llama-3.1-405B, 16 H100 (nothing fits)", "llama-3.1-405b", "dgx-h100:2",
     "{\"seq_len\": 8192, \"global_batch\": 128, \"precision\": \"bf16\"}", "null"},
};

// All that fits of these is priced.
static const Job PRICED[] = {
    {"Llama-3.1-70B, 128 H100 (the demo)", "llama-3.1-70b", "dgx-h100:16",
     "{\"seq_len\": 8192, \"global_batch\": 1024, \"precision\": \"bf16\"}", "null"},
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

// --- Pricing

// What fits of a job, by the space's order.
typedef struct {
    Scenario scenario;
    Candidate *candidates; // [num_candidates]
    size_t num_candidates;
    int64_t considered;
} Fitting;

static Status fitting_find(const Job *job, Arena *arena, Fitting *out) {
    Space space;
    *out = (Fitting){.candidates = NULL};
    TRY(job_open(job, arena, &out->scenario));
    space_build(&out->scenario, arena, &space);
    const HarvestTask task = {.space = &space, .goal = HARVEST_BOUND, .value_limit = INFINITY};
    Harvest *harvests = ARENA_ARRAY(arena, space.num_splits, Harvest); // their chunks stay
    for (int i = 0; i < space.num_splits; i++) {
        harvest_split(&task, i, &harvests[i]);
        out->considered += harvests[i].considered;
        out->num_candidates += harvests[i].num_candidates;
    }
    Candidate *next = out->candidates = ARENA_ARRAY(arena, out->num_candidates, Candidate);
    for (int i = 0; i < space.num_splits; i++)
        for (size_t k = 0; k < harvests[i].num_candidates; k++) *next++ = harvests[i].candidates[k];
    return status_ok();
}

// Seconds of this thread's core: what else the machine runs does not count.
static double core_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Core seconds to price all by their step times.
static double step_times_s(const Fitting *fitting) {
    Pieces pieces = {.scenario = &fitting->scenario};
    Arena scratch = {0};
    const double start_s = core_now_s();
    for (size_t i = 0; i < fitting->num_candidates; i++) {
        Candidate candidate = fitting->candidates[i];
        candidate_raise(OBJECTIVE_THROUGHPUT, &candidate, &pieces, &scratch);
    }
    const double time_s = core_now_s() - start_s;
    pieces_free(&pieces);
    arena_free(&scratch);
    return time_s;
}

enum { ESTIMATE_EVERY = 100 }; // whole estimates are slow: a sample

static double estimates_per_s(const Fitting *fitting) {
    Arena scratch = {0};
    double num = 0;
    const double start_s = core_now_s();
    for (size_t i = 0; i < fitting->num_candidates; i += ESTIMATE_EVERY, num++) {
        Estimate estimate;
        arena_reset(&scratch);
        estimate_plan(&fitting->scenario, &fitting->candidates[i].plan, &scratch, &estimate, NULL);
    }
    const double per_s = num / (core_now_s() - start_s);
    arena_free(&scratch);
    return per_s;
}

static int compare_by_bound(const void *a, const void *b) {
    return candidate_compare(a, b);
}

static void rate_print(const char *what, const Fitting *fitting) {
    double figures[NUM_RUNS];
    for (int run = -1; run < NUM_RUNS; run++) {
        const double time_s = step_times_s(fitting);
        if (run >= 0) figures[run] = (double)fitting->num_candidates / time_s;
    }
    const Spread rate = measure_spread(figures, NUM_RUNS);
    printf("    %-36s %8.0f /s (%.0f - %.0f)\n", what, rate.median, rate.least, rate.most);
}

static Status pricing_measure(const Job *job) {
    Arena arena = {0};
    Fitting fitting;
    TRY(fitting_find(job, &arena, &fitting));
    printf("  %s: %zu that fit of %lld\n", job->title, fitting.num_candidates,
           (long long)fitting.considered);
    rate_print("step times, neighbours together", &fitting);
    printf("    %-36s %8.0f /s\n", "whole estimates, every 100th", estimates_per_s(&fitting));
    qsort(fitting.candidates, fitting.num_candidates, sizeof *fitting.candidates, compare_by_bound);
    rate_print("step times, by bound", &fitting);
    arena_free(&arena);
    return status_ok();
}

// --- Searches

typedef struct {
    Spread wall, core; // seconds; core: of all threads together
    SearchStats stats; // of the last run
} Measured;

static double cores_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Runs a search NUM_RUNS + 1 times.
static Status search_measure(const Job *job, int num_threads, Measured *out) {
    const PlannerOptions options = {.num_threads = num_threads, .brief = true};
    double wall_s[NUM_RUNS], core_s[NUM_RUNS];
    for (int run = -1; run < NUM_RUNS; run++) {
        Arena arena = {0};
        Scenario scenario;
        PlannerResult result;
        Status status = job_open(job, &arena, &scenario);
        const double start_s = cores_now_s();
        if (status.code == STATUS_OK) status = planner_search(&scenario, &options, &arena, &result);
        arena_free(&arena);
        TRY(status);
        out->stats = result.stats;
        if (run < 0) continue;
        wall_s[run] = result.stats.wall_s;
        core_s[run] = cores_now_s() - start_s;
    }
    out->wall = measure_spread(wall_s, NUM_RUNS);
    out->core = measure_spread(core_s, NUM_RUNS);
    return status_ok();
}

static Status search_print(const Job *job) {
    Measured one, two;
    TRY(search_measure(job, 1, &one));
    TRY(search_measure(job, 2, &two));
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("  %-40s %7.3f s (%.3f - %.3f), on one %.3f: x %.2f; core seconds %.3f: %.0f decided "
           "/s\n",
           job->title, two.wall.median, two.wall.least, two.wall.most, one.wall.median,
           one.wall.median / two.wall.median, one.core.median,
           (double)one.stats.considered / one.core.median);
    printf("    %lld considered, %lld priced%s; most memory so far %.0f MB\n",
           (long long)two.stats.considered, (long long)two.stats.priced,
           two.stats.optimal ? ", proven" : "", (double)usage.ru_maxrss / 1e3);
    return status_ok();
}

int main(void) {
    measure_print_machine();
    printf("\nsearches for the best 5, 2 threads\n");
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        const Status status = search_print(&JOBS[i]);
        if (status.code != STATUS_OK) return fail(&status);
    }
    printf("\nconfigurations priced per second of one core\n");
    for (size_t i = 0; i < sizeof PRICED / sizeof *PRICED; i++) {
        const Status status = pricing_measure(&PRICED[i]);
        if (status.code != STATUS_OK) return fail(&status);
    }
    return 0;
}
