// Every file in tests/invalid is refused with exactly the sentence in its table EXPECTED.
#include "plan/plan.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER MESHWRIGHT_SOURCE_DIR "/tests/invalid/"

// What every command does with a scenario before it begins.
static Status scenario_refusal(const char *path, Arena *arena) {
    Scenario scenario;
    Plan plan;
    TRY(scenario_load(path, arena, &scenario));
    TRY(scenario_refuse_unsupported(&scenario));
    return plan_resolve(&scenario, arena, &plan);
}

// Takes the folder's path out of a sentence, wherever it stands.
static void folder_remove(char *sentence) {
    for (char *at; (at = strstr(sentence, FOLDER));)
        memmove(at, at + strlen(FOLDER), strlen(at + strlen(FOLDER)) + 1);
}

static void row_check(char *line) {
    line[strcspn(line, "\n")] = '\0';
    char *sentence = strchr(line, '\t');
    CU_ASSERT_PTR_NOT_NULL_FATAL(sentence);
    *sentence++ = '\0';
    Arena arena = {0};
    const char *path = arena_printf(&arena, FOLDER "%s", line);
    Status status = scenario_refusal(path, &arena);
    folder_remove(status.text);
    ASSERT_REFUSED(status, sentence);
    arena_free(&arena);
}

static FILE *expected_open(void) {
    FILE *stream = fopen(FOLDER "EXPECTED", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    return stream;
}

static void bad_files_are_refused_with_their_sentence(void) {
    FILE *stream = expected_open();
    char *line = NULL;
    size_t capacity = 0;
    int num_rows = 0;
    while (getline(&line, &capacity, stream) > 0) {
        if (line[0] == '#') continue;
        row_check(line);
        num_rows++;
    }
    CU_ASSERT(num_rows >= 60);
    free(line);
    fclose(stream);
}

static void every_bad_file_has_a_row(void) {
    static char table[1 << 16];
    FILE *stream = expected_open();
    size_t size = fread(table, 1, sizeof table - 1, stream);
    fclose(stream);
    CU_ASSERT(size < sizeof table - 1);
    DIR *folder = opendir(FOLDER);
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".json") && !strstr(entry->d_name, ".yaml")) continue;
        char row[300];
        snprintf(row, sizeof row, "\n%s\t", entry->d_name);
        CU_ASSERT_PTR_NOT_NULL(strstr(table, row));
    }
    closedir(folder);
}

static void missing_scenario_is_refused(void) {
    Arena arena = {0};
    ASSERT_REFUSED(scenario_refusal("no-such-scenario.json", &arena),
                   "no-such-scenario.json: cannot be read: No such file or directory");
    arena_free(&arena);
}

CU_TestInfo invalid_tests[] = {
    {"bad_files_are_refused_with_their_sentence", bad_files_are_refused_with_their_sentence},
    {"every_bad_file_has_a_row", every_bad_file_has_a_row},
    {"missing_scenario_is_refused", missing_scenario_is_refused},
    CU_TEST_INFO_NULL,
};
