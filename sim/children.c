#include "sim/children.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_AT_ONCE = 64 };

typedef struct {
    Status (*body)(void *context, int run);
    void *context;
    int num_runs, num_started, num_alive;
    int max_at_once;
    struct {
        pid_t pid; // 0: free
        int run;
    } places[MAX_AT_ONCE];
    Status *said; // [max_at_once] shared: why the child in a place failed
} Children;

static int cores_count(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 1) return 1;
    return cores < MAX_AT_ONCE ? (int)cores : MAX_AT_ONCE;
}

static Status child_start(Children *children) {
    int place = 0;
    while (children->places[place].pid != 0) place++;
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        return status_error(STATUS_MACHINE, "no process can be made: %s", strerror(errno));
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(STATUS_MACHINE); // it has ended before it could be watched
        Status status = children->body(children->context, children->num_started);
        if (status.code != STATUS_OK) children->said[place] = status;
        _exit((int)status.code);
    }
    children->places[place].pid = pid;
    children->places[place].run = children->num_started++;
    children->num_alive++;
    return status_ok();
}

// What the end of the child in a place means.
static Status child_end(const Children *children, int place, int state) {
    if (WIFSIGNALED(state)) {
        return status_error(STATUS_MACHINE, "the simulator crashed: %s; in run %d of %d",
                            strsignal(WTERMSIG(state)), children->places[place].run + 1,
                            children->num_runs);
    }
    if (WEXITSTATUS(state) == 0 || children->said[place].code != STATUS_OK)
        return children->said[place];
    // A failure without a sentence is that of base/arena.c.
    if (WEXITSTATUS(state) == STATUS_MACHINE) {
        return status_error(STATUS_MACHINE, "out of memory in run %d of %d",
                            children->places[place].run + 1, children->num_runs);
    }
    return status_error(STATUS_MACHINE, "the simulator failed with exit code %d",
                        WEXITSTATUS(state));
}

static Status child_await(Children *children) {
    int state;
    pid_t pid;
    while ((pid = waitpid(-1, &state, 0)) < 0 && errno == EINTR) continue;
    for (int place = 0; place < children->max_at_once; place++) {
        if (pid < 0 || children->places[place].pid != pid) continue;
        children->places[place].pid = 0;
        children->num_alive--;
        return child_end(children, place, state);
    }
    return status_error(STATUS_MACHINE, "a child process was lost");
}

static void children_stop(Children *children) {
    for (int place = 0; place < children->max_at_once; place++) {
        pid_t pid = children->places[place].pid;
        if (pid == 0) continue;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
}

Status children_run(int num_runs, Status (*body)(void *context, int run), void *context) {
    Children children = {.body = body, .context = context, .num_runs = num_runs};
    children.max_at_once = cores_count();
    void *said;
    TRY(shared_open((size_t)children.max_at_once * sizeof *children.said, &said));
    children.said = said;
    Status status = status_ok();
    while (status.code == STATUS_OK &&
           (children.num_started < num_runs || children.num_alive > 0)) {
        bool may_start =
            children.num_started < num_runs && children.num_alive < children.max_at_once;
        status = may_start ? child_start(&children) : child_await(&children);
    }
    children_stop(&children);
    return status;
}

Status shared_open(size_t size, void **out) {
    *out =
        mmap(NULL, size > 0 ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (*out != MAP_FAILED) return status_ok();
    return status_error(STATUS_MACHINE, "no memory can be shared with child processes: %s",
                        strerror(errno));
}
