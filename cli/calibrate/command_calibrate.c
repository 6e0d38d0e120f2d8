// `calibrate`: fits the kernel profile of a GPU to measured kernels.
#include "base/shown_text.h"
#include "calibrate/profile_fit.h"
#include "calibrate/step_groups.h"
#include "calibrate/sustained.h"
#include "cli/calibrate/calibrate.h"
#include "cli/command.h"
#include "cli/kind_option.h"
#include "cli/output.h"
#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    CommonOptions common;
    const char *kernels, *gpu, *output, *steps, *run, *by;
    const Kind *kind; // NULL: all
} CalibrateOptions;

enum { KEY_KERNELS = KEY_LONG, KEY_GPU, KEY_KIND, KEY_STEPS, KEY_RUN, KEY_BY };

static const struct argp_option OPTIONS[] = {
    {"kernels", KEY_KERNELS, "DIR", 0, "the folder with KIND.csv or KIND.csv.gz", 0},
    {"gpu", KEY_GPU, "NAME", 0,
     "the GPU they were measured on: a name in hw-profiles/gpus, or the path of such a file", 0},
    {"kind", KEY_KIND, "KIND", 0, "fit only this kind", 0},
    {"steps", KEY_STEPS, "FILE.jsonl", 0,
     "fit whole-step parameters and spreads to published steps instead", 0},
    {"by", KEY_BY, "NAMES", 0,
     "with --steps also the errors of groups: kind (of model), gpu, tp, joined by commas", 0},
    {"run", KEY_RUN, "LOG", 0,
     "correct predictions by the log of a run of SCENARIO (Megatron-LM, torchtitan) instead", 0},
    {"output", 'o', "FILE", 0,
     "write the fitted profile (- for standard output) or calibration there; sections of kinds "
     "that "
     "were not fitted are kept",
     0},
    OPTION_JSON,
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    CalibrateOptions *options = state->input;
    switch (key) {
    case KEY_KERNELS:
        options->kernels = arg;
        return 0;
    case KEY_STEPS:
        options->steps = arg;
        return 0;
    case KEY_BY:
        options->by = arg;
        return 0;
    case KEY_RUN:
        options->run = arg;
        return 0;
    case KEY_GPU:
        options->gpu = arg;
        return 0;
    case KEY_KIND:
        return parse_kind(state, arg, &options->kind);
    case 'o':
        options->output = arg;
        return 0;
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .args_doc = "[SCENARIO]",
    .doc = "Fits the kernel profile of a GPU to tables of measured kernels, and prints how well it "
           "predicts shapes that were left out of the fit (whole groups, such as every m of an "
           "(n, k)). The columns are those of the public aiconfigurator tables; latency_ms is "
           "milliseconds. --steps fits what only whole steps tell; --run updates the factors of a "
           "step's parts by a run of your own, for the scenarios whose key calibration names its "
           "-o FILE. Without -o nothing is written.\v"
           "Examples:\n"
           "  meshwright calibrate --kernels measured --gpu h100-sxm-80g\n"
           "  meshwright calibrate --kernels measured --gpu h100-sxm-80g -o my-h100.json\n"
           "  meshwright calibrate --kernels measured --gpu h100-sxm-80g --kind gemm --json\n"
           "  meshwright calibrate --steps steps.jsonl -o steps.json\n"
           "  meshwright calibrate --run train.log out/plan.json -o our-cluster.json\n\n"
           "A fitted profile prices kernels with meshwright kernel --profile my-h100.json, and "
           "steps where the key kernels_of of a GPU's file names it (docs/calibration.md).",
};

static cJSON *score_to_json(const FitScore *score) {
    cJSON *object = cJSON_CreateObject();
    json_add_number(object, "num_priced", score->num_priced);
    json_add_number(object, "median_frac", score->median_frac);
    json_add_number(object, "p90_frac", score->p90_frac);
    json_add_number(object, "bias_frac", score->bias_frac);
    return object;
}

// sustained_frac: NAN where it was not measured.
static Status fit_print_json(const ProfileFit *fit, const Gpu *gpu, double sustained_frac) {
    cJSON *tree = cJSON_CreateObject();
    json_add_number(tree, "schema", 1);
    cJSON_AddStringToObject(tree, "gpu", gpu->name);
    cJSON *kinds = cJSON_AddArrayToObject(tree, "kinds");
    for (int i = 0; i < fit->num_kinds; i++) {
        const ProfileKind *kind = &fit->kinds[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", kind->kind->name);
        json_add_number(object, "num_rows", kind->num_rows);
        json_add_number(object, "num_skipped", kind->fit.num_skipped);
        json_add_number(object, "num_groups", kind->fit.num_groups);
        cJSON_AddItemToObject(object, "left_out", score_to_json(&kind->fit.left_out));
        cJSON_AddItemToObject(object, "all", score_to_json(&kind->fit.all));
        cJSON_AddItemToArray(kinds, object);
    }
    if (!isnan(sustained_frac)) {
        json_add_number(tree, "sustained_frac", sustained_frac);
        json_add_number(tree, "full_rate_watts", sustained_full_rate_watts(gpu, sustained_frac));
    }
    return answer_json(tree);
}

static void fit_print_table(const ProfileFit *fit, const Gpu *gpu, double sustained_frac,
                            FILE *stream, Arena *arena) {
    static const TableColumn COLUMNS[] = {
        {"kind", false, 0},          {"rows", true, 0},
        {"groups", true, 0},         {"left out: median", true, 0},
        {"90 %", true, 0},           {"bias", true, 0},
        {"fitted: median", true, 1}, {"90 %", true, 1},
    };
    Paper paper = paper_of(stream);
    Table table = table_new(arena, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    shown_line(stream, "Kernels of %s: error of predictions", gpu->title);
    fputc('\n', stream);
    for (int i = 0; i < fit->num_kinds; i++) {
        const ProfileKind *kind = &fit->kinds[i];
        const FitScore *out = &kind->fit.left_out, *all = &kind->fit.all;
        const char *cells[] = {
            kind->kind->name,
            arena_printf(arena, "%d", kind->num_rows),
            arena_printf(arena, "%d", kind->fit.num_groups),
            arena_printf(arena, "%.2f %%", 100 * out->median_frac),
            arena_printf(arena, "%.2f %%", 100 * out->p90_frac),
            arena_printf(arena, "%+.2f %%", 100 * out->bias_frac),
            arena_printf(arena, "%.2f %%", 100 * all->median_frac),
            arena_printf(arena, "%.2f %%", 100 * all->p90_frac),
        };
        table_add(&table, STYLE_PLAIN, cells, NULL);
    }
    table_print(&table, &paper);
    if (isnan(sustained_frac)) return;
    fprintf(
        stream,
        "\nLong products keep %.3f of short ones' rate (sustained.csv): full_rate_watts of this "
        "board alone is %.0f; the file has %.0f.\n",
        sustained_frac, sustained_full_rate_watts(gpu, sustained_frac),
        gpu->efficiency.full_rate_watts);
}

// Of --steps and --run: no options of other fits, and an output that is a file.
static Status options_check(const CalibrateOptions *options, const char *name, Arena *arena) {
    if (options->kernels || options->gpu || options->kind)
        return usage_error("calibrate: --%s takes no --kernels, --gpu or --kind", name);
    if (!options->output) return status_ok();
    if (strcmp(options->output, "-") == 0)
        return usage_error("calibrate: --%s prints its answer; -o needs a file", name);
    return output_check(options->output, arena);
}

// "kind,gpu,tp" as bits.
static Status by_read(const char *names, unsigned *by) {
    *by = 0;
    for (const char *name = names; name;) {
        const size_t length = strcspn(name, ",");
        int k = 0;
        while (STEP_BY_NAMES[k] &&
               (strlen(STEP_BY_NAMES[k]) != length || strncmp(STEP_BY_NAMES[k], name, length) != 0))
            k++;
        if (!STEP_BY_NAMES[k])
            return usage_error("calibrate: --by \"%.*s\" is unknown; expected kind, gpu, tp, "
                               "joined by commas",
                               (int)(length < 60 ? length : 60), name);
        *by |= 1u << k;
        name = name[length] ? name + length + 1 : NULL;
    }
    return status_ok();
}

static Status steps_answer(const CalibrateOptions *options, Arena *arena) {
    TRY(options_check(options, "steps", arena));
    if (options->common.scenario)
        return usage_error("calibrate: --steps takes no scenario: \"%.200s\"",
                           options->common.scenario);
    if (options->output) TRY(output_check_input(options->output, options->steps, "file of steps"));
    unsigned by;
    TRY(by_read(options->by, &by));
    return calibrate_steps(options->steps, options->output, by, options->common.json, arena);
}

static Status run_answer(const CalibrateOptions *options, Arena *arena) {
    TRY(options_check(options, "run", arena));
    if (options->steps) return usage_error("calibrate: --run and --steps exclude each other");
    if (!options->common.scenario)
        return usage_error("calibrate: --run needs the scenario that ran; meshwright calibrate "
                           "--help shows examples");
    return calibrate_run(options->run, options->common.scenario, options->output,
                         options->common.json, arena);
}

static Status kernels_output_check(const CalibrateOptions *options, Arena *arena) {
    TRY(output_check(options->output, arena));
    for (int i = 0; i < 4 * NUM_KINDS; i++) {
        const Kind *kind = &KINDS[i / 4];
        const char *name = i / 2 % 2 ? kind->backward : kind->name;
        if (!name) continue;
        const char *table =
            arena_printf(arena, "%s/%s.%s", options->kernels, name, i % 2 ? "csv.gz" : "csv");
        TRY(output_check_input(options->output, table, "table"));
    }
    return status_ok();
}

static Status kernels_answer(const CalibrateOptions *options, Arena *arena) {
    if (!options->kernels && !options->gpu)
        return usage_error("calibrate: none of --kernels, --steps and --run given; meshwright "
                           "calibrate --help shows examples");
    if (options->common.scenario)
        return usage_error("calibrate: one argument too many: \"%.200s\"",
                           options->common.scenario);
    if (!options->kernels || !options->gpu)
        return usage_error("calibrate: no --%s given; meshwright calibrate --help shows examples",
                           options->kernels ? "gpu" : "kernels");
    const Kind *only = options->kind;
    bool to_stdout = options->output && strcmp(options->output, "-") == 0;
    if (options->output && !to_stdout) TRY(kernels_output_check(options, arena));
    if (to_stdout && options->common.json)
        return usage_error("calibrate: --json and -o - both take standard output");
    bool keep = options->output && !to_stdout && access(options->output, F_OK) == 0;
    Gpu gpu;
    ProfileFit fit;
    double long_frac;
    TRY(gpu_open(options->gpu, arena, &gpu));
    TRY(sustained_frac_read(options->kernels, arena, &long_frac));
    TRY(profile_fit(options->kernels, &gpu, only, keep ? options->output : NULL, arena, &fit));
    Status status = options->output ? json_save(fit.tree, options->output) : status_ok();
    cJSON_Delete(fit.tree);
    TRY(status);
    for (int i = 0; i < fit.num_kinds; i++)
        if (fit.kinds[i].fit.skipped) shown_line(stderr, "left out: %s", fit.kinds[i].fit.skipped);
    for (int i = 0; i < fit.num_few; i++) shown_line(stderr, "left out: %s", fit.few[i]);
    if (fit.kept && !only)
        shown_line(stderr, "kept: %s from %s; no tables for them", fit.kept, options->output);
    if (options->common.json) return fit_print_json(&fit, &gpu, long_frac);
    fit_print_table(&fit, &gpu, long_frac, to_stdout ? stderr : stdout, arena);
    return status_ok();
}

static Status calibrate_answer(const CalibrateOptions *options, Arena *arena) {
    if (options->by && !options->steps) return usage_error("calibrate: --by goes with --steps");
    if (options->run) return run_answer(options, arena);
    return options->steps ? steps_answer(options, arena) : kernels_answer(options, arena);
}

Status command_calibrate(int argc, char **argv) {
    CalibrateOptions options = {0};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = calibrate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
