// base/spill.h - many texts, of which memory holds the first few megabytes and a file the others.
//
// The file has no name and vanishes with the process. It lies in TMPDIR, else in /var/tmp, which is
// on a disk where /tmp may be memory. It is mapped, so that a text is read like any other; what
// reading brings into memory is given back with spill_forget.
#pragma once

#include "base/arena.h"
#include "base/status.h"

// Beyond so many bytes of texts further ones go to the file.
#define SPILL_MEMORY_BYTES ((size_t)16 << 20)

typedef struct Spill Spill;

// Closed with the arena.
Spill *spill_new(Arena *arena);

// Keeps a copy, which lives as long as the arena. Not from several threads at once; what was added
// may be read by all meanwhile.
//   returns  STATUS_MACHINE: the file cannot be made, or the disk is full
Status spill_add(Spill *spill, const char *text, const char **out);

// Texts of the file leave the memory until they are read again.
void spill_forget(const Spill *spill);
