// cli/job_options.h - a job without a scenario: a Hugging Face config.json (or the folder it is in,
// or a preset's name) as SCENARIO, and the rest by options: plan config.json --cluster dgx-h100:16
// --seq-len 8192 --batch 1024.
#pragma once

#include "cli/command.h"

// Rows of a command's table of options that takes such a job.
#define OPTIONS_JOB                                                                                \
    {"cluster",                                                                                    \
     KEY_JOB,                                                                                      \
     "PRESET:NODES",                                                                               \
     0,                                                                                            \
     "the machines, where SCENARIO is a model (its config.json or a preset's name)",               \
     9},                                                                                           \
        {"seq-len", KEY_JOB + 1, "TOKENS", 0, "where SCENARIO is a model: of a sequence", 9},      \
        {"batch", KEY_JOB + 2, "SEQUENCES", 0, "where SCENARIO is a model: of a step", 9},         \
        {"precision",                                                                              \
         KEY_JOB + 3,                                                                              \
         "NAME",                                                                                   \
         0,                                                                                        \
         "where SCENARIO is a model: of the products (default: bf16)",                             \
         9},                                                                                       \
    {                                                                                              \
        "stack", KEY_JOB + 4, "NAME", 0,                                                           \
            "where SCENARIO is a model: the software (default: megatron-core)", 9                  \
    }

// Whether a key is one of these.
bool job_option(int key);

// Reads one; for common_parse.
error_t job_parse(int key, char *arg, struct argp_state *state);

// Loads the scenario, or makes one of the model and the options. Refused: options beside a
// scenario, a model without those that have no default.
Status job_load(const CommonOptions *options, Arena *arena, Scenario *out);
