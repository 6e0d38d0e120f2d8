#include "profiler/profile_run.h"
#include "base/json.h"
#include "profiler/memory_ops.h"
#include "profiler/result_file.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    const GpuPlugin *plugin;
    const ProfileOptions *options;
    Nvml *nvml; // NULL: without
    DeviceMonitor *monitor;
    GpuSession *session;
    GpuTimer timer; // of the session
    ProfileSummary *summary;
    Arena *arena, scratch;
    Status failed; // the first shape that did
    int failed_in_a_row;
} ProfileRun;

enum { MOST_FAILED = 3 };

static const MeasureLimits FULL = {.most_s = 0.1, .goal_frac = 0.01};
static const MeasureLimits QUICK = {.most_s = 0.04, .goal_frac = 0.01};

static void note(const ProfileRun *run, const char *sentence) {
    if (run->options->note) run->options->note(sentence);
}

static void rates(const GpuRequest *request, double latency_s, ProfileKindSummary *kind) {
    if (request->kind == GPU_WORK_GEMM) {
        double flops = 2.0 * request->gemm.m * request->gemm.n * request->gemm.k;
        kind->best_flops_per_s = fmax(kind->best_flops_per_s, flops / latency_s);
    } else if (request->kind == GPU_WORK_MEMORY) {
        const MemoryRequest *memory = &request->memory;
        double bytes = memory_op_bytes(memory_op_find(memory->op), memory->rows, memory->columns);
        kind->best_bytes_per_s = fmax(kind->best_bytes_per_s, bytes / latency_s);
    } else if (request->kind == GPU_WORK_HOST_COPY) {
        double bytes = (double)request->host_copy.num_bytes;
        kind->best_bytes_per_s = fmax(kind->best_bytes_per_s, bytes / latency_s);
    } else if (request->kind == GPU_WORK_ATTENTION) {
        double flops = attention_flops(&request->attention);
        kind->best_flops_per_s = fmax(kind->best_flops_per_s, flops / latency_s);
    } else if (request->kind == GPU_WORK_TEAM) {
        double bytes = (double)request->team.num_elements * (double)number_bytes(NUMBER_BFLOAT16);
        kind->best_bytes_per_s = fmax(kind->best_bytes_per_s, bytes / latency_s);
    }
}

// Where CUPTI was to tell and did not.
static void count_events(const ProfileRun *run, const Measured *measured,
                         ProfileKindSummary *kind) {
    if (run->timer != GPU_TIMER_CUPTI || measured->timer == GPU_TIMER_CUPTI) return;
    kind->num_by_events++;
    kind->num_dropped += measured->num_dropped > 0;
    kind->num_records_dropped += measured->num_dropped;
}

// Measures one shape; *cells is its row behind the key.
static Status measure_one(ProfileRun *run, SweepKind sweep, const GpuRequest *request,
                          const char **cells) {
    ProfileKindSummary *kind = &run->summary->kinds[sweep];
    const MeasureLimits *limits = run->options->quick ? &QUICK : &FULL;
    DeviceWindow window;
    double latency_s;
    if (sweep == SWEEP_SUSTAINED) {
        Sustained sustained;
        TRY(profile_sustain(run->plugin, run->session, request, run->monitor, &run->scratch,
                            &sustained));
        *cells = profile_sustained_cells(&sustained, &run->scratch);
        window = sustained.steady;
        latency_s = sustained.steady_s;
    } else if (sweep == SWEEP_CONTENTION) {
        Contention contention;
        TRY(profile_contend(run->plugin, run->session, request, limits, &run->scratch,
                            &contention));
        window = monitor_window(run->monitor, contention.both.begin_s, contention.both.end_s);
        *cells = profile_contention_cells(request, &contention, &window, &run->scratch);
        latency_s = contention.both.latency_s;
    } else {
        Measured measured;
        TRY(measure_shape(run->plugin, run->session, request, limits, &run->scratch, &measured));
        window = monitor_window(run->monitor, measured.begin_s, measured.end_s);
        *cells = profile_cells(sweep, request, &measured, &window, &run->scratch);
        latency_s = measured.latency_s;
        count_events(run, &measured, kind);
    }
    rates(request, latency_s, kind);
    kind->num_throttled += nvml_throttles(window.reasons) != 0;
    return status_ok();
}

static Status measure_row(ProfileRun *run, SweepKind sweep, const GpuRequest *request,
                          ResultFile *file) {
    ProfileKindSummary *kind = &run->summary->kinds[sweep];
    arena_reset(&run->scratch);
    const char *key = profile_key(sweep, request, &run->scratch);
    const char *cells = NULL;
    if (result_file_has(file, key)) {
        kind->num_kept++;
        return status_ok();
    }
    Status status = measure_one(run, sweep, request, &cells);
    if (status.code == STATUS_OK) {
        kind->num_measured++;
        run->failed_in_a_row = 0;
        return result_file_add(file, key, cells);
    }
    if (status.code == STATUS_NO) {
        if (kind->num_missing++ == 0) note(run, status.text);
        return status_ok();
    }
    // One shape may fail and the next succeed; a device that is lost fails them all.
    note(run, arena_printf(run->arena, "%s %s: %s", SWEEP_NAMES[sweep], key, status.text));
    if (run->failed.code == STATUS_OK) run->failed = status;
    kind->num_failed++;
    return ++run->failed_in_a_row < MOST_FAILED ? status_ok() : status;
}

static Status measure_shapes(ProfileRun *run, SweepKind sweep, const Sweep *shapes,
                             ResultFile *file) {
    for (int i = 0; i < shapes->num_requests; i++) {
        if (run->options->progress)
            run->options->progress(SWEEP_NAMES[sweep], i, shapes->num_requests);
        TRY(measure_row(run, sweep, &shapes->requests[i], file));
    }
    return status_ok();
}

static bool all_there(const Sweep *shapes, SweepKind sweep, const ResultFile *file,
                      Arena *scratch) {
    for (int i = 0; i < shapes->num_requests; i++)
        if (!result_file_has(file, profile_key(sweep, &shapes->requests[i], scratch))) return false;
    return true;
}

// Records change what launches cost, so that only what a GPU does alone is measured with them.
static GpuTimer timer_for(const ProfileOptions *options, SweepKind sweep) {
    switch (sweep) {
    case SWEEP_LAUNCH:
    case SWEEP_NCCL:
    case SWEEP_SEND_RECV:
    case SWEEP_CONTENTION:
    case SWEEP_SUSTAINED:
        return GPU_TIMER_EVENTS;
    default:
        return options->timer;
    }
}

// An idle device runs at low clocks: a product for WARM_S seconds brings them up.
#define WARM_S 0.2

static Status warm_up(ProfileRun *run) {
    GpuRequest request = {.kind = GPU_WORK_GEMM,
                          .gemm = {.dtype = NUMBER_BFLOAT16,
                                   .out_dtype = NUMBER_BFLOAT16,
                                   .layout = GEMM_FORWARD,
                                   .m = 4096,
                                   .n = 4096,
                                   .k = 4096}};
    GpuWork *work;
    TRY(run->plugin->prepare(run->session, &request, &work));
    GpuBatch *batch = ARENA_NEW(&run->scratch, GpuBatch);
    double begin_s = measure_clock_s();
    Status status = status_ok();
    while (status.code == STATUS_OK && measure_clock_s() - begin_s < WARM_S)
        status = run->plugin->run(work, 64, false, batch);
    run->plugin->release(work);
    return status;
}

static Status kind_measure(ProfileRun *run, SweepKind sweep, const Sweep *shapes,
                           ResultFile *file) {
    GpuTimer wanted = timer_for(run->options, sweep), timer = wanted;
    char why[600];
    TRY(run->plugin->open(run->options->device, &timer, &run->session, why, sizeof why));
    run->timer = timer;
    if (timer != wanted)
        note(run, arena_printf(run->arena, "%s: CUPTI cannot record, so events time it: %s",
                               SWEEP_NAMES[sweep], why));
    Status status = sweep == SWEEP_SUSTAINED ? status_ok() : warm_up(run);
    if (status.code == STATUS_OK) status = measure_shapes(run, sweep, shapes, file);
    run->plugin->close(run->session);
    run->session = NULL;
    return status;
}

// What events time instead of CUPTI, and why.
static void events_note(const ProfileRun *run, SweepKind sweep) {
    const ProfileKindSummary *kind = &run->summary->kinds[sweep];
    int num_undivided = kind->num_by_events - kind->num_dropped;
    if (kind->num_dropped)
        note(run, arena_printf(run->arena,
                               "%s: CUPTI dropped %zu records, so that events time %d of %d "
                               "measurements, gaps included (column timer)",
                               SWEEP_NAMES[sweep], kind->num_records_dropped, kind->num_dropped,
                               kind->num_measured));
    if (num_undivided)
        note(run, arena_printf(run->arena,
                               "%s: CUPTI's records of %d of %d measurements do not divide among "
                               "their calls, so that events time them, gaps included (column "
                               "timer)",
                               SWEEP_NAMES[sweep], num_undivided, kind->num_measured));
}

static void kind_note(const ProfileRun *run, SweepKind sweep) {
    const ProfileKindSummary *kind = &run->summary->kinds[sweep];
    if (kind->torn)
        note(run,
             arena_printf(run->arena, "%s: its last row was cut off; measured again", kind->file));
    if (kind->num_throttled)
        note(run, arena_printf(run->arena,
                               "%s: the clocks were held back in %d of %d measurements (column "
                               "throttle_reasons)",
                               SWEEP_NAMES[sweep], kind->num_throttled, kind->num_measured));
    events_note(run, sweep);
}

static DeviceReading reading(const ProfileRun *run) {
    if (run->nvml) return nvml_read(run->nvml);
    return (DeviceReading){.sm_clock_hz = NAN, .temperature_c = NAN};
}

static const char *kind_path(const ProfileRun *run, SweepKind sweep) {
    return arena_printf(run->arena, "%s/%s.csv", run->options->folder, SWEEP_NAMES[sweep]);
}

// Every table that will be continued, before anything is measured or written.
static Status tables_check(ProfileRun *run) {
    for (int i = 0; i < NUM_SWEEPS; i++) {
        if (!run->options->kinds[i]) continue;
        int num_keys;
        const char *header = profile_header((SweepKind)i, &num_keys);
        TRY(result_file_check(kind_path(run, (SweepKind)i), header, num_keys, &run->scratch));
    }
    return status_ok();
}

// A kind that this machine has no shapes of, which is no failure of the others.
static void kind_lacks(const ProfileRun *run, SweepKind sweep) {
    note(run, arena_printf(run->arena,
                           "%s: a group is of 2 GPUs or more; this machine shows %d, so that "
                           "nothing is measured",
                           SWEEP_NAMES[sweep], run->summary->info.num_devices));
}

static Status kind_run(ProfileRun *run, SweepKind sweep) {
    ProfileKindSummary *kind = &run->summary->kinds[sweep];
    kind->asked = true;
    kind->first = kind->last = reading(run);
    Sweep shapes =
        sweep_new(sweep, run->options->quick, run->summary->info.num_devices, run->arena);
    kind->num_shapes = shapes.num_requests;
    if (shapes.num_requests == 0) {
        kind_lacks(run, sweep);
        return status_ok();
    }
    kind->file = kind_path(run, sweep);
    int num_keys;
    const char *header = profile_header(sweep, &num_keys);
    ResultFile file;
    TRY(result_file_open(kind->file, header, num_keys, run->arena, &file));
    kind->torn = file.torn;
    double begin_s = measure_clock_s();
    Status status = status_ok();
    if (all_there(&shapes, sweep, &file, &run->scratch))
        kind->num_kept = shapes.num_requests;
    else
        status = kind_measure(run, sweep, &shapes, &file);
    kind->last = reading(run);
    kind->span_s = measure_clock_s() - begin_s;
    kind_note(run, sweep);
    Status closed = result_file_close(&file);
    return status.code == STATUS_OK ? closed : status;
}

static Status begin(ProfileRun *run) {
    ProfileSummary *summary = run->summary;
    TRY(run->plugin->probe(run->options->device, &summary->info));
    const char *path = arena_printf(run->arena, "%s/device.json", run->options->folder);
    TRY(profile_device_check(path, &summary->info, run->arena));
    TRY(tables_check(run));
    Status status = nvml_open(summary->info.pci_bus_id, &run->nvml);
    if (status.code == STATUS_OK) {
        summary->has_nvml = true;
        summary->limits = nvml_limits(run->nvml);
    } else {
        note(run,
             arena_printf(run->arena, "clocks, power and temperature stay empty: %s", status.text));
    }
    TRY(monitor_start(run->nvml, &run->monitor));
    cJSON *tree = profile_device_json(&summary->info, run->nvml ? &summary->limits : NULL,
                                      run->options->command);
    status = json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

static Status kinds_run(ProfileRun *run) {
    TRY(begin(run));
    int num_shapes = 0;
    for (int i = 0; i < NUM_SWEEPS; i++) {
        if (!run->options->kinds[i]) continue;
        TRY(kind_run(run, (SweepKind)i));
        num_shapes += run->summary->kinds[i].num_shapes;
    }
    TRY(run->failed);
    if (num_shapes > 0) return status_ok();
    return status_error(STATUS_MACHINE, "meshwright: nothing that was asked for can be measured "
                                        "on this machine");
}

Status profile_run(const GpuPlugin *plugin, const ProfileOptions *options, Arena *arena,
                   ProfileSummary *out) {
    *out = (ProfileSummary){0};
    ProfileRun run = {.plugin = plugin, .options = options, .summary = out, .arena = arena};
    int held;
    Status status = result_folder_hold(options->folder, &held);
    if (status.code == STATUS_OK) status = kinds_run(&run);
    result_folder_release(held);
    monitor_stop(run.monitor);
    nvml_close(run.nvml);
    arena_free(&run.scratch);
    return status;
}
