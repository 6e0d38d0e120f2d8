// tests/runtime/disk_faults.c - a disk that fails: calls of the C library that end as they do on
// one that is full or broken. Loaded before a program with LD_PRELOAD.
//
// DISK_FAULTS lists what fails, each "CALL PART AFTER ERROR" with ";" between them:
//   CALL   write, pwrite, fsync, renameat2 or rename
//   PART   of the file's path, of what is renamed; its end where the part has "$" behind it. The
//          first fault of a call and path counts
//   AFTER  bytes that are written, of the other calls how many succeed, before they fail
//   ERROR  ENOSPC, EIO, EINVAL; KILL: the process dies
// DISK_FAULTS_RANK: only the process of this rank of mpirun's.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FAULTS = 8 };

static long counts[MAX_FAULTS]; // bytes or calls so far

static bool is_of_rank(void) {
    const char *wanted = getenv("DISK_FAULTS_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    return !wanted || (rank && strcmp(wanted, rank) == 0);
}

static bool is_part(const char *part, const char *path) {
    const size_t length = strlen(part), whole = strlen(path);
    if (part[length - 1] != '$') return strstr(path, part) != NULL;
    return whole >= length - 1 && strncmp(path + whole - (length - 1), part, length - 1) == 0;
}

// How much of an amount may go on, all where no fault is of it; fails with errno.
static long allow(const char *call, const char *path, long amount) {
    static const struct {
        const char *name;
        int error;
    } ERRORS[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EINVAL", EINVAL}};
    const char *next = is_of_rank() ? getenv("DISK_FAULTS") : NULL;
    for (int i = 0; next && i < MAX_FAULTS; i++) {
        char name[32], part[256], error[32];
        long after;
        if (sscanf(next, " %31s %255s %ld %31[A-Z]", name, part, &after, error) != 4) abort();
        next = strchr(next, ';');
        if (next) next++;
        if (strcmp(name, call) != 0 || !is_part(part, path)) continue;
        const long left = after - counts[i];
        counts[i] += left < amount ? left : amount;
        if (left > 0) return left < amount ? left : amount;
        if (strcmp(error, "KILL") == 0) raise(SIGKILL);
        for (size_t k = 0; k < sizeof ERRORS / sizeof *ERRORS; k++)
            if (strcmp(error, ERRORS[k].name) == 0) errno = ERRORS[k].error;
        return -1;
    }
    return amount;
}

static long allow_fd(const char *call, int fd, long amount) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return amount;
    path[length] = '\0';
    return allow(call, path, amount);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    const long num = size > 0 ? allow_fd("write", fd, (long)size) : 0;
    return num < 0 ? -1 : syscall(SYS_write, fd, bytes, (size_t)num);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t place) {
    const long num = size > 0 ? allow_fd("pwrite", fd, (long)size) : 0;
    return num < 0 ? -1 : syscall(SYS_pwrite64, fd, bytes, (size_t)num, place);
}

int fsync(int fd) {
    return allow_fd("fsync", fd, 1) < 0 ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags) {
    if (allow("renameat2", from, 1) < 0) return -1;
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int rename(const char *from, const char *to) {
    if (allow("rename", from, 1) < 0) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
