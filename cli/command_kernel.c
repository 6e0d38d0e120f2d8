// `kernel`: prices rows of kernel shapes with a calibrated profile.
#include "base/shown_text.h"
#include "calibrate/unpriced.h"
#include "cli/command.h"
#include "cli/kind_option.h"
#include "config/machine/gpu_link.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common; // .scenario is the table
    const char *gpu, *profile;
    const Kind *kind;
} KernelOptions;

enum { KEY_GPU = KEY_LONG, KEY_KIND, KEY_PROFILE };

static const struct argp_option OPTIONS[] = {
    {"gpu", KEY_GPU, "NAME", 0, "the GPU: a name in hw-profiles/gpus, or the path of such a file",
     0},
    {"kind", KEY_KIND, "KIND", 0, "the kind of kernel: gemm, ...", 0},
    {"profile", KEY_PROFILE, "FILE", 0, "a kernel profile of calibrate instead of the bundled one",
     0},
    OPTION_JSON,
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    KernelOptions *options = state->input;
    switch (key) {
    case KEY_GPU:
        options->gpu = arg;
        return 0;
    case KEY_KIND:
        return parse_kind(state, arg, &options->kind);
    case KEY_PROFILE:
        options->profile = arg;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "FILE.csv",
    .doc =
        "Prints the rows of a table of kernel shapes in their order with the column predicted_s "
        "added: seconds of one call on one GPU. A row that cannot be priced (a number format "
        "that the GPU or its measurements lack) gets an empty cell, and standard error says "
        "how many there are and why the first. A GPU without kernels of its own (kernels_of in "
        "its file) is priced as estimate does it: by those of its nearest relative, scaled, "
        "which standard error says. One per cent more of a dimension is neither faster nor more "
        "than 30 % slower but at an edge, where the library takes another kernel or tile: --json "
        "names those up to twice each dimension, with the size from which on it holds and the "
        "time there over that of one less, and of products formula_s, which estimate takes: "
        "the same before falls between measured sizes were levelled. FILE.csv may be packed "
        "(FILE.csv.gz), or - for standard input; columns that do not matter are kept.\v"
        "Examples:\n"
        "  meshwright kernel --gpu h100-sxm-80g --kind gemm shapes.csv\n"
        "  meshwright kernel --gpu h20-96g --kind gemm shapes.csv\n"
        "  meshwright kernel --gpu ./our-h100.json --kind gemm shapes.csv\n"
        "  printf 'gemm_dtype,m,n,k\\nbfloat16,4096,8192,8192\\n' | \\\n"
        "      meshwright kernel --gpu h100-sxm-80g --kind gemm -\n",
};

static void edges_add(const RowEdges *edges, cJSON *rows) {
    cJSON *row = cJSON_CreateArray();
    cJSON_AddItemToArray(rows, row);
    for (int i = 0; i < edges->num_edges; i++) {
        cJSON *edge = cJSON_CreateObject();
        cJSON_AddStringToObject(edge, "dimension", edges->edges[i].dimension);
        json_add_number(edge, "at", edges->edges[i].at);
        json_add_number(edge, "ratio", edges->edges[i].ratio);
        cJSON_AddItemToArray(row, edge);
    }
}

// What estimate takes for products of these shapes.
static void formulas_add(int num_rows, const RowEdges *edges, cJSON *tree) {
    cJSON *rows = cJSON_AddArrayToObject(tree, "formula_s");
    for (int row = 0; row < num_rows; row++)
        cJSON_AddItemToArray(rows, edges[row].formula_s > 0
                                       ? cJSON_CreateNumber(edges[row].formula_s)
                                       : cJSON_CreateNull());
}

static Status kernel_print_json(const Kind *kind, const KernelTable *table,
                                const double *predicted_s, const RowEdges *edges) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON *rows = cJSON_AddArrayToObject(tree, "predicted_s");
    for (int row = 0; row < table->num_rows; row++)
        cJSON_AddItemToArray(rows, isnan(predicted_s[row]) ? cJSON_CreateNull()
                                                           : cJSON_CreateNumber(predicted_s[row]));
    cJSON *of_rows = cJSON_AddArrayToObject(tree, "edges");
    for (int row = 0; row < table->num_rows; row++) edges_add(&edges[row], of_rows);
    if (kind == kind_find("gemm")) formulas_add(table->num_rows, edges, tree);
    return answer_json(tree);
}

static void kernel_print_csv(const KernelTable *table, const double *predicted_s) {
    printf("%s,predicted_s\n", table->header);
    for (int row = 0; row < table->num_rows; row++) {
        printf("%s,", table->lines[row]);
        if (isnan(predicted_s[row]))
            printf("\n");
        else
            printf("%.6g\n", predicted_s[row]);
    }
}

// Says on standard error how many rows have no price, and why the first of them has none.
static void unpriced_warn(const Kind *kind, const KernelTable *table, const double *predicted_s,
                          Arena *arena) {
    int num_unpriced = 0, first = 0;
    for (int row = table->num_rows - 1; row >= 0; row--) {
        if (!isnan(predicted_s[row])) continue;
        num_unpriced++;
        first = row;
    }
    if (num_unpriced > 0)
        shown_line(stderr, "%s: %d of %d rows not priced: row %d: %s", table->file, num_unpriced,
                   table->num_rows, table->line_numbers[first],
                   unpriced_reason(kind, table, first, arena));
}

// A relative's collectives hold over the link that they were measured on.
static Status link_check(const CalibratedKernels *kernels, Arena *arena) {
    const Gpu *gpu = &kernels->gpu;
    const char *measured = kernels->profile.nccl.link;
    Link link;
    bool found;
    TRY(gpu_link_find(gpu->name, arena, &link, &found));
    if (!found || !measured || strcmp(link.name, measured) == 0) return status_ok();
    return status_at(STATUS_INVALID, gpu->file, "kernels_of",
                     "the collectives of %s were measured over %s; over %s, which joins %s, kernel "
                     "does not support them yet",
                     kernels->profile.gpu, measured, link.name, gpu->name);
}

// The GPU as its kernels are priced, and the kernels.
static Status kernels_open(const KernelOptions *options, Arena *arena, Gpu *gpu,
                           KernelProfile *profile) {
    const CalibratedKernels *kernels;
    TRY(gpu_open(options->gpu, arena, gpu));
    if (options->profile) return kernels_load(options->profile, gpu, arena, profile);
    if (gpu->core)
        return status_at(STATUS_INVALID, gpu->file, "core",
                         "shapes on a CPU's core are legal, but not supported by kernel yet");
    TRY(kernels_load_whole(gpu, arena, &kernels));
    if (kernels->inherited && strcmp(options->kind->name, "nccl") == 0)
        TRY(link_check(kernels, arena));
    if (kernels->inherited)
        fprintf(stderr,
                "%s: inherits the kernels of %s (kernels_of in %s), scaled by its own peaks, "
                "memory, caches and SMs as estimate does it\n",
                gpu->name, kernels->profile.gpu, gpu->file);
    *gpu = kernels->gpu;
    *profile = kernels->profile;
    return status_ok();
}

static Status kernel_answer(const KernelOptions *options, Arena *arena) {
    if (!options->gpu || !options->kind)
        return usage_error("kernel: no --%s given; meshwright kernel --help shows examples",
                           options->gpu ? "kind" : "gpu");
    Gpu gpu;
    KernelProfile profile;
    KernelTable table;
    TRY(kernels_open(options, arena, &gpu, &profile));
    TRY(kernel_table_load(options->common.scenario, arena, &table));
    TRY(kernel_table_require(&table, options->kind->columns));
    if (kernel_table_column(&table, "predicted_s") >= 0)
        return status_at(STATUS_INVALID, table.file, "row 1", "has a column predicted_s already");
    double *predicted_s = ARENA_ARRAY(arena, table.num_rows, double);
    RowEdges *edges = options->common.json ? ARENA_ARRAY(arena, table.num_rows, RowEdges) : NULL;
    TRY(options->kind->price(&table, &gpu, &profile, arena, predicted_s, edges));
    unpriced_warn(options->kind, &table, predicted_s, arena);
    if (options->common.json) return kernel_print_json(options->kind, &table, predicted_s, edges);
    kernel_print_csv(&table, predicted_s);
    return status_ok();
}

Status command_kernel(int argc, char **argv) {
    KernelOptions options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = kernel_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
