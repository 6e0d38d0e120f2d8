#include "tests/base/traced_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
bool traced_can_fail(void) {
    return true;
}

// Of files: what is of memory, signals and the end of the process does not fail.
static bool may_fail(long call) {
    static const long CALLS[] = {
        SYS_openat, SYS_open,     SYS_write,     SYS_fsync,      SYS_mkdir,      SYS_mkdirat,
        SYS_rename, SYS_renameat, SYS_renameat2, SYS_linkat,     SYS_unlink,     SYS_unlinkat,
        SYS_rmdir,  SYS_fcntl,    SYS_read,      SYS_getdents64, SYS_newfstatat, SYS_fstat,
        SYS_lstat,  SYS_stat,     SYS_readlink,  SYS_access};
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (CALLS[i] == call) return true;
    return false;
}

// At the entry of a call: it becomes one that does not exist.
static bool call_skip(pid_t pid) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0 || !may_fail((long)registers.orig_rax))
        return false;
    registers.orig_rax = (unsigned long long)-1;
    return ptrace(PTRACE_SETREGS, pid, NULL, &registers) == 0;
}

static void result_set(pid_t pid, int error) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return;
    registers.rax = (unsigned long long)-(long long)error;
    ptrace(PTRACE_SETREGS, pid, NULL, &registers);
}
#else
bool traced_can_fail(void) {
    return false;
}

static bool call_skip(pid_t pid) {
    (void)pid;
    return false;
}

static void result_set(pid_t pid, int error) {
    (void)pid;
    (void)error;
}
#endif

_Noreturn static void child_run(int (*work)(void *context), void *context) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(125);
    raise(SIGSTOP);
    _exit(work(context));
}

// Lets it run to its end, from stop to stop: one at the entry of a call, one behind it.
static void child_follow(pid_t pid, const TraceFault *fault, TraceEnd *out) {
    int state = 0, deliver = 0;
    bool inside = false, skipped = false;
    while (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)deliver) == 0 &&
           waitpid(pid, &state, 0) == pid && WIFSTOPPED(state)) {
        deliver = WSTOPSIG(state) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(state);
        if (deliver) continue;
        inside = !inside;
        if (inside && out->num_calls == fault->kill_at) {
            kill(pid, SIGKILL);
            waitpid(pid, &state, 0);
            break;
        }
        if (inside && out->num_calls == fault->fail_at) skipped = out->failed = call_skip(pid);
        if (inside) out->num_calls++;
        if (!inside && skipped) result_set(pid, fault->error);
        if (!inside) skipped = false;
    }
    out->killed = WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
    out->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

bool traced_run(int (*work)(void *context), void *context, const TraceFault *fault, TraceEnd *out) {
    *out = (TraceEnd){0};
    const pid_t pid = fork();
    if (pid == 0) child_run(work, context);
    int state = 0;
    if (pid < 0 || waitpid(pid, &state, 0) != pid || !WIFSTOPPED(state)) return false;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
               (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) != 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &state, 0);
        return false;
    }
    child_follow(pid, fault, out);
    return true;
}
