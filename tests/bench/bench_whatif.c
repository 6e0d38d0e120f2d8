// bench_whatif - how fast grids of changes are answered, on all cores. Prints the median and the
// range of some runs, after one to warm up, of
//   100,000 points and their JSON          (aimed at: 15 s on two cores, 200 MB)
//   1,000 points with the plan kept        (aimed at: 5 s on two cores)
//   1,000 points planned anew              (aimed at: 6 s on two cores)
// and the seconds of all cores that they took, and the peak of memory of the first. It is of
// Llama-3.1-8B on 64 H100, the others of Llama-3.1-70B on 128.
#include "tests/bench/measure.h"
#include "whatif/whatif.h"

#include <sys/resource.h>

#define BATCHES "training.global_batch=512,640,768,896,1024,1152,1280,1408,1536,1664"

enum { MAX_RUNS = 5, NUM_AXES = 2, MAX_THREADS = 64 };

typedef struct {
    const char *title, *axes[NUM_AXES], *job;
    int num_runs;
    bool replan, written; // the document, to where nothing is kept
} Grid;

#define SMALL_JOB                                                                                  \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:8\", \"training\": "     \
    "{\"seq_len\": 8192, \"global_batch\": 128, \"precision\": \"bf16\"}, \"parallel\": {\"tp\": " \
    "2}}"
#define LARGE_JOB(parallel)                                                                        \
    "{\"schema\": 1, \"model\": \"llama-3.1-70b\", \"cluster\": \"dgx-h100:16\", \"training\": "   \
    "{\"seq_len\": 8192, \"global_batch\": 1024, \"precision\": \"bf16\"}, "                       \
    "\"parallel\": " parallel "}"
#define ONE_LAYER                                                                                  \
    "{\"tp\": 4, \"pp\": 4, \"micro_batch\": 1, \"recompute\": \"full\", \"recompute_layers\": 1}"

// The first is the largest: the process has no peak of memory but its.
static const Grid GRIDS[] = {
    {"100,000 points, their JSON",
     {"cluster.scale_out.nic_bytes_per_s=40e9..79.9e9:+1e8",
      "cluster.scale_out.oversubscription=1..2.245:+0.005"},
     SMALL_JOB,
     3,
     false,
     true},
    {"1,000 points, the plan kept",
     {"cluster.scale_out.nic_bytes_per_s=10e9..109e9:+1e9", BATCHES},
     LARGE_JOB(ONE_LAYER),
     5,
     false,
     false},
    {"1,000 points, planned anew",
     {"cluster.scale_out.nic_bytes_per_s=10e9..109e9:+1e9", BATCHES},
     LARGE_JOB("null"),
     3,
     true,
     false},
};

static double cores_now_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double peak_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024 * (double)usage.ru_maxrss;
}

static Status result_write(const WhatifResult *result) {
    FILE *stream = fopen("/dev/null", "w");
    cJSON *frame = whatif_to_frame(result);
    const JsonDocument document = whatif_document(result, frame);
    const Status status = json_document_write(&document, stream);
    cJSON_Delete(frame);
    fclose(stream);
    return status;
}

// One run of a grid: its seconds, and those of all cores.
static Status grid_run(const Grid *grid, double *wall_s, double *cores_s) {
    Arena arena = {0};
    const long num_cores = sysconf(_SC_NPROCESSORS_ONLN);
    WhatifOptions options = {.replan = grid->replan,
                             .num_threads = num_cores < MAX_THREADS ? (int)num_cores : MAX_THREADS};
    JsonNode root;
    Scenario scenario;
    WhatifAxis axes[NUM_AXES];
    WhatifResult result;
    TRY(json_parse(grid->job, strlen(grid->job), grid->title, &arena, &root));
    TRY(scenario_read(&root, &arena, &scenario));
    for (int i = 0; i < NUM_AXES; i++) TRY(whatif_parse_axis(grid->axes[i], &arena, &axes[i]));
    const double start_s = measure_now_s(), cores_before_s = cores_now_s();
    TRY(whatif_run(&scenario, axes, NUM_AXES, &options, &arena, &result));
    if (grid->written) TRY(result_write(&result));
    *wall_s = measure_now_s() - start_s;
    *cores_s = cores_now_s() - cores_before_s;
    arena_free(&arena);
    return status_ok();
}

static Status grid_measure(const Grid *grid) {
    double wall_s[MAX_RUNS], cores_s[MAX_RUNS];
    for (int r = -1; r < grid->num_runs; r++) // the first to warm up
        TRY(grid_run(grid, &wall_s[r < 0 ? 0 : r], &cores_s[r < 0 ? 0 : r]));
    const Spread wall = measure_spread(wall_s, grid->num_runs);
    const Spread cores = measure_spread(cores_s, grid->num_runs);
    printf("%-28s %6.2f s  (%.2f - %.2f), %.2f s of all cores", grid->title, wall.median,
           wall.least, wall.most, cores.median);
    if (grid->written) printf("; at most %.0f MB", 1e-6 * peak_bytes());
    printf("\n");
    return status_ok();
}

int main(void) {
    measure_print_machine();
    for (size_t i = 0; i < sizeof GRIDS / sizeof *GRIDS; i++) {
        const Status status = grid_measure(&GRIDS[i]);
        if (status.code == STATUS_OK) continue;
        fprintf(stderr, "bench_whatif: %s\n", status.text);
        return (int)status.code;
    }
    return 0;
}
