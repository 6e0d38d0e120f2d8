// base/aliases.h - usual spellings of values, as other software and people have them.
#pragma once

// Finds which of names (ends with NULL) a text means, and returns its index. The text is taken as
// it stands there. Else it is taken without regard to capitals and with "_" for "-". Else the table
// of spellings in aliases.c decides (and "torch." before a type). Returns -1 where it means none of
// them.
int name_find(const char *text, const char *const *names);
