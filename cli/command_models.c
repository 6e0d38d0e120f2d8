// `models` and `clusters`: the bundled presets.
#include "base/data_dir.h"
#include "cli/command.h"
#include "report/table.h"
#include "report/units.h"

#include <stdio.h>
#include <string.h>

static const struct argp_option OPTIONS[] = {OPTION_JSON, {0}};

static const struct argp MODELS_ARGP = {
    .options = OPTIONS,
    .parser = common_parse,
    .args_doc = "[NAME]",
    .doc = "Lists the bundled models, or shows one: its parameters, source and keys. Any of these "
           "names may stand as `model` in a scenario; a Hugging Face config.json may too. With a "
           "name, --json prints the object alone, to be changed and pasted as `model`.\v"
           "Examples:\n"
           "  meshwright models\n"
           "  meshwright models llama-3.1-70b\n"
           "  meshwright models llama-3.1-70b --json\n"
           "  meshwright models --json\n",
};

static const struct argp CLUSTERS_ARGP = {
    .options = OPTIONS,
    .parser = common_parse,
    .args_doc = "[NAME]",
    .doc = "Lists the bundled clusters, or shows one. In a scenario the name is followed by the "
           "number of nodes: \"dgx-h100:16\". With a name, the object of one node follows (alone "
           "with --json), to be changed and pasted as `cluster`: raise num_gpus for more "
           "nodes.\v"
           "Examples:\n"
           "  meshwright clusters\n"
           "  meshwright clusters dgx-h100\n"
           "  meshwright clusters dgx-h100 --json\n"
           "  meshwright clusters --json\n",
};

static cJSON *model_to_json(const ModelSummary *model) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", model->name);
    cJSON_AddStringToObject(object, "model_type", model->model_type);
    json_add_number(object, "num_parameters", model->num_parameters);
    json_add_number(object, "active_parameters", model->active_parameters);
    if (model->published_parameters > 0)
        json_add_number(object, "published_parameters", model->published_parameters);
    if (model->source) cJSON_AddStringToObject(object, "source", model->source);
    return object;
}

static cJSON *cluster_to_json(const ClusterSummary *cluster) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", cluster->name);
    cJSON_AddStringToObject(object, "title", cluster->title);
    cJSON_AddStringToObject(object, "gpu", cluster->gpu);
    cJSON_AddNumberToObject(object, "gpus_per_node", cluster->gpus_per_node);
    cJSON_AddNumberToObject(object, "domain_gpus", cluster->domain_gpus);
    cJSON_AddStringToObject(object, "link", cluster->link);
    cJSON_AddNumberToObject(object, "nics_per_node", cluster->nics_per_node);
    json_add_number(object, "nic_bytes_per_s", cluster->nic_bytes_per_s);
    return object;
}

// {"schema": 1, KEY: list}; takes over the list.
static cJSON *list_document(const char *key, cJSON *list) {
    cJSON *document = cJSON_CreateObject();
    cJSON_AddNumberToObject(document, "schema", 1);
    cJSON_AddItemToObject(document, key, list);
    return document;
}

static Status preset_unknown(const char *kind, const char *name, const char *const *names) {
    const char *nearest = name_nearest(name, names);
    if (nearest) return usage_error("unknown %s \"%s\"; the nearest is %s", kind, name, nearest);
    return usage_error("unknown %s \"%s\"; meshwright %ss lists them", kind, name, kind);
}

// Shows the preset's own file: an object that a scenario takes as `model`.
static Status model_show(const char *name, Arena *arena) {
    JsonNode root;
    TRY(json_load(data_path(arena, "models", name), arena, &root));
    return json_write(root.item, stdout);
}

// Shows one node as an object that a scenario takes as `cluster`.
static Status cluster_show(const char *name, Arena *arena) {
    static const char *const KEYS[] = {
        "gpu",       "gpus_per_node",          "scale_up",
        "scale_out", "price_usd_per_gpu_hour", "power_watts_per_gpu"};
    JsonNode root;
    TRY(json_load(data_path(arena, "hw-profiles/clusters", name), arena, &root));
    cJSON *object = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root.item, KEYS[i]);
        if (item) cJSON_AddItemToObject(object, KEYS[i], cJSON_Duplicate(item, true));
        if (item && strcmp(KEYS[i], "gpus_per_node") == 0)
            cJSON_AddItemToObject(object, "num_gpus", cJSON_Duplicate(item, true));
    }
    return answer_json(object);
}

static void models_print(const ModelSummary *models, int num_models, Arena *arena) {
    static const TableColumn columns[] = {
        {"model", false, 0}, {"family", false, 2}, {"parameters", true, 0},
        {"active", true, 1}, {"source", false, 3},
    };
    Table table = table_new(arena, columns, 5);
    for (int i = 0; i < num_models; i++) {
        char parameters[UNITS_SIZE], active[UNITS_SIZE];
        units_count(models[i].num_parameters, parameters);
        units_count(models[i].active_parameters, active);
        const char *cells[] = {models[i].name, models[i].model_type, parameters, active,
                               models[i].source};
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    Paper paper = paper_of(stdout);
    table_print(&table, &paper);
}

static Status models_answer(const CommonOptions *options, Arena *arena) {
    ModelSummary *models;
    int num_models;
    TRY(model_list(arena, &models, &num_models));
    if (options->scenario) {
        const char **names = ARENA_ARRAY(arena, num_models + 1, const char *);
        for (int i = 0; i < num_models; i++) {
            names[i] = models[i].name;
            if (strcmp(options->scenario, models[i].name) != 0) continue;
            if (!options->json) {
                models_print(&models[i], 1, arena);
                putchar('\n');
            }
            return model_show(models[i].name, arena);
        }
        return preset_unknown("model", options->scenario, names);
    }
    if (!options->json) {
        models_print(models, num_models, arena);
        return status_ok();
    }
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < num_models; i++) cJSON_AddItemToArray(list, model_to_json(&models[i]));
    return answer_json(list_document("models", list));
}

static void clusters_print(const ClusterSummary *clusters, int num_clusters, Arena *arena) {
    static const TableColumn columns[] = {
        {"cluster", false, 0}, {"GPU", false, 0}, {"per node", true, 0}, {"link", false, 0},
        {"domain", true, 1},   {"NICs", true, 2}, {"each", true, 2},     {"title", false, 3},
    };
    Table table = table_new(arena, columns, 8);
    for (int i = 0; i < num_clusters; i++) {
        const ClusterSummary *c = &clusters[i];
        char gpus[UNITS_SIZE], domain[UNITS_SIZE], nics[UNITS_SIZE], rate[UNITS_SIZE];
        snprintf(gpus, sizeof gpus, "%d", c->gpus_per_node);
        snprintf(domain, sizeof domain, "%d", c->domain_gpus);
        snprintf(nics, sizeof nics, "%d", c->nics_per_node);
        snprintf(rate, sizeof rate, "%g GB/s", c->nic_bytes_per_s / 1e9);
        const char *cells[] = {c->name, c->gpu, gpus, c->link, domain, nics, rate, c->title};
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    Paper paper = paper_of(stdout);
    table_print(&table, &paper);
}

static Status clusters_answer(const CommonOptions *options, Arena *arena) {
    ClusterSummary *clusters;
    int num_clusters;
    TRY(cluster_list(arena, &clusters, &num_clusters));
    if (options->scenario) {
        const char **names = ARENA_ARRAY(arena, num_clusters + 1, const char *);
        for (int i = 0; i < num_clusters; i++) {
            names[i] = clusters[i].name;
            if (strcmp(options->scenario, clusters[i].name) != 0) continue;
            if (!options->json) {
                clusters_print(&clusters[i], 1, arena);
                putchar('\n');
            }
            return cluster_show(clusters[i].name, arena);
        }
        return preset_unknown("cluster", options->scenario, names);
    }
    if (!options->json) {
        clusters_print(clusters, num_clusters, arena);
        return status_ok();
    }
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < num_clusters; i++)
        cJSON_AddItemToArray(list, cluster_to_json(&clusters[i]));
    return answer_json(list_document("clusters", list));
}

Status command_models(int argc, char **argv) {
    CommonOptions options = {0};
    TRY(command_parse(&MODELS_ARGP, argc, argv, &options));
    Arena arena = {0};
    Status status = models_answer(&options, &arena);
    arena_free(&arena);
    return status;
}

Status command_clusters(int argc, char **argv) {
    CommonOptions options = {0};
    TRY(command_parse(&CLUSTERS_ARGP, argc, argv, &options));
    Arena arena = {0};
    Status status = clusters_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
