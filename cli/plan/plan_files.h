// cli/plan/plan_files.h - what `plan -o DIR` leaves there.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "cli/plan/plan_answer.h"

#include <stdbool.h>

// Refuses (STATUS_INVALID) a folder that cannot be written into, or where one of these files is an
// input of the scenario or is none that can be replaced.
// Without force also one with files that the answer would clash with.
Status plan_files_check(const Scenario *scenario, const char *folder, bool force, Arena *arena);

// Makes the folder and writes the best plan as plan.json, its launch files, trace.json of its
// estimate, report.txt and, in a build with its page, report.html. Launch files that cannot be
// written for this plan are left out with a note on standard error, and *launchable is false.
// All of them are written together, or none (base/answer_folder.h).
//   interrupted  somebody waits: the report does without its simulation, and says so
Status plan_files_save(const PlanAnswer *answer, const char *path, bool force, bool interrupted,
                       Arena *arena, bool *launchable);
