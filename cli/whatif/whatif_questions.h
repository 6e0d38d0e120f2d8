// cli/whatif/whatif_questions.h - what `meshwright whatif` answers about one job: its limits, its
// failures, the cluster that it needs.
#pragma once

#include "cli/output.h"
#include "cli/whatif/whatif_options.h"

// The folder of -o, and what is read.
AnswerSpec whatif_answer_spec(const WhatifArguments *options, const Scenario *scenario,
                              Arena *arena);

Status whatif_sensitivity_answer(const WhatifArguments *options, Arena *arena);
Status whatif_goodput_answer(const WhatifArguments *options, Arena *arena);
Status whatif_sizing_answer(const WhatifArguments *options, Arena *arena);
