// `validate`: predicts published measurements and scores the predictions.
#include "calibrate/validate.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/validate/validate_pairs.h"
#include "report/units.h"
#include "report/validate_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    CommonOptions common; // .scenario stays NULL
    const char *data;
    const char *family;
    bool all, cases, pairs;
    int num_worst;
    double bound_frac; // 0: none
} ValidateOptions;

enum { KEY_DATA = KEY_LONG, KEY_FAMILY, KEY_ALL, KEY_CASES, KEY_WORST, KEY_BOUND, KEY_PAIRS };

static const struct argp_option OPTIONS[] = {
    {"data", KEY_DATA, "FILE.jsonl", 0, "measurements instead of the bundled ones", 0},
    {"family", KEY_FAMILY, "NAME", 0, "only families whose name begins like this", 0},
    {"all", KEY_ALL, NULL, 0, "also cases for which something had to be assumed, apart", 0},
    {"cases", KEY_CASES, NULL, 0, "prints every case", 0},
    {"worst", KEY_WORST, "N", 0, "how many of the worst cases to explain (10)", 0},
    {"bound", KEY_BOUND, "FRAC", 0, "exits with 1 where the mean error is larger, as in 0.15", 0},
    {"pairs", KEY_PAIRS, NULL, 0,
     "calibrates on one run and predicts another of the same family and GPU", 0},
    OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    ValidateOptions *options = state->input;
    switch (key) {
    case KEY_DATA:
        options->data = arg;
        return 0;
    case KEY_FAMILY:
        options->family = arg;
        return 0;
    case KEY_ALL:
        options->all = true;
        return 0;
    case KEY_CASES:
        options->cases = true;
        return 0;
    case KEY_PAIRS:
        options->pairs = true;
        return 0;
    case KEY_WORST:
        return parse_int(state, "worst", arg, 0, 1000, &options->num_worst);
    case KEY_BOUND:
        return parse_quantity(state, "bound", arg, QUANTITY_FRAC, 1e-6, &options->bound_frac);
    default:
        return common_parse(key, arg, state);
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse,
    .doc = "Predicts published training steps and prints the errors by family: MAPE is the mean "
           "absolute percentage error of the step time, bias the mean signed error, in 80 % the "
           "share of measurements inside the stated interval, memory the error where it was "
           "measured, tau and regret how well configurations of one job are ordered. refused "
           "counts cases without a prediction, misfits those said not to fit (all of them ran).\v"
           "Examples:\n"
           "  meshwright validate\n"
           "  meshwright validate --family megatron-sc21 --cases\n"
           "  meshwright validate --bound 0.5 --worst 3 --json\n\n"
           "--data FILE.jsonl reads a larger set in the same format (docs/validation.md). Exits "
           "with 1 where --bound is missed: by the mean of families with 8 or more cases, or "
           "the mean of all cases where no family has so many, or because cases were refused.",
};

// Keeps the cases of the families asked for.
static Status cases_select(const char *prefix, const char *file, PublishedCase *cases,
                           int *num_cases) {
    if (!prefix) return status_ok();
    int num_kept = 0;
    for (int i = 0; i < *num_cases; i++)
        if (strncmp(cases[i].family, prefix, strlen(prefix)) == 0) cases[num_kept++] = cases[i];
    if (num_kept == 0)
        return usage_error("--family: no family of %s begins with \"%.60s\"", file, prefix);
    *num_cases = num_kept;
    return status_ok();
}

static Status cases_load(const ValidateOptions *options, Arena *arena, PublishedCase **cases,
                         int *num_cases) {
    if (options->data)
        TRY(published_load(options->data, arena, cases, num_cases));
    else
        TRY(published_load_bundled(arena, cases, num_cases));
    const char *file = options->data ? options->data : "the bundled set";
    return cases_select(options->family, file, *cases, num_cases);
}

// Measurements of which none can be predicted are bad input: the first refusal stands for all.
static Status result_check(const ValidateResult *result) {
    for (int i = 0; i < result->num_cases; i++)
        if (!result->cases[i].refusal) return status_ok();
    return status_error(STATUS_INVALID, "%s", result->cases[0].refusal);
}

static Status bound_check(const ValidateResult *result, double bound_frac) {
    const ValidatePart *part = &result->stated;
    bool by_family = !isnan(part->mean_of_families_frac);
    double mean_frac = by_family ? part->mean_of_families_frac : part->all.mape_frac;
    if (bound_frac == 0) return status_ok();
    const char *what = by_family ? "mean of families" : "mean error";
    if (isnan(mean_frac))
        return status_error(STATUS_NO, "meshwright: --bound: no stated case was predicted");
    char mean[UNITS_SIZE], bound[UNITS_SIZE];
    units_percent(mean_frac, mean);
    if (mean_frac > bound_frac)
        return status_error(STATUS_NO, "meshwright: the %s is %s, above the bound of %s", what,
                            mean, units_percent(bound_frac, bound));
    if (part->all.num_refused == 0) return status_ok();
    return status_error(STATUS_NO,
                        "meshwright: --bound: %d of %d stated cases were refused; the %s of the "
                        "others is %s",
                        part->all.num_refused, part->all.num_cases, what, mean);
}

static Status validate_answer(const ValidateOptions *options, Arena *arena) {
    PublishedCase *published;
    int num_cases = 0;
    TRY(cases_load(options, arena, &published, &num_cases));
    if (options->pairs) return validate_pairs(published, num_cases, options->common.json, arena);
    Progress progress = progress_start();
    ValidateResult result;
    Status status = validate_run(published, num_cases, progress_show, &progress, arena, &result);
    progress_end(&progress);
    TRY(status);
    TRY(result_check(&result));
    const ValidateCase **worst;
    int num_worst = validate_worst(&result, options->all, options->num_worst, arena, &worst);
    if (options->common.json) {
        TRY(answer_json(validate_to_json(&result, worst, num_worst, options->cases)));
    } else {
        ValidateReport what = {options->all, options->cases, worst, num_worst};
        report_validate(&result, &what, stdout);
    }
    return bound_check(&result, options->bound_frac);
}

Status command_validate(int argc, char **argv) {
    ValidateOptions options = {.num_worst = 10};
    TRY(command_parse(&ARGP, argc, argv, &options.common));
    Arena arena = {0};
    Status status = validate_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
