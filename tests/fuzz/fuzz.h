// tests/fuzz/fuzz.h - what a fuzz target is: a reader, called with one input.
//
// A file fuzz_TARGET.c defines fuzz_read; fuzz_main.c, which all share, gives it to libFuzzer.
// Inputs to begin with are in corpus/TARGET/, words worth trying in dictionaries/TARGET.dict.
#pragma once

#include "base/arena.h"
#include "base/json.h"

#include <stddef.h>

// Reads one input; what it answers does not matter, a crash, a hang or much memory does.
//   text   [size], NUL at text[size]; may be written to
//   arena  freed behind it
void fuzz_read(char *text, size_t size, Arena *arena);

// A path under which the text of the input can be read; it leads to this input until the next.
const char *fuzz_path(void);

// The path of fuzz_path as a value of a scenario.
JsonNode fuzz_path_node(Arena *arena);
