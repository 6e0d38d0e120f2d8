// tests/base/folder_case.h - folders and answers for the tests of base/answer_folder.h.
#pragma once

#include "base/answer_folder.h"

typedef struct {
    char root[64];
    char path[80]; // of the answers, within it
} FolderCase;

typedef struct {
    const char *name, *part, *text;
} FolderText;

typedef struct {
    const FolderCase *c;
    AnswerSpec spec;
    FolderText texts[4];
} FolderAnswer;

#define FOLDER_PLAN_A "a=A b=A s=A"
#define FOLDER_PLAN_B "a=B c=B t=B"

void folder_case_build(FolderCase *c);
void folder_case_free(const FolderCase *c);
void folder_case_put(const FolderCase *c, const char *name, const char *text);

// "a=one b=two", of the regular files whose names do not begin with a dot; ".next" and so on for
// what else is there but the manifest.
const char *folder_case_content(const FolderCase *c, Arena *arena);
void folder_case_expect(const FolderCase *c, const char *expected);

// "plan" with files a, b, s (plan A), or a, c, t (any other), and launch files of the second part.
FolderAnswer folder_answer_plan(const FolderCase *c, const char *id);
FolderAnswer folder_answer_launch(const FolderCase *c, const char *id, const char *name,
                                  const char *text);

Status folder_answer_save(AnswerFolder *folder, const FolderText *text);
Status folder_answer_give(const FolderAnswer *answer);
void folder_answer_expect_given(const FolderAnswer *answer);

// expected: the sentence behind the folder's path.
void folder_answer_expect_refused(const FolderAnswer *answer, const char *expected);
