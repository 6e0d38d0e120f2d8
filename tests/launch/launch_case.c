#include "tests/launch/launch_case.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

// Names of a target's files say all that it gives.
static void expect_named_files(const LaunchFiles *files, LaunchTarget target) {
    const char *names[LAUNCH_MAX_FILES + 2] = {NULL};
    launch_file_names(target, names);
    for (int i = 0; i < files->num_files; i++) {
        int n = 0;
        while (names[n] && strcmp(names[n], files->files[i].name) != 0) n++;
        CU_ASSERT_PTR_NOT_NULL(names[n]);
    }
}

LaunchCase launch_case(LaunchJob job, LaunchTarget target, const char *training) {
    LaunchCase c = {0};
    const char *text = scenario_text(&c.arena, job.model ? job.model : "\"llama-3.1-8b\"",
                                     job.cluster ? job.cluster : "\"dgx-h100:2\"",
                                     job.training ? job.training : training, job.parallel);
    c.status = scenario_of(text, &c.arena, &c.scenario);
    if (c.status.code == STATUS_OK) c.status = plan_resolve(&c.scenario, &c.arena, &c.plan);
    if (c.status.code == STATUS_OK)
        c.status = launch_make(&c.scenario, &c.plan, target, LAUNCH_TORCHRUN, &c.arena, &c.files);
    if (c.status.code == STATUS_OK) expect_named_files(&c.files, target);
    return c;
}

void expect_lines(const LaunchFile *file, const char *lines, const char *indent,
                  const char *behind) {
    Arena arena = {0};
    char *list = arena_strdup(&arena, lines);
    for (char *line = strtok(list, "&"); line; line = strtok(NULL, "&")) {
        const bool wanted = line[0] != '!';
        const char *needle =
            arena_printf(&arena, "\n%s%s%s", indent, line + !wanted, wanted ? "\n" : behind);
        if ((strstr(file->text, needle) != NULL) != wanted) {
            printf("\n%s: %s in\n%s", wanted ? "missing" : "unwanted", line, file->text);
            CU_FAIL("keys differ");
        }
    }
    arena_free(&arena);
}

static const char *legal_text(const KeyRow *row, Arena *arena) {
    static const char *const kinds[] = {"true|false", "whole number", "number", "text", "list"};
    const char *legal = row->legal ? row->legal : kinds[row->kind];
    if (row->legal && (row->kind == KEY_INT || row->kind == KEY_FLOAT))
        legal = arena_printf(arena, "from %s", row->legal);
    char *text = arena_alloc(arena, 2 * strlen(legal) + 1), *at = text;
    for (; *legal; legal++) {
        if (*legal == '|') *at++ = '\\';
        *at++ = *legal;
    }
    *at = '\0';
    return text;
}

void expect_key_table(const char *page, const KeyRow *rows) {
    FILE *stream = fopen(page, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    char line[400];
    const KeyRow *row = rows;
    Arena arena = {0};
    while (fgets(line, sizeof line, stream)) {
        if (strncmp(line, "| `", 3) != 0 || !strchr(line, '.')) continue;
        CU_ASSERT_PTR_NOT_NULL_FATAL(row->key);
        const char *expected = arena_printf(&arena, "| `%s.%s` | %s | %s |\n", row->section,
                                            row->key, legal_text(row, &arena), row->meaning);
        CU_ASSERT_STRING_EQUAL(line, expected);
        if (strcmp(line, expected) != 0) printf("\nexpected: %s", expected);
        row++;
    }
    CU_ASSERT_PTR_NULL(row->key);
    fclose(stream);
    arena_free(&arena);
}
