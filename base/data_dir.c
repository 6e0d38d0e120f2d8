#include "base/data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MESHWRIGHT_SOURCE_DIR
#define MESHWRIGHT_SOURCE_DIR "."
#endif

static int holds_data(const char *dir, Arena *arena) {
    return access(arena_printf(arena, "%s/hw-profiles/gpus", dir), R_OK) == 0;
}

const char *program_dir(Arena *arena) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    return arena_strdup(arena, program);
}

// Beside the program, which stays where it is while it runs.
static const char *dir_beside = MESHWRIGHT_SOURCE_DIR;

static void dir_beside_find(void) {
    static char found[4200];
    static const char *const BESIDE[] = {"..", "../share/meshwright"};
    Arena scratch = {0};
    const char *program = program_dir(&scratch);
    for (int i = 0; program && i < 2; i++) {
        const char *dir = arena_printf(&scratch, "%s/%s", program, BESIDE[i]);
        if (!holds_data(dir, &scratch) || strlen(dir) >= sizeof found) continue;
        memcpy(found, dir, strlen(dir) + 1);
        dir_beside = found;
        break;
    }
    arena_free(&scratch);
}

const char *data_dir(Arena *arena) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *chosen = getenv("MESHWRIGHT_DATA");
    if (chosen && chosen[0]) return arena_strdup(arena, chosen);
    pthread_once(&once, dir_beside_find);
    return dir_beside;
}

const char *data_path(Arena *arena, const char *folder, const char *name) {
    return arena_printf(arena, "%s/%s/%s.json", data_dir(arena), folder, name);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

Status data_list(Arena *arena, const char *folder, const char *const **names, int *num_names) {
    const char *path = arena_printf(arena, "%s/%s", data_dir(arena), folder);
    DIR *dir = opendir(path);
    if (!dir) return status_at(STATUS_MACHINE, path, "", "cannot be read: %s", strerror(errno));
    enum { MAX_NAMES = 1024 };
    const char **list = ARENA_ARRAY(arena, MAX_NAMES + 1, const char *);
    int n = 0;
    for (struct dirent *entry; n < MAX_NAMES && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
        char *name = arena_strdup(arena, entry->d_name);
        name[length - 5] = '\0';
        list[n++] = name;
    }
    closedir(dir);
    qsort(list, (size_t)n, sizeof *list, compare_names);
    *names = list;
    *num_names = n;
    return status_ok();
}

int value_is_json_path(const char *value) {
    static const char *const ENDS[] = {".json", ".yaml", ".yml"};
    size_t length = strlen(value);
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(ENDS[i]);
        if (length >= n && strcmp(value + length - n, ENDS[i]) == 0) return 1;
    }
    return 0;
}

int value_is_path(const char *value) {
    return strchr(value, '/') != NULL || value_is_json_path(value);
}

const char *path_beside(Arena *arena, const char *base_file, const char *path) {
    const char *slash = strrchr(base_file, '/');
    if (path[0] == '/' || !slash) return arena_strdup(arena, path);
    return arena_printf(arena, "%.*s/%s", (int)(slash - base_file), base_file, path);
}
