// Estimate against simulation, over every bundled cluster x model x schedule x order of ranks:
// where nothing contends they agree within 1 %; and always the estimate and the simulator's
// activities, each as long as the estimate grants, do. Prints how many of each there were and the
// worst. Where GPUs of several stages share a NIC the bandwidth that some leave to others is taken
// off first.
//
// Usage: sim-grid [STRIDE]: every STRIDE-th job. Without it all with MESHWRIGHT_TEST_FULL in the
// environment, else a sample, of which MESHWRIGHT_TEST_SEED says where it begins and which has
// every cluster, model, schedule and order wherever it does; and a second of the clusters alone
// whose domains have no switch: links differ there, so the plan decides which ones a job gets. Each
// is played in a child of its own: SimGrid lives once in a process.
#include "base/data_dir.h"
#include "config/model/model_front.h"
#include "costmodel/network/message.h"
#include "sim/children.h"
#include "sim/run.h"
#include "tests/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Primes that divide none of the counts, so that a sample goes round each of them.
#ifdef MESHWRIGHT_SANITIZE
enum { SAMPLE_STRIDE = 211, WIRED_STRIDE = 67, FULL_STRIDE = 13 };
#else
enum { SAMPLE_STRIDE = 149, WIRED_STRIDE = 37, FULL_STRIDE = 1 };
#endif

static const double AGREED_FRAC = 0.01;

typedef struct {
    const char *cluster, *model, *schedule;
    int node_gpus;
    const char *precision;
    int tp, pp, dp, ep; // wished for; the plan may have less
    PlanOrder order;
} Job;

typedef struct {
    int tp, pp, dp; // 0: refused
    bool contended, shared_nics;
    double off_frac;   // simulated over estimated step, less 1
    double model_frac; // of the estimate: what the activities take longer, each as granted
    double spare_frac; // of the estimate: what is gained from bandwidth that others leave
    char refusal[256]; // the last one
} Result;

typedef struct {
    const char *const *clusters, *const *models;
    int num_clusters, num_models, first, stride, num_jobs;
    bool wired;        // of the clusters alone whose domains have no switch
    Cluster *machines; // [num_clusters] one node of each
    Result *results;   // [num_jobs]
} Grid;

// --- The jobs

// The schedule turns fastest, then the model. What is wished for goes round in other periods, so
// that each schedule meets each plan.
static Job job_at(const Grid *grid, int number) {
    int place = grid->first + number * grid->stride;
    int schedule = place % NUM_SCHEDULES, model = place / NUM_SCHEDULES % grid->num_models;
    int cluster = place / NUM_SCHEDULES / grid->num_models % grid->num_clusters;
    int order = place / NUM_SCHEDULES / grid->num_models / grid->num_clusters;
    int turn = schedule + 7 * model + 3 * cluster;
    const Cluster *machine = &grid->machines[cluster];
    return (Job){
        .cluster = grid->clusters[cluster],
        .model = grid->models[model],
        .schedule = SCHEDULE_NAMES[schedule],
        .node_gpus = machine->num_gpus,
        .precision = machine->pools[0].gpu.peak_flops_per_s[PRECISION_BF16] > 0 ? "bf16" : "fp16",
        .tp = 1 << turn % 4,
        .pp = 2 << turn / 4 % 3,
        .dp = order == ORDER_PP_DP ? 2 << turn / 12 % 2 : 1 << turn / 12 % 2,
        .ep = 1 << turn / 3 % 2,
        .order = (PlanOrder)order,
    };
}

// The dp from the one wished for on that fills nodes.
static int filling_dp(const Job *job, int tp, int pp) {
    int dp = job->dp;
    while (dp * tp * pp % job->node_gpus != 0) dp++;
    return dp;
}

// Experts of a stage that alternates with others have the ranks of attention (plan/plan_check.c).
static const char *experts_text(const Job *job, int tp, int ep, Arena *arena) {
    if (ep == 0) return "";
    const bool alike = job->order == ORDER_PP_DP && tp % ep == 0;
    if (alike) return arena_printf(arena, ", \"ep\": %d, \"etp\": %d", ep, tp / ep);
    return ep > 1 ? arena_printf(arena, ", \"ep\": %d", ep) : "";
}

// An image a sequence for a model with a tower.
static const char *images_text(const Job *job, Arena *arena) {
    Model model = {0};
    if (model_load_preset(job->model, arena, &model).code != STATUS_OK) return "";
    const bool tower = model.front && model.front->kind == FRONT_VISION;
    return tower ? ", \"images_per_sequence\": 1, \"image_size\": 896" : "";
}

static const char *job_text(const Job *job, int tp, int pp, int ep, Arena *arena) {
    int dp = filling_dp(job, tp, pp);
    // Chunks and their schedules are of pipelines.
    const char *schedule = pp > 1 ? job->schedule : SCHEDULE_NAMES[SCHEDULE_1F1B];
    const bool chunked =
        strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "breadth-first") == 0;
    return arena_printf(
        arena,
        "{\"schema\": 1, \"model\": \"%s\", \"cluster\": \"%s:%d\", \"training\": {\"seq_len\": "
        "1024, "
        "\"global_batch\": %d, \"precision\": \"%s\"%s}, \"parallel\": {\"tp\": %d, \"pp\": %d%s, "
        "\"schedule\": \"%s\", \"order\": \"%s\"%s}}",
        job->model, job->cluster, tp * pp * dp / job->node_gpus, 3 * pp * dp, job->precision,
        images_text(job, arena), tp, pp, chunked ? ", \"vpp\": 2" : "", schedule,
        PLAN_ORDER_NAMES[job->order], experts_text(job, tp, ep, arena));
}

// --- One job, in a child

static Status plan_play(const char *text, Result *out) {
    Arena arena = {0};
    JsonNode root;
    Run *run = ARENA_NEW(&arena, Run);
    RunOptions options = {.fold = FOLD_AUTO, .num_repetitions = 1};
    TRY(json_parse(text, strlen(text), "job", &arena, &root));
    TRY(run_play(&options, &root, &arena, run));
    double estimate_s = run->estimate.step_time_s;
    out->tp = run->plan.tp;
    out->pp = run->plan.pp;
    out->dp = run->plan.dp;
    out->contended = run->outcome.contended;
    out->shared_nics = stages_share_nics(&run->scenario.cluster, &run->plan);
    out->off_frac = run->outcome.step_time_s / estimate_s - 1;
    out->model_frac = run->difference.effect_s[EFFECT_MODEL] / estimate_s;
    out->spare_frac = run->difference.effect_s[EFFECT_SPARE_BANDWIDTH] / estimate_s;
    return status_ok();
}

// Takes smaller degrees where a model has too few heads, layers or experts, and no pipeline where
// it has an encoder; ep 0: it has no experts.
static Status job_play(void *context, int number) {
    const Grid *grid = context;
    Job job = job_at(grid, number);
    Result *result = &grid->results[number];
    Arena arena = {0};
    const int least_ep = job.order == ORDER_PP_DP ? 0 : 1;
    for (int ep = job.ep; ep >= least_ep; ep--) {
        for (int pp = job.pp; pp >= 1; pp /= 2) {
            for (int tp = job.tp; tp >= 1; tp /= 2) {
                Status status = plan_play(job_text(&job, tp, pp, ep, &arena), result);
                if (status.code != STATUS_INVALID) return status;
                snprintf(result->refusal, sizeof result->refusal, "%.255s", status.text);
            }
        }
    }
    return status_ok();
}

// --- The whole

static Status machine_read(const char *name, Arena *arena, Cluster *out) {
    const char *text = arena_printf(arena, "[\"%s:1\"]", name);
    JsonNode root;
    TRY(json_parse(text, strlen(text), "cluster", arena, &root));
    JsonNode cluster = json_at(&root, 0);
    return cluster_load(&cluster, arena, out);
}

static Status clusters_read(Grid *grid, Arena *arena) {
    const char *const *names;
    int num_names;
    TRY(data_list(arena, "hw-profiles/clusters", &names, &num_names));
    const char **clusters = ARENA_ARRAY(arena, num_names, const char *);
    grid->machines = ARENA_ARRAY(arena, num_names, Cluster);
    for (int i = 0; i < num_names; i++) {
        Cluster *machine = &grid->machines[grid->num_clusters];
        TRY(machine_read(names[i], arena, machine));
        if (!grid->wired || machine->pools[0].wires) clusters[grid->num_clusters++] = names[i];
    }
    grid->clusters = clusters;
    return status_ok();
}

static Status grid_run(Grid *grid, Arena *arena) {
    TRY(clusters_read(grid, arena));
    TRY(data_list(arena, "models", &grid->models, &grid->num_models));
    int num_all = grid->num_clusters * grid->num_models * NUM_SCHEDULES * NUM_PLAN_ORDERS;
    grid->num_jobs = (num_all - 1 - grid->first) / grid->stride + 1;
    void *results;
    TRY(shared_open((size_t)grid->num_jobs * sizeof *grid->results, &results));
    grid->results = results;
    return children_run(grid->num_jobs, job_play, grid);
}

// Of the estimate, what the simulated step is off, but for what the estimate does not know of.
static double job_off_frac(const Grid *grid, int number) {
    const Result *result = &grid->results[number];
    return fabs(result->off_frac - (result->shared_nics ? result->spare_frac : 0));
}

static bool job_agrees(const Grid *grid, int number) {
    const Result *result = &grid->results[number];
    if (result->tp == 0 || !(fabs(result->model_frac) < AGREED_FRAC)) return false;
    return result->contended || job_off_frac(grid, number) < AGREED_FRAC;
}

typedef enum { FREE_JOBS, CONTENDED_JOBS, REFUSED_JOBS, NUM_JOB_KINDS } JobKind;

static JobKind result_kind(const Result *result) {
    if (result->tp == 0) return REFUSED_JOBS;
    return result->contended ? CONTENDED_JOBS : FREE_JOBS;
}

static void job_print(const Grid *grid, int number) {
    Job job = job_at(grid, number);
    const Result *result = &grid->results[number];
    printf("    %s on %s, tp %d pp %d dp %d %s %s: %+.3g %% (as granted %+.3g %%) %s\n", job.model,
           job.cluster, result->tp, result->pp, result->dp, job.schedule,
           PLAN_ORDER_NAMES[job.order], 100 * result->off_frac, 100 * result->model_frac,
           result->tp == 0 ? result->refusal : "");
}

//   returns how many of this kind there are
static int kind_print(const Grid *grid, JobKind kind, const char *name) {
    int num = 0, worst = -1;
    for (int i = 0; i < grid->num_jobs; i++) {
        const Result *result = &grid->results[i];
        if (result_kind(result) != kind) continue;
        num++;
        if (worst < 0 || job_off_frac(grid, i) > job_off_frac(grid, worst)) worst = i;
    }
    printf("%6d %s%s\n", num, name, num > 0 && kind != REFUSED_JOBS ? "; the worst:" : "");
    if (num > 0) job_print(grid, worst);
    return num;
}

static void schedule_print(const Grid *grid, PlanOrder order, int schedule) {
    int num[NUM_JOB_KINDS] = {0};
    double worst = 0;
    for (int i = 0; i < grid->num_jobs; i++) {
        const Job job = job_at(grid, i);
        if (strcmp(job.schedule, SCHEDULE_NAMES[schedule]) != 0 || job.order != order) continue;
        const Result *result = &grid->results[i];
        num[result_kind(result)]++;
        if (result_kind(result) == FREE_JOBS) worst = fmax(worst, job_off_frac(grid, i));
    }
    printf("%-14s %5d uncontended, worst %.2g %%; %5d contended\n", SCHEDULE_NAMES[schedule],
           num[FREE_JOBS], 100 * worst, num[CONTENDED_JOBS]);
}

static void schedules_print(const Grid *grid) {
    for (int order = 0; order < NUM_PLAN_ORDERS; order++) {
        printf("%s\n", PLAN_ORDER_NAMES[order]);
        for (int schedule = 0; schedule < NUM_SCHEDULES; schedule++)
            schedule_print(grid, (PlanOrder)order, schedule);
    }
}

static double worst_as_granted(const Grid *grid) {
    double worst = 0;
    for (int i = 0; i < grid->num_jobs; i++) worst = fmax(worst, fabs(grid->results[i].model_frac));
    return worst;
}

// Prints the jobs that do not agree.
//   returns how many they are
static int failures_print(const Grid *grid) {
    int num_off = 0;
    for (int i = 0; i < grid->num_jobs; i++) {
        if (job_agrees(grid, i)) continue;
        if (num_off++ == 0) printf("These do not agree, or are refused:\n");
        job_print(grid, i);
    }
    return num_off;
}

//   returns whether all agree
static bool grid_print(const Grid *grid) {
    printf("%6d jobs: %d clusters%s x %d models x %d schedules x %d orders, 1 in %d\n",
           grid->num_jobs, grid->num_clusters, grid->wired ? " without a switch" : "",
           grid->num_models, NUM_SCHEDULES, NUM_PLAN_ORDERS, grid->stride);
    int num_free = kind_print(grid, FREE_JOBS, "uncontended");
    kind_print(grid, CONTENDED_JOBS, "contended");
    kind_print(grid, REFUSED_JOBS, "refused");
    printf("all of them as granted: worst %.2g %%\n", 100 * worst_as_granted(grid));
    schedules_print(grid);
    int num_off = failures_print(grid);
    // The grid must keep testing what it is for.
    bool enough = num_free > grid->num_jobs / (grid->wired ? 8 : 3);
    if (!enough) printf("Too few are uncontended.\n");
    fflush(stdout); // children of another grid would print it again
    return num_off == 0 && enough;
}

static Grid grid_sample(int stride, bool wired) {
    return (Grid){.first = (int)(sample_seed() % stride), .stride = stride, .wired = wired};
}

static bool grid_agrees(Grid grid) {
    Arena arena = {0};
    Status status = grid_run(&grid, &arena);
    if (status.code != STATUS_OK) fprintf(stderr, "sim-grid: %s\n", status.text);
    bool agrees = status.code == STATUS_OK && grid_print(&grid);
    arena_free(&arena);
    return agrees;
}

int main(int argc, char **argv) {
    int stride = argc > 1 ? atoi(argv[1]) : 0;
    if (stride < 1 && sample_is_full()) stride = FULL_STRIDE;
    if (stride >= 1) return !grid_agrees((Grid){.stride = stride});
    const bool agrees = grid_agrees(grid_sample(SAMPLE_STRIDE, false));
    return !(grid_agrees(grid_sample(WIRED_STRIDE, true)) && agrees);
}
