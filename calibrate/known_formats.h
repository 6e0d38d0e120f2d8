// calibrate/known_formats.h - the number formats that each kind of kernel is modelled in, and what
// becomes of rows in others: tables of a later release measure formats that no formula here knows.
#pragma once

#include "calibrate/kinds.h"

// Leaves the rows out of table whose formats (columns *_dtype) are named but not modelled. *skipped
// is then a sentence that counts them and names the formats with their rows; else NULL. A table
// without any other row is left as it is, for the fit to refuse: that is a slip, not a new format.
// Returns how many rows were left out.
int known_formats_keep(const Kind *kind, KernelTable *table, Arena *arena, const char **skipped);

// The names that a column of kind may hold, ending with NULL; NULL where it holds no format.
const char *const *known_formats(const Kind *kind, const char *column);
