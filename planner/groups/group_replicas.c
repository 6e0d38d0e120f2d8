#include "planner/groups/group_replicas.h"

#include "base/deadline.h"
#include "config/cluster/cluster_groups.h"
#include "config/machine/sites.h"
#include "planner/groups/batch_split.h"
#include "workload/pass/bytes.h"

#include <math.h>

enum { MOST_PIECES = 64, FEWEST_PIECES = 16, NUM_SEARCHES = 16 };

Scenario groups_alone(const Scenario *scenario, const int *order, int num_groups, Arena *arena) {
    Scenario alone = *scenario;
    alone.cluster = cluster_with_pools(&scenario->cluster, order, num_groups, arena);
    ParallelSpec *spec = &alone.parallel;
    spec->dp = spec->zero_group = ABSENT;
    spec->num_placement = spec->num_stages = 0;
    spec->stages = NULL;
    return alone;
}

// --- The exchange

static double nics_bytes_per_s(const Pool *pool) {
    return (double)pool->num_nodes * pool->nics_per_node * pool->nic_bytes_per_s *
           pool->scale_out.efficiency_frac;
}

double replicas_exchange_s(const Scenario *scenario) {
    const Cluster *cluster = &scenario->cluster;
    const int num_groups = cluster->num_pools;
    const Model *model = &scenario->model;
    const double bytes = (model_num_parameters(model) + model_mtp_parameters(model)) *
                         reduced_gradient_bytes(&scenario->execution);
    const double to_each_bytes = 2 * bytes / num_groups;
    double most_s = 0;
    for (int a = 0; a < num_groups; a++) {
        const double out_s =
            to_each_bytes * (num_groups - 1) / nics_bytes_per_s(&cluster->pools[a]);
        most_s = fmax(most_s, out_s);
        for (int b = 0; b < num_groups; b++)
            if (a != b)
                most_s =
                    fmax(most_s, to_each_bytes / sites_bytes_per_s(cluster->network.sites, a, b));
    }
    return most_s + 2 * (cluster->pools[0].scale_out.latency_s + cluster->network.sites->latency_s);
}

// --- Sequences of each group

typedef struct {
    const PlannerOptions *options;
    Arena *arena;
    Scenario *alone;     // [num_groups]
    int64_t unit;        // sequences
    int num_units;       // of the batch
    PlannedEntry **best; // [num_groups][num_units + 1] where one was found
    Deadline *deadline;  // of all searches together
    bool stopped_early;
} Replicas;

// The largest divisor of the batch that is not above MOST_PIECES, if the pieces are fine enough.
static int64_t pieces_of(int64_t batch) {
    for (int64_t pieces = MOST_PIECES; pieces >= FEWEST_PIECES; pieces--)
        if (batch % pieces == 0) return pieces;
    return batch;
}

static Status best_plan_s(void *context, int group, int units, double *time_s) {
    Replicas *replicas = context;
    Scenario scenario = replicas->alone[group];
    scenario.training.global_batch = units * replicas->unit;
    PlannerResult found;
    *time_s = INFINITY;
    if (deadline_is_over(replicas->deadline)) {
        replicas->stopped_early = true;
        return status_ok();
    }
    const Status status = planner_search(&scenario, replicas->options, replicas->arena, &found);
    if (status.code == STATUS_INVALID) return status_ok(); // no plan divides so many
    TRY(status);
    replicas->stopped_early |= found.stats.stopped_early;
    if (found.num_entries == 0) return status_ok();
    replicas->best[group * (replicas->num_units + 1) + units] = &found.entries[0];
    *time_s = found.entries[0].estimate.step_time_s;
    return status_ok();
}

static void answer_fill(const Scenario *scenario, const Replicas *replicas, const int *units,
                        double slowest_s, Arena *arena, ReplicasAnswer *out) {
    const Cluster *cluster = &scenario->cluster;
    const int num_groups = cluster->num_pools;
    GroupReplica *groups = ARENA_ARRAY(arena, num_groups, GroupReplica);
    for (int g = 0; g < num_groups; g++) {
        const PlannedEntry *entry = replicas->best[g * (replicas->num_units + 1) + units[g]];
        const Pool *pool = &cluster->pools[g];
        groups[g] = (GroupReplica){.group = cluster_pool_number(cluster, g),
                                   .gpu = pool->gpu.name,
                                   .num_gpus = pool->num_gpus,
                                   .sequences = units[g] * replicas->unit,
                                   .plan = entry->plan,
                                   .estimate = entry->estimate};
    }
    const TrainingJob *training = &scenario->training;
    out->groups = groups;
    out->num_groups = num_groups;
    out->exchange_s = replicas_exchange_s(scenario);
    out->step_time_s = slowest_s + out->exchange_s;
    out->tokens_per_s =
        (double)training->global_batch * (double)training->seq_len / out->step_time_s;
}

Status group_replicas_find(const Scenario *scenario, const PlannerOptions *options,
                           const double *alone_s, Arena *arena, ReplicasAnswer *out) {
    const Cluster *cluster = &scenario->cluster;
    const int num_groups = cluster->num_pools;
    const int64_t batch = scenario->training.global_batch, pieces = pieces_of(batch);
    *out = (ReplicasAnswer){0};
    if (pieces < num_groups) return status_ok();
    double *speed = ARENA_ARRAY(arena, num_groups, double);
    for (int g = 0; g < num_groups; g++) {
        if (isinf(alone_s[g])) return status_ok();
        speed[g] = 1 / alone_s[g];
    }
    PlannerOptions one = *options;
    one.top = 1;
    one.brief = true;
    one.exhaustive = false;
    one.budget_s /= NUM_SEARCHES;
    Deadline deadline;
    deadline_start(&deadline, options->budget_s, options->end_soon);
    deadline_arm(&deadline);
    Replicas replicas = {.options = &one,
                         .arena = arena,
                         .alone = ARENA_ARRAY(arena, num_groups, Scenario),
                         .deadline = &deadline,
                         .unit = batch / pieces,
                         .num_units = (int)pieces};
    replicas.best = ARENA_ARRAY(arena, num_groups * (replicas.num_units + 1), PlannedEntry *);
    for (int g = 0; g < num_groups; g++) replicas.alone[g] = groups_alone(scenario, &g, 1, arena);
    const BatchProblem problem = {num_groups, replicas.num_units, speed, best_plan_s, &replicas};
    const int *units;
    double slowest_s;
    TRY(batch_split(&problem, arena, &units, &slowest_s));
    out->stopped_early = replicas.stopped_early;
    if (isfinite(slowest_s)) answer_fill(scenario, &replicas, units, slowest_s, arena, out);
    return status_ok();
}

// --- Text and JSON

const char *replicas_text(const ReplicasAnswer *answer, const Estimate *best, Arena *arena) {
    const char *text = "Replicas in each group, with a plan and a part of the batch of its own: ";
    for (int i = 0; i < answer->num_groups; i++) {
        const GroupReplica *g = &answer->groups[i];
        text = arena_printf(arena, "%s%sgroup %d %lld sequences in %.3g s (%s)", text,
                            i > 0 ? ", " : "", g->group, (long long)g->sequences,
                            g->estimate.step_time_s, plan_describe(&g->plan, arena));
    }
    const double ratio = answer->step_time_s / best->step_time_s;
    return arena_printf(arena,
                        "%s; with %.3g s to exchange gradients %.3g s a step, %.1f %% %s than the "
                        "pipeline across the groups. No stack starts this by itself.",
                        text, answer->exchange_s, answer->step_time_s,
                        100 * (ratio >= 1 ? ratio - 1 : 1 / ratio - 1),
                        ratio >= 1 ? "slower" : "faster");
}

cJSON *replicas_to_json(const ReplicasAnswer *answer, const Estimate *best) {
    if (answer->num_groups == 0) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "step_time_s", answer->step_time_s);
    json_add_number(json, "tokens_per_s", answer->tokens_per_s);
    json_add_number(json, "exchange_s", answer->exchange_s);
    json_add_number(json, "gain_frac", answer->step_time_s / best->step_time_s - 1);
    cJSON *list = cJSON_AddArrayToObject(json, "groups");
    for (int i = 0; i < answer->num_groups; i++) {
        const GroupReplica *g = &answer->groups[i];
        cJSON *group = cJSON_CreateObject();
        cJSON_AddItemToArray(list, group);
        json_add_number(group, "group", g->group);
        cJSON_AddStringToObject(group, "gpu", g->gpu);
        json_add_number(group, "num_gpus", g->num_gpus);
        json_add_number(group, "sequences", (double)g->sequences);
        json_add_number(group, "step_time_s", g->estimate.step_time_s);
        cJSON_AddItemToObject(group, "parallel", plan_to_json(&g->plan));
    }
    return json;
}
