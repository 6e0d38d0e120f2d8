// base/json_skip.h - leaves members of a large document unparsed; used by base/json_text.c.
#pragma once

#include "base/json.h"

// Writes null and blanks over the objects and arrays of the root that have these names (ending
// with NULL); what is broken is left to the parser.
void json_blank_members(char *text, const char *const *names);
