#include "profiler/wrap.h"

#include "base/answer_folder.h"
#include "base/data_dir.h"
#include "profiler/cupti/cupti_find.h"
#include "profiler/wrap_report.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char LIBRARY[] = "libmeshwright-wrap.so";

extern char **environ;

// --- The library

static const char *library_near_program(Arena *arena) {
    const char *self = program_dir(arena);
    if (!self) return NULL;
    const char *beside = arena_printf(arena, "%s/%s", self, LIBRARY);
    if (access(beside, R_OK) == 0) return beside;
    const char *installed = arena_printf(arena, "%s/../lib/%s", self, LIBRARY);
    return access(installed, R_OK) == 0 ? installed : NULL;
}

// The driver would not say that it cannot load it, so that is tried here.
static Status library_find(Arena *arena, const char **out) {
    const char *chosen = getenv("MESHWRIGHT_WRAP");
    *out = chosen && *chosen ? chosen : library_near_program(arena);
    if (!*out)
        return status_error(STATUS_MACHINE,
                            "%s is not installed: it is neither beside meshwright nor in "
                            "../lib (it is built where the CUDA toolkit is)",
                            LIBRARY);
    char *whole = realpath(*out, NULL);
    if (!whole) return status_at(STATUS_MACHINE, *out, "", "%s", strerror(errno));
    *out = arena_strdup(arena, whole);
    free(whole);
    void *handle = dlopen(*out, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return status_error(STATUS_MACHINE, "cannot be loaded: %s", dlerror());
    dlclose(handle);
    return status_ok();
}

// --- The folder of records

static Status folder_open(const char *dir, Arena *arena, const char **records) {
    char *whole = realpath(dir, NULL);
    if (!whole) return status_at(STATUS_MACHINE, dir, "", "%s", strerror(errno));
    char *folder = arena_printf(arena, "%s/records.XXXXXX", whole);
    free(whole);
    *records = mkdtemp(folder);
    if (*records) return status_ok();
    return status_at(STATUS_MACHINE, dir, "", "cannot be written into: %s", strerror(errno));
}

static void folder_remove(const char *records, Arena *arena) {
    if (getenv("MESHWRIGHT_WRAP_KEEP")) return;
    DIR *folder = opendir(records);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') unlink(arena_printf(arena, "%s/%s", records, entry->d_name));
    if (folder) closedir(folder);
    rmdir(records);
}

// --- The program

// Ours with these added or replaced (ends with NULL).
static char **environment_with(const char *const *added, Arena *arena) {
    size_t num_ours = 0, num_added = 0, count = 0;
    while (environ[num_ours]) num_ours++;
    while (added[num_added]) num_added++;
    char **all = ARENA_ARRAY(arena, num_ours + num_added + 1, char *);
    for (size_t i = 0; i < num_ours; i++) {
        bool replaced = false;
        for (size_t j = 0; j < num_added; j++)
            replaced |= strncmp(environ[i], added[j], strcspn(added[j], "=") + 1) == 0;
        if (!replaced) all[count++] = environ[i];
    }
    for (size_t i = 0; i < num_added; i++) all[count++] = arena_strdup(arena, added[i]);
    return all;
}

static char **environment_make(const char *program, const char *library, const char *records,
                               Arena *arena) {
    char cupti[4096];
    bool found = cupti_find(program, cupti, sizeof cupti);
    const char *const added[] = {
        arena_printf(arena, "CUDA_INJECTION64_PATH=%s", library),
        arena_printf(arena, "NVTX_INJECTION64_PATH=%s", library),
        arena_printf(arena, "MESHWRIGHT_WRAP_RECORDS=%s", records),
        found ? arena_printf(arena, "MESHWRIGHT_CUPTI=%s", cupti) : NULL,
        NULL,
    };
    return environment_with(added, arena);
}

// Interrupts are for the program: we stay to report what it did. A request to end reaches us alone
// and is handed on.
static volatile sig_atomic_t wrapped_process;

static void hand_on(int signal) {
    if (wrapped_process > 0) kill((pid_t)wrapped_process, signal);
}

static int spawn_with(const char *const argv[], char **environment, bool json, const sigset_t *mask,
                      pid_t *out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (json) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    int error = posix_spawnp(out, argv[0], &actions, &attributes, (char *const *)argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static Status program_run(const char *const argv[], char **environment, bool json,
                          WrapOutcome *out) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, passing = {.sa_handler = hand_on};
    struct sigaction interrupt, quit, terminate;
    sigset_t ending, before;
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&passing.sa_mask);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    fflush(NULL);
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    pthread_sigmask(SIG_BLOCK, &ending, &before); // until it is known whom to hand it to
    pid_t process;
    int error = spawn_with(argv, environment, json, &before, &process), ended = 0;
    wrapped_process = error ? 0 : process;
    sigaction(SIGTERM, &passing, &terminate);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (error == 0 && waitpid(process, &ended, 0) < 0)
        if (errno != EINTR) error = errno;
    wrapped_process = 0;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    sigaction(SIGTERM, &terminate, NULL);
    if (error) return status_error(STATUS_INVALID, "%s: %s", argv[0], strerror(error));
    if (WIFSIGNALED(ended)) out->signal = WTERMSIG(ended);
    if (WIFEXITED(ended)) out->exit_code = WEXITSTATUS(ended);
    return status_ok();
}

// --- The report

static const char *words_join(const char *const argv[], Arena *arena) {
    const char *line = argv[0];
    for (int i = 1; argv[i]; i++) line = arena_printf(arena, "%s %s", line, argv[i]);
    return line;
}

static Status nothing_recorded(const WrapReport *report) {
    const WrapOutcome *outcome = &report->outcome;
    char how[64] = "";
    if (outcome->signal) snprintf(how, sizeof how, " (ended by signal %d)", outcome->signal);
    if (outcome->exit_code) snprintf(how, sizeof how, " (exit status %d)", outcome->exit_code);
    if (report->refused)
        return status_error(STATUS_MACHINE, "nothing was recorded of %.100s: %s", outcome->command,
                            report->refused);
    if (report->num_processes == 0)
        return status_error(STATUS_MACHINE,
                            "nothing was recorded: %.200s%s did not use CUDA: no process of it "
                            "initialised the driver with our environment",
                            outcome->command, how);
    return status_error(STATUS_MACHINE, "nothing was recorded: %.200s%s initialised CUDA, but %s",
                        outcome->command, how,
                        report->num_incomplete > 0
                            ? "was killed before its first records were handed over"
                            : "no kernel, copy or set of its ended");
}

static Status outcome_status(const WrapOutcome *outcome) {
    if (outcome->signal)
        return status_error(STATUS_MACHINE,
                            "%.300s was ended by signal %d; what it did until then "
                            "is reported",
                            outcome->command, outcome->signal);
    if (outcome->exit_code)
        return status_error(STATUS_MACHINE,
                            "%.300s ended with exit status %d; what it did until "
                            "then is reported",
                            outcome->command, outcome->exit_code);
    return status_ok();
}

static Status records_report(const char *records, const AnswerSpec *spec, WrapOutcome outcome,
                             bool json) {
    Arena arena = {0};
    WrapReport report;
    Status status = wrap_report_make(records, outcome, &arena, &report);
    if (status.code == STATUS_OK && report.kernels.num_rows == 0)
        status = nothing_recorded(&report);
    if (status.code == STATUS_OK) status = wrap_report_write(&report, spec, &arena);
    if (status.code == STATUS_OK && json) status = wrap_report_print_json(&report, stdout);
    if (status.code == STATUS_OK && !json) wrap_report_print(&report, stdout);
    if (status.code == STATUS_OK) status = outcome_status(&outcome);
    arena_free(&arena);
    return status;
}

static Status run_in(const char *const argv[], const AnswerSpec *spec, bool json, Arena *arena) {
    const char *library = NULL, *records = NULL;
    TRY(library_find(arena, &library));
    TRY(folder_open(spec->folder, arena, &records));
    char **environment = environment_make(argv[0], library, records, arena);
    WrapOutcome outcome = {.command = words_join(argv, arena)};
    Status status = program_run(argv, environment, json, &outcome);
    if (status.code == STATUS_OK) status = records_report(records, spec, outcome, json);
    folder_remove(records, arena);
    return status;
}

Status wrap_run(const char *const argv[], const char *dir, bool json, bool force) {
    static const char *const NAMES[] = {"kernels.csv", "gaps.csv", NULL};
    const AnswerSpec spec = {
        .folder = dir, .parts = {{.name = "wrap"}}, .num_parts = 1, .force = force};
    Arena arena = {0};
    FolderMade made = {0};
    Status status = answer_folder_check(&spec, NAMES, &arena);
    if (status.code == STATUS_OK) status = folder_make(dir, &arena, &made);
    if (status.code == STATUS_OK) status = run_in(argv, &spec, json, &arena);
    folder_unmake(&made);
    arena_free(&arena);
    return status;
}
