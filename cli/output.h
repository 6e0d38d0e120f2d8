// cli/output.h - folders and files that a command leaves behind, checked before long work.
#pragma once

#include "base/answer_folder.h"
#include "base/arena.h"
#include "base/json_document.h"
#include "base/status.h"
#include "config/job/scenario.h"

#include <stdio.h>

// Refuses what cannot be written as a file (base/output_file.h), and a folder in which nothing can
// be written or that is not there.
Status output_check(const char *file, Arena *arena);

// Refuses (STATUS_INVALID) to write over an input: an output that is the same file as it.
//   what  the input is, as in "scenario"
Status output_check_input(const char *output, const char *input, const char *what);

// Refuses to write over any file that a scenario is made of.
Status output_check_scenario(const char *output, const Scenario *scenario, Arena *arena);

// What is read of a scenario, and so is never removed from the folder of an answer.
void output_add_inputs(AnswerSpec *spec, const Scenario *scenario, Arena *arena);

// Before long work: refuses a folder that cannot be written into, and names of files there (ending
// with NULL) that are inputs of the scenario or no files. What the answer would clash with is for
// answer_folder_check, after it. Changes nothing.
Status output_check_names(const AnswerSpec *spec, const char *const *names,
                          const Scenario *scenario, Arena *arena);

// An answer as a document and as a text; names[0] and [1] are their files, of the spec's first
// part.
typedef struct {
    const char *const *names;
    JsonDocument document;
    void (*print)(const void *context, FILE *stream);
    const void *context;
    Status (*more)(AnswerFolder *folder, const void *context); // writes further files; NULL: none
} OutputAnswer;

// Writes its files into the folder. Where the spec has no id the answer gets one of its document,
// but for "timing".
Status output_answer_save(const AnswerSpec *spec, const OutputAnswer *answer, Arena *arena);

// Says on standard error which files of an earlier answer a new one has removed.
void output_tell_removed(const AnswerFolder *folder);
