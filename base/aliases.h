// base/aliases.h - usual spellings of values, as other software and people have them.
#pragma once

// The index in names (ends with NULL) of the one that a text means: as it stands there; else
// without regard to capitals and with "_" for "-"; else by the table of spellings in aliases.c (and
// "torch." before a type). -1 where it means none of them.
int name_find(const char *text, const char *const *names);
