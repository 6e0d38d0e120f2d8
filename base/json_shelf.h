// base/json_shelf.h - bundled files that many scenarios share, each read once.
//
// Reading a scenario reads a dozen small files of the data folder, which takes ten times as long as
// pricing it. Where one question reads thousands of scenarios, on several threads, the shelf is
// open meanwhile: json_load takes files of the data folder from it, and all readers share their
// trees, which nobody changes. A file that changes meanwhile is read as it was.
#pragma once

#include "base/json.h"

// Opens and closes nest; the last close frees all that was taken, so nothing may be left of it.
void json_shelf_open(void);
void json_shelf_close(void);

// The tree of a file, where the shelf is open and the file lies in the data folder.
//   returns  false where the caller has to read it
bool json_shelf_take(const char *path, Status *status, JsonNode *root);
