#include "sim/client_find.h"

#include "base/data_dir.h"
#include "base/plugin.h"

#include <stdlib.h>
#include <unistd.h>

static const char PROGRAM[] = "meshwright-sim";

static const char *if_executable(const char *path) {
    return access(path, X_OK) == 0 ? path : NULL;
}

static const char *find_near_executable(Arena *arena) {
    const char *self = program_dir(arena);
    if (!self) return NULL;
    const char *beside = if_executable(arena_printf(arena, "%s/%s", self, PROGRAM));
    if (beside) return beside;
    return if_executable(arena_printf(arena, "%s/../libexec/meshwright/%s", self, PROGRAM));
}

Status sim_find(Arena *arena, const char **path) {
    const char *chosen = getenv("MESHWRIGHT_SIM");
    if (chosen && chosen[0]) {
        *path = if_executable(arena_strdup(arena, chosen));
        if (*path) return status_ok();
        return status_error(STATUS_MACHINE, "MESHWRIGHT_SIM: %s is not a program", chosen);
    }
    *path = find_near_executable(arena);
    if (!*path) *path = program_on_path(arena, PROGRAM);
    if (*path) return status_ok();
    return status_error(STATUS_MACHINE,
                        "the simulator %s is not installed: it is neither beside meshwright nor in "
                        "../libexec/meshwright nor on the PATH",
                        PROGRAM);
}
