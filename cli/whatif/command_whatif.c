#include "cli/command.h"
#include "cli/whatif/whatif_grid.h"
#include "cli/whatif/whatif_options.h"
#include "cli/whatif/whatif_questions.h"

static Status whatif_answer(const WhatifArguments *options, Arena *arena) {
    switch (options->question) {
    case WHATIF_SENSITIVITY:
        return whatif_sensitivity_answer(options, arena);
    case WHATIF_GOODPUT:
        return whatif_goodput_answer(options, arena);
    case WHATIF_SIZING:
        return whatif_sizing_answer(options, arena);
    case WHATIF_GRID:
        break;
    }
    return whatif_grid_answer(options, arena);
}

Status command_whatif(int argc, char **argv) {
    WhatifArguments options;
    TRY(whatif_options_read(argc, argv, &options));
    Arena arena = {0};
    Status status = whatif_answer(&options, &arena);
    arena_free(&arena);
    return status;
}
