// What this computer is: its CPU, cores, memory, and the programs that measure it.
#include "base/data_dir.h"
#include "profiler/cpu_run.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *cpu_probe_path(Arena *arena) {
    const char *chosen = getenv("MESHWRIGHT_MPI_PROBE");
    if (chosen && *chosen) return chosen;
    const char *self = program_dir(arena);
    return self ? arena_printf(arena, "%s/meshwright-mpi-probe", self) : "meshwright-mpi-probe";
}

// The first line that a command prints, without its end; empty where it prints none.
static void first_line(const char *command, char *line, int size) {
    line[0] = '\0';
    FILE *stream = popen(command, "re");
    if (!stream) return;
    if (!fgets(line, size, stream)) line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char rest[256];
    while (fgets(rest, sizeof rest, stream)) {
    }
    pclose(stream);
}

// The value behind "KEY   : " in a file of such lines; empty where there is none.
static void value_of(const char *path, const char *key, char *value, size_t size) {
    char line[512];
    value[0] = '\0';
    FILE *stream = fopen(path, "re");
    while (stream && fgets(line, sizeof line, stream)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
        snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        value[strcspn(value, "\n")] = '\0';
        break;
    }
    if (stream) fclose(stream);
}

// A number that a file begins with; -1 where it cannot be read.
static int number_in(const char *path, char *unit) {
    int number = -1;
    FILE *stream = fopen(path, "re");
    if (!stream) return -1;
    if (fscanf(stream, "%d%c", &number, unit) < 1) number = -1;
    fclose(stream);
    return number;
}

// Cores that this process may use; threads of one core count once.
static int count_cores(void) {
    enum { MOST_CPUS = CPU_SETSIZE };
    static const char PATH[] = "/sys/devices/system/cpu/cpu%d/topology/%s";
    cpu_set_t allowed;
    int cores[MOST_CPUS], num_cores = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        char path[128], unit;
        if (!CPU_ISSET((size_t)cpu, &allowed)) continue;
        snprintf(path, sizeof path, PATH, cpu, "core_id");
        int core = number_in(path, &unit);
        snprintf(path, sizeof path, PATH, cpu, "physical_package_id");
        int place = core < 0 ? -1 - cpu : 65536 * number_in(path, &unit) + core, i = 0;
        while (i < num_cores && cores[i] != place) i++;
        if (i == num_cores) cores[num_cores++] = place;
    }
    return num_cores > 0 ? num_cores : 1;
}

static double memory_of(const char *key) {
    char value[64];
    value_of("/proc/meminfo", key, value, sizeof value);
    return 1024 * strtod(value, NULL);
}

// What multiplies matrices, as the probe names it.
static Status blas_name(const char *probe, char *name, size_t size) {
    static const char PREFIX[] = "CPU, ";
    char line[128];
    setenv("MESHWRIGHT_MPI_PROBE", probe, true); // for the shell, and for cpu_run
    first_line("\"$MESHWRIGHT_MPI_PROBE\" --about 2>/dev/null", line, sizeof line);
    if (strncmp(line, PREFIX, sizeof PREFIX - 1) != 0)
        return status_error(STATUS_MACHINE, "meshwright: %.200s does not start", probe);
    snprintf(name, size, "%s", line + sizeof PREFIX - 1);
    return status_ok();
}

static Status programs_probe(Arena *arena, CpuInfo *out) {
    const char *probe = cpu_probe_path(arena);
    if (access(probe, X_OK) != 0)
        return status_error(STATUS_MACHINE,
                            "meshwright: there is no meshwright-mpi-probe beside this program or "
                            "at MESHWRIGHT_MPI_PROBE");
    first_line("mpirun --version 2>/dev/null", out->mpi, sizeof out->mpi);
    if (!out->mpi[0])
        return status_error(STATUS_MACHINE,
                            "meshwright: there is no mpirun on the PATH; CPUs are measured with "
                            "Open MPI (Debian: openmpi-bin)");
    return blas_name(probe, out->blas, sizeof out->blas);
}

Status cpu_probe(CpuInfo *out) {
    Arena arena = {0};
    char unit = 'K';
    *out = (CpuInfo){0};
    Status status = programs_probe(&arena, out);
    arena_free(&arena);
    value_of("/proc/cpuinfo", "model name", out->name, sizeof out->name);
    if (!out->name[0]) snprintf(out->name, sizeof out->name, "unknown CPU");
    out->num_cores = count_cores();
    out->num_ranks = out->num_cores > 2 ? out->num_cores : 2;
    out->memory_bytes = memory_of("MemTotal");
    out->memory_available_bytes = memory_of("MemAvailable");
    int cache = number_in("/sys/devices/system/cpu/cpu0/cache/index2/size", &unit);
    out->cache_bytes = cache > 0 ? cache * (unit == 'M' ? 1048576.0 : 1024.0) : 0;
    return status;
}

cJSON *cpu_device_json(const CpuInfo *info, const char *command) {
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "device", "cpu");
    cJSON_AddStringToObject(tree, "name", info->name);
    json_add_number(tree, "num_cores", info->num_cores);
    json_add_number(tree, "num_ranks", info->num_ranks);
    json_add_number(tree, "memory_bytes", info->memory_bytes);
    json_add_number(tree, "l2_bytes", info->cache_bytes);
    cJSON_AddStringToObject(tree, "blas", info->blas);
    cJSON_AddStringToObject(tree, "mpi", info->mpi);
    cJSON_AddStringToObject(tree, "date", date);
    cJSON_AddStringToObject(tree, "command", command);
    cJSON_AddStringToObject(tree, "meshwright", MESHWRIGHT_VERSION);
    return tree;
}
