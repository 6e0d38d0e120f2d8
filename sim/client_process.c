#include "sim/client_process.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// The write end of a pipe in the child shows by its closing that the child has ended.
enum { NUM_FDS = 5, EXIT_NOT_STARTED = 127 };

// Between fork and exec only what is safe in a child of a program with threads.
static _Noreturn void child_start(const ProcessSpec *spec, int alive_fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);     // it must not outlive us
    if (spec->grace_s > 0) setpgid(0, 0); // a terminal's signals come once, from us
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

// Why the wait for a child is over.
typedef enum { WAIT_CLOSED, WAIT_TIMED_OUT, WAIT_INTERRUPTED } WaitEnd;

// Waits until the child has closed its end, or the time is up, or a signal has come.
static WaitEnd wait_until_closed(int alive_fd, int signal_fd, double deadline_s) {
    for (;;) {
        int wait_ms = -1;
        if (deadline_s > 0) {
            double left_ms = (deadline_s - clock_now_s()) * 1e3;
            if (left_ms <= 0) return WAIT_TIMED_OUT;
            wait_ms = left_ms < INT_MAX / 2 ? (int)left_ms + 1 : INT_MAX / 2;
        }
        struct pollfd waits[] = {{.fd = alive_fd, .events = POLLIN},
                                 {.fd = signal_fd, .events = POLLIN}};
        int rc = poll(waits, 2, wait_ms);
        if (rc > 0 && waits[1].revents) return WAIT_INTERRUPTED;
        if (rc > 0 || (rc < 0 && errno != EINTR)) return WAIT_CLOSED;
    }
}

// Its own children end with it.
static void child_end(pid_t pid, int alive_fd, double grace_s) {
    if (grace_s > 0) {
        kill(pid, SIGTERM);
        if (wait_until_closed(alive_fd, -1, clock_now_s() + grace_s) == WAIT_CLOSED) return;
    }
    kill(pid, SIGKILL);
}

static void child_wait(pid_t pid, int alive_fd, int signal_fd, const ProcessSpec *spec,
                       ProcessEnd *out) {
    double start_s = clock_now_s(), timeout_s = spec->timeout_s;
    WaitEnd end = wait_until_closed(alive_fd, signal_fd, timeout_s > 0 ? start_s + timeout_s : 0);
    out->timed_out = end == WAIT_TIMED_OUT;
    out->interrupted = end == WAIT_INTERRUPTED;
    if (end != WAIT_CLOSED) child_end(pid, alive_fd, spec->grace_s);
    int state = 0;
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
    out->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
    out->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    out->wall_s = clock_now_s() - start_s;
}

// Starts the child and waits for it; `before` is its signal mask.
static Status child_run(const ProcessSpec *spec, int signal_fd, const sigset_t *before,
                        ProcessEnd *out) {
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) != 0) {
        return status_error(STATUS_MACHINE, "no pipe can be made: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, before, NULL);
        child_start(spec, alive[1]);
    }
    close(alive[1]);
    if (pid > 0) child_wait(pid, alive[0], signal_fd, spec, out);
    close(alive[0]);
    if (pid > 0) return status_ok();
    return status_error(STATUS_MACHINE, "no process can be made: %s", strerror(errno));
}

// What would end this process is read from a file instead while the child runs.
Status process_run(const ProcessSpec *spec, ProcessEnd *out) {
    *out = (ProcessEnd){0};
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, &before);
    int signal_fd = signalfd(-1, &stops, SFD_CLOEXEC);
    Status status = signal_fd < 0 ? status_error(STATUS_MACHINE, "no signals can be awaited: %s",
                                                 strerror(errno))
                                  : child_run(spec, signal_fd, &before, out);
    struct signalfd_siginfo taken;
    if (out->interrupted && read(signal_fd, &taken, sizeof taken) < 0) out->interrupted = true;
    if (signal_fd >= 0) close(signal_fd);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
