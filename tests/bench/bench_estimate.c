// tests/bench/bench_estimate.c - wall time of `meshwright estimate` as a whole process, from its
// start to its exit, with a preset, a Hugging Face style object and a plan of many micro-batches.
// Prints median and range of 25 runs after a warm-up, and names the machine.
#include "tests/bench/measure.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { NUM_RUNS = 25 };

typedef struct {
    const char *title, *scenario;
} Job;

static const Job JOBS[] = {
    {"llama-3.1-70b, 128 H100, interleaved",
     "{\"schema\": 1, \"model\": \"llama-3.1-70b\", \"cluster\": \"dgx-h100:16\", \"training\": "
     "{\"seq_len\": 8192, \"global_batch\": 1024, \"precision\": \"bf16\"}, \"parallel\": {\"tp\": "
     "8, "
     "\"pp\": 4, \"vpp\": 5}}"},
    {"deepseek-v3, 2,048 H800",
     "{\"schema\": 1, \"model\": \"deepseek-v3\", \"cluster\": \"hgx-h800:256\", \"training\": "
     "{\"seq_len\": 4096, \"global_batch\": 15360, \"precision\": \"fp8\"}, \"parallel\": {\"tp\": "
     "1, "
     "\"pp\": 16, \"ep\": 64, \"recompute\": \"full\"}}"},
    {"llama-3.1-405b, 16,384 H100",
     "{\"schema\": 1, \"model\": \"llama-3.1-405b\", \"cluster\": \"dgx-h100:2048\", \"training\": "
     "{\"seq_len\": 8192, \"global_batch\": 2048, \"precision\": \"bf16\"}, \"parallel\": {\"tp\": "
     "8, "
     "\"pp\": 16, \"vpp\": 8}}"},
};

// The program lies in the folder above this one.
static void find_program(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 32);
    if (length <= 0) exit(3);
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    strcat(path, "/../meshwright");
}

// Runs `PROGRAM estimate FILE --json` with its output thrown away; exit codes 0 and 1 are answers.
static double process_s(char *program, char *file) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char estimate[] = "estimate", json[] = "--json",
         *arguments[] = {program, estimate, file, json, NULL};
    pid_t pid;
    int status = 0;
    double start_s = measure_now_s();
    if (posix_spawn(&pid, program, &actions, NULL, arguments, environ) != 0) exit(3);
    waitpid(pid, &status, 0);
    double wall_s = measure_now_s() - start_s;
    posix_spawn_file_actions_destroy(&actions);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        fprintf(stderr, "bench_estimate: %s estimate %s failed\n", program, file);
        exit(3);
    }
    return wall_s;
}

int main(void) {
    char program[PATH_MAX], file[] = "/tmp/bench_estimate_XXXXXX";
    find_program(program, sizeof program);
    measure_print_machine();
    int descriptor = mkstemp(file);
    if (descriptor < 0) return 3;
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        double wall_s[NUM_RUNS];
        const size_t size = strlen(JOBS[i].scenario);
        if (ftruncate(descriptor, 0) != 0 ||
            pwrite(descriptor, JOBS[i].scenario, size, 0) != (ssize_t)size)
            return 3;
        process_s(program, file);
        for (int run = 0; run < NUM_RUNS; run++) wall_s[run] = process_s(program, file);
        Spread spread = measure_spread(wall_s, NUM_RUNS);
        printf("estimate, whole process: %-40s %6.2f ms (%.2f to %.2f)\n", JOBS[i].title,
               spread.median * 1e3, spread.least * 1e3, spread.most * 1e3);
    }
    close(descriptor);
    unlink(file);
    return 0;
}
