// tests/base/traced_process.h - a child process that is stopped at every system call (ptrace), to
// be killed there or to have the call fail.
#pragma once

#include <stdbool.h>

typedef struct {
    long kill_at; // the process is killed before its system call of this number, from 0; -1: never
    long fail_at; // that call is not made and ends with an error; -1: none (x86-64 only)
    int error;    // errno of the failure: EIO, ENOSPC
} TraceFault;

typedef struct {
    long num_calls; // that were made
    bool killed;    // it was, by the fault
    int exit_code;  // else
    bool failed;    // the fault took place
} TraceEnd;

// Whether calls can be made to fail here.
bool traced_can_fail(void);

// Runs work(context) in a child process, which exits with what it returns.
//   returns  false where the system does not let a process be traced
bool traced_run(int (*work)(void *context), void *context, const TraceFault *fault, TraceEnd *out);
