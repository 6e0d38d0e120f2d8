#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18, MAX_LINKS = 40 };

static sigset_t stop_signals(void) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    return stops;
}

bool output_interrupted(void) {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

void output_hold_signals(sigset_t *before) {
    const sigset_t stops = stop_signals();
    sigprocmask(SIG_BLOCK, &stops, before);
}

void output_release_signals(const sigset_t *before) {
    sigset_t stops = stop_signals();
    const struct timespec no_time = {0};
    const bool held_by_caller =
        sigismember(before, SIGINT) == 1 && sigismember(before, SIGTERM) == 1;
    while (!held_by_caller && output_interrupted() && sigtimedwait(&stops, NULL, &no_time) > 0)
        continue;
    sigprocmask(SIG_SETMASK, before, NULL);
}

// --- Where it goes

// What a link in `path` that says `link` leads to, in place of path. False where that is too long.
static bool link_follow(char *path, const char *link) {
    char *slash = strrchr(path, '/');
    const size_t folder = link[0] == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
    if (folder + strlen(link) >= OUTPUT_PATH_SIZE) return false;
    strcpy(path + folder, link);
    return true;
}

Status output_target(const char *path, char *target) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return status_at(STATUS_INVALID, path, "", "cannot be written: it is %s",
                         S_ISDIR(info.st_mode) ? "a folder" : "not a regular file");
    if (strlen(path) >= OUTPUT_PATH_SIZE)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    strcpy(target, path);
    for (int i = 0; i < MAX_LINKS; i++) {
        char link[OUTPUT_PATH_SIZE];
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) return status_ok(); // it is none, or nothing is there yet
        link[length] = '\0';
        if (!link_follow(target, link))
            return status_at(STATUS_INVALID, path, "", "the path is too long");
    }
    return status_at(STATUS_INVALID, path, "", "cannot be written: %s", strerror(ELOOP));
}

// The folder's own path and the name behind it. False where there is no such folder.
static bool place_of(const char *path, char *place) {
    char copy[OUTPUT_PATH_SIZE], folder[PATH_MAX];
    if (strlen(path) >= sizeof copy) return false;
    strcpy(copy, path);
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    if (slash) *slash = '\0';
    if (!realpath(!slash ? "." : copy[0] ? copy : "/", folder)) return false;
    return snprintf(place, OUTPUT_PATH_SIZE, "%s/%s", folder, name) < OUTPUT_PATH_SIZE;
}

bool output_is(const char *path, const char *other) {
    struct stat one, two;
    const bool first = stat(path, &one) == 0, second = stat(other, &two) == 0;
    if (first && second) return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    char place[OUTPUT_PATH_SIZE], beside[OUTPUT_PATH_SIZE];
    return !first && !second && place_of(path, place) && place_of(other, beside) &&
           strcmp(place, beside) == 0;
}

// --- Opening

// A file without a name in the folder of path; -1 where the file system has none such, or it could
// not be given one later (a root of its own without /proc).
static int nameless_open(const char *path, mode_t mode) {
    if (access("/proc/self/fd", X_OK) != 0) return -1;
    char folder[OUTPUT_PATH_SIZE + 1];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    snprintf(folder, sizeof folder, "%.*s.", length, path);
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

// The C library does not keep why a write failed until the file is closed.
static ssize_t bytes_write(void *cookie, const char *bytes, size_t size) {
    OutputFile *file = cookie;
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(file->fd, bytes + done, size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            if (!file->error) file->error = errno;
            return 0;
        }
        done += (size_t)written;
    }
    return (ssize_t)size;
}

static int fd_close(void *cookie) {
    return close(((const OutputFile *)cookie)->fd);
}

static Status file_open(const char *path, mode_t mode, OutputFile *out) {
    *out = (OutputFile){.path = path};
    TRY(output_target(path, out->target));
    int n =
        snprintf(out->temporary, sizeof out->temporary, "%s.tmp%ld", out->target, (long)getpid());
    if (n < 0 || n >= (int)sizeof out->temporary)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    output_hold_signals(&out->before); // before there is a file that they would leave
    out->fd = nameless_open(out->target, mode);
    if (out->fd < 0) {
        out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
        out->named = true;
    }
    const cookie_io_functions_t functions = {.write = bytes_write, .close = fd_close};
    out->stream = out->fd < 0 ? NULL : fopencookie(out, "wb", functions);
    if (!out->stream) {
        Status status =
            status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
        if (out->fd >= 0) close(out->fd);
        if (out->fd >= 0 && out->named) unlink(out->temporary);
        sigprocmask(SIG_SETMASK, &out->before, NULL);
        return status;
    }
    setvbuf(out->stream, NULL, _IOFBF, BUFFER_BYTES);
    return status_ok();
}

Status output_open(const char *path, OutputFile *out) {
    return file_open(path, 0666, out);
}

Status output_open_program(const char *path, OutputFile *out) {
    return file_open(path, 0777, out);
}

// --- Closing

// Gives a complete file its name. Fails with errno.
static bool file_name(OutputFile *file) {
    if (fflush(file->stream) != 0) return false;
    if (!file->named) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
        unlink(file->temporary); // of a process that was killed right here
        if (linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) != 0) return false;
        file->named = true;
    }
    return rename(file->temporary, file->target) == 0;
}

Status output_close(OutputFile *file, Status status) {
    if (status.code == STATUS_OK && output_interrupted())
        status = status_error(STATUS_MACHINE, "interrupted: no answer");
    if (status.code == STATUS_OK && (ferror(file->stream) || !file_name(file)))
        status = status_at(STATUS_MACHINE, file->path, "", "cannot be written: %s",
                           strerror(file->error ? file->error : errno));
    if (status.code != STATUS_OK && file->named) unlink(file->temporary);
    fclose(file->stream);
    output_release_signals(&file->before);
    return status;
}
