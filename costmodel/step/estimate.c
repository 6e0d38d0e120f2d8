#include "costmodel/step/estimate.h"

#include "costmodel/memory/memory_interval.h"
#include "costmodel/step/interval.h"
#include "costmodel/step/step_parts.h"
#include "workload/technique/technique.h"

#include <math.h>

// The mean GPU of a cluster: of those that run ranks, but for the price of all that are paid for.
typedef struct {
    double peak_flops_per_s; // dense
    double usd_per_hour;
    double watts, idle_watts;
} MeanGpu;

static MeanGpu gpu_of(const Pool *pool, int precision) {
    return (MeanGpu){
        .peak_flops_per_s = pool->gpu.peak_flops_per_s[precision],
        .usd_per_hour = pool->price_usd_per_gpu_hour,
        .watts = pool->power_watts_per_gpu,
        .idle_watts = fmin(pool->gpu.idle_power_watts, pool->power_watts_per_gpu),
    };
}

static MeanGpu mean_gpu(const Cluster *cluster, int precision) {
    MeanGpu mean = {0};
    for (int i = 0; i < cluster->num_pools; i++) {
        const Pool *pool = &cluster->pools[i];
        double share = (double)pool->num_gpus / cluster->num_gpus;
        double paid_share =
            (double)(pool->num_gpus + pool->idle_gpus) / cluster_total_gpus(cluster);
        const MeanGpu gpu = gpu_of(pool, precision);
        mean.peak_flops_per_s += share * gpu.peak_flops_per_s;
        mean.usd_per_hour += paid_share * gpu.usd_per_hour;
        mean.watts += share * gpu.watts;
        mean.idle_watts += share * gpu.idle_watts;
    }
    return mean;
}

// Power while computing is the board's limit, while waiting the idle power; of the mean GPU.
static double joules_per_token(const Cluster *cluster, const MeanGpu *gpu, const Timeline *timeline,
                               const Estimate *e) {
    double busy_frac = timeline->mean_working_s / e->step_time_s;
    double watts = gpu->idle_watts + (gpu->watts - gpu->idle_watts) * busy_frac;
    return watts * cluster->num_gpus / e->tokens_per_s;
}

double estimate_least_step_s(const Scenario *scenario) {
    const Cluster *cluster = &scenario->cluster;
    const MeanGpu gpu = mean_gpu(cluster, scenario->execution.precision);
    return workload_model_flops(scenario) / gpu.peak_flops_per_s / cluster->num_gpus;
}

static void rates_set(const Scenario *scenario, const Workload *workload, const Timeline *timeline,
                      Estimate *e) {
    const Cluster *cluster = &scenario->cluster;
    const Execution *execution = &scenario->execution;
    const TrainingJob *training = &scenario->training;
    double tokens = (double)training->seq_len * (double)training->global_batch;
    e->tokens_per_s = tokens / e->step_time_s;
    e->tokens_per_s_per_gpu = e->tokens_per_s / cluster->num_gpus;
    if (fine_tuning_freezes(&scenario->training.tuning))
        e->trained_parameters =
            fine_tuning_trained_parameters(&scenario->model, &scenario->training.tuning);
    e->model_flops_per_s_per_gpu = workload->model_flops / e->step_time_s / cluster->num_gpus;
    const MeanGpu gpu = mean_gpu(cluster, execution->precision);
    e->mfu_frac = e->model_flops_per_s_per_gpu / gpu.peak_flops_per_s;
    e->usd_per_1e9_tokens =
        gpu.usd_per_hour * cluster_total_gpus(cluster) / 3600 / e->tokens_per_s * 1e9;
    e->price_usd_per_gpu_hour = gpu.usd_per_hour;
    e->price_source =
        cluster->num_pools > 1 ? "the mean of the groups' prices" : cluster->pools[0].price_source;
    e->idle_gpus = cluster->idle_gpus;
    e->joules_per_token = joules_per_token(cluster, &gpu, timeline, e);
}

// The orders of plan/schedule/schedules.c never wait in a circle; a user's own is refused where it
// stands.
static Status circle_refuse(const Plan *plan, const Program *program, const Timeline *timeline,
                            Status status) {
    if (status.code == STATUS_OK || !plan->schedule_file) return status;
    const Instruction *message =
        &program->ranks[timeline->stuck_rank].instructions[timeline->stuck_at];
    const WorkItem item = {.kind = message->phase == PHASE_FORWARD ? WORK_FORWARD : WORK_BACKWARD,
                           .chunk = message->chunk,
                           .microbatch = message->microbatch};
    return schedule_file_refuse_circle(plan->schedule_file, plan, timeline->stuck_rank, &item);
}

Status estimate_plan(const Scenario *scenario, const Plan *plan, Arena *arena, Estimate *out,
                     EstimateParts *parts) {
    EstimateParts local;
    EstimateParts *p = parts ? parts : &local;
    p->workload = workload_build(scenario, plan, arena);
    p->program = program_build(scenario, plan, &p->workload, arena);
    p->prices = chunks_price(scenario, plan, &p->workload, arena);
    program_price(scenario, plan, &p->program, arena, &p->prices);
    const bool apart = !step_traits(&scenario->execution).begins_together;
    const Status ran = (apart ? timeline_run_steady : timeline_run)(
        &p->program, &p->prices, parts != NULL, arena, &p->timeline);
    TRY(circle_refuse(plan, &p->program, &p->timeline, ran));
    *out = (Estimate){.step_time_s = p->timeline.step_time_s};
    for (int t = 0; t < NUM_TERMS; t++) out->term_s[t] = p->timeline.term_s[t];
    out->memory = memory_worst_rank(scenario, plan, &p->workload, &out->memory_rank);
    out->memory_available_bytes = rank_memory_available_bytes(scenario, plan, out->memory_rank);
    memory_interval(&out->memory, out->memory_available_bytes, &out->memory_low_bytes,
                    &out->memory_high_bytes);
    out->fits_probability_frac = memory_fit_probability(&out->memory, out->memory_available_bytes);
    out->evidence = scenario->evidence;
    out->ingredients = plan_ingredients(plan);
    out->fits = out->memory.counted_bytes <= out->memory_available_bytes;
    rates_set(scenario, &p->workload, &p->timeline, out);
    step_parts(plan, &p->program, &p->prices, &p->timeline, out->part_s);
    out->known_variance =
        interval_known_variance(scenario, plan, &p->workload, out->part_s, out->step_time_s);
    interval_set(scenario->calibration, out->part_s, out->known_variance, out->step_time_s,
                 &out->step_time_low_s, &out->step_time_high_s);
    return status_ok();
}

RankMemory estimate_memory(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           double *missing_bytes) {
    int rank;
    RankMemory m = memory_worst_rank(scenario, plan, workload, &rank);
    *missing_bytes = fmax(0, m.counted_bytes - rank_memory_available_bytes(scenario, plan, rank));
    return m;
}

// The least that a rank of dual pipelines takes: it starts when the nearer end has got to it.
static double dual_bound_s(const Plan *plan, const Prices *prices, int rank, bool together) {
    double to_s[2] = {0}, work_s = 0, vocab_s = 0;
    for (int r = 0; r < rank; r++) to_s[0] += prices->forward[r].time_s + prices->message_s[r];
    for (int r = plan->pp - 1; r > rank; r--)
        to_s[1] += prices->forward[plan_rank_chunk(plan, r, 1)].time_s + prices->message_s[r - 1];
    for (int k = 0; k < plan->vpp; k++) {
        const int c = plan_rank_chunk(plan, rank, k);
        work_s += prices->forward[c].time_s +
                  fmin(prices->backward[c].time_s,
                       prices->backward_input[c].time_s + prices->backward_weight[c].time_s);
    }
    for (int c = plan->num_chunks; c < plan_all_chunks(plan); c++)
        vocab_s += prices->forward[c].time_s + prices->backward[c].time_s;
    work_s *= (double)plan_chunk_microbatches(plan);
    vocab_s *= (double)plan->num_microbatches;
    // Passes over a spread vocabulary may fill the time before the first micro-batch is there.
    return fmax(work_s + vocab_s, together ? fmin(to_s[0], to_s[1]) + work_s : 0);
}

// A rank cannot start before the first micro-batch has come through the ranks before it, nor end
// before its last gradient has gone back through them. Where backwards are split, only their input
// parts are on this way, and the rank may have weight parts left when the last of them is done; the
// first rank has at least that of the last gradient. Passes over a spread vocabulary may fill what
// is idle, but a rank has to run them all.
//
// Where ranks need not begin a step together, only a rank's own work is sure.
double estimate_lower_bound_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Prices *prices) {
    (void)workload;
    const bool together = step_traits(&scenario->execution).begins_together;
    const bool split = schedule_find(plan->schedule)->splits_backward;
    const Price *back = split ? prices->backward_input : prices->backward;
    const double num_microbatches = (double)plan->num_microbatches;
    double bound_s = 0, to_s = 0, from_s = 0, update_s = INFINITY;
    double vocab_s = 0;
    for (int c = plan->num_chunks; c < plan_all_chunks(plan); c++)
        vocab_s += prices->forward[c].time_s + prices->backward[c].time_s;
    for (int r = 0; r < plan->pp; r++) {
        update_s = fmin(update_s, prices->optimizer_s[r]);
        if (plan_is_dual(plan)) {
            bound_s = fmax(bound_s, dual_bound_s(plan, prices, r, together));
            continue;
        }
        double way_s = 0, weights_s = 0; // of a micro-batch
        for (int k = 0; k < plan->vpp; k++) {
            const int c = plan_rank_chunk(plan, r, k);
            way_s += prices->forward[c].time_s + back[c].time_s;
            if (split) weights_s += prices->backward_weight[c].time_s;
        }
        bound_s = fmax(bound_s, (way_s + weights_s + vocab_s) * num_microbatches);
        if (!together) continue;
        if (split) {
            double last_s = prices->backward_weight[0].time_s;
            bound_s = fmax(bound_s, to_s + (way_s + weights_s) * num_microbatches);
            bound_s = fmax(bound_s, to_s + way_s * num_microbatches + from_s + last_s);
        } else {
            bound_s = fmax(bound_s, to_s + way_s * num_microbatches + from_s);
        }
        to_s += prices->forward[r].time_s + prices->message_s[r];
        from_s += back[r].time_s + prices->message_s[r];
    }
    return bound_s + update_s + prices->step_s;
}

cJSON *memory_parts_to_json(const RankMemory *m) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "weights", m->weights_bytes);
    json_add_number(json, "gradients", m->gradients_bytes);
    json_add_number(json, "optimizer", m->optimizer_bytes);
    json_add_number(json, "activations", m->activations_bytes);
    json_add_number(json, "buffers", m->buffers_bytes);
    return json;
}

static void reasons_to_json(const Estimate *e, cJSON *json) {
    Arena scratch = {0};
    int num;
    const char *const *reasons = evidence_reasons(e->evidence, e->ingredients, &scratch, &num);
    cJSON_AddBoolToObject(json, "extrapolated", num > 0);
    if (num > 0)
        cJSON_AddItemToObject(json, "extrapolated_because", cJSON_CreateStringArray(reasons, num));
    arena_free(&scratch);
}

cJSON *estimate_to_json(const Estimate *e, const Plan *plan) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    json_add_number(json, "step_time_s", e->step_time_s);
    json_add_number(json, "step_time_low_s", e->step_time_low_s);
    json_add_number(json, "step_time_high_s", e->step_time_high_s);
    json_add_number(json, "tokens_per_s", e->tokens_per_s);
    json_add_number(json, "tokens_per_s_per_gpu", e->tokens_per_s_per_gpu);
    json_add_number(json, "model_flops_per_s_per_gpu", e->model_flops_per_s_per_gpu);
    json_add_number(json, "mfu_frac", e->mfu_frac);
    if (e->trained_parameters > 0)
        json_add_number(json, "trained_parameters", e->trained_parameters);
    json_add_number(json, "usd_per_1e9_tokens", e->usd_per_1e9_tokens);
    json_add_number(json, "price_usd_per_gpu_hour", e->price_usd_per_gpu_hour);
    if (e->price_source) cJSON_AddStringToObject(json, "price_source", e->price_source);
    json_add_number(json, "joules_per_token", e->joules_per_token);
    cJSON_AddItemToObject(json, "parallel", plan_to_json(plan));
    json_add_number(json, "idle_gpus", e->idle_gpus);
    json_add_number(json, "memory_peak_bytes", e->memory.peak_bytes);
    json_add_number(json, "memory_reserved_bytes", e->memory.reserved_bytes);
    json_add_number(json, "memory_device_bytes", e->memory.device_bytes);
    json_add_number(json, "memory_available_bytes", e->memory_available_bytes);
    json_add_number(json, "memory_low_bytes", e->memory_low_bytes);
    json_add_number(json, "memory_high_bytes", e->memory_high_bytes);
    json_add_number(json, "fits_probability_frac", e->fits_probability_frac);
    cJSON_AddBoolToObject(json, "fits", e->fits);
    reasons_to_json(e, json);
    cJSON_AddItemToObject(json, "memory_bytes", memory_parts_to_json(&e->memory));
    cJSON *terms = cJSON_AddObjectToObject(json, "breakdown_s");
    for (int t = 0; t < NUM_TERMS; t++) json_add_number(terms, TERM_NAMES[t], e->term_s[t]);
    cJSON *parts = cJSON_AddObjectToObject(json, "parts_s");
    for (int k = 0; k < NUM_PARTS; k++) json_add_number(parts, PART_NAMES[k], e->part_s[k]);
    return json;
}
