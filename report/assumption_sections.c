#include "report/assumption_sections.h"

#include "base/data_dir.h"
#include "base/file_hash.h"
#include "config/job/scenario_inputs.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 64 };

// A file that was read.
typedef struct {
    const char *what, *name; // name: as the user or this program calls it
    const char *path;
    bool flat; // its keys are listed; of kernel profiles they are thousands of coefficients
} ReadFile;

typedef struct {
    ReadFile files[MAX_FILES];
    int num_files;
    Arena *arena;
} FileList;

static void file_add(FileList *list, const char *what, const char *name, const char *path,
                     bool flat) {
    for (int i = 0; i < list->num_files; i++)
        if (strcmp(list->files[i].path, path) == 0) return;
    if (list->num_files < MAX_FILES)
        list->files[list->num_files++] = (ReadFile){what, name, path, flat};
}

// A bundled one, where there is one of that name.
static void bundled_add(FileList *list, const char *what, const char *folder, const char *name,
                        bool flat) {
    if (!name || strchr(name, '/')) return;
    const char *path = data_path(list->arena, folder, name);
    if (access(path, R_OK) == 0)
        file_add(list, what, arena_printf(list->arena, "%s/%s.json", folder, name), path, flat);
}

static const char *member_text(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void pool_add(FileList *list, const Pool *pool) {
    const char *bundled = data_path(list->arena, "hw-profiles/gpus", pool->gpu.name);
    const char *kernels = pool->gpu.kernels_of;
    if (strcmp(bundled, pool->gpu.file) == 0)
        bundled_add(list, "GPU profile", "hw-profiles/gpus", pool->gpu.name, true);
    if (kernels && value_is_path(kernels))
        file_add(list, "kernel profile", kernels, path_beside(list->arena, pool->gpu.file, kernels),
                 false);
    else
        bundled_add(list, "kernel profile", "hw-profiles/kernels", kernels, false);
    bundled_add(list, "link profile", "hw-profiles/links", pool->scale_up.name, true);
    bundled_add(list, "network profile", "hw-profiles/links", pool->scale_out.name, true);
}

// The scenario itself is listed with the plan; other files are no JSON, or too long to read.
static bool is_profile(const ScenarioInput *input) {
    enum { MAX_BYTES = 200000 };
    static const char *const names[] = {"model", "cluster", "GPU profile", "link profile",
                                        "calibration"};
    struct stat info;
    if (stat(input->path, &info) != 0 || info.st_size > MAX_BYTES) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(input->what, names[i]) == 0) return true;
    return false;
}

static void files_find(FileList *list, const Scenario *scenario) {
    const ScenarioInput *inputs;
    const int num_inputs = scenario_inputs(scenario, list->arena, &inputs);
    for (int i = 0; i < num_inputs; i++)
        file_add(list, inputs[i].what, inputs[i].path, inputs[i].path, is_profile(&inputs[i]));
    bundled_add(list, "model", "models", member_text(scenario->document, "model"), true);
    const char *cluster = member_text(scenario->document, "cluster");
    if (cluster && !value_is_json_path(cluster)) {
        char *preset = arena_strdup(list->arena, cluster);
        preset[strcspn(preset, ":")] = '\0';
        bundled_add(list, "cluster", "hw-profiles/clusters", preset, true);
    }
    for (int i = 0; i < scenario->cluster.num_pools; i++)
        pool_add(list, &scenario->cluster.pools[i]);
    bundled_add(list, "software", "stacks", scenario->execution.stack.name, true);
    if (!scenario->calibration || !scenario->calibration->path)
        bundled_add(list, "errors of whole steps", "hw-profiles", "steps", true);
}

static void files_section(Document *document, const FileList *list) {
    static const DocumentColumn columns[] = {
        {"what", "what"}, {"file", "file"}, {"fnv1a64", "hash (FNV-1a, 64 bits)"}};
    const SectionSpec spec = {
        .id = "files", .title = "Files that were read", SECTION_COLUMNS(columns)};
    cJSON *section = document_section(document, &spec);
    cJSON *row = section_row(section);
    row_text(row, "program");
    row_text(row, "meshwright " MESHWRIGHT_VERSION);
    row_text(row, NULL);
    for (int i = 0; i < list->num_files; i++) {
        row = section_row(section);
        row_text(row, list->files[i].what);
        row_text(row, list->files[i].name);
        row_text(row, file_hash(list->files[i].path, list->arena));
    }
}

// --- Keys and values

static cJSON *values_section(Document *document, const char *what, const char *name,
                             bool with_sources, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"key", "key"}, {"value", "value"}, {"source", "source"}};
    const SectionSpec spec = {
        .id = "assumptions",
        .title = name ? arena_printf(arena, "%s: %s", what, name) : what,
        .columns = columns,
        .num_columns = with_sources ? 3 : 2,
    };
    return document_section(document, &spec);
}

// The source of a value: of the innermost key on its way that has one.
static const char *source_of(const cJSON *sources, const char *path, Arena *arena) {
    const char *found = NULL;
    char *copy = arena_strdup(arena, path), *rest = NULL;
    for (char *key = strtok_r(copy, ".[", &rest); key; key = strtok_r(NULL, ".[", &rest)) {
        const char *source = member_text(sources, key);
        if (source) found = source;
    }
    return found;
}

// An array of plain values is one value.
static bool is_plain(const cJSON *value) {
    const cJSON *item;
    if (cJSON_IsObject(value)) return false;
    cJSON_ArrayForEach(item, value) if (cJSON_IsObject(item) || cJSON_IsArray(item)) return false;
    return true;
}

static void values_add(cJSON *section, const cJSON *value, const char *path, const cJSON *sources,
                       bool with_sources, Arena *arena) {
    const cJSON *item;
    int index = 0;
    if (is_plain(value)) {
        cJSON *row = section_row(section);
        row_text(row, path);
        row_value(row, value);
        if (with_sources) row_text(row, source_of(sources, path, arena));
        return;
    }
    cJSON_ArrayForEach(item, value) {
        if (item == sources || (item->string && strcmp(item->string, "provenance") == 0)) continue;
        const char *way = cJSON_IsArray(value) ? arena_printf(arena, "%s[%d]", path, index++)
                                               : arena_printf(arena, "%s%s%s", path,
                                                              path[0] ? "." : "", item->string);
        values_add(section, item, way, sources, with_sources, arena);
    }
}

static void document_values(Document *document, const char *what, const char *name,
                            const cJSON *root, Arena *arena) {
    const cJSON *sources = cJSON_GetObjectItemCaseSensitive(root, "sources");
    cJSON *section = values_section(document, what, name, sources != NULL, arena);
    values_add(section, root, "", sources, sources != NULL, arena);
}

Status assumption_sections(Document *document, const Scenario *scenario, const Plan *plan,
                           Arena *arena) {
    FileList list = {.arena = arena};
    files_find(&list, scenario);
    document_part(document, "What the figures rest on",
                  "Every file, and every value in it. The same files give the same figures.");
    files_section(document, &list);
    cJSON *stated = plan ? plan_document(scenario, plan, NULL) : NULL;
    document_values(document, plan ? "the job and the plan" : "the job", NULL,
                    plan ? stated : scenario->document, arena);
    cJSON_Delete(stated);
    for (int i = 0; i < list.num_files; i++) {
        const ReadFile *file = &list.files[i];
        JsonNode root;
        if (!file->flat) continue;
        TRY(json_load(file->path, arena, &root));
        document_values(document, file->what, file->name, root.item, arena);
    }
    return status_ok();
}
