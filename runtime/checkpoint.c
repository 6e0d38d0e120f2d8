#include "runtime/checkpoint.h"

#include "base/json.h"
#include "runtime/checkpoint_head.h"
#include "runtime/global_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NUM_FILES = 3, CHECKSUM_SIZE = 17 };

static const struct {
    const char *name;
    GlobalKind kind;
} FILES[NUM_FILES] = {{"masters.f64", GLOBAL_MASTERS},
                      {"moment.f64", GLOBAL_MOMENT},
                      {"variance.f64", GLOBAL_VARIANCE}};

static int num_files(const Rank *rank) {
    return rank->scenario->training.optimizer == OPTIMIZER_ADAM ? NUM_FILES : NUM_FILES - 1;
}

static void path_of(char *path, const char *folder, const char *ending, const char *name) {
    snprintf(path, PATH_SIZE, "%s%s/%s", folder, ending, name);
}

// --- Checksums

// 64 bits of all numbers and their order: each word is mixed into the sum before it (the mixer of
// Steele, Lea, Flood, OOPSLA 2014).
static Status checksum_make(const char *path, int64_t elements, char text[CHECKSUM_SIZE]) {
    enum { PIECE = 8192 };
    uint64_t words[PIECE], sum = 0;
    struct stat is;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &is) != 0) {
        const int error = errno;
        if (file) fclose(file);
        return status_error(STATUS_INVALID, "%s: %s", path, strerror(error));
    }
    for (size_t num; (num = fread(words, sizeof *words, PIECE, file)) > 0;)
        for (size_t i = 0; i < num; i++) {
            sum = (sum ^ words[i]) + 0x9e3779b97f4a7c15u;
            sum = (sum ^ (sum >> 30)) * 0xbf58476d1ce4e5b9u;
            sum = (sum ^ (sum >> 27)) * 0x94d049bb133111ebu;
            sum ^= sum >> 31;
        }
    fclose(file);
    if (is.st_size != elements * (int64_t)sizeof(double))
        return status_error(STATUS_INVALID,
                            "%s: %lld bytes, expected %lld: the checkpoint is truncated or of "
                            "another model",
                            path, (long long)is.st_size,
                            (long long)(elements * (int64_t)sizeof(double)));
    snprintf(text, CHECKSUM_SIZE, "%016llx", (unsigned long long)sum);
    return status_ok();
}

// --- Saving

// Whether all processes are well; waits for all.
static Status agree(const Rank *rank, Status own, const char *what) {
    double failures = own.code != STATUS_OK;
    const Status status = rank_reduce(rank, &failures, 1, REDUCE_SUM);
    TRY(own);
    TRY(status);
    if (failures == 0) return status_ok();
    return status_error(STATUS_MACHINE, "%s: another process failed", what);
}

static Status head_write(const Rank *rank, const char *folder, const CheckpointHead *head) {
    char path[PATH_SIZE], checksum[CHECKSUM_SIZE];
    cJSON *tree = checkpoint_head_tree(rank->scenario, head);
    cJSON *checksums = cJSON_AddArrayToObject(tree, "checksums");
    Status status = status_ok();
    for (int i = 0; i < num_files(rank) && status.code == STATUS_OK; i++) {
        path_of(path, folder, ".new", FILES[i].name);
        status = checksum_make(path, head->elements, checksum);
        cJSON_AddItemToArray(checksums, cJSON_CreateString(checksum));
    }
    path_of(path, folder, ".new", "checkpoint.json");
    if (status.code == STATUS_OK) status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

static void folder_remove(const char *folder, const char *ending) {
    char path[PATH_SIZE];
    for (int i = 0; i < NUM_FILES; i++) {
        path_of(path, folder, ending, FILES[i].name);
        unlink(path);
    }
    path_of(path, folder, ending, "checkpoint.json");
    unlink(path);
    snprintf(path, sizeof path, "%s%s", folder, ending);
    rmdir(path);
}

// What was written to a file or folder lies on the disk.
static Status path_sync(const char *path) {
    const int fd = open(path, O_RDONLY);
    const bool done = fd >= 0 && fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    return done ? status_ok() : status_error(STATUS_MACHINE, "%s: %s", path, strerror(error));
}

static Status parent_sync(const char *folder) {
    char parent[PATH_SIZE];
    snprintf(parent, sizeof parent, "%s", folder);
    char *slash = strrchr(parent, '/');
    if (!slash) return path_sync(".");
    slash[slash == parent] = '\0';
    return path_sync(parent);
}

// For file systems that cannot exchange two names.
static int folder_replace(const char *aside, const char *folder) {
    char before[PATH_SIZE];
    snprintf(before, sizeof before, "%s.old", folder);
    folder_remove(folder, ".old");
    if (rename(folder, before) != 0) return -1;
    if (rename(aside, folder) == 0) {
        folder_remove(folder, ".old");
        return 0;
    }
    const int error = errno;
    rename(before, folder);
    errno = error;
    return -1;
}

// The folder aside takes its place, in one step where there was one before.
static Status folder_swap(const char *folder) {
    char aside[PATH_SIZE], head[PATH_SIZE];
    snprintf(aside, sizeof aside, "%s.new", folder);
    path_of(head, folder, ".new", "checkpoint.json");
    TRY(path_sync(head));
    TRY(path_sync(aside));
    int failed = renameat2(AT_FDCWD, aside, AT_FDCWD, folder, RENAME_EXCHANGE);
    if (failed && errno == ENOENT)
        failed = rename(aside, folder);
    else if (failed && (errno == EINVAL || errno == ENOSYS))
        failed = folder_replace(aside, folder);
    if (failed) return status_error(STATUS_MACHINE, "%s: %s", folder, strerror(errno));
    TRY(parent_sync(folder));
    folder_remove(folder, ".new"); // now the one before
    return status_ok();
}

// Refuses a folder, which need not be there, that holds what is no part of a checkpoint: that could
// not be replaced by another.
static Status foreign_refuse(const char *folder) {
    DIR *entries = opendir(folder);
    Status status = status_ok();
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        bool own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                   strcmp(name, "checkpoint.json") == 0;
        for (int i = 0; i < NUM_FILES; i++) own = own || strcmp(name, FILES[i].name) == 0;
        if (own || status.code != STATUS_OK) continue;
        status = status_error(STATUS_INVALID,
                              "%s: holds %.200s, which is no part of a checkpoint; expected that "
                              "it is moved away",
                              folder, name);
    }
    if (entries) closedir(entries);
    return status;
}

static Status folder_make(const char *folder) {
    char aside[PATH_SIZE];
    snprintf(aside, sizeof aside, "%s.new", folder);
    folder_remove(folder, ".new");
    TRY(foreign_refuse(aside));
    if (mkdir(aside, 0777) != 0)
        return status_error(STATUS_MACHINE, "%s: %s", aside, strerror(errno));
    return status_ok();
}

Status checkpoint_check_model(const Scenario *scenario, const char *folder, Arena *arena) {
    char path[PATH_SIZE];
    JsonNode root;
    path_of(path, folder, "", "checkpoint.json");
    if (access(path, F_OK) != 0) return status_ok();
    TRY(json_load(arena_strdup(arena, path), arena, &root));
    return checkpoint_head_check_model(scenario, &root, arena);
}

Status checkpoint_check(const char *folder) {
    char path[PATH_SIZE];
    struct stat info;
    if (strlen(folder) + 40 > sizeof path)
        return status_error(STATUS_INVALID, "%.60s...: the path is too long", folder);
    path_of(path, folder, "", "checkpoint.json");
    if (stat(folder, &info) == 0 && stat(path, &info) != 0)
        return status_error(STATUS_INVALID,
                            "%s: is there already and no checkpoint; expected a new folder's name",
                            folder);
    TRY(foreign_refuse(folder));
    snprintf(path, sizeof path, "%s.new", folder);
    TRY(foreign_refuse(path));
    snprintf(path, sizeof path, "%s", folder);
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    if (access(slash ? path : ".", W_OK | X_OK) == 0) return status_ok();
    return status_error(STATUS_INVALID, "%s: %s", folder, strerror(errno));
}

Status checkpoint_save(const Rank *rank, const char *folder, uint64_t seed, int64_t step) {
    const bool first = rank->world->rank == 0;
    const CheckpointHead head = {.elements = model_parameter_elements(rank->scenario, rank->plan),
                                 .step = step,
                                 .seed = seed};
    TRY(agree(rank, first ? folder_make(folder) : status_ok(), folder));
    Status status = status_ok();
    for (int i = 0; i < num_files(rank) && status.code == STATUS_OK; i++) {
        char path[PATH_SIZE];
        path_of(path, folder, ".new", FILES[i].name);
        status = global_file_write(rank, path, FILES[i].kind);
    }
    status = agree(rank, status, folder);
    if (status.code == STATUS_OK && first) {
        status = head_write(rank, folder, &head);
        if (status.code == STATUS_OK) status = folder_swap(folder);
    }
    if (status.code != STATUS_OK && first) folder_remove(folder, ".new");
    return agree(rank, status, folder);
}

// --- Loading

static Status checksums_check(const Rank *rank, const char *folder, const JsonNode *root,
                              int64_t elements, Arena *arena) {
    const JsonNode list = json_get(root, "checksums");
    TRY(json_expect_array(&list));
    if (json_size(&list) != num_files(rank))
        return json_error(&list, "%d files, expected %d: it is of another optimizer",
                          json_size(&list), num_files(rank));
    for (int i = 0; i < num_files(rank); i++) {
        char path[PATH_SIZE], found[CHECKSUM_SIZE];
        const char *expected;
        const JsonNode node = json_at(&list, i);
        TRY(json_read_string(&node, arena, &expected));
        path_of(path, folder, "", FILES[i].name);
        TRY(checksum_make(path, elements, found));
        if (strcmp(expected, found) != 0)
            return status_error(STATUS_INVALID,
                                "%s: its checksum is %s, expected %s: the checkpoint is damaged",
                                path, found, expected);
    }
    return status_ok();
}

Status checkpoint_load(const Rank *rank, const char *folder, uint64_t seed, Arena *arena,
                       int64_t *step) {
    char path[PATH_SIZE];
    JsonNode root;
    CheckpointHead head = {.elements = model_parameter_elements(rank->scenario, rank->plan),
                           .seed = seed};
    path_of(path, folder, "", "checkpoint.json");
    TRY(json_load(arena_strdup(arena, path), arena, &root));
    TRY(checkpoint_head_read(rank->scenario, &root, arena, &head));
    TRY(checksums_check(rank, folder, &root, head.elements, arena));
    for (int i = 0; i < num_files(rank); i++) {
        path_of(path, folder, "", FILES[i].name);
        TRY(global_file_read(rank, path, FILES[i].kind));
    }
    path_of(path, folder, "", FILES[0].name);
    *step = head.step;
    return global_file_read(rank, path, GLOBAL_WEIGHTS);
}
