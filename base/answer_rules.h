// base/answer_rules.h - what of an earlier answer stays, goes or forbids a new one
// (base/answer_folder.h has the rules in words).
#pragma once

#include "base/answer_folder.h"

typedef struct {
    AnswerManifest manifest; // of the folder as it will be
    const AnswerMove *moves;
    int num_moves;
} AnswerChange;

// Compares the files (unchanged is set) with the folder and its manifest.
//   written  they are written aside; else only their names are known
//   returns  STATUS_INVALID for what is refused
Status answer_rules(const AnswerSpec *spec, const AnswerManifest *earlier, AnswerFile *files,
                    int num_files, bool written, Arena *arena, AnswerChange *out);
