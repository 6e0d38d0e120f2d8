// cli/whatif/whatif_grid.h - the grid of `meshwright whatif --vary`.
#pragma once

#include "cli/whatif/whatif_options.h"

Status whatif_grid_answer(const WhatifArguments *options, Arena *arena);
