// import/shell_sum.h - what stands between $(( and )).
#pragma once

#include "base/arena.h"

#include <stdbool.h>

// The value of a variable; NULL where it is unknown.
typedef const char *(*SumValue)(void *context, const char *name);

// Whole numbers, names (with or without $, ${...}), parentheses, + - * / %, comparisons, ! && ||
// and A ? B : C.
//   returns  false where it is anything else, or a name is unknown
bool shell_sum(const char *text, SumValue value, void *context, Arena *arena, long long *out);
