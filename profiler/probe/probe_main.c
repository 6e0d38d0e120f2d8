// meshwright-mpi-probe: measures this computer's cores, one rank a core; `meshwright profile
// --device cpu` starts it by mpirun.
//
//   meshwright-mpi-probe FOLDER quick|full KIND,..
//   meshwright-mpi-probe --about              names what multiplies matrices, without MPI
//
// Rank 0 adds rows to FOLDER/KIND.csv and tells on standard output, a line each:
//   progress KIND DONE OF
//   kind KIND MEASURED KEPT OF DISTURBED TORN SECONDS
//   error SENTENCE                            and ends with the code of the failure
#include "backend/cpu_backend.h"
#include "backend/mpi_comm.h"
#include "profiler/cpu_shapes.h"
#include "profiler/probe/probe_time.h"
#include "profiler/result_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *folder;
    bool quick;
    Backend *fp32, *fp64;
    Comm *all;
    Arena arena, scratch;
} Probe;

typedef struct {
    int num_measured, num_kept, num_disturbed;
} Counted;

static const MeasureLimits FULL = {.most_s = 0.06, .goal_frac = 0.01};
static const MeasureLimits QUICK = {.most_s = 0.02, .goal_frac = 0.02};

static bool is_first(const Probe *probe) {
    return probe->all->rank == 0;
}

// What rank 0 decided, on all.
static int agreed(const Probe *probe, int value) {
    int32_t number = is_first(probe) ? value : 0;
    Comm *all = probe->all;
    all->table->broadcast(all, &number, 1, DTYPE_INT32, 0, all->backend->stream);
    return number;
}

// Groups of so many ranks side by side; NULL where this rank is left over.
static Status group_make(Probe *probe, int size, Comm **out) {
    *out = NULL;
    int first = probe->all->rank / size * size;
    if (first + size > probe->all->size) return status_ok();
    int *ranks = ARENA_ARRAY(&probe->scratch, size, int);
    for (int i = 0; i < size; i++) ranks[i] = first + i;
    return mpi_comm_create(probe->fp32, ranks, size, out);
}

static Status shape_measure(Probe *probe, const CpuShape *shape, ProbeMeasured *out) {
    Backend *backend = shape->dtype == DTYPE_FP64 ? probe->fp64 : probe->fp32;
    const MeasureLimits *limits = probe->quick ? &QUICK : &FULL;
    Work *work = ARENA_NEW(&probe->scratch, Work);
    Comm *group = NULL;
    if (shape->kind == CPU_KIND_COMM) TRY(group_make(probe, shape->num_ranks, &group));
    Status status = work_prepare(backend, group, shape, work);
    if (status.code == STATUS_OK)
        status = probe_measure(probe->all, work, limits, &probe->scratch, out);
    work_release(work);
    if (group) group->table->free(group);
    // There and back is two messages.
    if (shape->op == CPU_OP_SEND_RECV) out->latency_s /= 2, out->batch_latency_s /= 2;
    return status;
}

static const char *cells(const CpuShape *shape, const ProbeMeasured *measured, Arena *arena) {
    const char *work = "";
    if (shape->kind == CPU_KIND_MEMORY) work = arena_printf(arena, "%.0f,", cpu_shape_bytes(shape));
    if (shape->kind == CPU_KIND_ATTENTION)
        work = arena_printf(arena, "%.0f,", cpu_shape_flops(shape));
    return arena_printf(arena, "%s%.6g,%.6g,%.4g,%d,host,,,,", work, 1e3 * measured->latency_s,
                        1e3 * measured->batch_latency_s, measured->spread_frac,
                        measured->num_samples);
}

static Status shape_run(Probe *probe, const CpuShape *shape, ResultFile *file, Counted *counted) {
    arena_reset(&probe->scratch);
    const char *key = cpu_key(shape, &probe->scratch);
    if (agreed(probe, is_first(probe) && result_file_has(file, key))) {
        counted->num_kept++;
        return status_ok();
    }
    ProbeMeasured measured;
    TRY(shape_measure(probe, shape, &measured));
    counted->num_measured++;
    counted->num_disturbed += measured.num_disturbed > 0;
    if (!is_first(probe)) return status_ok();
    return result_file_add(file, key, cells(shape, &measured, &probe->scratch));
}

static Status shapes_run(Probe *probe, CpuKind kind, ResultFile *file) {
    CpuShapes list = cpu_shapes(kind, probe->quick, probe->all->size, &probe->arena);
    Counted counted = {0};
    double begin_s = measure_clock_s(), told_s = 0;
    for (int i = 0; i < list.num_shapes; i++) {
        if (is_first(probe) && measure_clock_s() - told_s > 0.1) {
            told_s = measure_clock_s();
            printf("progress %s %d %d\n", CPU_KIND_NAMES[kind], i, list.num_shapes);
            fflush(stdout);
        }
        TRY(shape_run(probe, &list.shapes[i], file, &counted));
    }
    if (is_first(probe))
        printf("kind %s %d %d %d %d %d %.6g\n", CPU_KIND_NAMES[kind], counted.num_measured,
               counted.num_kept, list.num_shapes, counted.num_disturbed, file->torn,
               measure_clock_s() - begin_s);
    fflush(stdout);
    return status_ok();
}

static Status kind_run(Probe *probe, CpuKind kind) {
    int num_keys;
    const char *header = cpu_header(kind, &num_keys);
    ResultFile file = {0};
    if (is_first(probe))
        TRY(result_file_open(
            arena_printf(&probe->arena, "%s/%s.csv", probe->folder, CPU_KIND_NAMES[kind]), header,
            num_keys, &probe->arena, &file));
    Status status = shapes_run(probe, kind, &file);
    Status closed = result_file_close(&file);
    return status.code == STATUS_OK ? closed : status;
}

static Status probe_open(Probe *probe) {
    TRY(cpu_backend_open(DTYPE_FP32, 0, &probe->fp32));
    TRY(cpu_backend_open(DTYPE_FP64, 0, &probe->fp64));
    int size = mpi_size(), *ranks = ARENA_ARRAY(&probe->arena, size, int);
    for (int r = 0; r < size; r++) ranks[r] = r;
    return mpi_comm_create(probe->fp32, ranks, size, &probe->all);
}

static Status probe_run(Probe *probe, const char *kinds) {
    TRY(probe_open(probe));
    char *rest = arena_strdup(&probe->arena, kinds);
    for (char *name; (name = strsep(&rest, ","));)
        for (int k = 0; k < NUM_CPU_KINDS; k++)
            if (strcmp(name, CPU_KIND_NAMES[k]) == 0) TRY(kind_run(probe, (CpuKind)k));
    return status_ok();
}

static void probe_close(Probe *probe) {
    if (probe->all) probe->all->table->free(probe->all);
    if (probe->fp32) probe->fp32->table->close(probe->fp32);
    if (probe->fp64) probe->fp64->table->close(probe->fp64);
    arena_free(&probe->scratch);
    arena_free(&probe->arena);
}

static int about(void) {
    Backend *backend;
    Status status = cpu_backend_open(DTYPE_FP32, 0, &backend);
    if (status.code != STATUS_OK) return (int)status.code;
    puts(backend->name);
    backend->table->close(backend);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--about") == 0) return about();
    if (argc != 4) {
        fputs("usage: meshwright-mpi-probe FOLDER quick|full KIND,..\n", stderr);
        return 2;
    }
    Status status = mpi_start(&argc, &argv);
    Probe probe = {.folder = argv[1], .quick = strcmp(argv[2], "quick") == 0};
    if (status.code == STATUS_OK) status = probe_run(&probe, argv[3]);
    if (status.code != STATUS_OK) { // the others may be waiting for this rank
        printf("error %s\n", status.text);
        fflush(stdout);
        mpi_abort((int)status.code);
    }
    probe_close(&probe);
    mpi_end();
    return 0;
}
