#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18 };

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

// Gives the signals back; one that has come was dealt with.
static void signals_release(const sigset_t *before) {
    sigset_t stops = stop_signals();
    const struct timespec no_time = {0};
    while (output_interrupted() && sigtimedwait(&stops, NULL, &no_time) > 0) continue;
    sigprocmask(SIG_SETMASK, before, NULL);
}

// A file without a name in the folder of path; -1 where the file system has none such.
static int nameless_open(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    snprintf(folder, sizeof folder, "%.*s.", length, path);
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

Status output_open(const char *path, OutputFile *out) {
    *out = (OutputFile){.path = path};
    int n = snprintf(out->temporary, sizeof out->temporary, "%s.tmp%ld", path, (long)getpid());
    if (n < 0 || n >= (int)sizeof out->temporary)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    sigset_t stops = stop_signals(); // before there is a file that they would leave
    sigprocmask(SIG_BLOCK, &stops, &out->before);
    int fd = nameless_open(path);
    if (fd < 0) {
        fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        out->named = true;
    }
    out->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!out->stream) {
        Status status =
            status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
        sigprocmask(SIG_SETMASK, &out->before, NULL);
        return status;
    }
    setvbuf(out->stream, NULL, _IOFBF, BUFFER_BYTES);
    return status_ok();
}

// Gives a complete file its name. Fails with errno.
static bool file_name(OutputFile *file) {
    if (fflush(file->stream) != 0) return false;
    if (!file->named) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file->stream));
        unlink(file->temporary); // of a process that was killed right here
        if (linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) != 0) return false;
        file->named = true;
    }
    return rename(file->temporary, file->path) == 0;
}

Status output_close(OutputFile *file, Status status) {
    if (status.code == STATUS_OK && output_interrupted())
        status = status_error(STATUS_MACHINE, "interrupted: no answer");
    errno = 0;
    if (status.code == STATUS_OK && (ferror(file->stream) || !file_name(file)))
        status = status_at(STATUS_MACHINE, file->path, "", "cannot be written: %s",
                           strerror(errno ? errno : EIO));
    if (status.code != STATUS_OK && file->named) unlink(file->temporary);
    fclose(file->stream);
    signals_release(&file->before);
    return status;
}
