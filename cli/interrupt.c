#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

// A handler has nothing but globals; lock-free atomics are safe in it (C17 7.14.1.1, 5).
static atomic_bool interrupted;

static void interrupt_note(int number) {
    static const char TEXT[] =
        "\nmeshwright: interrupted; answers with what was found, once more ends at once\n";
    const int saved = errno;
    (void)number;
    atomic_store(&interrupted, true);
    ssize_t written = write(STDERR_FILENO, TEXT, sizeof TEXT - 1);
    (void)written;
    errno = saved;
}

const atomic_bool *interrupt_watch(void) {
    struct sigaction action = {.sa_handler = interrupt_note,
                               .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    atomic_store(&interrupted, false);
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
}
