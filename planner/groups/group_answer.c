#include "planner/groups/group_answer.h"

#include "config/cluster/cluster_groups.h"
#include "planner/groups/group_search.h"
#include "planner/why/explain.h"

#include <math.h>

// --- Where stages lie

static double rank_busy_s(const Plan *plan, const Prices *prices, int rank) {
    double sum_s = 0;
    for (int k = 0; k < plan->vpp; k++) {
        const int c = plan_rank_chunk(plan, rank, k);
        sum_s += prices->forward[c].time_s + prices->backward[c].time_s;
    }
    return sum_s * (double)plan_chunk_microbatches(plan) + prices->optimizer_s[rank];
}

static int rank_layers(const Plan *plan, int rank) {
    int sum = 0;
    for (int k = 0; k < plan->vpp; k++)
        sum += plan->chunks[plan_rank_chunk(plan, rank, k)].num_layers;
    return sum;
}

static void share_fill(const Scenario *scenario, const Plan *plan, const EstimateParts *parts,
                       Arena *arena, GroupShare *share) {
    int *layers = ARENA_ARRAY(arena, share->num_stages, int);
    for (int i = 0; i < share->num_stages; i++) {
        const int rank = share->first_stage + i;
        const RankMemory memory = memory_closed_form(scenario, plan, &parts->workload, rank);
        layers[i] = rank_layers(plan, rank);
        share->busy_frac = fmax(share->busy_frac, rank_busy_s(plan, &parts->prices, rank) /
                                                      parts->timeline.step_time_s);
        share->memory_frac =
            fmax(share->memory_frac,
                 memory.device_bytes / rank_memory_available_bytes(scenario, plan, rank));
    }
    share->layers = layers;
}

const GroupShare *group_shares_make(const Scenario *scenario, const Plan *plan,
                                    const EstimateParts *parts, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const int num_groups = cluster->num_pools;
    GroupShare *shares = ARENA_ARRAY(arena, num_groups, GroupShare);
    for (int i = 0, first = 0; i < num_groups; i++) {
        const Pool *pool = &cluster->pools[i];
        shares[i] = (GroupShare){.group = cluster_pool_number(cluster, i),
                                 .gpu = arena_strdup(arena, pool->gpu.name),
                                 .num_gpus = pool->num_gpus,
                                 .first_stage = first,
                                 .num_stages = (int)(pool->num_gpus / plan_stage_gpus(plan))};
        first += shares[i].num_stages;
        share_fill(scenario, plan, parts, arena, &shares[i]);
    }
    return shares;
}

// --- Fewer groups

static const char *alternative_name(const Cluster *cluster, const int *order, int num_groups,
                                    Arena *arena) {
    const char *text = "";
    for (int i = 0; i < num_groups; i++)
        text = arena_printf(arena, "%s%sgroup %d (%d x %s)", text, i ? " + " : "",
                            cluster_pool_number(cluster, order[i]),
                            cluster->pools[order[i]].num_gpus, cluster->pools[order[i]].gpu.name);
    return text;
}

// Groups `order` of the cluster by themselves.
static Status alternative_find(const Scenario *scenario, const PlannerOptions *options,
                               const int *order, int num_groups, Arena *arena,
                               GroupAlternative *out, bool *stopped_early) {
    PlannerOptions one = *options;
    one.top = 1;
    one.brief = true;
    one.exhaustive = false;
    const Scenario fewer = groups_alone(scenario, order, num_groups, arena);
    int *numbers = ARENA_ARRAY(arena, num_groups, int);
    for (int i = 0; i < num_groups; i++)
        numbers[i] = cluster_pool_number(&scenario->cluster, order[i]);
    *out =
        (GroupAlternative){.name = alternative_name(&scenario->cluster, order, num_groups, arena),
                           .groups = numbers,
                           .num_groups = num_groups,
                           .num_gpus = fewer.cluster.num_gpus};
    PlannerResult found;
    const Status status = planner_search(&fewer, &one, arena, &found);
    if (status.code == STATUS_INVALID) return status_ok();
    TRY(status);
    out->legal = true;
    *stopped_early |= found.stats.stopped_early;
    out->fits = found.num_entries > 0;
    if (!out->fits) return status_ok();
    out->plan = found.entries[0].plan;
    out->estimate = found.entries[0].estimate;
    return status_ok();
}

static int num_fewer(const Cluster *cluster) {
    const int num_groups = cluster->num_pools;
    return num_groups > 2 ? 2 * num_groups : num_groups;
}

static Status fewer_find(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                         GroupsAnswer *answer) {
    const int num_groups = scenario->cluster.num_pools;
    const int num = num_fewer(&scenario->cluster);
    GroupAlternative *fewer = ARENA_ARRAY(arena, num, GroupAlternative);
    answer->fewer = fewer;
    answer->best_fewer = -1;
    for (int i = 0; i < num; i++) {
        if (options->end_soon && atomic_load(options->end_soon)) break;
        int *order = ARENA_ARRAY(arena, num_groups, int), size = 0;
        for (int g = 0; g < num_groups; g++)
            if (i < num_groups ? g == i : g != i - num_groups) order[size++] = g;
        TRY(alternative_find(scenario, options, order, size, arena, &fewer[i],
                             &answer->stopped_early));
        if (!fewer[i].fits && answer->stopped_early) break; // it may fit
        answer->num_fewer = i + 1;
        if (!fewer[i].fits) continue;
        const int best = answer->best_fewer;
        if (best < 0 || fewer[i].estimate.step_time_s < fewer[best].estimate.step_time_s)
            answer->best_fewer = i;
    }
    return status_ok();
}

static Status even_find(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                        GroupsAnswer *answer) {
    PlannerOptions even = *options;
    even.exhaustive = false;
    PlannerResult found;
    TRY(group_search_even(scenario, &even, arena, &found));
    answer->stopped_early |= found.stats.stopped_early;
    answer->even_fits = found.num_entries > 0;
    if (!answer->even_fits) return status_ok();
    answer->even_plan = found.entries[0].plan;
    answer->even_estimate = found.entries[0].estimate;
    return status_ok();
}

// By what each group alone takes for the whole batch, which stands first among the fewer.
static Status replicas_find(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                            GroupsAnswer *answer) {
    const int num_groups = scenario->cluster.num_pools;
    double *alone_s = ARENA_ARRAY(arena, num_groups, double);
    for (int g = 0; g < num_groups; g++) {
        const bool known = g < answer->num_fewer && answer->fewer[g].fits;
        alone_s[g] = known ? answer->fewer[g].estimate.step_time_s : INFINITY;
    }
    TRY(group_replicas_find(scenario, options, alone_s, arena, &answer->replicas));
    answer->stopped_early |= answer->replicas.stopped_early;
    return status_ok();
}

Status planner_compare_groups(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                              PlannerResult *result) {
    if (scenario->cluster.num_pools == 1 || result->num_entries == 0) return status_ok();
    if (options->end_soon && atomic_load(options->end_soon)) return status_ok();
    GroupsAnswer *answer = ARENA_NEW(arena, GroupsAnswer);
    PlannerOptions one = *options;
    one.budget_s /= 2 + num_fewer(&scenario->cluster);
    one.extra = true;
    if (!scenario->parallel.stages) TRY(even_find(scenario, &one, arena, answer));
    TRY(fewer_find(scenario, &one, arena, answer));
    TRY(replicas_find(scenario, &one, arena, answer));
    result->groups = answer;
    return status_ok();
}

// --- Text

const char *group_share_text(const GroupShare *share, Arena *arena) {
    const int last = share->first_stage + share->num_stages - 1;
    const char *stages = share->num_stages == 1
                             ? arena_printf(arena, "stage %d", last)
                             : arena_printf(arena, "stages %d-%d", share->first_stage, last);
    const char *layers = "";
    for (int i = 0; i < share->num_stages; i++)
        layers = arena_printf(arena, "%s %d", layers, share->layers[i]);
    return arena_printf(arena,
                        "group %d (%d x %s): %s, layers%s; computes %.0f %% of the step, memory "
                        "%.0f %%",
                        share->group, share->num_gpus, share->gpu, stages, layers,
                        share->busy_frac * 100, share->memory_frac * 100);
}

// "12.3 % faster", "4.0 % slower": the best plan beside another step.
static const char *gain_text(const Estimate *best, const Estimate *other, Arena *arena) {
    const double gain = other->step_time_s / best->step_time_s - 1;
    if (gain >= 0) return arena_printf(arena, "%.1f %% faster", gain * 100);
    const double loss = best->step_time_s / other->step_time_s - 1;
    return arena_printf(arena, "%.1f %% slower", loss * 100);
}

static const char *usd_text(const Estimate *estimate, Arena *arena) {
    const double usd = estimate->usd_per_1e9_tokens;
    return arena_printf(arena, usd < 100 ? "%.3g" : "%.0f", usd);
}

static const char *fewer_text(const PlannerResult *result, Arena *arena) {
    const GroupsAnswer *answer = result->groups;
    if (answer->best_fewer < 0)
        return answer->stopped_early
                   ? "not known: the search was ended before a plan was found there."
                   : "none: no plan fits there.";
    const GroupAlternative *fewer = &answer->fewer[answer->best_fewer];
    const Estimate *best = &result->entries[0].estimate;
    const double gain = fewer->estimate.step_time_s / best->step_time_s - 1;
    const bool known = !result->stats.stopped_early && !answer->stopped_early;
    const char *worth = !known                      ? ""
                        : gain < 0                  ? ": the others are not worth it"
                        : gain < EXPLAIN_FLOOR_FRAC ? ": the others hardly help"
                                                    : "";
    const char *usd = "";
    if (best->usd_per_1e9_tokens > 0 && fewer->estimate.usd_per_1e9_tokens > 0)
        usd = arena_printf(arena, ", at %s instead of %s USD per 1e9 tokens", usd_text(best, arena),
                           usd_text(&fewer->estimate, arena));
    return arena_printf(arena, "%s: %.3g s a step (%s). With all groups the step is %s%s%s.",
                        fewer->name, fewer->estimate.step_time_s,
                        plan_describe(&fewer->plan, arena),
                        gain_text(best, &fewer->estimate, arena), usd, worth);
}

const char *groups_answer_text(const PlannerResult *result, Arena *arena) {
    const GroupsAnswer *answer = result->groups;
    const Estimate *best = &result->entries[0].estimate;
    const char *even = "";
    if (answer->even_fits)
        even = arena_printf(arena,
                            "The best plan with even stages (%s) takes %.3g s: sized ones "
                            "are %s. ",
                            plan_describe(&answer->even_plan, arena),
                            answer->even_estimate.step_time_s,
                            gain_text(best, &answer->even_estimate, arena));
    const bool early = answer->stopped_early || result->stats.stopped_early;
    const char *replicas =
        answer->replicas.num_groups > 0
            ? arena_printf(arena, " %s", replicas_text(&answer->replicas, best, arena))
            : "";
    return arena_printf(arena, "%sThe best on fewer groups is on %s%s%s", even,
                        fewer_text(result, arena), replicas,
                        early ? " All of this as far as the time given went." : "");
}

// --- JSON

cJSON *group_shares_to_json(const PlannedEntry *entry) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < entry->num_shares; i++) {
        const GroupShare *share = &entry->shares[i];
        cJSON *json = cJSON_CreateObject();
        json_add_number(json, "group", share->group);
        cJSON_AddStringToObject(json, "gpu", share->gpu);
        json_add_number(json, "num_gpus", share->num_gpus);
        json_add_number(json, "first_stage", share->first_stage);
        cJSON_AddItemToObject(json, "layers",
                              cJSON_CreateIntArray(share->layers, share->num_stages));
        json_add_number(json, "busy_frac", share->busy_frac);
        json_add_number(json, "memory_frac", share->memory_frac);
        cJSON_AddItemToArray(list, json);
    }
    return list;
}

static void estimate_add(cJSON *json, const Estimate *estimate, const Plan *plan,
                         const Estimate *best) {
    json_add_number(json, "step_time_s", estimate->step_time_s);
    json_add_number(json, "tokens_per_s", estimate->tokens_per_s);
    json_add_number(json, "usd_per_1e9_tokens", estimate->usd_per_1e9_tokens);
    json_add_number(json, "gain_frac", estimate->step_time_s / best->step_time_s - 1);
    cJSON_AddItemToObject(json, "parallel", plan_to_json(plan));
}

cJSON *groups_answer_to_json(const PlannerResult *result) {
    const GroupsAnswer *answer = result->groups;
    const Estimate *best = &result->entries[0].estimate;
    cJSON *json = cJSON_CreateObject();
    if (answer->even_fits)
        estimate_add(cJSON_AddObjectToObject(json, "even_stages"), &answer->even_estimate,
                     &answer->even_plan, best);
    else
        cJSON_AddNullToObject(json, "even_stages");
    cJSON *list = cJSON_AddArrayToObject(json, "fewer");
    for (int i = 0; i < answer->num_fewer; i++) {
        const GroupAlternative *fewer = &answer->fewer[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(list, entry);
        cJSON_AddItemToObject(entry, "groups",
                              cJSON_CreateIntArray(fewer->groups, fewer->num_groups));
        json_add_number(entry, "num_gpus", fewer->num_gpus);
        cJSON_AddBoolToObject(entry, "legal", fewer->legal);
        cJSON_AddBoolToObject(entry, "fits", fewer->fits);
        if (fewer->fits) estimate_add(entry, &fewer->estimate, &fewer->plan, best);
    }
    const int index = answer->best_fewer;
    const bool worth = index < 0 || best->step_time_s < answer->fewer[index].estimate.step_time_s;
    cJSON_AddBoolToObject(json, "all_are_fastest", worth);
    cJSON_AddItemToObject(json, "replicas", replicas_to_json(&answer->replicas, best));
    return json;
}
