#include "calibrate/profile_fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// KIND.csv or KIND.csv.gz in folder; NULL where there is neither.
static const char *table_path(const char *folder, const char *kind, Arena *arena) {
    static const char *const ENDINGS[] = {"csv", "csv.gz"};
    for (int i = 0; i < 2; i++) {
        struct stat info;
        const char *path = arena_printf(arena, "%s/%s.%s", folder, kind, ENDINGS[i]);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) return path;
    }
    return NULL;
}

static Status folder_refuse(const char *folder, const Kind *only, Arena *arena) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return status_at(STATUS_INVALID, folder, "", "cannot be read: %s", strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return status_at(STATUS_INVALID, folder, "", "not a folder of tables KIND.csv[.gz]");
    if (only)
        return status_at(STATUS_INVALID, folder, "", "holds no %s.csv or %s.csv.gz", only->name,
                         only->name);
    const char *names = "";
    for (int i = 0; i < NUM_KINDS; i++)
        names = arena_printf(arena, "%s%s%s", names, i ? ", " : "", KINDS[i].name);
    return status_at(STATUS_INVALID, folder, "",
                     "holds no table KIND.csv or KIND.csv.gz; kinds are %s", names);
}

static const char MEASURED_SOURCES[] = "fitted coefficients, no rows, of what `measured` names; "
                                       "sections kept from an earlier file are "
                                       "of that file's";

static cJSON *profile_tree(const Gpu *gpu) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "gpu", gpu->name);
    cJSON *command = cJSON_AddStringToObject(tree, "command", "");
    char text[200];
    snprintf(text, sizeof text, "meshwright calibrate --kernels DIR --gpu %.60s -o FILE",
             gpu->name);
    cJSON_SetValuestring(command, text);
    cJSON_AddStringToObject(
        tree, "sources",
        "fitted coefficients, no rows. The bundled profiles are fitted to the public kernel "
        "measurements of the aiconfigurator project (NVIDIA, Apache-2.0)");
    return tree;
}

// Of tables that `profile` wrote: the device, versions, date and command of its device.json.
static Status provenance_add(const char *folder, Arena *arena, cJSON *tree) {
    const char *path = arena_printf(arena, "%s/device.json", folder);
    JsonNode root;
    if (access(path, F_OK) != 0) return status_ok();
    TRY(json_load(path, arena, &root));
    cJSON *measured = cJSON_Duplicate(root.item, true);
    cJSON_DeleteItemFromObjectCaseSensitive(measured, "schema");
    cJSON_AddItemToObject(tree, "measured", measured);
    return cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(tree, "sources"), MEASURED_SOURCES)
               ? status_ok()
               : status_error(STATUS_MACHINE, "meshwright: out of memory");
}

// A file with sections that this run does not fit, checked.
static Status base_load(const char *base, const Gpu *gpu, Arena *arena, JsonNode *root) {
    KernelProfile profile;
    TRY(kernels_load(base, gpu, arena, &profile));
    return json_load(base, arena, root);
}

static void section_keep(const JsonNode *root, const char *name, Arena *arena,
                         ProfileFit *profile) {
    JsonNode section = json_get(root, name);
    if (!json_is_present(&section)) return;
    cJSON_AddItemToObject(profile->tree, name, cJSON_Duplicate(section.item, true));
    profile->kept = profile->kept ? arena_printf(arena, "%s, %s", profile->kept, name) : name;
}

// Fits entry, the next of the profile, to its file. A table that is too short is left out where
// others are fitted as well.
static Status entry_fit(ProfileKind *entry, const Gpu *gpu, const Kind *only, Arena *arena,
                        ProfileFit *profile) {
    Status status = kind_fit_file(entry->kind, entry->path, entry->backward, gpu, arena,
                                  &entry->num_rows, &entry->fit);
    if (!only && entry->fit.too_few) {
        profile->few[profile->num_few++] = arena_strdup(arena, status.text);
        return status_ok();
    }
    TRY(status);
    cJSON_AddItemToObject(profile->tree, entry->kind->name, entry->fit.section);
    profile->num_kinds++;
    return status;
}

// Whether a kind is not fitted, as far as files tell.
static bool any_absent(const char *folder, const Kind *only, Arena *arena) {
    for (int i = 0; i < NUM_KINDS; i++)
        if (!table_path(folder, KINDS[i].name, arena)) return true;
    return only != NULL;
}

// Arrays of numbers on one line without spaces: a third of the file's size.
static void arrays_compact(cJSON *item) {
    for (cJSON *child = item->child, *next; child; child = next) {
        next = child->next;
        if (!cJSON_IsArray(child) || !cJSON_IsNumber(child->child)) {
            arrays_compact(child);
            continue;
        }
        char *text = cJSON_PrintUnformatted(child);
        cJSON *raw = cJSON_CreateRaw(text);
        cJSON_free(text);
        if (item->type == cJSON_Object) {
            char *key = strdup(child->string);
            cJSON_ReplaceItemInObjectCaseSensitive(item, key, raw);
            free(key);
        } else {
            cJSON_ReplaceItemViaPointer(item, child, raw);
        }
    }
}

// The same bytes whether a section was fitted now or kept from a file: every number is printed from
// the double that its text reads as. What is written can be read: a fit to odd tables may not be.
static Status tree_normalise(const Gpu *gpu, Arena *arena, cJSON **tree) {
    KernelProfile profile;
    char *text = cJSON_PrintUnformatted(*tree);
    Status status = kernels_parse(text, strlen(text), "the fitted profile", gpu, arena, &profile);
    cJSON_Delete(*tree);
    *tree = cJSON_Parse(text);
    cJSON_free(text);
    arrays_compact(*tree);
    return status;
}

Status profile_fit(const char *folder, const Gpu *gpu, const Kind *only, const char *base,
                   Arena *arena, ProfileFit *out) {
    JsonNode root = {0};
    if (base && !any_absent(folder, only, arena)) base = NULL;
    if (base) TRY(base_load(base, gpu, arena, &root));
    ProfileFit profile = {.kinds = ARENA_ARRAY(arena, NUM_KINDS, ProfileKind),
                          .few = ARENA_ARRAY(arena, NUM_KINDS, const char *)};
    profile.tree = profile_tree(gpu);
    Status status = provenance_add(folder, arena, profile.tree);
    for (int i = 0; i < NUM_KINDS && status.code == STATUS_OK; i++) {
        int num_before = profile.num_kinds;
        ProfileKind *entry = &profile.kinds[num_before];
        bool wanted = !only || only == &KINDS[i];
        *entry = (ProfileKind){.kind = &KINDS[i]};
        if (wanted) entry->path = table_path(folder, KINDS[i].name, arena);
        if (KINDS[i].backward) entry->backward = table_path(folder, KINDS[i].backward, arena);
        if (entry->path) status = entry_fit(entry, gpu, only, arena, &profile);
        if (base && profile.num_kinds == num_before)
            section_keep(&root, KINDS[i].name, arena, &profile);
    }
    if (status.code == STATUS_OK && profile.num_kinds == 0)
        status = profile.num_few > 0 ? status_error(STATUS_INVALID, "%s", profile.few[0])
                                     : folder_refuse(folder, only, arena);
    if (status.code == STATUS_OK) status = tree_normalise(gpu, arena, &profile.tree);
    if (status.code == STATUS_OK)
        *out = profile;
    else
        cJSON_Delete(profile.tree);
    return status;
}
