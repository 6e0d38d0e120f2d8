// profiler/cpu_run.h - measures this computer's CPUs kind by kind into a folder: starts
// meshwright-mpi-probe by mpirun, one rank a core, in a folder of its own (base/mpi_folder.h).
#pragma once

#include "base/json.h"
#include "profiler/cpu_shapes.h"

typedef struct {
    char name[128]; // of the CPU
    char blas[128]; // "OpenBLAS 0.3.21"
    char mpi[128];  // "mpirun (Open MPI) 4.1.4"
    int num_cores;  // that this process may use
    int num_ranks;  // one a core, 2 at least
    double memory_bytes, memory_available_bytes;
    double cache_bytes; // of a core's own: level 2
} CpuInfo;

typedef struct {
    const char *folder;  // exists
    const char *command; // that is running, for device.json
    bool quick;
    bool kinds[NUM_CPU_KINDS]; // to measure
    // Told now and then; NULL: nobody.
    void (*progress)(const char *kind, int num_done, int num_shapes);
} CpuOptions;

typedef struct {
    bool asked, done;
    int num_shapes, num_measured, num_kept;
    int num_disturbed; // while another program took a core away for a while
    bool torn;         // a row cut off by an earlier end was removed
    double span_s;
} CpuKindSummary;

typedef struct {
    CpuInfo info;
    CpuKindSummary kinds[NUM_CPU_KINDS];
} CpuSummary;

// STATUS_MACHINE with the missing part's name where there is no mpirun or no meshwright-mpi-probe
// (beside this program, or at MESHWRIGHT_MPI_PROBE).
Status cpu_probe(CpuInfo *out);

// Rows already in the folder are kept. STATUS_INVALID where the folder holds another device's
// files; STATUS_MACHINE where the probe fails.
Status cpu_run(const CpuInfo *info, const CpuOptions *options, Arena *arena, CpuSummary *out);

// device.json: what was measured, on what and when.
cJSON *cpu_device_json(const CpuInfo *info, const char *command);

// The probe of this computer (cpu_info.c).
const char *cpu_probe_path(Arena *arena);
