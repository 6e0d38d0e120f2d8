// cli/command.h - what the commands share: reading options and answering.
//
// A command is a function from its arguments to a Status; main.c prints the sentence and exits with
// the code. Options are read by argp, after a look of our own over the command line so that every
// refusal is one sentence that names the nearest option.
#pragma once

#include "base/arena.h"
#include "base/quantity.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

#include <argp.h>
#include <cjson/cJSON.h>
#include <stdbool.h>

// The commands: one row in main.c each. argv[0] is "meshwright NAME".
typedef Status (*CommandRun)(int argc, char **argv);

Status command_plan(int argc, char **argv);
Status command_estimate(int argc, char **argv);
Status command_simulate(int argc, char **argv);
Status command_whatif(int argc, char **argv);
Status command_compare(int argc, char **argv);
Status command_report(int argc, char **argv);
Status command_launch(int argc, char **argv);
Status command_import(int argc, char **argv);
Status command_models(int argc, char **argv);
Status command_clusters(int argc, char **argv);
Status command_calibrate(int argc, char **argv);
Status command_kernel(int argc, char **argv);
Status command_validate(int argc, char **argv);
Status command_profile(int argc, char **argv);
Status command_run(int argc, char **argv);

// What stands for a scenario beside a model alone (cli/job_options.h); NULL and 0: not given.
typedef struct {
    const char *cluster, *precision, *stack;
    double seq_len, batch;
} JobOptions;

// The first member of every command's own struct of options.
typedef struct {
    Status status;        // what the option parser refused
    const char *scenario; // the positional argument; NULL where the command has none
    bool json;
    JobOptions job;
    const struct argp *argp; // the command's own; argp wraps it with --help
} CommonOptions;

// Keys of options that have no short form start here; those of options that the contract lists but
// that nothing implements start at KEY_NOT_YET and are refused in those words.
enum { KEY_LONG = 0x100, KEY_JOB = 0x800, KEY_NOT_YET = 0x1000 };

#define OPTION_JSON                                                                                \
    { "json", 'j', NULL, 0, "print one JSON document on standard output", 0 }
#define OPTION_FIT_PROBABILITY(key, group)                                                         \
    {                                                                                              \
        "fit-probability", key, "P", 0,                                                            \
            "a plan counts as fitting in memory where it does with this probability, 0.5 to "      \
            "0.999 (default: 0.9)",                                                                \
            group                                                                                  \
    }
#define OPTION_FORCE(key, group)                                                                   \
    {                                                                                              \
        "force", key, NULL, 0,                                                                     \
            "with -o: overwrite or remove what in DIR is not of an earlier answer of this "        \
            "command, or was changed since it was written",                                        \
            group                                                                                  \
    }
#define OPTION_NOT_YET(name, number, argument)                                                     \
    { name, KEY_NOT_YET + (number), argument, OPTION_HIDDEN, NULL, 0 }

// Parses a command line into options (which begins with CommonOptions). --help prints and exits.
// The parser of argp handles its own keys and leaves the others to common_parse.
Status command_parse(const struct argp *argp, int argc, char **argv, CommonOptions *options);

// For the keys a command does not handle: the scenario, --json, options that are not there yet.
error_t common_parse(int key, char *arg, struct argp_state *state);

// Refuses inside an argp parser: "meshwright: SENTENCE".
error_t parse_refuse(struct argp_state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Values of options: *out, or a refusal that names the option and what it takes.
error_t parse_int(struct argp_state *state, const char *option, const char *text, int min, int max,
                  int *out);
error_t parse_double(struct argp_state *state, const char *option, const char *text, double min,
                     double *out);
// A number with or without a unit ("70GB", "15T"); one without a unit counts in SI base units.
error_t parse_quantity(struct argp_state *state, const char *option, const char *text,
                       QuantityKind kind, double min, double *out);
error_t parse_name(struct argp_state *state, const char *option, const char *text,
                   const char *const *names, int *out);
// That of OPTION_FIT_PROBABILITY.
error_t parse_probability(struct argp_state *state, const char *text, double *out);
// The name of a file to write, which cannot be standard output.
error_t parse_file(struct argp_state *state, const char *option, const char *text,
                   const char **out);

// A refusal (STATUS_INVALID) of the command line: "meshwright: SENTENCE".
Status usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Loads a scenario; what is legal but most likely a slip is said on standard error.
Status scenario_take(const char *path, Arena *arena, Scenario *out);

// Reads one and refuses what nothing acts upon yet.
Status scenario_open(const char *path, Arena *arena, Scenario *out);

// Reads one with the one plan that it describes.
Status scenario_open_plan(const char *path, Arena *arena, Scenario *scenario, Plan *plan);

// These three read what the command line names: a scenario, or a model and the options of a job.
// The first says nothing yet: warnings_print does, once nothing is refused.
Status scenario_take_given(const CommonOptions *options, Arena *arena, Scenario *out);
void warnings_print(const Scenario *scenario, Arena *arena);
Status scenario_open_given(const CommonOptions *options, Arena *arena, Scenario *out);
Status scenario_open_plan_given(const CommonOptions *options, Arena *arena, Scenario *scenario,
                                Plan *plan);

// Adds "warnings": what scenario_take said on standard error, where it said something; returns the
// tree.
cJSON *answer_with_warnings(cJSON *tree, const Scenario *scenario);

// Adds "calibration": {"title", "path"} to an answer where the scenario names a document.
void answer_add_calibration(cJSON *tree, const Scenario *scenario);

// Prints the tree on standard output and frees it.
Status answer_json(cJSON *tree);

// "FILE: does not fit: ..." (STATUS_NO), for an answer that was printed in full.
Status status_does_not_fit(const char *file, double needed_bytes, double available_bytes);
