// `models` and `clusters`: the bundled presets.
#include "base/data_dir.h"
#include "cli/command.h"
#include "cli/model_summary.h"
#include "report/table.h"
#include "report/units.h"

#include <stdio.h>
#include <string.h>

static const struct argp_option OPTIONS[] = {OPTION_JSON, {0}};

enum { KEY_TEXT_ONLY = KEY_LONG };

static const struct argp_option MODELS_OPTIONS[] = {
    OPTION_JSON,
    {"text-only", KEY_TEXT_ONLY, NULL, 0,
     "show the text of a model with towers (text_config) alone, and print its object", 0},
    {0}};

typedef struct {
    CommonOptions common; // the first, which the shared parser takes
    bool text_only;
} ModelsOptions;

static error_t models_parse(int key, char *arg, struct argp_state *state) {
    if (key != KEY_TEXT_ONLY) return common_parse(key, arg, state);
    ((ModelsOptions *)state->input)->text_only = true;
    return 0;
}

static const struct argp MODELS_ARGP = {
    .options = MODELS_OPTIONS,
    .parser = models_parse,
    .args_doc = "[NAME|FILE]",
    .doc = "Lists the bundled models, or shows one: a bundled one, or the path of any config.json. "
           "Shown are parameters (of the weights, without multi-token prediction), those that are "
           "active for a token, what each kind of layer is, the bytes that a token leaves in the "
           "cache, and the object. Names and paths may stand as `model` in a scenario. With one, "
           "--json prints {\"model\": the object, to be changed and pasted, \"summary\"}.\v"
           "Examples:\n"
           "  meshwright models\n"
           "  meshwright models llama-3.1-70b\n"
           "  meshwright models ./config.json --json\n"
           "  meshwright models ./config.json --text-only --json\n"
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

// Shows one node as an object that a scenario takes as `cluster`.
static Status cluster_show(const char *name, bool json, Arena *arena) {
    (void)json; // an object either way
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

// The presets of one kind, as an answer shows them.
typedef struct {
    const char *kind; // its plural is the key of the list
    const TableColumn *columns;
    int num_columns, num_presets;
    const char **names; // [num_presets + 1], ends with NULL
    const char **cells; // [num_presets][num_columns]
    cJSON *list;        // of all; NULL unless that is asked for
    bool row_before;    // one that is shown follows its row of the list
} Presets;

static Presets presets_new(const char *kind, const TableColumn *columns, int num_columns,
                           int max_presets, const CommonOptions *options, Arena *arena) {
    return (Presets){
        .kind = kind,
        .columns = columns,
        .num_columns = num_columns,
        .names = ARENA_ARRAY(arena, max_presets + 1, const char *),
        .cells = ARENA_ARRAY(arena, max_presets * num_columns, const char *),
        .list = options->json && !options->scenario ? cJSON_CreateArray() : NULL,
    };
}

// Adds one by its cells, of which the first is its name.
static void presets_add(Presets *presets, const char *const *cells) {
    memcpy(presets->cells + presets->num_presets * presets->num_columns, cells,
           (size_t)presets->num_columns * sizeof *cells);
    presets->names[presets->num_presets++] = cells[0];
}

static void presets_print(const Presets *presets, int first, int num, Arena *arena) {
    Table table = table_new(arena, presets->columns, presets->num_columns);
    for (int i = first; i < first + num; i++)
        table_add(&table, STYLE_PLAIN, presets->cells + i * presets->num_columns, NULL);
    Paper paper = paper_of(stdout);
    table_print(&table, &paper);
}

// The list, or the preset that is named, of which show prints the object.
static Status presets_answer(const Presets *presets, const CommonOptions *options,
                             Status (*show)(const char *name, bool json, Arena *arena),
                             Arena *arena) {
    if (presets->list)
        return answer_json(list_document(arena_printf(arena, "%ss", presets->kind), presets->list));
    if (!options->scenario) {
        presets_print(presets, 0, presets->num_presets, arena);
        return status_ok();
    }
    for (int i = 0; i < presets->num_presets; i++) {
        if (strcmp(options->scenario, presets->names[i]) != 0) continue;
        if (!options->json && presets->row_before) {
            presets_print(presets, i, 1, arena);
            putchar('\n');
        }
        return show(presets->names[i], options->json, arena);
    }
    return preset_unknown(presets->kind, options->scenario, presets->names);
}

static Status model_show(const char *name, bool json, Arena *arena) {
    return model_summary_print(name, json, false, arena);
}

static Status models_answer(const ModelsOptions *all, Arena *arena) {
    const CommonOptions *options = &all->common;
    if (options->scenario && (value_is_path(options->scenario) || all->text_only))
        return model_summary_print(options->scenario, options->json, all->text_only, arena);
    static const TableColumn COLUMNS[] = {
        {"model", false, 0}, {"family", false, 2}, {"parameters", true, 0},
        {"active", true, 1}, {"source", false, 3},
    };
    ModelSummary *models;
    int num_models;
    TRY(model_list(arena, &models, &num_models));
    Presets presets = presets_new("model", COLUMNS, 5, num_models, options, arena);
    for (int i = 0; i < num_models; i++) {
        const ModelSummary *m = &models[i];
        char parameters[UNITS_SIZE], active[UNITS_SIZE];
        units_count(m->num_parameters, parameters);
        units_count(m->active_parameters, active);
        const char *cells[] = {m->name, m->model_type, arena_strdup(arena, parameters),
                               arena_strdup(arena, active), m->source};
        presets_add(&presets, cells);
        if (presets.list) cJSON_AddItemToArray(presets.list, model_to_json(m));
    }
    return presets_answer(&presets, options, model_show, arena);
}

static Status clusters_answer(const CommonOptions *options, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"cluster", false, 0}, {"GPU", false, 0}, {"per node", true, 0}, {"link", false, 0},
        {"domain", true, 1},   {"NICs", true, 2}, {"each", true, 2},     {"title", false, 3},
    };
    ClusterSummary *clusters;
    int num_clusters;
    TRY(cluster_list(arena, &clusters, &num_clusters));
    Presets presets = presets_new("cluster", COLUMNS, 8, num_clusters, options, arena);
    for (int i = 0; i < num_clusters; i++) {
        const ClusterSummary *c = &clusters[i];
        const char *cells[] = {c->name,
                               c->gpu,
                               arena_printf(arena, "%d", c->gpus_per_node),
                               c->link,
                               arena_printf(arena, "%d", c->domain_gpus),
                               arena_printf(arena, "%d", c->nics_per_node),
                               arena_printf(arena, "%g GB/s", c->nic_bytes_per_s / 1e9),
                               c->title};
        presets_add(&presets, cells);
        if (presets.list) cJSON_AddItemToArray(presets.list, cluster_to_json(c));
    }
    presets.row_before = true;
    return presets_answer(&presets, options, cluster_show, arena);
}

Status command_models(int argc, char **argv) {
    ModelsOptions options = {0};
    TRY(command_parse(&MODELS_ARGP, argc, argv, &options.common));
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
