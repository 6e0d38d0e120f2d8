// import/plan_lines_read.h - the comments of launch/plan_lines.h in a file that `launch` wrote.
#pragma once

#include "import/import.h"

// Finds them in a text. A line that says nothing of its kind is a comment as any other.
void plan_lines_read(const char *text, Imported *out);

// The GPUs that run ranks, of all that --cluster has: fewer where the file says how many of exactly
// so many idle.
int plan_lines_gpus(Imported *out, int num_gpus);

// Adds what the lines say to the scenario's `parallel`.
void plan_lines_finish(Imported *out);
