// base/data_dir.h - where the bundled models/, stacks/, hw-profiles/ and published/ lie.
#pragma once

#include "base/arena.h"
#include "base/status.h"

// The folder of the running program; NULL where the system does not say.
const char *program_dir(Arena *arena);

// The folder that holds them: the environment's MESHWRIGHT_DATA, else found from the place of the
// running program (build tree, then ../share/meshwright), else the source folder it was built from.
const char *data_dir(Arena *arena);

// The path of data_dir()/folder/name.json.
const char *data_path(Arena *arena, const char *folder, const char *name);

// The names (without .json) in data_dir()/folder, sorted; *names ends with NULL.
Status data_list(Arena *arena, const char *folder, const char *const **names, int *num_names);

// True where the value of a model or gpu key is a path instead of a preset's name:
// it has a '/' or ends in ".json", ".yaml" or ".yml".
int value_is_path(const char *value);

// True where the value of a cluster key is a path instead of PRESET:NODES: it ends so.
int value_is_json_path(const char *value);

// path itself where absolute, else relative to the folder of base_file.
const char *path_beside(Arena *arena, const char *base_file, const char *path);
