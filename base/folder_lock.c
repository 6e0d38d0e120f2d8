#include "base/folder_lock.h"

#include "base/folder.h"
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20, MAX_WAITS = 3000 };

static int lock_try(int fd, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    int result;
    do result = fcntl(fd, F_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result;
}

// Whether the path still leads to the file that was locked: who had it before has removed it.
static bool is_in_place(const FolderLock *lock) {
    struct stat own, now;
    return fstat(lock->fd, &own) == 0 && lstat(lock->path, &now) == 0 && own.st_ino == now.st_ino &&
           own.st_dev == now.st_dev;
}

// True with the lock; false with errno 0 where another process has it.
static bool lock_take(FolderLock *lock) {
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (lock->fd < 0) return false;
    const bool busy = lock_try(lock->fd, F_WRLCK) != 0;
    const int error = errno;
    if (!busy && is_in_place(lock)) return true;
    close(lock->fd);
    errno = busy && error != EACCES && error != EAGAIN ? error : 0;
    return false;
}

Status folder_lock(const char *folder, Arena *arena, FolderLock *out) {
    const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000};
    FolderLock lock = {.path = arena_printf(arena, "%s/.meshwright.lock", folder)};
    FolderMade made;
    for (int i = 0; i < MAX_WAITS; i++) {
        if (lock_take(&lock)) {
            *out = lock;
            return status_ok();
        }
        if (errno == ENOENT) // a writer that had made the folder has taken it away again
            TRY(folder_make(folder, arena, &made));
        else if (errno != 0)
            return status_at(folder_write_failure(errno), lock.path, "", "cannot be written: %s",
                             strerror(errno));
        if (output_interrupted()) return status_error(STATUS_MACHINE, "interrupted: no answer");
        nanosleep(&wait, NULL);
    }
    return status_at(STATUS_MACHINE, folder, "",
                     "another process has been writing its answer there for a minute");
}

void folder_unlock(FolderLock *lock) {
    if (!lock->path) return;
    unlink(lock->path);
    close(lock->fd);
    *lock = (FolderLock){0};
}
