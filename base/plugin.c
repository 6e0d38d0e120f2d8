#include "base/plugin.h"

#include "base/data_dir.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The first of the places that holds the file; NULL where none does.
static const char *plugin_path(const PluginSpec *spec, Arena *arena) {
    const char *chosen = getenv(spec->variable);
    if (chosen && chosen[0]) return chosen;
    const char *program = program_dir(arena);
    static const char *const BESIDE[] = {"", "/../lib"};
    for (int i = 0; program && i < 2; i++) {
        const char *path = arena_printf(arena, "%s%s/%s", program, BESIDE[i], spec->file);
        if (access(path, F_OK) == 0) return path;
    }
    return NULL;
}

Status plugin_load(const PluginSpec *spec, void **library, void **symbol) {
    Arena arena = {0};
    const char *path = plugin_path(spec, &arena);
    const bool there = path != NULL;
    *library = there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    arena_free(&arena);
    if (!there)
        return status_error(STATUS_MACHINE,
                            "meshwright: there is no %s beside this program, in ../lib of it or at "
                            "%s; it is built where the CUDA toolkit is installed",
                            spec->file, spec->variable);
    if (!*library)
        return status_error(STATUS_MACHINE, "meshwright: the %s cannot be loaded: %.400s",
                            spec->title, dlerror());
    *symbol = dlsym(*library, spec->symbol);
    return status_ok();
}

Status plugin_refuse(const PluginSpec *spec, void *library) {
    Arena arena = {0};
    const char *path = plugin_path(spec, &arena);
    Status status =
        status_error(STATUS_MACHINE, "meshwright: %.300s is of another version of this program",
                     path ? path : spec->file);
    arena_free(&arena);
    dlclose(library);
    return status;
}

const char *program_on_path(Arena *arena, const char *program) {
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t length = strcspn(rest, ":");
        const char *path = arena_printf(arena, "%.*s/%s", (int)length, rest, program);
        if (length > 0 && access(path, X_OK) == 0) return path;
        rest += length;
        if (*rest == ':') rest++;
    }
    return NULL;
}
