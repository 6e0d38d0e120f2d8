#include "profiler/wrap_report.h"

#include "base/answer_folder.h"
#include "base/file_hash.h"
#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NUM_LONGEST = 20 };

// --- Reading

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static int is_ours(const struct dirent *entry) {
    return ends_in(entry->d_name, WRAP_FILE_SUFFIX) || ends_in(entry->d_name, WRAP_REFUSED_SUFFIX);
}

// The line of a process that could not be recorded.
static const char *refusal_read(const char *path, Arena *arena) {
    char line[600] = "";
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file)) line[strcspn(line, "\n")] = '\0';
    if (file) fclose(file);
    return line[0] ? arena_strdup(arena, line) : "for an unknown reason";
}

static void log_count(WrapReport *report, const WrapLog *log) {
    report->num_processes++;
    report->num_incomplete += !log->complete;
    report->num_dropped += (int64_t)log->num_dropped;
    report->overhead_s += (double)log->overhead_ns * 1e-9;
}

Status wrap_report_make(const char *records, WrapOutcome outcome, Arena *arena, WrapReport *out) {
    *out = (WrapReport){.outcome = outcome};
    struct dirent **names;
    int num_names = scandir(records, &names, is_ours, alphasort);
    if (num_names < 0)
        return status_at(STATUS_MACHINE, records, "", "cannot be read: %s", strerror(errno));
    Status status = status_ok();
    WrapLog *logs = ARENA_ARRAY(arena, num_names, WrapLog);
    for (int i = 0; i < num_names; i++) {
        const char *path = arena_printf(arena, "%s/%s", records, names[i]->d_name);
        if (ends_in(path, WRAP_REFUSED_SUFFIX)) {
            out->refused = refusal_read(path, arena);
        } else if (status.code == STATUS_OK) {
            WrapLog *log = &logs[out->num_processes];
            status = wrap_log_load(path, arena, log);
            if (status.code == STATUS_OK) log_count(out, log);
        }
        free(names[i]);
    }
    free(names);
    TRY(status);
    out->kernels = kernel_totals(logs, out->num_processes, arena);
    out->gaps = gaps_find(logs, out->num_processes, arena);
    out->ranges = range_tables(logs, out->num_processes, arena);
    return status_ok();
}

static Status tables_write(const WrapReport *report, AnswerFolder *folder) {
    TRY(kernel_totals_write(&report->kernels, answer_folder_path(folder, "kernels.csv", "wrap")));
    TRY(gaps_write(&report->gaps, answer_folder_path(folder, "gaps.csv", "wrap")));
    for (int i = 0; i < report->ranges.num_tables; i++) {
        const RangeTable *table = &report->ranges.tables[i];
        const char *name = arena_printf(folder->arena, "%s.csv", table->kind);
        TRY(range_table_write(table, answer_folder_path(folder, name, "wrap")));
    }
    return status_ok();
}

Status wrap_report_write(const WrapReport *report, const AnswerSpec *spec, Arena *arena) {
    AnswerSpec named = *spec;
    AnswerFolder folder;
    // Two runs of a program differ, and so do their answers.
    const char *text = arena_printf(arena, "%s %ld %ld", report->outcome.command, (long)time(NULL),
                                    (long)getpid());
    named.of = named.parts[0].id = text_hash(text, arena);
    TRY(answer_folder_open(&named, arena, &folder));
    return answer_folder_close(&folder, tables_write(report, &folder));
}

// --- Text

static void outcome_print(const WrapOutcome *outcome, FILE *stream) {
    if (outcome->signal)
        fprintf(stream, "%s: ended by signal %d\n\n", outcome->command, outcome->signal);
    else
        fprintf(stream, "%s: exit status %d\n\n", outcome->command, outcome->exit_code);
}

static void losses_print(const WrapReport *report, FILE *stream) {
    if (report->num_dropped > 0)
        fprintf(stream, "dropped records  %lld: the figures are too low\n",
                (long long)report->num_dropped);
    if (report->num_incomplete > 0)
        fprintf(stream, "killed           %d of %d processes: their last records are missing\n",
                report->num_incomplete, report->num_processes);
    if (report->refused) fprintf(stream, "not recorded     a process: %s\n", report->refused);
}

static void ranges_print(const RangeTables *ranges, FILE *stream) {
    for (int i = 0; i < ranges->num_tables; i++)
        fprintf(stream, "%s.csv: %d rows\n", ranges->tables[i].kind, ranges->tables[i].num_rows);
    if (ranges->num_empty > 0)
        fprintf(stream, "%lld of %lld marked ranges launched no kernel\n",
                (long long)ranges->num_empty, (long long)ranges->num_ranges);
    if (ranges->num_malformed > 0)
        fprintf(stream,
                "%lld of %lld marked ranges left out, such as \"%.100s\": expected "
                "\"mw:KIND NAME=VALUE ...\" with the columns of the first of its kind\n",
                (long long)ranges->num_malformed, (long long)ranges->num_ranges, ranges->malformed);
    if (ranges->num_ranges > 0) fputc('\n', stream);
}

static void longest_print(const KernelTotals *kernels, FILE *stream) {
    fprintf(stream, "%7s %10s %12s %12s  %s\n", "share", "count", "mean us", "total s", "name");
    for (int i = 0; i < kernels->num_rows && i < NUM_LONGEST; i++) {
        const KernelRow *row = &kernels->rows[i];
        fprintf(stream, "%5.1f %% %10lld %12.2f %12.6f  %.90s%s\n", 100 * row->share_frac,
                (long long)row->num_calls, 1e6 * row->total_s / (double)row->num_calls,
                row->total_s, row->readable, row->is_nccl ? " (NCCL)" : "");
    }
    if (kernels->num_rows > NUM_LONGEST)
        fprintf(stream, "and %d more in kernels.csv\n", kernels->num_rows - NUM_LONGEST);
}

void wrap_report_print(const WrapReport *report, FILE *stream) {
    const KernelTotals *kernels = &report->kernels;
    const Gaps *gaps = &report->gaps;
    outcome_print(&report->outcome, stream);
    fprintf(stream,
            "recorded         %d processes, %d GPUs: %lld kernels, %lld copies, %lld sets\n",
            report->num_processes, gaps->num_devices, (long long)kernels->num_kernels,
            (long long)kernels->num_copies, (long long)kernels->num_sets);
    double busy_frac = gaps->span_s > 0 ? gaps->busy_s / gaps->span_s : 1;
    fprintf(stream, "GPU busy         %.6f s of %.6f s (%.1f %%), idle %.6f s\n", gaps->busy_s,
            gaps->span_s, 100 * busy_frac, gaps->span_s - gaps->busy_s);
    fprintf(stream, "NCCL             %.6f s of %.6f s of kernels, copies and sets (%.1f %%)\n",
            kernels->nccl_s, kernels->total_s,
            kernels->total_s > 0 ? 100 * kernels->nccl_s / kernels->total_s : 0);
    fprintf(stream, "CUPTI's overhead %.6f s\n", report->overhead_s);
    losses_print(report, stream);
    fputc('\n', stream);
    ranges_print(&report->ranges, stream);
    longest_print(kernels, stream);
}

// --- JSON

static cJSON *kernel_json(const KernelRow *row) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", row->readable);
    json_add_number(object, "num_calls", (double)row->num_calls);
    json_add_number(object, "total_s", row->total_s);
    json_add_number(object, "mean_s", row->total_s / (double)row->num_calls);
    json_add_number(object, "share_frac", row->share_frac);
    cJSON_AddBoolToObject(object, "nccl", row->is_nccl);
    return object;
}

static void ranges_json(const RangeTables *ranges, cJSON *tree) {
    cJSON *tables = cJSON_AddArrayToObject(tree, "tables");
    for (int i = 0; i < ranges->num_tables; i++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", ranges->tables[i].kind);
        json_add_number(object, "num_rows", ranges->tables[i].num_rows);
        cJSON_AddItemToArray(tables, object);
    }
    json_add_number(tree, "num_ranges", (double)ranges->num_ranges);
    json_add_number(tree, "num_ranges_without_kernels", (double)ranges->num_empty);
    json_add_number(tree, "num_ranges_malformed", (double)ranges->num_malformed);
}

Status wrap_report_print_json(const WrapReport *report, FILE *stream) {
    const KernelTotals *kernels = &report->kernels;
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "command", report->outcome.command);
    json_add_number(tree, "exit_code", report->outcome.exit_code);
    json_add_number(tree, "signal", report->outcome.signal);
    json_add_number(tree, "num_processes", report->num_processes);
    json_add_number(tree, "num_processes_incomplete", report->num_incomplete);
    json_add_number(tree, "num_gpus", report->gaps.num_devices);
    json_add_number(tree, "num_kernels", (double)kernels->num_kernels);
    json_add_number(tree, "num_copies", (double)kernels->num_copies);
    json_add_number(tree, "num_sets", (double)kernels->num_sets);
    json_add_number(tree, "num_dropped", (double)report->num_dropped);
    json_add_number(tree, "span_s", report->gaps.span_s);
    json_add_number(tree, "busy_s", report->gaps.busy_s);
    json_add_number(tree, "idle_s", report->gaps.span_s - report->gaps.busy_s);
    json_add_number(tree, "total_s", kernels->total_s);
    json_add_number(tree, "nccl_s", kernels->nccl_s);
    json_add_number(tree, "overhead_s", report->overhead_s);
    ranges_json(&report->ranges, tree);
    cJSON *longest = cJSON_AddArrayToObject(tree, "kernels");
    for (int i = 0; i < kernels->num_rows && i < NUM_LONGEST; i++)
        cJSON_AddItemToArray(longest, kernel_json(&kernels->rows[i]));
    Status status = json_write(tree, stream);
    cJSON_Delete(tree);
    return status;
}
