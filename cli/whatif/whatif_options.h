// cli/whatif/whatif_options.h - the options of `meshwright whatif`.
#pragma once

#include "cli/command.h"
#include "whatif/goodput.h"
#include "whatif/whatif.h"

typedef enum { WHATIF_GRID, WHATIF_SENSITIVITY, WHATIF_GOODPUT, WHATIF_SIZING } WhatifQuestion;

typedef struct {
    CommonOptions common;
    WhatifQuestion question;
    bool has_sensitivity, has_goodput;
    const char *vary[WHATIF_MAX_AXES];
    int num_vary;
    bool replan;
    double fit_probability_frac; // with which a plan has to fit; 0: not given
    int repetitions;             // of what is played; 0: not given
    const char *folder;
    bool force;                 // of -o
    double percent;             // of --sensitivity; 0: not given
    double tokens;              // 0: not given
    double days;                // 0: not given
    const char *on;             // presets of --days, joined by commas; NULL: a preset of each GPU
    const char *failure_option; // one that goes with --goodput alone; NULL: none given
    GoodputOptions goodput;
} WhatifArguments;

// Reads and checks the command line.
Status whatif_options_read(int argc, char **argv, WhatifArguments *out);
