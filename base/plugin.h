// base/plugin.h - finds libraries that are loaded at run time, and programs on the PATH.
#pragma once

#include "base/arena.h"
#include "base/status.h"

typedef struct {
    const char *file;     // "libmeshwright-gpu.so"
    const char *variable; // of the environment, which may name it
    const char *title;    // of messages: "GPU plugin"
    const char *symbol;   // the function it shows
} PluginSpec;

// Loads it from where the variable says, else from beside this program or from ../lib of it.
//   library  for plugin_refuse
//   symbol   NULL where the library shows none of that name
// STATUS_MACHINE says what is missing.
Status plugin_load(const PluginSpec *spec, void **library, void **symbol);

// Closes a library of another version and says so.
Status plugin_refuse(const PluginSpec *spec, void *library);

// The path of a program in the folders of PATH; NULL where there is none.
const char *program_on_path(Arena *arena, const char *program);
