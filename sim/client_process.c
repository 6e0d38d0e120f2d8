#include "sim/client_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The write end of a pipe in the child shows by its closing that the child has ended.
enum { NUM_FDS = 5, EXIT_NOT_STARTED = 127 };

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Between fork and exec only what is safe in a child of a program with threads.
static _Noreturn void child_start(const ProcessSpec *spec, int alive_fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // it must not outlive us
    int from[NUM_FDS] = {fileno(spec->input), fileno(spec->output), fileno(spec->errors),
                         spec->extra ? fileno(spec->extra) : -1, alive_fd};
    // First above all targets, so that none is overwritten before it is copied.
    for (int fd = 0; fd < NUM_FDS; fd++) {
        if (from[fd] >= 0) from[fd] = fcntl(from[fd], F_DUPFD_CLOEXEC, NUM_FDS);
    }
    for (int fd = 0; fd < NUM_FDS; fd++) {
        if (from[fd] >= 0 && dup2(from[fd], fd) < 0) _exit(EXIT_NOT_STARTED);
    }
    execv(spec->argv[0], spec->argv);
    _exit(EXIT_NOT_STARTED);
}

// Waits until the child has closed its end, or the time is up.
//   returns false where the time is up
static bool wait_until_closed(int alive_fd, double deadline_s) {
    for (;;) {
        int wait_ms = -1;
        if (deadline_s > 0) {
            double left_ms = (deadline_s - now_s()) * 1e3;
            if (left_ms <= 0) return false;
            wait_ms = left_ms < INT_MAX / 2 ? (int)left_ms + 1 : INT_MAX / 2;
        }
        struct pollfd closed = {.fd = alive_fd, .events = POLLIN};
        int rc = poll(&closed, 1, wait_ms);
        if (rc > 0 || (rc < 0 && errno != EINTR)) return true;
    }
}

static void child_wait(pid_t pid, int alive_fd, const ProcessSpec *spec, ProcessEnd *out) {
    double start_s = now_s();
    double deadline_s = spec->timeout_s > 0 ? start_s + spec->timeout_s : 0;
    out->timed_out = !wait_until_closed(alive_fd, deadline_s);
    if (out->timed_out) kill(pid, SIGKILL);
    int state = 0;
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
    out->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
    out->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    out->wall_s = now_s() - start_s;
}

Status process_run(const ProcessSpec *spec, ProcessEnd *out) {
    *out = (ProcessEnd){0};
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) != 0) {
        return status_error(STATUS_MACHINE, "no pipe can be made: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) child_start(spec, alive[1]);
    close(alive[1]);
    if (pid < 0) {
        close(alive[0]);
        return status_error(STATUS_MACHINE, "no process can be made: %s", strerror(errno));
    }
    child_wait(pid, alive[0], spec, out);
    close(alive[0]);
    return status_ok();
}
