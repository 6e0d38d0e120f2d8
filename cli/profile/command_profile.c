// `profile`: measures the GPU of this machine or its CPUs (cli/profile/profile_cpu.h), or checks
// that the kernels it times are right.
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/profile/profile_cpu.h"
#include "profiler/gpu_check.h"
#include "profiler/gpu_library.h"
#include "profiler/profile_run.h"
#include "profiler/wrap.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    CommonOptions common;
    const char *output;
    const char *kinds;        // as given; NULL: all
    bool quick, check, timed; // timed: --timer is given
    int timer;                // index in TIMERS
    int device;               // index in DEVICES
    bool force;
    char *const *wrap; // the program and its arguments; NULL: none
} ProfileCommand;

enum { KEY_DEVICE = KEY_LONG, KEY_QUICK, KEY_KIND, KEY_TIMER, KEY_CHECK, KEY_WRAP, KEY_FORCE };

enum { DEVICE_CUDA, DEVICE_CPU };
static const char *const DEVICES[] = {"cuda", "cpu", NULL};
static const char *const TIMERS[] = {"cupti", "events", NULL};

static const struct argp_option OPTIONS[] = {
    {"output", 'o', "DIR", 0,
     "write KIND.csv and device.json there; rows that are there already are kept", 0},
    {"quick", KEY_QUICK, NULL, 0,
     "fewer shapes: about half a minute instead of five; with --device cpu 30 instead of 200", 0},
    {"kind", KEY_KIND, "KIND,..", 0,
     "only these: launch, gemm, gemm_backward, gemm_other, attention (context_attention and "
     "attention_backward), memory_bound, host_copy, comm (nccl and send_recv), contention, "
     "sustained; with --device cpu launch, gemm_other, gemm_backward, attention, memory_bound, "
     "comm, sharing",
     0},
    {"timer", KEY_TIMER, "NAME", 0,
     "cupti (default): the kernels alone; events: back to back, with the gaps between them", 0},
    {"check", KEY_CHECK, NULL, 0,
     "measure nothing: run every kernel once and compare it with the host's arithmetic", 0},
    {"device", KEY_DEVICE, "NAME", 0,
     "cuda (default): the first NVIDIA GPU; cpu: this computer's cores, one process each", 0},
    {"wrap", KEY_WRAP, "CMD ARGUMENT..", 0,
     "run this program, the rest of the line, and record what it does on its GPUs instead", 0},
    {"force", KEY_FORCE, NULL, 0,
     "with --wrap or --device cpu: overwrite what in DIR is of nobody's profile, or was changed",
     0},
    OPTION_JSON,
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    ProfileCommand *options = state->input;
    switch (key) {
    case 'o':
        options->output = arg;
        return 0;
    case KEY_QUICK:
        options->quick = true;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    case KEY_CHECK:
        options->check = true;
        return 0;
    case KEY_KIND:
        options->kinds = arg;
        return 0;
    case KEY_TIMER:
        options->timed = true;
        return parse_name(state, "timer", arg, TIMERS, &options->timer);
    case KEY_DEVICE:
        return parse_name(state, "device", arg, DEVICES, &options->device);
    case KEY_WRAP: // as --wrap=CMD
        return parse_refuse(state, "profile: write --wrap CMD without an equals sign");
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .doc =
        "Measures the GPU of this machine: matrix products, attention, operators that memory "
        "bounds, launches, products beside a copy, what clocks and power settle at under load "
        "and, where there are several GPUs, what they send each other. Each kind is a table "
        "DIR/KIND.csv that grows row by row; a run that was stopped goes on where it was. "
        "meshwright calibrate reads gemm.csv, gemm_backward.csv, context_attention.csv and "
        "nccl.csv. Nothing on the device is set. With --device cpu: products, attention and the "
        "other operators on each "
        "core of this computer with all of them busy, and what processes send each other; fitted "
        "to that, DIR/cluster.json is a cluster for scenarios.\v"
        "Examples:\n"
        "  meshwright profile --quick -o measured\n"
        "  meshwright profile -o measured --kind gemm,sustained\n"
        "  meshwright profile --device cpu --quick -o here\n"
        "  meshwright profile --check\n"
        "  meshwright profile -o traced --wrap python3 train.py --steps 10\n\n"
        "GPUs need libmeshwright-gpu.so, the NVIDIA driver and cuBLASLt, attention and comm also "
        "libmeshwright-cuda.so and comm NCCL, CPUs meshwright-mpi-probe and Open MPI's mpirun; "
        "docs/profiling.md explains the tables.",
};

// --- Which kinds

// Two tables that belong together, by one name: with --device cpu they are one.
static const struct {
    const char *name;
    SweepKind first, second;
} PAIRS[] = {
    {"attention", SWEEP_ATTENTION, SWEEP_ATTENTION_BACKWARD},
    {"comm", SWEEP_NCCL, SWEEP_SEND_RECV},
};

static bool kinds_add(const char *name, bool kinds[NUM_SWEEPS]) {
    bool known = false;
    for (int i = 0; i < NUM_SWEEPS; i++) {
        if (strcmp(SWEEP_NAMES[i], name) != 0) continue;
        kinds[i] = known = true;
    }
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        if (strcmp(PAIRS[i].name, name) != 0) continue;
        kinds[PAIRS[i].first] = kinds[PAIRS[i].second] = known = true;
    }
    return known;
}

static Status kinds_read(const char *list, Arena *arena, bool kinds[NUM_SWEEPS]) {
    for (int i = 0; i < NUM_SWEEPS; i++) kinds[i] = !list;
    if (!list) return status_ok();
    char *copy = arena_strdup(arena, list), *rest = copy;
    for (char *name; (name = strsep(&rest, ","));) {
        if (!kinds_add(name, kinds))
            return usage_error("--kind: \"%.60s\" is unknown; expected some of launch, gemm, "
                               "gemm_backward, gemm_other, attention (context_attention, "
                               "attention_backward), memory_bound, host_copy, comm (nccl, "
                               "send_recv), contention, sustained",
                               name);
    }
    return status_ok();
}

// --- Progress and notes

static void tell_progress(const char *kind, int num_done, int num_shapes) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-18s %4d of %4d ", kind, num_done, num_shapes);
}

static void tell_note(const char *sentence) {
    fprintf(stderr, "%s%s\n", isatty(STDERR_FILENO) ? "\r" : "", sentence);
}

// --- The answer of a check

static Status check_print_json(const GpuChecks *checks) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON *list = cJSON_AddArrayToObject(tree, "checks");
    for (int i = 0; i < checks->num_checks; i++) {
        const GpuCheck *check = &checks->checks[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", check->name);
        cJSON_AddStringToObject(object, "array", check->array);
        json_add_number(object, "error_frac", check->error);
        json_add_number(object, "tolerance_frac", check->tolerance);
        cJSON_AddItemToArray(list, object);
    }
    json_add_number(tree, "num_wrong", checks->num_wrong);
    return answer_json(tree);
}

static void check_print_table(const GpuChecks *checks, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"kernel", false, 0}, {"array", false, 0}, {"largest error", true, 0},
        {"allowed", true, 0}, {"", false, 0},
    };
    Paper paper = paper_of(stdout);
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int i = 0; i < checks->num_checks; i++) {
        const GpuCheck *check = &checks->checks[i];
        bool right = check->error <= check->tolerance;
        const char *cells[] = {check->name, check->array, arena_printf(arena, "%.2e", check->error),
                               arena_printf(arena, "%.2e", check->tolerance), right ? "" : "WRONG"};
        table_add(&table, right ? STYLE_PLAIN : STYLE_BAD, cells, NULL);
    }
    table_print(&table, &paper);
}

static Status check_answer(const ProfileCommand *options, Arena *arena) {
    const GpuPlugin *plugin;
    GpuChecks checks;
    TRY(gpu_library_load(&plugin));
    TRY(gpu_check(plugin, 0, arena, &checks));
    if (options->common.json)
        TRY(check_print_json(&checks));
    else
        check_print_table(&checks, arena);
    if (checks.num_wrong == 0) return status_ok();
    return status_error(STATUS_NO, "meshwright: %d of %d kernels give wrong results",
                        checks.num_wrong, checks.num_checks);
}

// --- The answer of measurements

static void add_reading(cJSON *object, const char *key, const DeviceReading *reading) {
    cJSON *state = cJSON_AddObjectToObject(object, key);
    json_add_number(state, "sm_clock_hz", reading->sm_clock_hz);
    json_add_number(state, "temperature_c", reading->temperature_c);
}

static Status print_json(const ProfileSummary *summary, const char *command) {
    cJSON *tree =
        profile_device_json(&summary->info, summary->has_nvml ? &summary->limits : NULL, command);
    cJSON *kinds = cJSON_AddArrayToObject(tree, "kinds");
    for (int i = 0; i < NUM_SWEEPS; i++) {
        const ProfileKindSummary *kind = &summary->kinds[i];
        if (!kind->asked) continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", SWEEP_NAMES[i]);
        if (kind->file) cJSON_AddStringToObject(object, "file", kind->file);
        json_add_number(object, "num_shapes", kind->num_shapes);
        json_add_number(object, "num_measured", kind->num_measured);
        json_add_number(object, "num_kept", kind->num_kept);
        json_add_number(object, "num_missing", kind->num_missing);
        json_add_number(object, "num_failed", kind->num_failed);
        json_add_number(object, "num_throttled", kind->num_throttled);
        json_add_number(object, "num_by_events", kind->num_by_events);
        json_add_number(object, "num_records_dropped", (double)kind->num_records_dropped);
        json_add_number(object, "span_s", kind->span_s);
        json_add_number(object, "best_flops_per_s", kind->best_flops_per_s);
        json_add_number(object, "best_bytes_per_s", kind->best_bytes_per_s);
        add_reading(object, "first", &kind->first);
        add_reading(object, "last", &kind->last);
        cJSON_AddItemToArray(kinds, object);
    }
    return answer_json(tree);
}

// "1980 - 1755 MHz, 38 - 61 C".
static const char *states(const ProfileKindSummary *kind, Arena *arena) {
    if (!isfinite(kind->first.sm_clock_hz) || !isfinite(kind->last.sm_clock_hz)) return "";
    return arena_printf(arena, "%.0f - %.0f MHz, %.0f - %.0f C", kind->first.sm_clock_hz / 1e6,
                        kind->last.sm_clock_hz / 1e6, kind->first.temperature_c,
                        kind->last.temperature_c);
}

static const char *best(const ProfileKindSummary *kind, Arena *arena) {
    char text[UNITS_SIZE];
    if (kind->best_flops_per_s > 0)
        return arena_strdup(arena, units_flops(kind->best_flops_per_s, text));
    if (kind->best_bytes_per_s > 0)
        return arena_printf(arena, "%s/s", units_bytes(kind->best_bytes_per_s, text));
    return "";
}

static void print_table(const ProfileSummary *summary, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"kind", false, 0},     {"measured", true, 0}, {"kept", true, 0}, {"of", true, 0},
        {"held back", true, 0}, {"time", true, 0},     {"best", true, 0}, {"first - last", true, 1},
    };
    Paper paper = paper_of(stdout);
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    printf("%s, %d SMs\n\n", summary->info.name, summary->info.num_sms);
    for (int i = 0; i < NUM_SWEEPS; i++) {
        const ProfileKindSummary *kind = &summary->kinds[i];
        if (!kind->asked) continue;
        char span[UNITS_SIZE];
        const char *cells[] = {SWEEP_NAMES[i],
                               arena_printf(arena, "%d", kind->num_measured),
                               arena_printf(arena, "%d", kind->num_kept),
                               arena_printf(arena, "%d", kind->num_shapes),
                               arena_printf(arena, "%d", kind->num_throttled),
                               units_seconds(kind->span_s, span),
                               best(kind, arena),
                               states(kind, arena)};
        cells[5] = arena_strdup(arena, cells[5]);
        table_add(&table, kind->num_failed ? STYLE_BAD : STYLE_PLAIN, cells, NULL);
    }
    table_print(&table, &paper);
}

static bool any_begun(const ProfileSummary *summary) {
    for (int i = 0; i < NUM_SWEEPS; i++)
        if (summary->kinds[i].asked) return true;
    return false;
}

static Status measure_answer(const ProfileCommand *options, const char *command, Arena *arena) {
    if (!options->output)
        return usage_error("profile: no -o given; meshwright profile --help shows examples");
    ProfileOptions profile = {
        .folder = options->output,
        .command = command,
        .quick = options->quick,
        .timer = options->timer == 0 ? GPU_TIMER_CUPTI : GPU_TIMER_EVENTS,
        .progress = tell_progress,
        .note = tell_note,
    };
    TRY(kinds_read(options->kinds, arena, profile.kinds));
    TRY(folder_check(options->output));
    const GpuPlugin *plugin;
    GpuInfo info;
    TRY(gpu_library_load(&plugin));
    TRY(plugin->probe(profile.device, &info));
    FolderMade made;
    TRY(folder_make(options->output, arena, &made));
    ProfileSummary summary;
    Status status = profile_run(plugin, &profile, arena, &summary);
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%34s\r", "");
    if (status.code == STATUS_INVALID || !any_begun(&summary)) return status;
    if (options->common.json)
        TRY(print_json(&summary, command));
    else
        print_table(&summary, arena);
    return status;
}

// The command line as it was given, for device.json.
static const char *command_text(int argc, char **argv, Arena *arena) {
    const char *text = argv[0];
    for (int i = 1; i < argc; i++) text = arena_printf(arena, "%s %s", text, argv[i]);
    return text;
}

// --- A program that is wrapped

static Status wrap_answer(const ProfileCommand *options, Arena *arena) {
    if (options->check || options->kinds || options->quick || options->timed)
        return usage_error("profile: --wrap takes no --check, --kind, --quick or --timer");
    if (!options->wrap[0][0]) return usage_error("profile: --wrap: the program's name is empty");
    if (!options->output)
        return usage_error("profile: no -o before --wrap; what stands behind it is the program's");
    TRY(folder_check(options->output));
    // A marked kind's table would take the place of the measured one of that name.
    const char *device = arena_printf(arena, "%s/device.json", options->output);
    if (access(device, F_OK) == 0)
        return status_at(STATUS_INVALID, device, "",
                         "the folder holds what profile has measured; choose another for --wrap");
    return wrap_run((const char *const *)options->wrap, options->output, options->common.json,
                    options->force);
}

// Where the program begins that --wrap runs: everything behind it is the program's. argc where
// there is none.
static int wrap_find(int argc, char **argv) {
    int i = 1;
    while (i < argc && strcmp(argv[i], "--wrap") != 0 && strcmp(argv[i], "--") != 0) i++;
    return i < argc && strcmp(argv[i], "--wrap") == 0 ? i : argc;
}

static Status cpu_answer(const ProfileCommand *options, const char *command, Arena *arena) {
    if (options->wrap || options->check || options->timed)
        return usage_error("profile: --device cpu takes no --check, --timer or --wrap");
    ProfileCpu profile = {.output = options->output,
                          .kinds = options->kinds,
                          .command = command,
                          .quick = options->quick,
                          .json = options->common.json,
                          .force = options->force,
                          .progress = tell_progress};
    return profile_cpu_answer(&profile, arena);
}

static Status profile_answer(const ProfileCommand *options, const char *command, Arena *arena) {
    if (options->device == DEVICE_CPU) return cpu_answer(options, command, arena);
    if (options->wrap) return wrap_answer(options, arena);
    if (!options->check) return measure_answer(options, command, arena);
    if (options->output || options->kinds || options->quick || options->timed)
        return usage_error(
            "profile: --check measures nothing and takes no -o, --kind, --quick or --timer");
    return check_answer(options, arena);
}

Status command_profile(int argc, char **argv) {
    ProfileCommand options = {0};
    Arena arena = {0};
    const char *command = command_text(argc, argv, &arena); // argp reorders argv
    int wrap = wrap_find(argc, argv);
    if (wrap + 1 < argc) options.wrap = argv + wrap + 1;
    // Without a program the parser says that one is missing.
    Status status = command_parse(&ARGP, options.wrap ? wrap : argc, argv, &options.common);
    if (status.code == STATUS_OK) status = profile_answer(&options, command, &arena);
    arena_free(&arena);
    return status;
}
