// Wall time of simulations, from starting the simulator's process to its answer: median and range
// of five runs after one to warm up; the mean of all six in processor seconds, which other work on
// the machine disturbs less; the simulator's peak memory; and the bars where there are any, for the
// figures in docs/simulation.md. Two jobs are a what-if of one repetition and of many; the last
// ones are of 100,000 GPUs and more.
//
// Usage: bench_sim [TEXT]: only jobs with TEXT in their title.
#include "sim/sim.h"
#include "tests/bench/measure.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { NUM_RUNS = 5 };

typedef struct {
    const char *title;
    int num_nodes;    // dgx-h100
    int global_batch; // of sequences of 8,192 tokens
    const char *parallel;
    const char *fold;
    const char *disturb; // or NULL
    int num_repetitions;
    double bar_s, bar_mb;  // per repetition, at most; 0: none
    const char *model;     // NULL: llama-3.1-70b
    const char *scale_out; // of the same nodes; NULL: of dgx-h100
} Job;

#define JITTER "{\"jitter_frac\": 0.05, \"seed\": 1}"

#define INTERLEAVED "128 GPUs, interleaved", 16, 1024, "\"tp\": 8, \"pp\": 4, \"vpp\": 5"
#define GPUS_1024 "1,024 GPUs", 128, 1024, "\"tp\": 8, \"pp\": 8"
#define WITHOUT_TP "2,048 GPUs without tp", 256, 2048, "\"tp\": 1, \"pp\": 8, \"vpp\": 5"
#define GPUS_4096 "4,096 GPUs", 512, 4096, "\"tp\": 8, \"pp\": 8"
#define GPUS_16384 "16,384 GPUs", 2048, 16384, "\"tp\": 8, \"pp\": 8"
#define STAGES_16 "16,384 GPUs, 16 stages", 2048, 16384, "\"tp\": 8, \"pp\": 16"

// Stages of 10,000 and 16,384 GPUs; the first fill no leaf switches.
#define LLAMA_100000                                                                               \
    "100,000 GPUs", 12500, 12500,                                                                  \
        "\"tp\": 8, \"cp\": 2, \"pp\": 10, \"vpp\": 4, \"micro_batch\": 1, \"zero_stage\": 1"
#define DEEPSEEK_100000                                                                            \
    "100,000 GPUs, DeepSeek-V3", 12500, 100000,                                                    \
        "\"tp\": 2, \"pp\": 10, \"vpp\": 3, \"ep\": 8, \"micro_batch\": 1, \"zero_stage\": 1, "    \
        "\"recompute\": \"full\""
#define LLAMA_131072                                                                               \
    "131,072 GPUs", 16384, 16384,                                                                  \
        "\"tp\": 8, \"cp\": 2, \"pp\": 8, \"vpp\": 16, \"micro_batch\": 1, \"zero_stage\": 1, "    \
        "\"zero_group\": 64"
#define SHORT_RAILS "\"topology\": \"rail-fat-tree\", \"oversubscription\": 2"
#define SHORT_TREE "\"topology\": \"fat-tree\", \"oversubscription\": 4"

static const Job JOBS[] = {
    {INTERLEAVED, "full", NULL, 1, 0, 0, NULL, NULL},
    {INTERLEAVED, "tp", NULL, 1, 0, 0, NULL, NULL},
    {INTERLEAVED, "none", NULL, 1, 0, 0, NULL, NULL},
    {GPUS_1024, "full", NULL, 1, 0, 0, NULL, NULL},
    {GPUS_1024, "tp", NULL, 1, 0.1, 45, NULL, NULL},
    {GPUS_1024, "none", NULL, 1, 0.8, 80, NULL, NULL},
    {WITHOUT_TP, "full", NULL, 1, 0, 0, NULL, NULL},
    {WITHOUT_TP, "none", NULL, 1, 0, 0, NULL, NULL},
    {GPUS_4096, "none", NULL, 1, 9, 200, NULL, NULL},
    {GPUS_16384, "full", NULL, 1, 0.8, 110, NULL, NULL},
    {GPUS_16384, "tp", NULL, 1, 3, 160, NULL, NULL},
    {STAGES_16, "full", NULL, 1, 0, 0, NULL, NULL},
    {STAGES_16, "tp", NULL, 1, 0, 0, NULL, NULL},
    {GPUS_1024, "tp", JITTER, 1, 0.1, 0, NULL, NULL},
    {GPUS_1024, "tp", JITTER, 40, 0.05, 0, NULL, NULL},
    {LLAMA_100000, "auto", NULL, 1, 20, 0, "llama-3.1-405b", NULL},
    {LLAMA_100000, "auto", NULL, 1, 20, 0, "llama-3.1-405b", SHORT_RAILS},
    {LLAMA_100000, "auto", NULL, 1, 20, 0, "llama-3.1-405b", SHORT_TREE},
    {DEEPSEEK_100000, "auto", NULL, 1, 20, 0, "deepseek-v3", NULL},
    {DEEPSEEK_100000, "auto", NULL, 1, 20, 0, "deepseek-v3", SHORT_RAILS},
    {LLAMA_131072, "auto", NULL, 1, 20, 0, "llama-3.1-405b", NULL},
    {LLAMA_131072, "auto", NULL, 1, 20, 0, "llama-3.1-405b", SHORT_RAILS},
};

static const char *job_cluster(const Job *job, Arena *arena) {
    if (!job->scale_out) return arena_printf(arena, "\"dgx-h100:%d\"", job->num_nodes);
    return arena_printf(arena,
                        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": 8, "
                        "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": "
                        "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10, %s}}",
                        8 * job->num_nodes, job->scale_out);
}

static cJSON *job_document(const Job *job, Arena *arena) {
    return cJSON_Parse(arena_printf(
        arena,
        "{\"schema\": 1, \"model\": \"%s\", \"cluster\": %s, \"training\": "
        "{\"seq_len\": 8192, \"global_batch\": %d, \"precision\": \"bf16\"}, \"parallel\": {%s}, "
        "\"disturb\": [%s]}",
        job->model ? job->model : "llama-3.1-70b", job_cluster(job, arena), job->global_batch,
        job->parallel, job->disturb ? job->disturb : ""));
}

static double cpu_s(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static void bar_print(const char *what, double figure, double bar) {
    if (bar > 0) printf("    %s: bar %g, %s\n", what, bar, figure <= bar ? "held" : "missed");
}

static void job_print(const Job *job, const SimResult *result, const Spread *wall_s) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    double peak_mb = (double)usage.ru_maxrss * 1024 / 1e6;
    printf("%-24s fold %-4s %9lld activities  %.3f s (%.3f to %.3f), processor %.3f s  %.0f MB\n",
           job->title, result->folding, (long long)result->num_activities, wall_s->median,
           wall_s->least, wall_s->most, cpu_s(&usage) / (NUM_RUNS + 1), peak_mb);
    double each_s = wall_s->median / job->num_repetitions;
    if (job->scale_out) printf("    with {%s}\n", job->scale_out);
    if (job->disturb) {
        printf("    with jitter, %d repetitions beside the undisturbed run: %.3f s each\n",
               job->num_repetitions, each_s);
    }
    bar_print("seconds", each_s, job->bar_s);
    bar_print("MB", peak_mb, job->bar_mb);
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
        job_print(job, &result, &spread);
    }
    cJSON_Delete(document);
    arena_free(&arena);
    return status;
}

// In a child, whose own children are this job's: the system tells the peak of the largest.
static int job_measure(const Job *job) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        Status status = job_run(job);
        if (status.code != STATUS_OK) fprintf(stderr, "bench_sim: %s\n", status.text);
        exit((int)status.code);
    }
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) < 0 || !WIFEXITED(state)) return STATUS_MACHINE;
    return WEXITSTATUS(state);
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

int main(int argc, char **argv) {
    find_simulator();
    measure_print_machine();
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        if (argc > 1 && !strstr(JOBS[i].title, argv[1])) continue;
        int code = job_measure(&JOBS[i]);
        if (code != 0) return code;
    }
    return 0;
}
