#include "cli/profile/profile_cpu.h"

#include "base/answer_folder.h"
#include "base/file_hash.h"
#include "calibrate/core_files.h"
#include "calibrate/kernel_table.h"
#include "cli/command.h"
#include "cli/output.h"
#include "profiler/cpu_run.h"
#include "report/table.h"
#include "report/units.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    CpuSummary summary;
    bool fitted; // all tables were there
    CoreFit fit;
} CpuAnswer;

static Status kinds_read(const char *list, Arena *arena, bool kinds[NUM_CPU_KINDS]) {
    for (int i = 0; i < NUM_CPU_KINDS; i++) kinds[i] = !list;
    if (!list) return status_ok();
    char *rest = arena_strdup(arena, list);
    for (char *name; (name = strsep(&rest, ","));) {
        int i = 0;
        while (i < NUM_CPU_KINDS && strcmp(CPU_KIND_NAMES[i], name) != 0) i++;
        if (i == NUM_CPU_KINDS)
            return usage_error("--kind: \"%.60s\" is unknown; expected with --device cpu some of "
                               "launch, gemm_other, gemm_backward, attention, memory_bound, comm, "
                               "sharing",
                               name);
        kinds[i] = true;
    }
    return status_ok();
}

// --- The fit

// Every table that it reads; the tables of a run of some kinds may not be there yet.
static bool tables_there(const char *folder, Arena *arena) {
    for (int i = 0; i < CPU_KIND_SHARING; i++)
        if (access(arena_printf(arena, "%s/%s.csv", folder, CPU_KIND_NAMES[i]), R_OK) != 0)
            return false;
    return true;
}

static AnswerSpec fit_spec(const ProfileCpu *options) {
    return (AnswerSpec){.folder = options->output,
                        .parts = {{.name = "profile"}},
                        .num_parts = 1,
                        .force = options->force};
}

static const char *const FIT_NAMES[] = {"cpu.json", "link.json", "cluster.json", NULL};

static Status fit_save(const ProfileCpu *options, const CoreMachine *machine, const CoreFit *fit,
                       Arena *arena) {
    AnswerSpec spec = fit_spec(options);
    AnswerFolder folder;
    spec.of = spec.parts[0].id = text_hash(
        arena_printf(arena, "%s %s %s", machine->cpu, machine->command, machine->date), arena);
    TRY(answer_folder_open(&spec, arena, &folder));
    for (int i = 0; FIT_NAMES[i]; i++) answer_folder_path(&folder, FIT_NAMES[i], "profile");
    return answer_folder_close(
        &folder, core_files_write(commit_path(options->output, "", arena), machine, fit));
}

static Status fit_write(const ProfileCpu *options, const CpuInfo *info, Arena *arena,
                        CpuAnswer *answer) {
    CoreRows rows;
    TRY(core_rows_load(options->output, arena, &rows));
    TRY(core_fit(&rows, options->output, arena, &answer->fit));
    char date[16];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    CoreMachine machine = {.cpu = info->name,
                           .blas = info->blas,
                           .command = options->command,
                           .date = date,
                           .num_ranks = info->num_ranks,
                           .memory_bytes = info->memory_bytes,
                           .memory_available_bytes = info->memory_available_bytes,
                           .cache_bytes = info->cache_bytes};
    answer->fitted = true;
    return fit_save(options, &machine, &answer->fit, arena);
}

// --- The answer

static void print_json(const ProfileCpu *options, const CpuAnswer *answer, cJSON *tree) {
    cJSON *kinds = cJSON_AddArrayToObject(tree, "kinds");
    for (int i = 0; i < NUM_CPU_KINDS; i++) {
        const CpuKindSummary *kind = &answer->summary.kinds[i];
        if (!kind->asked) continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", CPU_KIND_NAMES[i]);
        json_add_number(object, "num_shapes", kind->num_shapes);
        json_add_number(object, "num_measured", kind->num_measured);
        json_add_number(object, "num_kept", kind->num_kept);
        json_add_number(object, "num_disturbed", kind->num_disturbed);
        json_add_number(object, "span_s", kind->span_s);
        cJSON_AddItemToArray(kinds, object);
    }
    if (!answer->fitted) return;
    cJSON_AddStringToObject(tree, "folder", options->output);
    cJSON *fits = cJSON_AddArrayToObject(tree, "fit");
    for (int i = 0; i < NUM_CORE_SCORES; i++) {
        const CoreScore *score = &answer->fit.scores[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "of", CORE_SCORE_NAMES[i]);
        json_add_number(object, "num_rows", score->num_rows);
        json_add_number(object, "residual_median_frac", score->median_frac);
        json_add_number(object, "residual_p90_frac", score->p90_frac);
        cJSON_AddItemToArray(fits, object);
    }
}

static void print_kinds(const CpuSummary *summary, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"kind", false, 0}, {"measured", true, 0},  {"kept", true, 0},
        {"of", true, 0},    {"disturbed", true, 0}, {"time", true, 0},
    };
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int i = 0; i < NUM_CPU_KINDS; i++) {
        const CpuKindSummary *kind = &summary->kinds[i];
        char span[UNITS_SIZE];
        if (!kind->asked) continue;
        const char *cells[] = {CPU_KIND_NAMES[i],
                               arena_printf(arena, "%d", kind->num_measured),
                               arena_printf(arena, "%d", kind->num_kept),
                               arena_printf(arena, "%d", kind->num_shapes),
                               arena_printf(arena, "%d", kind->num_disturbed),
                               arena_strdup(arena, units_seconds(kind->span_s, span))};
        table_add(&table, kind->done ? STYLE_PLAIN : STYLE_BAD, cells, NULL);
    }
    table_print(&table, paper);
}

static void print_fit(const CoreFit *fit, const Paper *paper, Arena *arena) {
    static const TableColumn COLUMNS[] = {{"fit to", false, 0},
                                          {"rows", true, 0},
                                          {"median error", true, 0},
                                          {"90 % below", true, 0}};
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int i = 0; i < NUM_CORE_SCORES; i++) {
        const CoreScore *score = &fit->scores[i];
        char median[UNITS_SIZE], p90[UNITS_SIZE];
        const char *cells[] = {CORE_SCORE_NAMES[i], arena_printf(arena, "%d", score->num_rows),
                               arena_strdup(arena, units_percent(score->median_frac, median)),
                               arena_strdup(arena, units_percent(score->p90_frac, p90))};
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    table_print(&table, paper);
}

// How much longer the rows of sharing.csv take on all cores at once than on one alone.
static void print_sharing(const ProfileCpu *options, int num_ranks, Arena *arena) {
    static const char *const COLUMNS[] = {"op", "num_ranks", "latency_ms", NULL};
    KernelTable table;
    double *ranks, *time_s;
    const char *path = arena_printf(arena, "%s/sharing.csv", options->output);
    if (access(path, R_OK) != 0 || kernel_table_load(path, arena, &table).code != STATUS_OK ||
        kernel_table_require(&table, COLUMNS).code != STATUS_OK ||
        kernel_table_counts(&table, "num_ranks", 1, 1e6, arena, &ranks).code != STATUS_OK ||
        kernel_table_latency_s(&table, arena, &time_s).code != STATUS_OK)
        return;
    const char **ops = kernel_table_texts(&table, "op", arena), *text = "";
    for (int i = 0; i < table.num_rows; i++)
        for (int j = 0; j < table.num_rows; j++)
            if (ranks[i] == 1 && ranks[j] == num_ranks && strcmp(ops[i], ops[j]) == 0)
                text = arena_printf(arena, "%s%s %s %.2f", text, *text ? "," : "", ops[i],
                                    time_s[j] / time_s[i]);
    if (*text) printf("Times on all cores over those on one alone:%s.\n", text);
}

static void print_text(const ProfileCpu *options, const CpuAnswer *answer, Arena *arena) {
    const CpuInfo *info = &answer->summary.info;
    Paper paper = paper_of(stdout);
    printf("%s, %d cores, %s, %d ranks at once\n\n", info->name, info->num_cores, info->blas,
           info->num_ranks);
    print_kinds(&answer->summary, &paper, arena);
    printf("\n");
    if (!answer->fitted) {
        printf("cpu.json, link.json and cluster.json are written once all kinds are measured.\n");
        return;
    }
    print_fit(&answer->fit, &paper, arena);
    char fp32[UNITS_SIZE], fp64[UNITS_SIZE];
    printf("\nOne core with all busy: %s in fp32, %s in fp64 at best.\n",
           units_flops(answer->fit.best_flops_per_s[CORE_FP32], fp32),
           units_flops(answer->fit.best_flops_per_s[CORE_FP64], fp64));
    print_sharing(options, info->num_ranks, arena);
    printf("Written: %s/cpu.json, link.json, cluster.json; a scenario takes them by "
           "\"cluster\": \"%s/cluster.json\".\n",
           options->output, options->output);
}

Status profile_cpu_answer(const ProfileCpu *options, Arena *arena) {
    if (!options->output)
        return usage_error("profile: no -o given; meshwright profile --help shows examples");
    CpuOptions run = {.folder = options->output,
                      .command = options->command,
                      .quick = options->quick,
                      .progress = options->progress};
    TRY(kinds_read(options->kinds, arena, run.kinds));
    TRY(folder_check(options->output));
    const AnswerSpec spec = fit_spec(options);
    TRY(answer_folder_check(&spec, FIT_NAMES, arena));
    CpuAnswer *answer = ARENA_NEW(arena, CpuAnswer);
    CpuInfo info;
    TRY(cpu_probe(&info));
    FolderMade made;
    TRY(folder_make(options->output, arena, &made));
    Status status = cpu_run(&info, &run, arena, &answer->summary);
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%32s\r", "");
    TRY(status);
    if (tables_there(options->output, arena)) TRY(fit_write(options, &info, arena, answer));
    if (!options->json) {
        print_text(options, answer, arena);
        return status_ok();
    }
    cJSON *tree = cpu_device_json(&info, options->command);
    print_json(options, answer, tree);
    return answer_json(tree);
}
