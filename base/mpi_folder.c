#include "base/mpi_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char VARIABLE[] = "OMPI_MCA_orte_tmpdir_base";

Status mpi_folder_open(MpiFolder *out) {
    const char *set = getenv(VARIABLE), *above = getenv("TMPDIR");
    *out = (MpiFolder){0};
    if (set && *set) return status_ok();
    if (!above || !*above) above = "/tmp";
    const int length = snprintf(out->path, sizeof out->path, "%s/meshwright_XXXXXX", above);
    errno = ENAMETOOLONG;
    if (length < (int)sizeof out->path && mkdtemp(out->path)) {
        setenv(VARIABLE, out->path, true);
        return status_ok();
    }
    *out = (MpiFolder){0};
    return status_error(STATUS_MACHINE, "%.200s: a folder for mpirun cannot be made in it: %s",
                        above, strerror(errno));
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    remove(path);
    return 0;
}

// Processes of an mpirun that was killed end a moment after it, and write until then.
void mpi_folder_close(MpiFolder *folder) {
    enum { MAX_TRIES = 20, MAX_OPEN = 16 };
    const struct timespec pause = {.tv_nsec = 100000000};
    if (!folder->path[0]) return;
    unsetenv(VARIABLE);
    for (int i = 0; i < MAX_TRIES; i++) {
        nftw(folder->path, entry_remove, MAX_OPEN, FTW_DEPTH | FTW_PHYS);
        if (remove(folder->path) != 0 && errno == ENOENT) break;
        nanosleep(&pause, NULL);
    }
    *folder = (MpiFolder){0};
}
