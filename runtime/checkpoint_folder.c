#include "runtime/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const CHECKPOINT_FILES[CHECKPOINT_NUM_FILES] = {"masters.f64", "moment.f64",
                                                            "variance.f64"};
static const char HEAD[] = "checkpoint.json";

void checkpoint_path(char path[CHECKPOINT_PATH_SIZE], const char *folder, const char *ending,
                     const char *name) {
    snprintf(path, CHECKPOINT_PATH_SIZE, "%s%s/%s", folder, ending, name);
}

static void folder_path(char path[CHECKPOINT_PATH_SIZE], const char *folder, const char *ending) {
    snprintf(path, CHECKPOINT_PATH_SIZE, "%s%s", folder, ending);
}

static bool is_there(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

// --- Before

// Refuses a folder, which need not be there, that holds what is no part of a checkpoint: that could
// not be replaced by another.
static Status foreign_refuse(const char *folder) {
    DIR *entries = opendir(folder);
    Status status = status_ok();
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        bool own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, HEAD) == 0;
        for (int i = 0; i < CHECKPOINT_NUM_FILES; i++)
            own = own || strcmp(name, CHECKPOINT_FILES[i]) == 0;
        if (own || status.code != STATUS_OK) continue;
        status = status_error(STATUS_INVALID,
                              "%s: holds %.200s, which is no part of a checkpoint; expected that "
                              "it is moved away",
                              folder, name);
    }
    if (entries) closedir(entries);
    return status;
}

static void parent_path(char parent[CHECKPOINT_PATH_SIZE], const char *folder) {
    snprintf(parent, CHECKPOINT_PATH_SIZE, "%s", folder);
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    else
        strcpy(parent, ".");
}

Status checkpoint_folder_check(const char *folder) {
    char path[CHECKPOINT_PATH_SIZE];
    if (strlen(folder) + 40 > sizeof path)
        return status_error(STATUS_INVALID, "%.60s...: the path is too long", folder);
    checkpoint_path(path, folder, "", HEAD);
    if (is_there(folder) && !is_there(path))
        return status_error(STATUS_INVALID,
                            "%s: is there already and no checkpoint; expected a new folder's name",
                            folder);
    TRY(foreign_refuse(folder));
    folder_path(path, folder, ".new");
    TRY(foreign_refuse(path));
    parent_path(path, folder);
    if (access(path, W_OK | X_OK) == 0) return status_ok();
    return status_error(STATUS_INVALID, "%s: %s", folder, strerror(errno));
}

// --- FOLDER.new

static void folder_remove(const char *folder, const char *ending) {
    char path[CHECKPOINT_PATH_SIZE];
    for (int i = 0; i < CHECKPOINT_NUM_FILES; i++) {
        checkpoint_path(path, folder, ending, CHECKPOINT_FILES[i]);
        unlink(path);
    }
    checkpoint_path(path, folder, ending, HEAD);
    unlink(path);
    folder_path(path, folder, ending);
    rmdir(path);
}

void checkpoint_folder_drop(const char *folder) {
    folder_remove(folder, ".new");
}

Status checkpoint_folder_make(const char *folder) {
    char aside[CHECKPOINT_PATH_SIZE];
    folder_path(aside, folder, ".new");
    checkpoint_folder_drop(folder);
    TRY(foreign_refuse(aside));
    if (mkdir(aside, 0777) != 0)
        return status_error(STATUS_MACHINE, "%s: %s", aside, strerror(errno));
    return status_ok();
}

// --- It takes its place

// What was written to a file or folder lies on the disk.
static Status path_sync(const char *path) {
    const int fd = open(path, O_RDONLY);
    const bool done = fd >= 0 && fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    return done ? status_ok() : status_error(STATUS_MACHINE, "%s: %s", path, strerror(error));
}

static Status aside_sync(const char *folder) {
    char path[CHECKPOINT_PATH_SIZE];
    checkpoint_path(path, folder, ".new", HEAD);
    TRY(path_sync(path));
    folder_path(path, folder, ".new");
    return path_sync(path);
}

// For file systems that cannot exchange two names. Until FOLDER has its name again what was left by
// a run that ended in between must stay.
static int names_move(const char *aside, const char *folder) {
    char before[CHECKPOINT_PATH_SIZE];
    folder_path(before, folder, ".replaced");
    if (is_there(folder)) {
        folder_remove(folder, ".replaced");
        if (rename(folder, before) != 0) return -1;
    }
    if (rename(aside, folder) == 0) return 0;
    const int error = errno;
    (void)!rename(before, folder); // names_exchange sees whether it is back
    errno = error;
    return -1;
}

static Status names_exchange(const char *folder) {
    char aside[CHECKPOINT_PATH_SIZE], before[CHECKPOINT_PATH_SIZE];
    folder_path(aside, folder, ".new");
    folder_path(before, folder, ".replaced");
    int failed = renameat2(AT_FDCWD, aside, AT_FDCWD, folder, RENAME_EXCHANGE);
    if (failed && (errno == ENOENT || errno == EINVAL || errno == ENOSYS))
        failed = names_move(aside, folder);
    if (!failed) return status_ok();
    const int error = errno;
    const bool moved = !is_there(folder) && is_there(before);
    return status_error(STATUS_MACHINE, "%s: %s cannot take its place: %s%s%s", folder, aside,
                        strerror(error), moved ? "; the checkpoint before is " : "",
                        moved ? before : "");
}

Status checkpoint_folder_replace(const char *folder) {
    char parent[CHECKPOINT_PATH_SIZE];
    Status status = aside_sync(folder);
    if (status.code == STATUS_OK) status = names_exchange(folder);
    if (status.code != STATUS_OK) {
        checkpoint_folder_drop(folder);
        return status;
    }
    parent_path(parent, folder);
    status = path_sync(parent);
    if (status.code != STATUS_OK)
        return status_error(STATUS_MACHINE,
                            "%.200s: is saved, but may lose its name if the computer fails; the "
                            "checkpoint before stays beside it: %.250s",
                            folder, status.text);
    folder_remove(folder, ".new"); // now the one before
    folder_remove(folder, ".replaced");
    return status_ok();
}

const char *checkpoint_folder_find(const char *folder, Arena *arena) {
    char head[CHECKPOINT_PATH_SIZE];
    checkpoint_path(head, folder, ".replaced", HEAD);
    if (is_there(folder) || !is_there(head)) return folder;
    return arena_printf(arena, "%s.replaced", folder);
}
