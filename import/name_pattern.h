// import/name_pattern.h - names of flags and keys, and families of them.
#pragma once

#include <stdbool.h>

// Whether a pattern is the name, or is "PREFIX*" where the name begins so.
bool name_fits(const char *name, const char *pattern);

// Whether one of the patterns, which end with NULL, is so.
bool name_is_among(const char *name, const char *const *patterns);
