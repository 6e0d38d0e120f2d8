#include "tests/base/folder_case.h"

#include "base/output_file.h"

#include <CUnit/CUnit.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void folder_case_build(FolderCase *c) {
    // In memory, where there is such a folder: thousands of syncs of a disk take a minute.
    const bool in_memory = access("/dev/shm", W_OK) == 0;
    strcpy(c->root,
           in_memory ? "/dev/shm/meshwright-answer-XXXXXX" : "/tmp/meshwright-answer-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(c->root));
    snprintf(c->path, sizeof c->path, "%s/out", c->root);
}

void folder_case_free(const FolderCase *c) {
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", c->root);
    CU_ASSERT_EQUAL(system(command), 0);
}

void folder_case_put(const FolderCase *c, const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", c->path, name);
    FILE *stream = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    fputs(text, stream);
    fclose(stream);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *folder_case_content(const FolderCase *c, Arena *arena) {
    char *rows[64];
    int num = 0;
    DIR *folder = opendir(c->path);
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char text[64] = "";
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            strcmp(name, ".meshwright.json") == 0)
            continue;
        FILE *stream =
            name[0] == '.' ? NULL : fopen(arena_printf(arena, "%s/%s", c->path, name), "rb");
        if (stream) text[fread(text, 1, sizeof text - 1, stream)] = '\0';
        if (stream) fclose(stream);
        rows[num++] = stream ? arena_printf(arena, "%s=%s", name, text) : arena_strdup(arena, name);
    }
    if (folder) closedir(folder);
    qsort(rows, (size_t)num, sizeof *rows, by_text);
    const char *all = "";
    for (int i = 0; i < num; i++) all = arena_printf(arena, "%s%s%s", all, i ? " " : "", rows[i]);
    return all;
}

void folder_case_expect(const FolderCase *c, const char *expected) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(folder_case_content(c, &arena), expected);
    arena_free(&arena);
}

FolderAnswer folder_answer_plan(const FolderCase *c, const char *id) {
    const bool first = strcmp(id, "A") == 0;
    FolderAnswer answer = {.c = c,
                           .spec = {.folder = c->path,
                                    .parts = {{"plan", id, false}, {"launch", id, true}},
                                    .num_parts = 2,
                                    .of = id},
                           .texts = {{"a", "plan", id},
                                     {first ? "b" : "c", "plan", id},
                                     {first ? "s" : "t", "launch", id}}};
    return answer;
}

FolderAnswer folder_answer_launch(const FolderCase *c, const char *id, const char *name,
                                  const char *text) {
    return (FolderAnswer){.c = c,
                          .spec = {.folder = c->path,
                                   .parts = {{"launch", id, true}},
                                   .num_parts = 1,
                                   .of = id,
                                   .keeps = true},
                          .texts = {{name, "launch", text}}};
}

Status folder_answer_save(AnswerFolder *folder, const FolderText *text) {
    OutputFile file;
    TRY(output_open(answer_folder_path(folder, text->name, text->part), &file));
    fputs(text->text, file.stream);
    return output_close(&file, status_ok());
}

Status folder_answer_give(const FolderAnswer *answer) {
    Arena arena = {0};
    AnswerFolder folder;
    Status status = answer_folder_open(&answer->spec, &arena, &folder);
    if (status.code == STATUS_OK) {
        for (int i = 0; i < 4 && answer->texts[i].name && status.code == STATUS_OK; i++)
            status = folder_answer_save(&folder, &answer->texts[i]);
        status = answer_folder_close(&folder, status);
    }
    arena_free(&arena);
    return status;
}

void folder_answer_expect_given(const FolderAnswer *answer) {
    const Status status = folder_answer_give(answer);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) printf("%s\n", status.text);
}

void folder_answer_expect_refused(const FolderAnswer *answer, const char *expected) {
    const Status status = folder_answer_give(answer);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text + strlen(answer->c->path) + 1, expected);
}
