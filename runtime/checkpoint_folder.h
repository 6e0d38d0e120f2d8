// runtime/checkpoint_folder.h - the folder of a checkpoint, and how one takes another's place.
//
// FOLDER.new is written aside. When it is whole and on the disk the two exchange their names in one
// step. File systems that cannot do that take two: FOLDER becomes FOLDER.replaced, FOLDER.new
// becomes FOLDER; a run that is ended in between leaves none of the name, and
// checkpoint_folder_find knows where the one before is.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

enum { CHECKPOINT_PATH_SIZE = 4096, CHECKPOINT_NUM_FILES = 3 };

// Of numbers; checkpoint.json is the head.
extern const char *const CHECKPOINT_FILES[CHECKPOINT_NUM_FILES];

// FOLDER, an ending ("" or ".new"), "/", a name.
void checkpoint_path(char path[CHECKPOINT_PATH_SIZE], const char *folder, const char *ending,
                     const char *name);

// Refuses a folder that cannot be made, and one that holds something else.
Status checkpoint_folder_check(const char *folder);

// An empty FOLDER.new.
Status checkpoint_folder_make(const char *folder);
void checkpoint_folder_drop(const char *folder); // and what is in it; accepts one that is not there

// FOLDER.new takes the place of FOLDER, if there is one. Where that fails FOLDER.new is dropped,
// and the Status says where the one before is if it is not in its place.
Status checkpoint_folder_replace(const char *folder);

// The folder to read: FOLDER, or what was to be replaced where a run was ended in the middle of it.
const char *checkpoint_folder_find(const char *folder, Arena *arena);
