#include "whatif/fleet.h"

#include "base/clock.h"
#include "config/cluster/cluster.h"
#include "whatif/change.h"

#include <math.h>
#include <string.h>

static const double SECONDS_PER_DAY = 86400;

// --- Presets

static double nic_share(const ClusterSummary *c) {
    return c->nics_per_node * c->nic_bytes_per_s / c->gpus_per_node;
}

static bool is_better_connected(const ClusterSummary *a, const ClusterSummary *b) {
    if (nic_share(a) != nic_share(b)) return nic_share(a) > nic_share(b);
    return a->domain_gpus > b->domain_gpus;
}

Status fleet_presets(Arena *arena, const char *const **names, int *num_names) {
    ClusterSummary *clusters;
    int num_clusters, n = 0;
    TRY(cluster_list(arena, &clusters, &num_clusters));
    const char **chosen = ARENA_ARRAY(arena, num_clusters, const char *);
    for (int i = 0; i < num_clusters; i++) {
        bool best = true;
        for (int k = 0; k < num_clusters && best; k++) {
            if (k == i || strcmp(clusters[k].gpu, clusters[i].gpu) != 0) continue;
            const bool better = is_better_connected(&clusters[k], &clusters[i]);
            const bool worse = is_better_connected(&clusters[i], &clusters[k]);
            best = !better && (worse || i < k);
        }
        if (best) chosen[n++] = clusters[i].name;
    }
    *names = chosen;
    *num_names = n;
    return status_ok();
}

// --- One kind of machine

static Status preset_scenario(const Scenario *scenario, const char *preset, Arena *arena,
                              Scenario *out) {
    const char *const path = "cluster";
    const cJSON *base;
    TRY(change_base(scenario, &path, 1, true, arena, &base));
    cJSON *document = cJSON_Duplicate(base, true);
    json_own(arena, document);
    change_derive(document, &path, 1);
    cJSON *value = cJSON_CreateString(preset);
    json_own(arena, value);
    TRY(change_set(scenario, document, path, value));
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    TRY(scenario_read(root, arena, out));
    TRY(scenario_refuse_unsupported(out));
    out->parallel.dp = out->parallel.zero_group = ABSENT;
    return status_ok();
}

typedef struct {
    const PlannerOptions *planner;
    double num_tokens, days;
    Arena *arena;   // of the answer
    Arena *scratch; // of one machine
} Sizer;

// The best plan of a number of GPUs, where there is one.
//   worst_s  no plan is wanted that takes longer; 0: any is
static Status size_add(const Sizer *s, const Scenario *scenario, int num_gpus, double worst_s,
                       FleetEntry *entry) {
    Scenario sized = *scenario;
    sized.cluster = cluster_with_gpus(&scenario->cluster, num_gpus, s->scratch);
    PlannerOptions options = *s->planner;
    options.top = 1;
    options.brief = true;
    options.uncounted = true;
    options.progress = NULL;
    options.end_soon = NULL; // the sizes of a row go together
    options.budget_s = FLEET_SIZE_BUDGET_S;
    options.worst_value = worst_s;
    PlannerResult result;
    Status status = planner_search(&sized, &options, s->scratch, &result);
    if (status.code == STATUS_INVALID) return status_ok(); // no split of so many
    TRY(status);
    if (result.num_entries == 0) return status_ok();
    FleetSize *size = &entry->sizes[entry->num_sizes++];
    *size = (FleetSize){.num_gpus = num_gpus,
                        .plan = plan_copy(&result.entries[0].plan, s->arena),
                        .estimate = result.entries[0].estimate};
    const char *source = size->estimate.price_source; // of a scenario that does not stay
    if (source) size->estimate.price_source = arena_strdup(s->arena, source);
    size->run = run_totals(&sized, &size->estimate, s->num_tokens);
    return status_ok();
}

static Status sizes_find(const Sizer *s, const Scenario *scenario, FleetEntry *entry) {
    const int num_nodes = entry->sizing.num_gpus / entry->sizing.node_gpus;
    static const double FACTORS[FLEET_NUM_SIZES] = {0.25, 0.5, 1, 2, 4};
    for (int i = 0; i < FLEET_NUM_SIZES; i++) {
        const double nodes = FACTORS[i] * num_nodes;
        const double num_gpus = nodes * entry->sizing.node_gpus;
        if (nodes != floor(nodes) || nodes < 1 || num_gpus > SIZING_MAX_GPUS) continue;
        // Its plan is found again, and has to be as fast, however little time there is.
        const double worst_s = FACTORS[i] == 1 ? entry->sizing.wanted_step_time_s : 0;
        if (FACTORS[i] == 1) entry->wanted = entry->num_sizes;
        TRY(size_add(s, scenario, (int)num_gpus, worst_s, entry));
    }
    return status_ok();
}

static Status entry_run(const Sizer *s, const Scenario *scenario, FleetEntry *entry) {
    Scenario own;
    Status status = preset_scenario(scenario, entry->preset, s->scratch, &own);
    if (status.code == STATUS_OK) {
        entry->gpu = arena_strdup(s->arena, cluster_only_pool(&own.cluster)->gpu.name);
        const double step_tokens = (double)own.training.seq_len * (double)own.training.global_batch;
        const double step_s = s->days * SECONDS_PER_DAY / ceil(s->num_tokens / step_tokens);
        PlannerOptions options = *s->planner;
        options.progress = NULL;
        options.brief = true;
        options.budget_s = FLEET_BUDGET_S;
        status = planner_size(&own, step_s, &options, &entry->sizing);
    }
    if (status.code == STATUS_INVALID) {
        entry->refusal = arena_strdup(s->arena, status.text);
        return status_ok();
    }
    TRY(status);
    return entry->sizing.num_gpus > 0 ? sizes_find(s, &own, entry) : status_ok();
}

// --- The frontier

static bool is_beaten_by(const FleetSize *size, const FleetSize *other) {
    if (other->run.cost_usd <= 0) return false;
    const bool no_worse =
        other->run.run_s <= size->run.run_s && other->run.cost_usd <= size->run.cost_usd;
    return no_worse &&
           (other->run.run_s < size->run.run_s || other->run.cost_usd < size->run.cost_usd);
}

static void frontier_mark(FleetEntry *entries, int num_entries) {
    for (int e = 0; e < num_entries; e++) {
        for (int i = 0; i < entries[e].num_sizes; i++) {
            FleetSize *size = &entries[e].sizes[i];
            size->is_on_frontier = size->run.cost_usd > 0;
            for (int f = 0; f < num_entries; f++)
                for (int k = 0; k < entries[f].num_sizes; k++)
                    if (is_beaten_by(size, &entries[f].sizes[k])) size->is_on_frontier = false;
        }
    }
}

static bool is_stopped(const PlannerOptions *planner) {
    return planner->end_soon && atomic_load(planner->end_soon);
}

// One preset after the other, until they are done or the search is ended.
static Status entries_run(const Scenario *scenario, const Sizer *sizer, FleetTell tell,
                          void *tell_context, FleetEntry *entries, Fleet *fleet) {
    for (int i = 0; i < fleet->num_asked && !is_stopped(sizer->planner); i++) {
        const double start_s = clock_now_s();
        if (sizer->planner->progress)
            sizer->planner->progress(sizer->planner->progress_context, "clusters", i,
                                     fleet->num_asked);
        TRY(entry_run(sizer, scenario, &entries[i]));
        arena_reset(sizer->scratch);
        const bool cut = is_stopped(sizer->planner) && entries[i].num_sizes == 0;
        if (cut && !entries[i].refusal) return status_ok(); // it was not decided
        entries[i].wall_s = clock_now_s() - start_s;
        fleet->num_found += entries[i].num_sizes > 0;
        fleet->num_entries = i + 1;
        if (tell) tell(tell_context, &entries[i]);
    }
    return status_ok();
}

Status fleet_run(const Scenario *scenario, const char *const *presets, int num_presets,
                 double num_tokens, double days, const PlannerOptions *planner, FleetTell tell,
                 void *tell_context, Arena *arena, Fleet *out) {
    const double start_s = clock_now_s();
    Arena scratch = {0};
    const Sizer sizer = {planner, num_tokens, days, arena, &scratch};
    FleetEntry *entries = ARENA_ARRAY(arena, num_presets, FleetEntry);
    for (int i = 0; i < num_presets; i++) entries[i].preset = arena_strdup(arena, presets[i]);
    Fleet fleet = {
        .num_tokens = num_tokens, .days = days, .entries = entries, .num_asked = num_presets};
    Status status = entries_run(scenario, &sizer, tell, tell_context, entries, &fleet);
    arena_free(&scratch);
    TRY(status);
    frontier_mark(entries, fleet.num_entries);
    fleet.wall_s = clock_now_s() - start_s;
    *out = fleet;
    return status_ok();
}

// --- JSON

static cJSON *size_to_json(const FleetEntry *entry, const FleetSize *size) {
    Arena arena = {0};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "cluster", entry->preset);
    json_add_number(json, "num_gpus", size->num_gpus);
    json_add_number(json, "step_time_s", size->estimate.step_time_s);
    json_add_number(json, "run_s", size->run.run_s);
    json_add_number(json, "gpu_hours", size->run.gpu_hours);
    json_add_number(json, "cost_usd", size->run.cost_usd);
    json_add_number(json, "energy_joules", size->run.energy_joules);
    cJSON_AddStringToObject(json, "plan", plan_describe(&size->plan, &arena));
    cJSON_AddBoolToObject(json, "on_frontier", size->is_on_frontier);
    arena_free(&arena);
    return json;
}

static cJSON *entry_to_json(const FleetEntry *entry) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "cluster", entry->preset);
    if (entry->gpu) cJSON_AddStringToObject(json, "gpu", entry->gpu);
    if (entry->refusal) {
        cJSON_AddStringToObject(json, "error", entry->refusal);
        return json;
    }
    cJSON_AddItemToObject(json, "sizing", sizing_to_json(&entry->sizing));
    if (entry->num_sizes > 0)
        cJSON_AddItemToObject(json, "smallest", size_to_json(entry, &entry->sizes[entry->wanted]));
    cJSON *sizes = cJSON_AddArrayToObject(json, "sizes");
    for (int i = 0; i < entry->num_sizes; i++)
        cJSON_AddItemToArray(sizes, size_to_json(entry, &entry->sizes[i]));
    return json;
}

cJSON *fleet_to_json(const Fleet *fleet) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON *object = cJSON_AddObjectToObject(json, "fleet");
    json_add_number(object, "tokens", fleet->num_tokens);
    json_add_number(object, "days", fleet->days);
    cJSON_AddBoolToObject(object, "stopped_early", fleet->num_entries < fleet->num_asked);
    cJSON *clusters = cJSON_AddArrayToObject(object, "clusters");
    for (int i = 0; i < fleet->num_entries; i++)
        cJSON_AddItemToArray(clusters, entry_to_json(&fleet->entries[i]));
    json_add_number(cJSON_AddObjectToObject(json, "timing"), "wall_s", fleet->wall_s);
    return json;
}
