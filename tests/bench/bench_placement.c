// bench_placement - how good placements are, and how fast they are found: planted optima, matrices
// whose links differ at random, and measured ones (arguments: CSV files of 16 nodes).
//   cpu    seconds of both threads together: what wall seconds are where nothing else runs
//   comm   the part of the step that the placement changes: seconds over those of endless links
//   /best  that over the planted placement's, or over a run of 8 times the moves with another seed
//   /bound that over the bound's
#include "planner/placement/placement.h"
#include "tests/bench/measure.h"
#include "tests/planner/placement_case.h"

enum { NUM_RUNS = 5, LONG_RUN = 8 };

typedef struct {
    const char *title;
    const char *model, *training, *parallel;
    int num_nodes, stage;
} Job;

static const Job JOBS[] = {
    {"16 nodes, tp 8 pp 4 dp 4", "llama-3.1-70b", "{\"seq_len\": 8192, \"global_batch\": 128}",
     "{\"tp\": 8, \"pp\": 4}", 16, 4},
    {"16 nodes, tp 8 dp 16", "llama-3.1-8b", "{\"seq_len\": 4096, \"global_batch\": 128}",
     "{\"tp\": 8}", 16, 16},
    {"256 nodes, tp 8 pp 16 dp 16", "llama-3.1-405b", "{\"seq_len\": 8192, \"global_batch\": 512}",
     "{\"tp\": 8, \"pp\": 16}", 256, 16},
    {"256 nodes, tp 8 pp 4 dp 64", "llama-3.1-70b", "{\"seq_len\": 8192, \"global_batch\": 512}",
     "{\"tp\": 8, \"pp\": 4}", 256, 64},
};
static const char *const KINDS[] = {"racks", "needle", "log-normal"};

typedef struct {
    PlacementOptions options;
    double seconds[NUM_RUNS], cpu_s[NUM_RUNS];
    PlacementResult result;
    double best_step_s; // of the planted placement, or of the long run
} Measured;

static Status job_open(const Job *job, const char *matrix, Arena *arena, Scenario *scenario,
                       Plan *plan) {
    const char *rate = matrix ? "\"nics_per_node\": 1, \"nic_bytes_per_s\": 2.5e10"
                              : "\"nics_per_node\": 8, \"nic_bytes_per_s\": 2.5e10";
    const char *text = arena_printf(
        arena,
        "{\"schema\": 1, \"model\": \"%s\", \"cluster\": {\"gpu\": \"h100-sxm-80g\", \"num_gpus\": "
        "%d, \"gpus_per_node\": 8, \"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": {%s}%s}, "
        "\"training\": %s, \"parallel\": %s}",
        job->model, 8 * job->num_nodes, rate,
        matrix ? arena_printf(arena, ", \"bandwidth_matrix\": \"%s\"", matrix) : "", job->training,
        job->parallel);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_parse(text, strlen(text), "job", arena, root));
    TRY(scenario_read(root, arena, scenario));
    return plan_resolve(scenario, arena, plan);
}

static Status planted_price(const Scenario *scenario, const Plan *plan, const int *planted,
                            Arena *arena, double *step_s) {
    const Scenario placed =
        placement_scenario(scenario, node_order_new(planted, scenario->cluster.num_nodes, arena));
    Estimate estimate;
    TRY(estimate_plan(&placed, plan, arena, &estimate, NULL));
    *step_s = estimate.step_time_s;
    return status_ok();
}

static Status searches_run(const Scenario *scenario, const Plan *plan, const int *planted,
                           Arena *arena, Measured *m) {
    for (int run = 0; run < NUM_RUNS; run++) {
        const double start_s = measure_now_s();
        const clock_t start = clock();
        TRY(placement_search(scenario, plan, &m->options, arena, &m->result));
        m->seconds[run] = measure_now_s() - start_s;
        m->cpu_s[run] = (double)(clock() - start) / CLOCKS_PER_SEC;
    }
    m->best_step_s = m->result.estimate.step_time_s;
    if (planted) return planted_price(scenario, plan, planted, arena, &m->best_step_s);
    PlacementOptions longer = m->options;
    longer.num_moves = LONG_RUN * (int64_t)12000 * scenario->cluster.num_nodes;
    longer.seed = 1;
    PlacementResult other;
    TRY(placement_search(scenario, plan, &longer, arena, &other));
    m->best_step_s = fmin(m->best_step_s, other.estimate.step_time_s);
    return status_ok();
}

static void measured_print(const Job *job, const char *kind, Measured *m) {
    const PlacementResult *r = &m->result;
    const double still_s = r->still_step_time_s, comm_s = r->estimate.step_time_s - still_s;
    const Spread s = measure_spread(m->seconds, NUM_RUNS), cpu = measure_spread(m->cpu_s, NUM_RUNS);
    printf("%-28s %-24s %6.2f s (%.2f-%.2f) cpu %5.2f s %9lld moves  step %8.4f s, own order "
           "%8.4f, bound "
           "%8.4f; comm %7.1f ms, /own %.3f, /best %.4f, /bound %.4f\n",
           job->title, kind, s.median, s.least, s.most, cpu.median, (long long)r->num_moves,
           r->estimate.step_time_s, r->default_step_time_s, r->bound_step_time_s, comm_s * 1e3,
           comm_s / (r->default_step_time_s - still_s), comm_s / (m->best_step_s - still_s),
           comm_s / (r->bound_step_time_s - still_s));
    fflush(stdout);
}

static Status job_measure(const Job *job, MatrixKind kind, uint64_t seed, const char *matrix,
                          MatrixCase *made) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    Measured m = {.options = {.num_threads = 2}};
    Status status = job_open(job, matrix, &arena, &scenario, &plan);
    if (status.code == STATUS_OK) {
        if (!matrix) matrix_case(made, kind, seed, job->stage, &scenario.cluster);
        const bool planted = !matrix && kind != MATRIX_LOG_NORMAL;
        status = searches_run(&scenario, &plan, planted ? made->planted : NULL, &arena, &m);
    }
    if (status.code == STATUS_OK) {
        const char *name = matrix && strrchr(matrix, '/') ? strrchr(matrix, '/') + 1 : matrix;
        measured_print(job, name ? name : arena_printf(&arena, "%s %d", KINDS[kind], (int)seed),
                       &m);
    }
    arena_free(&arena);
    return status;
}

static Status all_measure(int num_files, char **files, MatrixCase *made) {
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++)
        for (int kind = MATRIX_RACKS; kind <= MATRIX_LOG_NORMAL; kind++)
            for (uint64_t seed = 1; seed <= (JOBS[i].num_nodes > 16 ? 1 : 3); seed++)
                TRY(job_measure(&JOBS[i], (MatrixKind)kind, seed, NULL, made));
    for (int k = 0; k < num_files; k++)
        for (int i = 0; i < 2; i++) TRY(job_measure(&JOBS[i], MATRIX_RACKS, 0, files[k], made));
    return status_ok();
}

int main(int argc, char **argv) {
    measure_print_machine();
    MatrixCase *made = calloc(1, sizeof *made);
    if (!made) return STATUS_MACHINE;
    const Status status = all_measure(argc - 1, argv + 1, made);
    if (status.code != STATUS_OK) fprintf(stderr, "bench_placement: %s\n", status.text);
    free(made);
    return (int)status.code;
}
