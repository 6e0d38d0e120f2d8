#include "profiler/cpu_run.h"

#include "base/mpi_folder.h"
#include "profiler/result_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    const CpuInfo *info;
    const CpuOptions *options;
    Arena *arena;
    CpuSummary *summary;
    char error[500]; // what the probe or mpirun said of a failure
} CpuRun;

static const char *table_path(const CpuRun *run, int kind) {
    return arena_printf(run->arena, "%s/%s.csv", run->options->folder, CPU_KIND_NAMES[kind]);
}

// --- The folder

// Rows of two computers or two libraries in one table could not be told apart.
static Status device_check(const CpuRun *run, const char *path) {
    const struct {
        const char *key, *now;
    } SAME[] = {{"device", "cpu"}, {"name", run->info->name}, {"blas", run->info->blas}};
    if (access(path, F_OK) != 0) return status_ok();
    JsonNode root;
    TRY(json_load(path, run->arena, &root));
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        JsonNode node = json_get(&root, SAME[i].key);
        const char *then;
        TRY(json_read_string(&node, run->arena, &then));
        if (strcmp(then, SAME[i].now) != 0)
            return json_error(&node, "\"%s\"; now it is \"%s\": choose another folder", then,
                              SAME[i].now);
    }
    JsonNode ranks = json_get(&root, "num_ranks");
    int num_ranks;
    TRY(json_read_int(&ranks, 1, 1 << 20, &num_ranks));
    if (num_ranks == run->info->num_ranks) return status_ok();
    return json_error(&ranks, "%d; now it is %d: choose another folder", num_ranks,
                      run->info->num_ranks);
}

static Status folder_begin(CpuRun *run) {
    const char *path = arena_printf(run->arena, "%s/device.json", run->options->folder);
    TRY(device_check(run, path));
    for (int i = 0; i < NUM_CPU_KINDS; i++) {
        int num_keys;
        const char *header = cpu_header((CpuKind)i, &num_keys);
        if (!run->options->kinds[i]) continue;
        TRY(result_file_check(table_path(run, i), header, num_keys, run->arena));
    }
    cJSON *tree = cpu_device_json(run->info, run->options->command);
    Status status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

// --- The probe

// mpirun ... meshwright-mpi-probe FOLDER quick|full KINDS, with its output on `out`; does not
// return.
_Noreturn static void probe_exec(const CpuRun *run, int num_ranks, const char *kinds, int out) {
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", num_ranks);
    const char *probe = getenv("MESHWRIGHT_MPI_PROBE"); // cpu_probe has set it
    bool bound = num_ranks <= run->info->num_cores;
    const char *const argv[] = {"mpirun",
                                "--allow-run-as-root",
                                "--oversubscribe",
                                "--bind-to",
                                bound ? "core" : "none",
                                "-np",
                                ranks,
                                probe,
                                run->options->folder,
                                run->options->quick ? "quick" : "full",
                                kinds,
                                NULL};
    setenv("OMPI_MCA_pml", "^cm", false); // as of `run`: fabrics are not looked for
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); // a terminal's interrupt comes by probe_stop: two at once end mpirun alone
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

// mpirun while it runs. What stops this program stops it first, which takes a second or two: its
// processes must not write what somebody else continues.
static volatile sig_atomic_t probe_stopped;
static pid_t probe_pid;

static void probe_stop(int number) {
    (void)number;
    probe_stopped = 1;
    kill(probe_pid, SIGTERM);
}

// Whether the signals that stop a program stop the probe.
static void probe_watch(bool on) {
    static const int STOPS[] = {SIGINT, SIGTERM};
    static struct sigaction before[2];
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = probe_stop, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        if (on) sigaction(STOPS[i], NULL, &before[i]);
        if (before[i].sa_handler == SIG_IGN) continue; // who started us wants it so
        sigaction(STOPS[i], on ? &action : &before[i], NULL);
    }
}

static void line_take(CpuRun *run, char *line) {
    char kind[32];
    int done, of, measured, kept, disturbed, torn;
    double span_s;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "progress %31s %d %d", kind, &done, &of) == 3) {
        if (run->options->progress) run->options->progress(kind, done, of);
    } else if (sscanf(line, "kind %31s %d %d %d %d %d %lf", kind, &measured, &kept, &of, &disturbed,
                      &torn, &span_s) == 7) {
        for (int i = 0; i < NUM_CPU_KINDS; i++) {
            if (strcmp(kind, CPU_KIND_NAMES[i]) != 0) continue;
            CpuKindSummary *s = &run->summary->kinds[i];
            s->done = true, s->torn = s->torn || torn;
            s->num_measured += measured, s->num_kept += kept, s->num_shapes += of;
            s->num_disturbed += disturbed, s->span_s += span_s;
        }
    } else if (strncmp(line, "error ", 6) == 0) {
        snprintf(run->error, sizeof run->error, "%.450s", line + 6);
    } else if (!run->error[0] && strspn(line, "- ") != strlen(line)) {
        snprintf(run->error, sizeof run->error, "mpirun: %.450s", line);
    }
}

static Status probe_status(const CpuRun *run, int status) {
    if (probe_stopped)
        return status_error(STATUS_MACHINE,
                            "meshwright: interrupted; the same command goes on where it was");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return status_ok();
    if (run->error[0]) {
        StatusCode code = WIFEXITED(status) && WEXITSTATUS(status) == STATUS_INVALID
                              ? STATUS_INVALID
                              : STATUS_MACHINE;
        return status_error(code, "%s", run->error);
    }
    return status_error(STATUS_MACHINE, "meshwright: mpirun ended with %d",
                        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static Status probe_run(CpuRun *run, int num_ranks, const char *kinds) {
    int ends[2], status = 0;
    if (pipe2(ends, 0) != 0)
        return status_error(STATUS_MACHINE, "meshwright: no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        probe_exec(run, num_ranks, kinds, ends[1]);
    }
    close(ends[1]);
    FILE *stream = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!stream) {
        close(ends[0]);
        return status_error(STATUS_MACHINE, "meshwright: mpirun cannot be started: %s",
                            strerror(errno));
    }
    probe_pid = child;
    probe_watch(true);
    char line[1000];
    while (fgets(line, sizeof line, stream)) line_take(run, line);
    fclose(stream);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    probe_watch(false);
    return probe_status(run, status);
}

static Status kinds_run(CpuRun *run) {
    const CpuOptions *options = run->options;
    TRY(folder_begin(run));
    const char *kinds = "";
    for (int i = 0; i < NUM_CPU_KINDS; i++) {
        run->summary->kinds[i].asked = options->kinds[i];
        if (options->kinds[i]) kinds = arena_printf(run->arena, "%s,%s", kinds, CPU_KIND_NAMES[i]);
    }
    if (!kinds[0]) return status_ok();
    TRY(probe_run(run, run->info->num_ranks, kinds + 1));
    // The same once more on one core while the others rest.
    return options->kinds[CPU_KIND_SHARING] ? probe_run(run, 1, CPU_KIND_NAMES[CPU_KIND_SHARING])
                                            : status_ok();
}

Status cpu_run(const CpuInfo *info, const CpuOptions *options, Arena *arena, CpuSummary *out) {
    *out = (CpuSummary){.info = *info};
    CpuRun run = {.info = info, .options = options, .arena = arena, .summary = out};
    int held;
    MpiFolder folder = {0};
    Status status = result_folder_hold(options->folder, &held);
    if (status.code == STATUS_OK) status = mpi_folder_open(&folder);
    if (status.code == STATUS_OK) status = kinds_run(&run);
    mpi_folder_close(&folder);
    result_folder_release(held);
    return status;
}
