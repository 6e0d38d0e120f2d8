#include "report/path_report.h"

#include "report/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STRETCH_KINDS = 8, MAX_STRETCHES_SHOWN = 20, NUM_LONGEST_SHOWN = 10 };

// --- By kind

static void print_totals(const SimResult *result, const Paper *paper, Arena *arena) {
    cJSON *root = cJSON_CreateObject(), *path = cJSON_AddObjectToObject(root, "critical_path");
    cJSON_AddNumberToObject(root, "step_time_s", result->step_time_s);
    cJSON_AddItemToObject(path, "totals", sim_path_totals_to_json(&result->path));
    Document document = document_new("");
    document_part(&document, "", NULL);
    const JsonNode node = {.file = "the answer", .item = root};
    const Status status = path_section(&document, &node, arena);
    if (status.code == STATUS_OK)
        document_print_table(&document, paper);
    else // not of an answer that was just made
        paper_wrap(paper, 0, STYLE_BAD, status.text);
    cJSON_Delete(document.root);
    cJSON_Delete(root);
    char slack[UNITS_SIZE];
    if (result->path.slack_s > 1e-9 * result->step_time_s)
        fprintf(paper->stream, "  in the estimate this path is %s shorter than the critical one\n",
                units_seconds(result->path.slack_s, slack));
}

// --- Rank by rank

// Work of one rank that follows on each other, with the messages and collectives in between.
typedef struct {
    int rank, stage;
    double start_s, end_s;
    struct {
        const char *name;
        int count;
        double time_s;
    } kinds[MAX_STRETCH_KINDS];
    int num_kinds;
} Stretch;

static bool is_computation(const SimPathItem *item) {
    return strncmp(item->instruction, "forward", 7) == 0 ||
           strncmp(item->instruction, "backward", 8) == 0 ||
           strcmp(item->instruction, "optimizer") == 0;
}

static void stretch_add(Stretch *stretch, const SimPathItem *item) {
    int k = 0;
    while (k < stretch->num_kinds && strcmp(stretch->kinds[k].name, item->instruction) != 0) k++;
    if (k == MAX_STRETCH_KINDS) k--; // there are not that many kinds on one rank
    if (k == stretch->num_kinds) stretch->kinds[stretch->num_kinds++].name = item->instruction;
    stretch->kinds[k].count++;
    stretch->kinds[k].time_s += item->end_s - item->start_s;
    stretch->end_s = item->end_s;
}

// The stretches of a path, by time.
static Stretch *stretches_of(const SimPath *path, Arena *arena, int *num_stretches) {
    Stretch *stretches = ARENA_ARRAY(arena, path->num_items, Stretch);
    int num = 0;
    bool computes = false; // the last stretch has its rank by a computation
    for (int i = 0; i < path->num_items; i++) {
        const SimPathItem *item = &path->items[i];
        Stretch *last = num > 0 ? &stretches[num - 1] : NULL;
        bool joins = last && (!is_computation(item) || !computes || item->rank == last->rank);
        if (!joins) {
            last = &stretches[num++];
            *last = (Stretch){.start_s = item->start_s};
        }
        if (!joins || (is_computation(item) && !computes)) {
            last->rank = item->rank;
            last->stage = item->stage;
        }
        computes = is_computation(item) || (joins && computes);
        stretch_add(last, item);
    }
    *num_stretches = num;
    return stretches;
}

// "12 x forward 0.41 s, 12 x send 0.6 ms".
static const char *stretch_text(const Stretch *stretch, Arena *arena) {
    const char *text = "";
    for (int k = 0; k < stretch->num_kinds; k++) {
        char time[UNITS_SIZE];
        text =
            arena_printf(arena, "%s%s%d x %s %s", text, k > 0 ? ", " : "", stretch->kinds[k].count,
                         stretch->kinds[k].name, units_seconds(stretch->kinds[k].time_s, time));
    }
    return text;
}

static int duration_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

// What a stretch must take longer than to be shown: of a path of many only the longest are, and
// none of those that are alike where that would be too many.
static double shown_above_s(const Stretch *stretches, int num_stretches, Arena *arena) {
    if (num_stretches <= MAX_STRETCHES_SHOWN) return -1;
    double *durations_s = ARENA_ARRAY(arena, num_stretches, double);
    for (int i = 0; i < num_stretches; i++)
        durations_s[i] = stretches[i].end_s - stretches[i].start_s;
    qsort(durations_s, (size_t)num_stretches, sizeof *durations_s, duration_compare);
    return durations_s[NUM_LONGEST_SHOWN] * (1 + 1e-3);
}

static void stretch_row(Table *table, const Stretch *stretch, Arena *arena) {
    char from[UNITS_SIZE], to[UNITS_SIZE];
    const char *cells[] = {
        arena_printf(arena, "  %s", units_seconds(stretch->start_s, from)),
        units_seconds(stretch->end_s, to),
        arena_printf(arena, "%d", stretch->rank),
        arena_printf(arena, "%d", stretch->stage),
        stretch_text(stretch, arena),
    };
    table_add(table, STYLE_PLAIN, cells, NULL);
}

static void gap_row(Table *table, const Stretch *first, int num, Arena *arena) {
    char from[UNITS_SIZE], to[UNITS_SIZE];
    const char *cells[] = {
        arena_printf(arena, "  %s", units_seconds(first->start_s, from)),
        units_seconds(first[num - 1].end_s, to),
        "",
        "",
        arena_printf(arena, "(%d change%s of rank; --json lists all)", num, num > 1 ? "s" : ""),
    };
    table_add(table, STYLE_DIM, cells, NULL);
}

static void print_stretches(const SimPath *path, const Paper *paper, Arena *arena) {
    static const TableColumn columns[] = {{"  from", false, 0},
                                          {"to", false, 0},
                                          {"rank", true, 0},
                                          {"stage", true, 0},
                                          {"what the step waits for there", false, 0}};
    int num_stretches;
    Stretch *stretches = stretches_of(path, arena, &num_stretches);
    Table table = table_new(arena, columns, sizeof columns / sizeof *columns);
    double above_s = shown_above_s(stretches, num_stretches, arena);
    int gap = 0; // of stretches before this one that are not shown
    for (int i = 0; i < num_stretches; i++) {
        bool shown =
            stretches[i].end_s - stretches[i].start_s > above_s || i == 0 || i == num_stretches - 1;
        if (gap > 0 && shown) gap_row(&table, &stretches[i - gap], gap, arena);
        gap = shown ? 0 : gap + 1;
        if (shown) stretch_row(&table, &stretches[i], arena);
    }
    if (gap > 0) gap_row(&table, &stretches[num_stretches - gap], gap, arena);
    table_print(&table, paper);
}

void report_path(const SimResult *result, const Paper *paper) {
    Arena arena = {0};
    paper_heading(paper, "Critical path of the simulated step");
    print_totals(result, paper, &arena);
    fputc('\n', paper->stream);
    print_stretches(&result->path, paper, &arena);
    if (result->path.num_items < result->path.num_instructions)
        fprintf(paper->stream, "  of %d instructions, the first %d\n",
                result->path.num_instructions, result->path.num_items);
    arena_free(&arena);
}
