// profiler/wrap.h - runs a foreign CUDA program and records what its GPUs do.
//
// The program is not changed: its environment makes the CUDA driver load libmeshwright-wrap.so,
// in it and in the processes it starts (wrap_inject.h).
#pragma once

#include "base/status.h"

#include <stdbool.h>

// Runs argv (ends with NULL), waits for it, writes kernels.csv, gaps.csv and a KIND.csv per kind
// of marked range (wrap_table.h) into the folder, and prints a summary on standard output. With
// json that is one JSON document, and what the program prints goes to standard error.
//   dir     made with its parents where it is missing, and removed again where it stays empty
//   fails with STATUS_INVALID where the program cannot be started; with STATUS_MACHINE where
//           nothing was recorded, which the sentence explains, or where the program failed: the
//           tables are then written nevertheless
// The library is the environment's MESHWRIGHT_WRAP, else beside this program, else in
// ../lib. With MESHWRIGHT_WRAP_KEEP set, the records stay in the folder.
//   force   tables take the place of files that are not of an earlier --wrap there
Status wrap_run(const char *const argv[], const char *dir, bool json, bool force);
