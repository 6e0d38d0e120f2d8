// profiler/profile_run.h - measures a device kind by kind into a folder.
#pragma once

#include "base/json.h"
#include "profiler/gpu_plugin.h"
#include "profiler/profile_rows.h"

typedef struct {
    const char *folder;  // exists
    const char *command; // that is running, for device.json
    bool quick;
    bool kinds[NUM_SWEEPS]; // to measure
    GpuTimer timer;
    int device;
    // Told now and then; NULL: nobody.
    void (*progress)(const char *kind, int num_done, int num_shapes);
    // Told what the user should know, a whole sentence; NULL: nobody.
    void (*note)(const char *sentence);
} ProfileOptions;

typedef struct {
    bool asked;                             // one of the kinds to measure
    const char *file;                       // NULL: without shapes on this machine
    int num_shapes, num_measured, num_kept; // kept: were in the file
    int num_missing;                        // the device has no such kernel
    int num_failed;                         // told; the answer is their first failure
    int num_throttled;                      // measured while something held the clocks back
    // Asked for CUPTI, but timed by events, as not all records came (num_dropped) or they do not
    // divide among the calls. num_records_dropped: in all of those.
    int num_by_events, num_dropped;
    size_t num_records_dropped;
    bool torn; // a row cut off by an earlier end was removed
    double span_s;
    DeviceReading first, last;                 // at the beginning and the end of the kind
    double best_flops_per_s, best_bytes_per_s; // of those measured now; 0: none
} ProfileKindSummary;

typedef struct {
    GpuInfo info;
    DeviceLimits limits;
    bool has_nvml;
    ProfileKindSummary kinds[NUM_SWEEPS];
} ProfileSummary;

// Rows already in the folder are kept. STATUS_INVALID where the folder holds another device's or
// another program's files; STATUS_MACHINE where the device fails.
Status profile_run(const GpuPlugin *plugin, const ProfileOptions *options, Arena *arena,
                   ProfileSummary *out);

// Of the parts:

// device.json: what was measured, on what and when; NULL limits: without NVML.
cJSON *profile_device_json(const GpuInfo *info, const DeviceLimits *limits, const char *command);

// Refuses (STATUS_INVALID) a folder whose device.json names another device.
Status profile_device_check(const char *path, const GpuInfo *info, Arena *arena);

// Runs one product for SUSTAINED_S seconds.
#define SUSTAINED_S 3.0
Status profile_sustain(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                       DeviceMonitor *monitor, Arena *scratch, Sustained *out);

// Measures a product alone, what is beside it alone, and both.
Status profile_contend(const GpuPlugin *plugin, GpuSession *session, const GpuRequest *request,
                       const MeasureLimits *limits, Arena *scratch, Contention *out);
