#include "config/job/scenario.h"

#include "base/data_dir.h"
#include "config/cluster/cluster_groups.h"
#include "config/cluster/node_order.h"
#include "config/cluster/prices.h"
#include "config/job/scenario_front.h"
#include "config/software/kernel_shelf.h"

#include <stdio.h>
#include <string.h>

#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

static const JsonField SCENARIO_FIELDS[] = {
    OTHER("schema"),      OTHER("name"),       OTHER("description"), OTHER("model"),
    OTHER("cluster"),     OTHER("training"),   OTHER("parallel"),    OTHER("disturb"),
    OTHER("calibration"), OTHER("provenance"), OTHER("prices"),
};

// What says nothing about the job: version, texts, provenance.
static Status frame_check(const JsonNode *root, Arena *arena) {
    JsonNode schema = json_get(root, "schema");
    if (!json_is_present(&schema)) return json_error(&schema, "missing; expected 1");
    double version;
    TRY(json_read_double(&schema, -1e300, 1e300, &version));
    if (version != 1) return json_error(&schema, "%.15g is not supported; expected 1", version);
    static const char *const TEXTS[] = {"name", "description"};
    for (int i = 0; i < 2; i++) {
        JsonNode text = json_get(root, TEXTS[i]);
        const char *ignored;
        if (json_is_present(&text)) TRY(json_read_string(&text, arena, &ignored));
    }
    JsonNode provenance = json_get(root, "provenance");
    if (json_is_present(&provenance)) TRY(json_expect_object(&provenance));
    return status_ok();
}

// The model's file in place of a scenario.
static Status model_config_refuse(const JsonNode *root) {
    JsonNode schema = json_get(root, "schema"), architectures = json_get(root, "architectures");
    JsonNode type = json_get(root, "model_type");
    if (json_is_present(&schema) || (!json_is_present(&type) && !json_is_present(&architectures)))
        return status_ok();
    return json_error(root, "this is a Hugging Face config.json, no scenario: put its path under "
                            "\"model\" of a scenario");
}

// Infinity and NaN, which no other reader need know, become null.
static void words_remove(cJSON *tree) {
    for (cJSON *child = tree->child, *next; child; child = next) {
        next = child->next;
        if (!cJSON_IsRaw(child))
            words_remove(child);
        else if (cJSON_IsArray(tree))
            cJSON_ReplaceItemViaPointer(tree, child, cJSON_CreateNull());
        else
            cJSON_DeleteItemFromObjectCaseSensitive(tree, child->string);
    }
}

// The model as it can stand in another folder's scenario: a file's content in place of its path,
// with the name that was the file's.
static Status model_document(const JsonNode *value, const Model *model, Arena *arena,
                             const cJSON **out) {
    *out = value->item;
    if (!cJSON_IsString(value->item) || !value_is_path(value->item->valuestring))
        return status_ok();
    JsonNode root;
    TRY(json_load(path_beside(arena, value->file, value->item->valuestring), arena, &root));
    cJSON *copy = cJSON_Duplicate(root.item, true);
    if (!copy) return status_error(STATUS_MACHINE, "out of memory while copying the model");
    json_own(arena, copy);
    words_remove(copy);
    JsonNode name = json_get(&root, "name");
    if (!json_is_present(&name)) {
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "name"); // a null
        cJSON_AddStringToObject(copy, "name", model->name);
    }
    *out = copy;
    return status_ok();
}

// Of every pool: training_load read for the first.
static Status pools_check(const JsonNode *training, const Scenario *scenario) {
    const Cluster *cluster = &scenario->cluster;
    for (int i = 1; i < cluster->num_pools; i++)
        TRY(execution_check_gpu(training, &cluster->pools[i].gpu, &scenario->execution));
    return status_ok();
}

// Collectives of the user's own kernel profile stand before the bundled ones where they were
// measured over this link.
static void curves_take(Arena *arena, Pool *pool) {
    if (!pool->kernels || !value_is_path(pool->gpu.kernels_of) || pool->wires) return;
    const NcclKernels *own = &pool->kernels->profile.nccl;
    Link *link = &pool->scale_up;
    if (own->num_curves == 0 || !own->link || strcmp(own->link, link->name) != 0) return;
    NcclKernels *curves = ARENA_NEW(arena, NcclKernels);
    *curves = nccl_kernels_rising(own, arena);
    pool->scale_up_curves = curves;
    link->measured_bandwidth_bytes_per_s = link->bandwidth_bytes_per_s;
}

// Measured kernels of each GPU there is, read once.
static Status kernels_read(KernelShelf *shelf, Arena *arena, Cluster *cluster) {
    Pool *pools = cluster_own_pools(cluster, arena);
    for (int i = 0; i < cluster->num_pools; i++) {
        int same = 0;
        while (strcmp(pools[same].gpu.file, pools[i].gpu.file) != 0) same++;
        if (same == i) TRY(kernel_shelf_kernels(shelf, &pools[i].gpu, arena, &pools[i].kernels));
        pools[i].kernels = pools[same].kernels;
        curves_take(arena, &pools[i]);
    }
    return status_ok();
}

// The pool of a node by the scenario's own number.
static const Pool *pool_of_own_node(const Cluster *cluster, int node) {
    const NodeOrder *placed = cluster->network.placed;
    return &cluster->pools[cluster_pool_of_node(cluster, placed ? placed->block[node] : node)];
}

const char *scenario_gpus(const Scenario *scenario, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const char *names = pool_of_own_node(cluster, 0)->gpu.name;
    const char **of_pools = ARENA_ARRAY(arena, cluster->num_pools, const char *);
    int node = 0;
    for (int i = 0; i < cluster->num_pools; i++) {
        const Pool *pool = pool_of_own_node(cluster, node);
        of_pools[i] = pool->gpu.name;
        int same = 0;
        while (strcmp(of_pools[same], of_pools[i]) != 0) same++;
        if (i > 0 && same == i) names = arena_printf(arena, "%s + %s", names, of_pools[i]);
        node += pool->num_nodes;
    }
    return names;
}

// `placement` says which nodes of the cluster run which ranks.
static Status placement_take(const JsonNode *parallel, Arena *arena, Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->num_placement == 0) return status_ok();
    Cluster *cluster = &scenario->cluster;
    if (cluster->num_pools > 1) {
        const int *order = pools_order_of(cluster, spec->placement, arena);
        if (order)
            *cluster = cluster_with_pools(cluster, order, cluster->num_pools, arena);
        else // refused once it is to be acted upon
            cluster->network.order = node_order_new(spec->placement, spec->num_placement, arena);
        return status_ok();
    }
    cluster->network.order = node_order_new(spec->placement, spec->num_placement, arena);
    const JsonNode placement = json_get(parallel, "placement");
    return node_order_check(&placement, cluster);
}

// GPUs that the degrees leave idle: as stated; or where all of tp, cp, dp and pp are stated.
static Status idle_take(const JsonNode *parallel, Arena *arena, Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    const int total = cluster_total_gpus(&scenario->cluster);
    const bool stated = spec->idle_gpus != ABSENT;
    double used = (double)total - spec->idle_gpus;
    if (!stated) {
        if (spec->tp == ABSENT || spec->cp == ABSENT || spec->dp == ABSENT || spec->pp == ABSENT)
            return status_ok();
        used = (double)spec->tp * spec->cp * spec->dp * spec->pp;
        if (used >= scenario->cluster.num_gpus) return status_ok(); // plan_resolve refuses more
    }
    const JsonNode at = json_get(parallel, stated ? "idle_gpus" : "dp");
    Cluster cluster;
    if (used >= 1 && cluster_use(&scenario->cluster, (int)used, arena, &cluster)) {
        scenario->cluster = cluster;
        return status_ok();
    }
    if (stated && used < 1)
        return json_error(&at, "%d; expected less than num_gpus %d", spec->idle_gpus, total);
    if (scenario->cluster.network.sites)
        return json_error(&at,
                          "%.0f of %d GPUs: idle GPUs are legal, but not supported yet in joined "
                          "groups and beside a bandwidth_matrix",
                          used, total);
    const int node_gpus = cluster_only_pool(&scenario->cluster)->whole_node_gpus;
    return json_error(&at,
                      "%.0f of %d GPUs cannot be the same number in each of at most %d nodes of %d",
                      used, total, (total - 1) / node_gpus + 1, node_gpus);
}

// FSDP2 shards the weights whatever it is told: its stage 2 is stage 3 that keeps what it gathered
// (torchtitan, docs/fsdp.md: SHARD_GRAD_OP is reshard_after_forward=False). One name, one price.
static void stages_of_fsdp2_take(Scenario *scenario) {
    ParallelSpec *spec = &scenario->parallel;
    if (scenario->execution.stack.training.sharding != SHARDING_PER_PARAMETER ||
        spec->zero_stage != 2)
        return;
    spec->zero_stage = 3;
    spec->reshard_after_forward = 0;
}

// A learned table has a row for each position in use: no software trains on fewer.
static void positions_extend(Scenario *scenario) {
    Model *model = &scenario->model;
    const int64_t seq_len = scenario->training.seq_len;
    if (model->position != POSITION_LEARNED || model->max_position_embeddings >= seq_len) return;
    model->stated_positions = model->max_position_embeddings;
    model->max_position_embeddings = (int)seq_len;
}

Status scenario_read_shared(const JsonNode *root, KernelShelf *shelf, Arena *arena, Scenario *out) {
    TRY(json_expect_object(root));
    TRY(model_config_refuse(root));
    TRY(json_refuse_unknown(root, SCENARIO_FIELDS,
                            sizeof SCENARIO_FIELDS / sizeof *SCENARIO_FIELDS));
    TRY(frame_check(root, arena));

    Scenario scenario = {.file = root->file, .document = root->item};
    JsonNode model = json_get(root, "model");
    if (!json_is_present(&model))
        return json_error(&model, "missing; expected a preset's name, a path or an object");
    TRY(model_load(&model, arena, &scenario.model));
    TRY(model_document(&model, &scenario.model, arena, &scenario.model_document));

    JsonNode cluster = json_get(root, "cluster");
    if (!json_is_present(&cluster))
        return json_error(&cluster, "missing; expected PRESET:NODES or an object");
    TRY(cluster_load_shared(&cluster, shelf, arena, &scenario.cluster));
    JsonNode prices = json_get(root, "prices");
    TRY(prices_take(&prices, arena, &scenario.cluster));

    JsonNode training = json_get(root, "training");
    TRY(training_load(&training, &scenario.cluster.pools[0].gpu, shelf, arena, &scenario.training,
                      &scenario.execution));
    TRY(pools_check(&training, &scenario));
    TRY(scenario_take_front(root, arena, &scenario));
    TRY(fine_tuning_check(&training, &scenario.model, &scenario.execution,
                          &scenario.training.tuning, arena));
    positions_extend(&scenario);
    JsonNode parallel = json_get(root, "parallel");
    TRY(parallel_load(&parallel, arena, &scenario.parallel));
    stages_of_fsdp2_take(&scenario);
    TRY(idle_take(&parallel, arena, &scenario));
    TRY(parallel_check_lists(&parallel, scenario.cluster.num_nodes, scenario.model.num_layers));
    TRY(placement_take(&parallel, arena, &scenario));
    TRY(scenario_check_front(root, &scenario));
    JsonNode calibration = json_get(root, "calibration");
    TRY(calibration_load(&calibration, arena, &scenario.calibration));
    TRY(calibration_check(&calibration, scenario.calibration, scenario_gpus(&scenario, arena),
                          scenario.execution.stack.name, scenario.execution.stack_version));
    TRY(evidence_find(&scenario.model, &scenario.cluster, &scenario.execution, arena,
                      &scenario.evidence));
    JsonNode disturb = json_get(root, "disturb");
    TRY(disturb_read(&disturb, &scenario.cluster, arena, &scenario.disturb, &scenario.num_disturb));
    TRY(kernels_read(shelf, arena, &scenario.cluster)); // the largest file last
    JsonNode name = json_get(root, "name");
    scenario.name =
        json_is_present(&name) ? arena_strdup(arena, name.item->valuestring) : scenario.model.name;
    *out = scenario;
    return status_ok();
}

Status scenario_read(const JsonNode *root, Arena *arena, Scenario *out) {
    return scenario_read_shared(root, NULL, arena, out);
}

Status scenario_load(const char *path, Arena *arena, Scenario *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_load(path, arena, root));
    return scenario_read(root, arena, out);
}

// What 8-bit products need beside them depends on the architecture
// (workload/pass/builder_quantize.c).
static Status architectures_refuse(const Scenario *scenario) {
    const Cluster *cluster = &scenario->cluster;
    if (scenario->execution.precision < PRECISION_FP8) return status_ok();
    const char *first = cluster->pools[0].gpu.architecture;
    for (int i = 1; i < cluster->num_pools; i++)
        if (strcmp(cluster->pools[i].gpu.architecture, first) != 0)
            return status_at(STATUS_INVALID, scenario->file, "training.precision",
                             "%s on groups of different architectures (%s and %s) is legal, but "
                             "not supported yet",
                             PRECISION_NAMES[scenario->execution.precision], first,
                             cluster->pools[i].gpu.architecture);
    return status_ok();
}

static Status placement_refuse(const Scenario *scenario) {
    if (!scenario->cluster.network.order || scenario->cluster.num_pools == 1) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "parallel.placement",
                     "legal, but not supported yet on groups of different machines but for whole "
                     "groups in another order");
}

Status scenario_refuse_unlike_groups(const Scenario *scenario, const char *what) {
    if (scenario->cluster.num_pools == 1) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "cluster.groups",
                     "of different machines are legal, but %s does not support them yet", what);
}

static Status layers_refuse(const Scenario *scenario) {
    const ParallelSpec *spec = &scenario->parallel;
    if (spec->num_layer_overrides == 0 || spec->recompute_layers == ABSENT) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "parallel.recompute_layers",
                     "%d beside parallel.layers is legal, but not supported yet",
                     spec->recompute_layers);
}

// What no command can do yet.
static Status unsupported_refuse(const Scenario *scenario) {
    TRY(architectures_refuse(scenario));
    TRY(layers_refuse(scenario));
    TRY(placement_refuse(scenario));
    if (scenario->training.num_sequence_lengths > 0)
        return status_at(STATUS_INVALID, scenario->file, "training.sequence_lengths",
                         "legal, but only plan supports it yet");
    return status_ok();
}

Status scenario_refuse_unsupported(const Scenario *scenario) {
    if (scenario->num_disturb > 0)
        return status_at(STATUS_INVALID, scenario->file, "disturb",
                         "legal, but only simulate and grids of whatif play disturbances yet");
    return unsupported_refuse(scenario);
}

Status scenario_refuse_unsimulated(const Scenario *scenario) {
    if (scenario->num_disturb > 0 && scenario->cluster.network.placed)
        return status_at(STATUS_INVALID, scenario->file, "disturb",
                         "legal, but not supported yet beside a placement of groups of different "
                         "machines");
#define PLAYED false
#define REFUSED true
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate)                                      \
    if ((simulate) && scenario->execution.key)                                                     \
        return status_at(STATUS_INVALID, scenario->file, "training." #key,                         \
                         "true is legal, but not supported by simulate yet");
#include "config/software/techniques.def"
    return unsupported_refuse(scenario);
}
