// Wall time of simulations, from starting the simulator's process to its answer: median and range
// of five runs after one to warm up, for the figures in docs/simulation.md. The last two jobs are
// a what-if of one repetition and of many.
#include "sim/sim.h"
#include "tests/bench/measure.h"

enum { NUM_RUNS = 5 };

typedef struct {
    const char *title;
    int num_nodes;    // dgx-h100
    int global_batch; // of sequences of 8,192 tokens
    const char *parallel;
    const char *fold;
    const char *disturb; // or NULL
    int num_repetitions;
} Job;

#define WHAT_IF "1,024 GPUs", 128, 1024, "\"tp\": 8, \"pp\": 8", "auto"
#define JITTER "{\"jitter_frac\": 0.05, \"seed\": 1}"

static const Job JOBS[] = {
    {"128 GPUs, interleaved", 16, 1024, "\"tp\": 8, \"pp\": 4, \"vpp\": 5", "full", NULL, 1},
    {"128 GPUs, interleaved", 16, 1024, "\"tp\": 8, \"pp\": 4, \"vpp\": 5", "tp", NULL, 1},
    {"128 GPUs, interleaved", 16, 1024, "\"tp\": 8, \"pp\": 4, \"vpp\": 5", "none", NULL, 1},
    {"1,024 GPUs", 128, 1024, "\"tp\": 8, \"pp\": 8", "full", NULL, 1},
    {"1,024 GPUs", 128, 1024, "\"tp\": 8, \"pp\": 8", "tp", NULL, 1},
    {"1,024 GPUs", 128, 1024, "\"tp\": 8, \"pp\": 8", "none", NULL, 1},
    {"2,048 GPUs without tp", 256, 2048, "\"tp\": 1, \"pp\": 8, \"vpp\": 5", "full", NULL, 1},
    {"2,048 GPUs without tp", 256, 2048, "\"tp\": 1, \"pp\": 8, \"vpp\": 5", "none", NULL, 1},
    {"16,384 GPUs", 2048, 16384, "\"tp\": 8, \"pp\": 8", "full", NULL, 1},
    {"16,384 GPUs", 2048, 16384, "\"tp\": 8, \"pp\": 8", "tp", NULL, 1},
    {"16,384 GPUs, 16 stages", 2048, 16384, "\"tp\": 8, \"pp\": 16", "full", NULL, 1},
    {"16,384 GPUs, 16 stages", 2048, 16384, "\"tp\": 8, \"pp\": 16", "tp", NULL, 1},
    {WHAT_IF, JITTER, 1},
    {WHAT_IF, JITTER, 40},
};

static cJSON *job_document(const Job *job, Arena *arena) {
    return cJSON_Parse(arena_printf(
        arena,
        "{\"schema\": 1, \"model\": \"llama-3.1-70b\", \"cluster\": \"dgx-h100:%d\", \"training\": "
        "{\"seq_len\": 8192, \"global_batch\": %d, \"precision\": \"bf16\"}, \"parallel\": {%s}, "
        "\"disturb\": [%s]}",
        job->num_nodes, job->global_batch, job->parallel, job->disturb ? job->disturb : ""));
}

static Status job_run(const Job *job) {
    Arena arena = {0};
    cJSON *document = job_document(job, &arena);
    SimOptions options = {.fold = job->fold, .num_repetitions = job->num_repetitions};
    SimResult result = {0};
    double wall_s[NUM_RUNS + 1];
    Status status = status_ok();
    for (int run = 0; run <= NUM_RUNS && status.code == STATUS_OK; run++) {
        status = sim_run(document, "bench", &options, &arena, &result);
        wall_s[run] = result.wall_s;
    }
    if (status.code == STATUS_OK) {
        Spread spread = measure_spread(wall_s + 1, NUM_RUNS);
        printf("%-24s fold %-4s %9lld activities  %.3f s (%.3f to %.3f)\n", job->title,
               result.folding, (long long)result.num_activities, spread.median, spread.least,
               spread.most);
        if (job->disturb) {
            printf("    with jitter, %d repetitions beside the undisturbed run: %.3f s each\n",
                   job->num_repetitions, spread.median / job->num_repetitions);
        }
    }
    cJSON_Delete(document);
    arena_free(&arena);
    return status;
}

// This program lies in a folder of its own beside the simulator.
static void find_simulator(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    if (length <= 0) return;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    memcpy(slash, "/../meshwright-sim", sizeof "/../meshwright-sim");
    setenv("MESHWRIGHT_SIM", path, 0);
}

int main(void) {
    find_simulator();
    measure_print_machine();
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        Status status = job_run(&JOBS[i]);
        if (status.code == STATUS_OK) continue;
        fprintf(stderr, "bench_sim: %s\n", status.text);
        return (int)status.code;
    }
    return 0;
}
