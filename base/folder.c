#include "base/folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

StatusCode folder_write_failure(int error) {
    switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOSPC:
    case EDQUOT:
    case EIO:
        return STATUS_MACHINE;
    default:
        return STATUS_INVALID;
    }
}

// Makes a folder in `path` and removes it again: the one test that holds for every user and file
// system. Its name is always the same, so that what a killed process leaves goes with the next.
Status folder_check_existing(const char *path, const char *wanted) {
    char probe[4200];
    snprintf(probe, sizeof probe, "%s/.meshwright.probe", path);
    if (mkdir(probe, 0777) == 0 || errno == EEXIST) {
        rmdir(probe);
        return status_ok();
    }
    return status_at(folder_write_failure(errno), wanted, "", "cannot be written: %s",
                     strerror(errno));
}

// A name that is taken for one file's, as in "-o plan.json".
static bool looks_like_file(const char *path) {
    static const char *const ENDS[] = {".json", ".yaml", ".html", ".md", ".csv", ".txt", ".sh"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        const size_t end = strlen(ENDS[i]);
        if (length > end && strcmp(path + length - end, ENDS[i]) == 0) return true;
    }
    return false;
}

Status folder_check(const char *path) {
    char parent[4096];
    if (path[0] == '\0') return status_error(STATUS_INVALID, "meshwright: -o: the name is empty");
    if (looks_like_file(path) && access(path, F_OK) != 0)
        return status_at(STATUS_INVALID, path, "",
                         "reads like a file; -o takes a folder here, for several files");
    if (snprintf(parent, sizeof parent, "%s", path) >= (int)sizeof parent)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    for (size_t end = strlen(parent); end > 1 && parent[end - 1] == '/';) parent[--end] = '\0';
    // Up to the nearest part that exists.
    for (;;) {
        struct stat info;
        if (stat(parent, &info) == 0) {
            if (S_ISDIR(info.st_mode)) return folder_check_existing(parent, path);
            return status_at(STATUS_INVALID, path, "", "cannot be written: %s is not a folder",
                             parent);
        }
        if (errno != ENOENT)
            return status_at(folder_write_failure(errno), path, "", "cannot be written: %s",
                             strerror(errno));
        if (lstat(parent, &info) == 0)
            return status_at(STATUS_INVALID, path, "",
                             "cannot be written: %s is a link that leads nowhere", parent);
        char *slash = strrchr(parent, '/');
        while (slash && slash > parent && slash[1] == '\0') { // trailing slashes
            *slash = '\0';
            slash = strrchr(parent, '/');
        }
        if (!slash)
            strcpy(parent, ".");
        else if (slash == parent)
            strcpy(parent, "/");
        else
            *slash = '\0';
    }
}

static Status folder_make_one(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return status_ok();
    if (mkdir(path, 0777) == 0) return status_ok();
    const int error = errno; // another process may have been faster
    if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return status_ok();
    return status_at(STATUS_MACHINE, path, "", "cannot be made: %s", strerror(error));
}

static Status parts_make(const char *path) {
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        TRY(folder_make_one(part));
        *c = '/';
    }
    return folder_make_one(part);
}

Status folder_make(const char *path, Arena *arena, FolderMade *out) {
    char *part = arena_strdup(arena, path);
    struct stat info;
    size_t keep = strlen(part);
    while (keep > 0 && (stat(part, &info) != 0 || !S_ISDIR(info.st_mode))) {
        while (keep > 0 && part[keep - 1] == '/') part[--keep] = '\0';
        while (keep > 0 && part[keep - 1] != '/') part[--keep] = '\0';
    }
    *out = (FolderMade){.path = arena_strdup(arena, path), .keep = keep};
    return parts_make(path);
}

void folder_unmake(const FolderMade *made) {
    if (!made->path) return;
    char part[4096];
    snprintf(part, sizeof part, "%s", made->path);
    for (size_t end = strlen(part); end > made->keep;) {
        part[end] = '\0';
        if (part[end - 1] != '/' && rmdir(part) != 0) return;
        while (end > 0 && part[end - 1] != '/') end--;
        while (end > 0 && part[end - 1] == '/') end--;
    }
}
