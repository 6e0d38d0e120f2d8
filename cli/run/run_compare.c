#include "cli/run/run_compare.h"

#include "base/json.h"
#include "base/shown_text.h"
#include "base/times_file.h"
#include "calibrate/run_log.h"
#include "cli/command.h"
#include "cli/run/work_times.h"
#include "cli/sim_timeline.h"
#include "costmodel/step/estimate.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// One run of the Program and what its GPUs do with the step.
typedef struct {
    bool known;
    TraceTimeline timeline;
    WorkTimes work;
} Source;

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    Estimate estimate; // with the routing that was counted, where the log has it
    Estimate planned;  // as the scenario has it
    Scenario routed;   // with the routing that was counted, and
    cJSON *document;   // what is simulated of it
    EstimateParts parts;
    RunLog log;
    TimesFile times;
    SimResult simulation;
    Source predicted, simulated, measured;
} Comparison;

// --- Measured times

typedef struct {
    const TimesFile *file;
    const Program *program;
    int64_t step;
} MeasuredStep;

static Status measured_read(const void *context, const TraceRow *row, double *start_s,
                            double *end_s) {
    const MeasuredStep *m = context;
    return times_file_read(m->file, m->step, program_gpu(m->program, row->stage, row->replica),
                           start_s, end_s);
}

static Status times_check(const TimesFile *file, const Program *program) {
    bool same = file->num_rows == program->num_ranks * program->multiplicity;
    for (int s = 0; same && s < program->num_ranks; s++)
        for (int k = 0; same && k < program->multiplicity; k++)
            same = file->counts[program_gpu(program, s, k)] == program->ranks[s].num_instructions;
    if (same && file->num_steps > RUN_LOG_WARM_UP) return status_ok();
    return status_error(STATUS_MACHINE, "meshwright: the runtime ran another program; are "
                                        "meshwright and meshwright-run of one version?");
}

// The last end of any of its instructions.
static Status step_end(const TraceTimeline *timeline, const Program *program, double *end_s) {
    Arena scratch = {0};
    Status status = status_ok();
    *end_s = 0;
    for (int r = 0; r < timeline->num_rows && status.code == STATUS_OK; r++) {
        const TraceRow *row = &timeline->rows[r];
        const int num = program->ranks[row->stage].num_instructions;
        double *start = ARENA_ARRAY(&scratch, num, double);
        double *end = ARENA_ARRAY(&scratch, num, double);
        status = timeline->read(timeline->context, row, start, end);
        for (int i = 0; i < num && status.code == STATUS_OK; i++) *end_s = fmax(*end_s, end[i]);
    }
    arena_free(&scratch);
    return status;
}

static const TraceRow *all_rows(const Program *program, Arena *arena, int *num_rows) {
    *num_rows = program->num_ranks * program->multiplicity;
    TraceRow *rows = ARENA_ARRAY(arena, *num_rows, TraceRow);
    for (int i = 0; i < *num_rows; i++)
        rows[i] =
            (TraceRow){.stage = i / program->multiplicity, .replica = i % program->multiplicity};
    return rows;
}

// The work is the median of all steps after the warm-up; the timeline is the step of them whose
// length is nearest to that of the log's median step.
static Status measured_collect(Comparison *c, Arena *arena) {
    const Program *program = &c->parts.program;
    TRY(times_check(&c->times, program));
    const int num_steps = (int)c->times.num_steps - RUN_LOG_WARM_UP;
    WorkTimes *work = ARENA_ARRAY(arena, num_steps, WorkTimes);
    double least_s = INFINITY;
    TraceTimeline step = {.name = "measured", .read = measured_read};
    step.rows = all_rows(program, arena, &step.num_rows);
    for (int n = 0; n < num_steps; n++) {
        MeasuredStep *m = ARENA_NEW(arena, MeasuredStep);
        *m = (MeasuredStep){&c->times, program, n + RUN_LOG_WARM_UP};
        step.context = m;
        TRY(step_end(&step, program, &step.step_time_s));
        TRY(work_times_of(program, &step, &work[n]));
        const double beside_s = fabs(step.step_time_s - c->log.step_s);
        if (beside_s < least_s) c->measured.timeline = step;
        least_s = fmin(least_s, beside_s);
    }
    c->measured.work = work_times_median(work, num_steps);
    c->measured.known = true;
    return status_ok();
}

// --- Predicted and simulated ones

static Status predicted_collect(Comparison *c, Arena *arena) {
    c->predicted.timeline =
        trace_estimate(&c->parts.program, &c->parts.prices, &c->parts.timeline, NULL, arena);
    c->predicted.known = true;
    return work_times_of(&c->parts.program, &c->predicted.timeline, &c->predicted.work);
}

// A plan that cannot be simulated here is compared all the same.
static Status simulated_collect(Comparison *c, Arena *arena) {
    const Program *program = &c->parts.program;
    int num_rows;
    const TraceRow *rows = all_rows(program, arena, &num_rows);
    const SimOptions options = {.keep = SIM_KEEP_ALL};
    cJSON *document = plan_document(c->scenario, c->plan, NULL);
    const Status status = sim_run(document, c->scenario->file, &options, arena, &c->simulation);
    cJSON_Delete(document);
    if (status.code != STATUS_OK) {
        shown_line(stderr, "%s: not simulated: %s", c->scenario->file, status.text);
        return status_ok();
    }
    TRY(sim_timeline_check(&c->simulation, program));
    c->simulated.timeline =
        sim_timeline(&c->simulation, program, c->parts.prices.step_s, NULL, arena);
    c->simulated.timeline.rows = rows;
    c->simulated.timeline.num_rows = num_rows;
    c->simulated.known = true;
    return work_times_of(program, &c->simulated.timeline, &c->simulated.work);
}

// Counted routing stands in for the scenario's: of time that of each layer's busiest rank, of
// memory that of the rank that is busiest over all layers.
static Status routing_take(Comparison *c, Arena *arena) {
    if (c->log.moe_imbalance <= 0) return status_ok();
    c->routed = *c->scenario;
    c->routed.training.moe_imbalance = c->log.moe_imbalance_of_rank;
    TRY(estimate_plan(&c->routed, c->plan, arena, &c->estimate, NULL));
    const RankMemory memory = c->estimate.memory;
    c->routed.training.moe_imbalance = c->log.moe_imbalance;
    TRY(estimate_plan(&c->routed, c->plan, arena, &c->estimate, &c->parts));
    c->estimate.memory = memory;
    c->routed.document = c->document = cJSON_Duplicate(c->scenario->document, true);
    cJSON *training = cJSON_GetObjectItemCaseSensitive(c->document, "training");
    cJSON_DeleteItemFromObjectCaseSensitive(training, "moe_routing");
    json_add_number(cJSON_AddObjectToObject(training, "moe_routing"), "imbalance",
                    c->log.moe_imbalance);
    c->scenario = &c->routed;
    return status_ok();
}

// --- The answer

// The seconds of a class of the measured work; k MAX_WORK_CLASSES: of waiting. NAN: not known.
static double seconds_of(const Comparison *c, const Source *source, int k) {
    if (!source->known) return NAN;
    if (k == MAX_WORK_CLASSES) return source->work.waiting_s;
    for (int i = 0; i < MAX_WORK_CLASSES && source->work.names[i]; i++)
        if (strcmp(source->work.names[i], c->measured.work.names[k]) == 0)
            return source->work.seconds[i];
    return 0;
}

static const char *seconds_text(double seconds, char *text) {
    return isnan(seconds) ? "-" : units_seconds(seconds, text);
}

static void work_print(const Comparison *c) {
    char texts[3][UNITS_SIZE];
    printf("\n%-24s %12s %12s %12s\n", "a GPU's step, mean", "predicted", "simulated", "measured");
    for (int k = 0; k <= MAX_WORK_CLASSES; k++) {
        const bool waiting = k == MAX_WORK_CLASSES;
        if (!waiting && !c->measured.work.names[k]) continue;
        printf("%-24s %12s %12s %12s\n",
               waiting ? "messages and waiting" : c->measured.work.names[k],
               seconds_text(seconds_of(c, &c->predicted, k), texts[0]),
               seconds_text(seconds_of(c, &c->simulated, k), texts[1]),
               seconds_text(seconds_of(c, &c->measured, k), texts[2]));
    }
    const double simulated_s = c->simulated.known ? c->simulation.step_time_s : NAN;
    printf("%-24s %12s %12s %12s\n", "step", units_seconds(c->estimate.step_time_s, texts[0]),
           seconds_text(simulated_s, texts[1]), units_seconds(c->log.step_s, texts[2]));
}

static void comparison_print(const Comparison *c) {
    const Estimate *e = &c->estimate;
    char low[UNITS_SIZE], high[UNITS_SIZE], text[UNITS_SIZE], measured[UNITS_SIZE];
    double step_s = c->log.step_s;
    bool inside = step_s >= e->step_time_low_s && step_s <= e->step_time_high_s;
    printf("\n%-10s %12s %12s  %s\n", "", "predicted", "measured", "measured over predicted");
    printf("%-10s %12s %12s  %.3f; %s the 80 %% interval, %s to %s\n", "step",
           units_seconds(e->step_time_s, text), units_seconds(step_s, measured),
           step_s / e->step_time_s, inside ? "inside" : "outside",
           units_seconds(e->step_time_low_s, low), units_seconds(e->step_time_high_s, high));
    double tokens = e->tokens_per_s * e->step_time_s;
    printf("%-10s %12s %12s\n", "tokens/s", units_count(e->tokens_per_s, text),
           units_count(tokens / step_s, measured));
    if (c->log.memory_peak_bytes > 0)
        printf("%-10s %12s %12s  %.3f\n", "memory", units_bytes(e->memory.peak_bytes, text),
               units_bytes(c->log.memory_peak_bytes, measured),
               c->log.memory_peak_bytes / e->memory.peak_bytes);
    printf("(median of %d steps, the first %d left out; spread %.1f %%)\n",
           c->log.num_lines - RUN_LOG_WARM_UP, RUN_LOG_WARM_UP, 100 * c->log.spread);
    const Cluster *cluster = &c->scenario->cluster;
    const long num_cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cluster->pools[0].gpu.core && cluster->num_gpus > num_cores)
        printf("(%d processes on %ld cores take turns, which no prediction knows of)\n",
               cluster->num_gpus, num_cores);
    if (c->log.moe_imbalance > 0)
        printf("(of a layer's tokens the busiest rank had %.3f times an even share, of all "
               "layers' %.3f times;\n with routing as planned %s and %s were predicted)\n",
               c->log.moe_imbalance, c->log.moe_imbalance_of_rank,
               units_seconds(c->planned.step_time_s, text),
               units_bytes(c->planned.memory.peak_bytes, measured));
    work_print(c);
}

static void work_json(const Comparison *c, const char *key, const Source *source, cJSON *parent) {
    if (!source->known) return;
    cJSON *work = cJSON_AddObjectToObject(parent, key);
    for (int k = 0; k < MAX_WORK_CLASSES && c->measured.work.names[k]; k++)
        json_add_number(work, c->measured.work.names[k], seconds_of(c, source, k));
    json_add_number(work, "waiting", source->work.waiting_s);
}

static Status comparison_print_json(const Comparison *c) {
    const Estimate *e = &c->estimate;
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddItemToObject(tree, "parallel", plan_to_json(c->plan));
    cJSON *predicted = cJSON_AddObjectToObject(tree, "predicted");
    json_add_number(predicted, "step_time_s", e->step_time_s);
    json_add_number(predicted, "step_time_low_s", e->step_time_low_s);
    json_add_number(predicted, "step_time_high_s", e->step_time_high_s);
    json_add_number(predicted, "memory_peak_bytes", e->memory.peak_bytes);
    work_json(c, "work_s", &c->predicted, predicted);
    if (c->log.moe_imbalance > 0) {
        cJSON *planned = cJSON_AddObjectToObject(tree, "planned");
        json_add_number(planned, "step_time_s", c->planned.step_time_s);
        json_add_number(planned, "memory_peak_bytes", c->planned.memory.peak_bytes);
        json_add_number(predicted, "moe_imbalance", c->log.moe_imbalance);
        json_add_number(predicted, "moe_imbalance_of_rank", c->log.moe_imbalance_of_rank);
    }
    if (c->simulated.known) {
        cJSON *simulated = cJSON_AddObjectToObject(tree, "simulated");
        json_add_number(simulated, "step_time_s", c->simulation.step_time_s);
        work_json(c, "work_s", &c->simulated, simulated);
    }
    cJSON *measured = cJSON_AddObjectToObject(tree, "measured");
    json_add_number(measured, "step_time_s", c->log.step_s);
    json_add_number(measured, "spread", c->log.spread);
    json_add_number(measured, "num_steps", c->log.num_lines);
    if (c->log.memory_peak_bytes > 0)
        json_add_number(measured, "memory_peak_bytes", c->log.memory_peak_bytes);
    work_json(c, "work_s", &c->measured, measured);
    return answer_json(tree);
}

static Status trace_write(const Comparison *c, const char *path) {
    TraceTimeline timelines[3];
    int num = 0;
    const Source *sources[] = {&c->predicted, &c->simulated, &c->measured};
    for (int i = 0; i < 3; i++)
        if (sources[i]->known) timelines[num++] = sources[i]->timeline;
    const TraceContext context = {.scenario = c->scenario,
                                  .plan = c->plan,
                                  .program = &c->parts.program,
                                  .workload = &c->parts.workload};
    return trace_save(path, &context, timelines, num);
}

static Status collect(Comparison *c, const RunCompare *compare, Arena *arena) {
    TRY(estimate_plan(c->scenario, c->plan, arena, &c->estimate, &c->parts));
    c->planned = c->estimate;
    TRY(run_log_load(compare->log, c->scenario, c->plan, arena, &c->log));
    TRY(routing_take(c, arena));
    TRY(times_file_open(compare->times, arena, &c->times));
    TRY(measured_collect(c, arena));
    TRY(predicted_collect(c, arena));
    return simulated_collect(c, arena);
}

Status run_compare(const RunCompare *compare, const Scenario *scenario, const Plan *plan,
                   Arena *arena) {
    Comparison c = {.scenario = scenario, .plan = plan};
    Status status = collect(&c, compare, arena);
    if (status.code == STATUS_OK && compare->trace) status = trace_write(&c, compare->trace);
    if (status.code == STATUS_OK && compare->json)
        status = comparison_print_json(&c);
    else if (status.code == STATUS_OK && compare->prints)
        comparison_print(&c);
    times_file_close(&c.times);
    cJSON_Delete(c.document);
    return status;
}
