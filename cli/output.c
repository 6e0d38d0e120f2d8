#include "cli/output.h"

#include "base/output_file.h"
#include "config/scenario_inputs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether the name is no good, or the machine refuses: a folder that is read-only, or full.
static StatusCode write_failure(int error) {
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
// system.
static Status folder_check_existing(const char *path, const char *wanted) {
    char probe[4200];
    snprintf(probe, sizeof probe, "%s/.meshwright-XXXXXX", path);
    if (mkdtemp(probe) && rmdir(probe) == 0) return status_ok();
    return status_at(write_failure(errno), wanted, "", "cannot be written: %s", strerror(errno));
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
    // Up to the nearest part that exists.
    for (;;) {
        struct stat info;
        if (stat(parent, &info) == 0) {
            if (S_ISDIR(info.st_mode)) return folder_check_existing(parent, path);
            return status_at(STATUS_INVALID, path, "", "cannot be written: %s is not a folder",
                             parent);
        }
        if (errno != ENOENT)
            return status_at(write_failure(errno), path, "", "cannot be written: %s",
                             strerror(errno));
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

Status folder_make(const char *path) {
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

Status folder_make_noted(const char *path, Arena *arena, FolderMade *out) {
    char *part = arena_strdup(arena, path);
    struct stat info;
    size_t keep = strlen(part);
    while (keep > 0 && (stat(part, &info) != 0 || !S_ISDIR(info.st_mode))) {
        while (keep > 0 && part[keep - 1] == '/') part[--keep] = '\0';
        while (keep > 0 && part[keep - 1] != '/') part[--keep] = '\0';
    }
    *out = (FolderMade){.path = arena_strdup(arena, path), .keep = keep};
    return folder_make(path);
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

Status output_check(const char *file, Arena *arena) {
    char *folder = arena_alloc(arena, OUTPUT_PATH_SIZE);
    TRY(output_target(file, folder));
    char *slash = strrchr(folder, '/');
    struct stat info;
    if (!slash) return folder_check_existing(".", file);
    slash[slash == folder ? 1 : 0] = '\0';
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return status_at(STATUS_INVALID, file, "", "cannot be written: there is no folder %s",
                         folder);
    return folder_check_existing(folder, file);
}

Status output_check_input(const char *output, const char *input, const char *what) {
    if (strcmp(output, "-") == 0 || strcmp(input, "-") == 0) return status_ok();
    if (!output_is(output, input)) return status_ok();
    return status_at(STATUS_INVALID, output, "", "is the %s %s; expected another file to write",
                     what, input);
}

Status output_check_scenario(const char *output, const Scenario *scenario, Arena *arena) {
    const ScenarioInput *inputs;
    const int num_inputs = scenario_inputs(scenario, arena, &inputs);
    for (int i = 0; i < num_inputs; i++)
        TRY(output_check_input(output, inputs[i].path, inputs[i].what));
    return status_ok();
}

Status folder_check_files(const char *folder, const char *const *names, const Scenario *scenario,
                          Arena *arena) {
    char *target = arena_alloc(arena, OUTPUT_PATH_SIZE);
    TRY(folder_check(folder));
    for (int i = 0; names[i]; i++) {
        const char *file = arena_printf(arena, "%s/%s", folder, names[i]);
        TRY(output_target(file, target));
        TRY(output_check_scenario(file, scenario, arena));
    }
    return status_ok();
}
