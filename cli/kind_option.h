// cli/kind_option.h - the option --kind of `calibrate` and `kernel`.
#pragma once

#include "calibrate/kinds.h"
#include "cli/command.h"

// The kind of a name, or a refusal that lists the names.
error_t parse_kind(struct argp_state *state, const char *text, const Kind **out);
