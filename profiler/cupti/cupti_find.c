#include "profiler/cupti/cupti_find.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of a Python's prefix: /usr/lib/python3/dist-packages, /opt/venv/lib/python3.12/site-packages.
#define WHEELS "/lib*/python3*/*-packages/nvidia/*/lib/" CUPTI_SONAME
#define TOOLKIT_EXTRAS "/extras/CUPTI/lib64/" CUPTI_SONAME
#define TOOLKIT_LIB64 "/lib64/" CUPTI_SONAME
#define TOOLKIT_LIB "/lib/" CUPTI_SONAME

static bool path_take(const char *found, char *path, size_t size) {
    int length = snprintf(path, size, "%s", found);
    if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return true;
    path[0] = '\0';
    return false;
}

// The last in alphabetical order, which is the newest of versions of one width.
static bool pattern_find(const char *folder, const char *tail, char *path, size_t size) {
    char pattern[PATH_MAX];
    int length = snprintf(pattern, sizeof pattern, "%s%s", folder, tail);
    if (length < 0 || (size_t)length >= sizeof pattern) return false;
    glob_t found = {0};
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
               path_take(found.gl_pathv[found.gl_pathc - 1], path, size);
    globfree(&found);
    return any;
}

// The file that a shell would start, "" if there is none. Links are kept: the one in a virtual
// environment tells where its packages are.
static void program_find(const char *program, char *path, size_t size) {
    path[0] = '\0';
    if (strchr(program, '/')) {
        path_take(program, path, size);
        return;
    }
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        int used = snprintf(path, size, "%.*s/%s", (int)length, folders, program);
        if (used > 0 && (size_t)used < size && access(path, X_OK) == 0) return;
        folders += length + (folders[length] == ':');
    }
    path[0] = '\0';
}

// In the wheels of PREFIX where the program is PREFIX/bin/NAME.
static bool beside_program(const char *program, char *path, size_t size) {
    char prefix[PATH_MAX];
    program_find(program, prefix, sizeof prefix);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return pattern_find(prefix, WHEELS, path, size);
}

bool cupti_find(const char *program, char *path, size_t size) {
    static const char *const TOOLKIT[] = {TOOLKIT_EXTRAS, TOOLKIT_LIB64, TOOLKIT_LIB};
    static const struct {
        const char *variable, *folder, *tail;
    } PLACES[] = {
        {"VIRTUAL_ENV", NULL, WHEELS},
        {"CONDA_PREFIX", NULL, WHEELS},
        {"HOME", NULL, "/.local" WHEELS},
        {NULL, "/usr/local", WHEELS},
        {NULL, "/usr", WHEELS},
        {NULL, "/opt/*", WHEELS},
        {NULL, "/usr/local/cuda*", TOOLKIT_EXTRAS},
        {NULL, "/usr/local/cuda*", TOOLKIT_LIB64},
        {NULL, "/usr/local/cuda*", TOOLKIT_LIB},
        {NULL, "/usr/lib", "/*-linux-gnu/" CUPTI_SONAME},
    };
    path[0] = '\0';
    const char *chosen = getenv("MESHWRIGHT_CUPTI");
    if (chosen && *chosen) return path_take(chosen, path, size);
    if (program && beside_program(program, path, size)) return true;
    const char *toolkit = getenv("CUDA_HOME");
    for (size_t i = 0; toolkit && i < sizeof TOOLKIT / sizeof *TOOLKIT; i++)
        if (pattern_find(toolkit, TOOLKIT[i], path, size)) return true;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const char *folder = PLACES[i].variable ? getenv(PLACES[i].variable) : PLACES[i].folder;
        if (folder && pattern_find(folder, PLACES[i].tail, path, size)) return true;
    }
    return false;
}
