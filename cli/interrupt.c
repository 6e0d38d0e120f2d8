#include "cli/interrupt.h"

#include "base/deadline.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 128 + SIGINT };

// A handler has nothing but globals; lock-free atomics are safe in it (C17 7.14.1.1, 5).
static atomic_bool interrupted;
static timer_t patience;
static bool is_patient; // the timer is there

static void text_write(const char *text, size_t size) {
    const ssize_t written = write(STDERR_FILENO, text, size);
    (void)written;
}

static void interrupt_note(int number) {
    static const char TEXT[] =
        "\nmeshwright: interrupted; answers with what was found, once more ends at once\n";
    static const struct itimerspec WAIT = {.it_value = {.tv_nsec = (long)(INTERRUPT_WAIT_S * 1e9)}};
    const int saved = errno;
    (void)number;
    atomic_store(&interrupted, true);
    text_write(TEXT, sizeof TEXT - 1);
    if (is_patient) timer_settime(patience, 0, &WAIT, NULL);
    errno = saved;
}

static void patience_end(int number) {
    static const char TEXT[] = "meshwright: nothing was found yet; nothing is written\n";
    (void)number;
    if (deadline_any_armed()) return;
    text_write(TEXT, sizeof TEXT - 1);
    _exit(EXIT_INTERRUPTED);
}

static void patience_start(void) {
    const struct sigaction action = {.sa_handler = patience_end, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    if (is_patient) return;
    sigaction(SIGALRM, &action, NULL);
    is_patient = timer_create(CLOCK_MONOTONIC, &event, &patience) == 0;
}

const atomic_bool *interrupt_watch(void) {
    struct sigaction action = {.sa_handler = interrupt_note,
                               .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    atomic_store(&interrupted, false);
    patience_start();
    // Who started us with SIGINT ignored (nohup, a shell's background job) wants it so.
    struct sigaction before;
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
    return &interrupted;
}

void interrupt_leave(void) {
    struct sigaction before;
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == interrupt_note)
        signal(SIGINT, SIG_DFL);
    if (is_patient) timer_delete(patience);
    is_patient = false;
}
