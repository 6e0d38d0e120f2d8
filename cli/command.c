#include "cli/command.h"

#include "base/aliases.h"
#include "base/quantity.h"
#include "cli/job_options.h"
#include "config/job/scenario_warn.h"
#include "report/units.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Status usage_error_list(const char *format, va_list args) {
    char sentence[500];
    vsnprintf(sentence, sizeof sentence, format, args);
    return status_error(STATUS_INVALID, "meshwright: %s", sentence);
}

Status usage_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    Status status = usage_error_list(format, args);
    va_end(args);
    return status;
}

error_t parse_refuse(struct argp_state *state, const char *format, ...) {
    CommonOptions *options = state->input;
    va_list args;
    va_start(args, format);
    options->status = usage_error_list(format, args);
    va_end(args);
    return EINVAL;
}

error_t parse_double(struct argp_state *state, const char *option, const char *text, double min,
                     double *out) {
    char *end;
    errno = 0;
    double value = decimal_read(text, &end);
    if (end == text || *end || errno || !isfinite(value) || value < min)
        return parse_refuse(state, "--%s: \"%.60s\" is not a number of at least %g", option, text,
                            min);
    *out = value;
    return 0;
}

error_t parse_quantity(struct argp_state *state, const char *option, const char *text,
                       QuantityKind kind, double min, double *out) {
    char why[300];
    double value;
    bool good = quantity_parse(text, kind, &value, why, sizeof why);
    if (!good && why[0]) return parse_refuse(state, "--%s: %s", option, why);
    if (!good || value < min)
        return parse_refuse(state, "--%s: \"%.60s\" is not a number of at least %g", option, text,
                            min);
    *out = value;
    return 0;
}

error_t parse_probability(struct argp_state *state, const char *text, double *out) {
    double value;
    const error_t error = parse_quantity(state, "fit-probability", text, QUANTITY_FRAC, 0, &value);
    if (error) return error;
    if (value < 0.5 || value > 0.999)
        return parse_refuse(
            state,
            "--fit-probability: \"%.60s\" is not between 0.5 (as likely as not) and "
            "0.999",
            text);
    *out = value;
    return 0;
}

error_t parse_int(struct argp_state *state, const char *option, const char *text, int min, int max,
                  int *out) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < min || value > max)
        return parse_refuse(state, "--%s: \"%.60s\" is not a whole number from %d to %d", option,
                            text, min, max);
    *out = (int)value;
    return 0;
}

// "a, b or c".
static void names_text(const char *const *names, char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; names[i] && used < size; i++) {
        const char *join = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        int n = snprintf(text + used, size - used, "%s%s", join, names[i]);
        used += n < 0 ? 0 : (size_t)n;
    }
}

error_t parse_name(struct argp_state *state, const char *option, const char *text,
                   const char *const *names, int *out) {
    *out = name_find(text, names);
    if (*out >= 0) return 0;
    char known[300];
    names_text(names, known, sizeof known);
    return parse_refuse(state, "--%s: \"%.60s\" is unknown; expected %s", option, text, known);
}

error_t parse_file(struct argp_state *state, const char *option, const char *text,
                   const char **out) {
    if (strcmp(text, "-") == 0)
        return parse_refuse(state, "--%s: expected a file; standard output has the answer", option);
    if (text[0] == '\0') return parse_refuse(state, "--%s: the name is empty", option);
    *out = text;
    return 0;
}

static const struct argp_option *option_with_key(const struct argp_option *options, int key) {
    while (options->key != key) options++;
    return options;
}

error_t common_parse(int key, char *arg, struct argp_state *state) {
    CommonOptions *options = state->input;
    const char *command = strchr(state->argv[0], ' ') + 1;
    if (key >= KEY_NOT_YET && key < KEY_NOT_YET + 0x100)
        return parse_refuse(state, "%s --%s is not supported yet", command,
                            option_with_key(options->argp->options, key)->name);
    if (job_option(key)) return job_parse(key, arg, state);
    if (key == 'j') {
        options->json = true;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        if (!options->argp->args_doc || options->scenario)
            return parse_refuse(state, "%s: one argument too many: \"%.200s\"", command, arg);
        options->scenario = arg;
        return 0;
    }
    bool optional = options->argp->args_doc && options->argp->args_doc[0] == '[';
    if (key == ARGP_KEY_END && options->argp->args_doc && !options->scenario && !optional)
        return parse_refuse(state, "%s: no %s given; meshwright %s --help shows examples", command,
                            options->argp->args_doc, command);
    return ARGP_ERR_UNKNOWN;
}

void warnings_print(const Scenario *scenario, Arena *arena) {
    const char *const *texts;
    const int num_texts = scenario_warnings(scenario, arena, &texts);
    for (int i = 0; i < num_texts; i++) {
        Status printable = status_error(STATUS_INVALID, "%s", texts[i]);
        fprintf(stderr, "%s\n", printable.text);
    }
}

Status scenario_take(const char *path, Arena *arena, Scenario *out) {
    TRY(scenario_load(path, arena, out));
    warnings_print(out, arena);
    return status_ok();
}

Status scenario_open(const char *path, Arena *arena, Scenario *out) {
    TRY(scenario_load(path, arena, out));
    TRY(scenario_refuse_unsupported(out));
    warnings_print(out, arena);
    return status_ok();
}

Status scenario_open_plan(const char *path, Arena *arena, Scenario *scenario, Plan *plan) {
    TRY(scenario_open(path, arena, scenario));
    return plan_resolve(scenario, arena, plan);
}

Status scenario_take_given(const CommonOptions *options, Arena *arena, Scenario *out) {
    return job_load(options, arena, out);
}

Status scenario_open_given(const CommonOptions *options, Arena *arena, Scenario *out) {
    TRY(job_load(options, arena, out));
    TRY(scenario_refuse_unsupported(out));
    warnings_print(out, arena);
    return status_ok();
}

Status scenario_open_plan_given(const CommonOptions *options, Arena *arena, Scenario *scenario,
                                Plan *plan) {
    TRY(scenario_open_given(options, arena, scenario));
    return plan_resolve(scenario, arena, plan);
}

cJSON *answer_with_warnings(cJSON *tree, const Scenario *scenario) {
    Arena arena = {0};
    const char *const *texts;
    const int num_texts = scenario_warnings(scenario, &arena, &texts);
    cJSON *list = num_texts > 0 ? cJSON_AddArrayToObject(tree, "warnings") : NULL;
    for (int i = 0; i < num_texts; i++) cJSON_AddItemToArray(list, cJSON_CreateString(texts[i]));
    arena_free(&arena);
    return tree;
}

void answer_add_calibration(cJSON *tree, const Scenario *scenario) {
    const Calibration *calibration = scenario->calibration;
    if (!calibration || !calibration->path) return;
    cJSON *object = cJSON_AddObjectToObject(tree, "calibration");
    cJSON_AddStringToObject(object, "title", calibration->title);
    cJSON_AddStringToObject(object, "path", calibration->path);
}

Status answer_json(cJSON *tree) {
    Status status = json_write(tree, stdout);
    cJSON_Delete(tree);
    return status;
}

Status status_does_not_fit(const char *file, double needed_bytes, double available_bytes) {
    char needed[UNITS_SIZE], available[UNITS_SIZE], missing[UNITS_SIZE];
    return status_at(STATUS_NO, file, "",
                     "does not fit: needs %s on one GPU, available %s, %s more",
                     units_bytes(needed_bytes, needed), units_bytes(available_bytes, available),
                     units_bytes(needed_bytes - available_bytes, missing));
}
