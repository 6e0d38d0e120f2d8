// cli/whatif_questions.h - what `meshwright whatif` answers about one job: its limits, its
// failures, the cluster that it needs.
#pragma once

#include "cli/whatif_options.h"

Status whatif_sensitivity_answer(const WhatifArguments *options, Arena *arena);
Status whatif_goodput_answer(const WhatifArguments *options, Arena *arena);
Status whatif_sizing_answer(const WhatifArguments *options, Arena *arena);
