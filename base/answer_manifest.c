#include "base/answer_manifest.h"

#include "base/file_hash.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ENTRIES = 10000 };

// --- Files

Status file_state(const char *path, Arena *arena, FileState *out) {
    struct stat info;
    *out = (FileState){0};
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT) return status_ok();
        return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
    }
    out->there = true;
    out->regular = S_ISREG(info.st_mode);
    if (!out->regular) return status_ok();
    out->program = (info.st_mode & S_IXUSR) != 0;
    out->file_bytes = (double)info.st_size;
    out->hash = file_hash(path, arena);
    if (out->hash) return status_ok();
    return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
}

bool file_state_same(const FileState *a, const FileState *b) {
    return a->there && b->there && a->regular && b->regular && a->file_bytes == b->file_bytes &&
           strcmp(a->hash, b->hash) == 0;
}

bool manifest_name_is_legal(const char *name) {
    static const char OWN[] = ".meshwright";
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strncmp(name, OWN, sizeof OWN - 1) != 0 && strlen(name) <= 255;
}

// --- Reading

typedef struct {
    int schema;
    const char *version;
} Head;

static const JsonField HEAD[] = {
    {.key = "schema",
     .kind = JSON_FIELD_INT,
     .offset = offsetof(Head, schema),
     .min = 1,
     .max = 1,
     .required = true},
    {.key = "version", .kind = JSON_FIELD_STRING, .offset = offsetof(Head, version)},
    {.key = "files", .kind = JSON_FIELD_OTHER, .required = true},
};

#define TEXT(name, member)                                                                         \
    {                                                                                              \
        .key = (name), .kind = JSON_FIELD_STRING, .offset = offsetof(AnswerEntry, member),         \
        .required = true                                                                           \
    }
static const JsonField ENTRY[] = {
    TEXT("name", name),
    TEXT("part", part),
    TEXT("answer", answer),
    TEXT("of", root),
    TEXT("fnv1a64", state.hash),
    {.key = "file_bytes",
     .kind = JSON_FIELD_DOUBLE,
     .offset = offsetof(AnswerEntry, state.file_bytes),
     .min = 0,
     .max = 1e18,
     .required = true},
};

static Status entry_read(const JsonNode *node, Arena *arena, AnswerEntry *out) {
    *out = (AnswerEntry){.state = {.there = true, .regular = true}};
    TRY(json_read_object(node, ENTRY, sizeof ENTRY / sizeof *ENTRY, arena, out));
    if (manifest_name_is_legal(out->name)) return status_ok();
    const JsonNode name = json_get(node, "name");
    return json_error(&name, "\"%.60s\" is no name of an answer's file", out->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const AnswerEntry *)a)->name, ((const AnswerEntry *)b)->name);
}

static Status entries_read(const JsonNode *root, Arena *arena, AnswerManifest *out) {
    Head head = {0};
    TRY(json_read_object(root, HEAD, sizeof HEAD / sizeof *HEAD, arena, &head));
    const JsonNode files = json_get(root, "files");
    TRY(json_expect_array(&files));
    const int num = json_size(&files);
    if (num > MAX_ENTRIES)
        return json_error(&files, "%d files; expected at most %d", num, MAX_ENTRIES);
    out->entries = ARENA_ARRAY(arena, num, AnswerEntry);
    for (; out->num_entries < num; out->num_entries++) {
        const JsonNode item = json_at(&files, out->num_entries);
        TRY(entry_read(&item, arena, &out->entries[out->num_entries]));
    }
    qsort(out->entries, (size_t)num, sizeof *out->entries, by_name);
    return status_ok();
}

Status manifest_read(const char *path, Arena *arena, AnswerManifest *out) {
    struct stat info;
    JsonNode root;
    *out = (AnswerManifest){0};
    if (lstat(path, &info) != 0 && errno == ENOENT) return status_ok();
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return status_at(STATUS_INVALID, path, "", "is not a regular file");
    Status status = json_load(path, arena, &root);
    if (status.code == STATUS_OK) status = entries_read(&root, arena, out);
    if (status.code != STATUS_INVALID) return status;
    return status_error(STATUS_INVALID,
                        "%.450s; it lists the files of an answer: without it all there are yours",
                        status.text);
}

// --- Writing

Status manifest_save(const AnswerManifest *manifest, const char *path) {
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddNumberToObject(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "version", "meshwright " MESHWRIGHT_VERSION);
    cJSON *files = cJSON_AddArrayToObject(tree, "files");
    for (int i = 0; i < manifest->num_entries; i++) {
        const AnswerEntry *entry = &manifest->entries[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", entry->name);
        cJSON_AddStringToObject(row, "part", entry->part);
        cJSON_AddStringToObject(row, "answer", entry->answer);
        cJSON_AddStringToObject(row, "of", entry->root);
        cJSON_AddNumberToObject(row, "file_bytes", entry->state.file_bytes);
        cJSON_AddStringToObject(row, "fnv1a64", entry->state.hash);
        cJSON_AddItemToArray(files, row);
    }
    const Status status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

const AnswerEntry *manifest_find(const AnswerManifest *manifest, const char *name) {
    for (int i = 0; i < manifest->num_entries; i++)
        if (strcmp(manifest->entries[i].name, name) == 0) return &manifest->entries[i];
    return NULL;
}
