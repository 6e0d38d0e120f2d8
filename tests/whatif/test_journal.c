#include "whatif/journal.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTION = 17 };

// The arenas of a test come and go; its folder stays.
static const char *folder_new(char *path) {
    strcpy(path, "/tmp/meshwright-journal-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
    return path;
}

static void folder_remove(const char *folder) {
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

static Journal *opened(const char *folder, const char *job, Arena *arena) {
    Journal *journal = NULL;
    bool finished;
    const Status status =
        journal_open(&(JournalSpec){folder, QUESTION, job, false}, arena, &journal, &finished);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_FALSE_FATAL(finished);
    return journal;
}

static void line_join(void *context, const char *line) {
    strcat(context, line);
    strcat(context, ";");
}

static const char *lines(Journal *journal, char *text) {
    text[0] = '\0';
    CU_ASSERT_EQUAL(journal_read(journal, line_join, text).code, STATUS_OK);
    return text;
}

// Runs a part of a test as another process, which ends with 0 where its claims hold.
#define IN_ANOTHER_PROCESS(block)                                                                  \
    do {                                                                                           \
        const pid_t child_ = fork();                                                               \
        if (child_ == 0) {                                                                         \
            bool good = true;                                                                      \
            block;                                                                                 \
            _exit(good ? 0 : 1);                                                                   \
        }                                                                                          \
        int status_ = -1;                                                                          \
        CU_ASSERT_EQUAL(waitpid(child_, &status_, 0), child_);                                     \
        CU_ASSERT_EQUAL(status_, 0);                                                               \
    } while (0)

static void lines_outlive_their_process(void) {
    Arena arena = {0};
    char path[64];
    const char *folder = folder_new(path);
    char text[100];
    IN_ANOTHER_PROCESS({
        Journal *journal = opened(folder, NULL, &arena);
        good = journal_add(journal, "one\ntwo\nthr").code == STATUS_OK; // torn by its death
    });
    Journal *journal = opened(folder, NULL, &arena);
    CU_ASSERT_STRING_EQUAL(lines(journal, text), "one;two;");
    CU_ASSERT_EQUAL(journal_add(journal, "three\n").code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(lines(journal, text), ""); // its own it knows
    arena_free(&arena);
    Journal *again = opened(folder, NULL, &arena);
    CU_ASSERT_STRING_EQUAL(lines(again, text), "one;two;three;");
    folder_remove(folder);
    arena_free(&arena);
}

static void processes_have_slots_and_blocks_of_their_own(void) {
    Arena arena = {0};
    char path[64];
    const char *folder = folder_new(path);
    char text[100];
    Journal *journal = opened(folder, NULL, &arena);
    CU_ASSERT_TRUE(journal_claim(journal, 0));
    CU_ASSERT_EQUAL(journal_add(journal, "mine\n").code, STATUS_OK);
    IN_ANOTHER_PROCESS({
        Arena own = {0};
        Journal *other = opened(folder, NULL, &own);
        good = strcmp(lines(other, text), "mine;") == 0 && !journal_claim(other, 0) &&
               journal_claim(other, 1) && journal_add(other, "other\n").code == STATUS_OK &&
               journal_num_slots(other) == 2;
    });
    CU_ASSERT_STRING_EQUAL(lines(journal, text), "other;");
    CU_ASSERT_TRUE(journal_claim(journal, 1)); // the system took it from the dead
    journal_release(journal, 1);
    IN_ANOTHER_PROCESS({
        Arena own = {0};
        good = journal_claim(opened(folder, NULL, &own), 1);
    });
    folder_remove(folder);
    arena_free(&arena);
}

static void one_process_answers(void) {
    Arena arena = {0};
    char path[64];
    const char *folder = folder_new(path);
    Journal *journal = opened(folder, "job-1", &arena);
    bool is_mine = false, finished = false;
    CU_ASSERT_EQUAL(journal_add(journal, "one\n").code, STATUS_OK);
    CU_ASSERT_EQUAL(journal_answer(journal, &is_mine).code, STATUS_OK);
    CU_ASSERT_TRUE(is_mine);
    CU_ASSERT_EQUAL(journal_finish(journal, true).code, STATUS_OK);
    arena_free(&arena);
    // A process of the same job that begins late has nothing to do.
    Journal *late = NULL;
    CU_ASSERT_EQUAL(
        journal_open(&(JournalSpec){folder, QUESTION, "job-1", false}, &arena, &late, &finished)
            .code,
        STATUS_OK);
    CU_ASSERT_TRUE(finished);
    arena_free(&arena);
    // Anybody else starts anew.
    char text[100];
    CU_ASSERT_STRING_EQUAL(lines(opened(folder, "job-2", &arena), text), "");
    folder_remove(folder);
    arena_free(&arena);
}

static void who_waits_takes_over_from_a_writer_that_died(void) {
    Arena arena = {0};
    char path[64];
    const char *folder = folder_new(path);
    IN_ANOTHER_PROCESS({
        bool is_mine;
        Journal *writer = opened(folder, NULL, &arena);
        good = journal_answer(writer, &is_mine).code == STATUS_OK && is_mine;
    });
    bool is_mine = false;
    CU_ASSERT_EQUAL(journal_answer(opened(folder, NULL, &arena), &is_mine).code, STATUS_OK);
    CU_ASSERT_TRUE(is_mine);
    folder_remove(folder);
    arena_free(&arena);
}

static void a_journal_of_another_grid_is_refused(void) {
    Arena arena = {0};
    char path[64];
    const char *folder = folder_new(path);
    Journal *journal;
    bool finished;
    opened(folder, NULL, &arena);
    const Status status = journal_open(&(JournalSpec){folder, QUESTION + 1, NULL, false}, &arena,
                                       &journal, &finished);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "/whatif.journal: keeps the points of another"));
    folder_remove(folder);
    arena_free(&arena);
}

static void points_of_a_journal_that_was_removed_are_not_taken(void) {
    Arena arena = {0};
    char path[64], text[100];
    const char *folder = folder_new(path);
    CU_ASSERT_EQUAL(journal_add(opened(folder, NULL, &arena), "one\n").code, STATUS_OK);
    CU_ASSERT_EQUAL(unlink(arena_printf(&arena, "%s/whatif.journal", folder)), 0);
    arena_free(&arena);
    CU_ASSERT_STRING_EQUAL(lines(opened(folder, NULL, &arena), text), "");
    folder_remove(folder);
    arena_free(&arena);
}

// A folder, a link, a pipe of the journal's name is somebody's, and no fault of the machine.
static void what_is_no_file_is_refused(void) {
    char path[64], command[200];
    static const char *const MAKE[] = {"mkdir", "ln -s /etc/hostname", "mkfifo"};
    static const char *const NAMES[] = {"whatif.journal", "whatif.journal.0"};
    for (size_t i = 0; i < sizeof MAKE / sizeof *MAKE; i++)
        for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++) {
            Arena arena = {0};
            const char *folder = folder_new(path);
            snprintf(command, sizeof command, "%s %s/%s", MAKE[i], folder, NAMES[n]);
            CU_ASSERT_EQUAL_FATAL(system(command), 0);
            for (int force = 0; force < 2; force++) {
                Journal *journal = NULL;
                bool finished;
                const JournalSpec spec = {folder, QUESTION, NULL, force};
                const Status status = journal_open(&spec, &arena, &journal, &finished);
                CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
                CU_ASSERT_PTR_NOT_NULL(strstr(status.text, NAMES[n]));
            }
            arena_free(&arena);
            folder_remove(folder);
        }
}

// Another process's file is looked at without waiting for who writes to it.
static void a_pipe_among_the_slots_is_passed_over(void) {
    Arena arena = {0};
    char path[64], command[200], text[100];
    const char *folder = folder_new(path);
    IN_ANOTHER_PROCESS({
        Journal *journal = opened(folder, NULL, &arena);
        good = journal_add(journal, "one\n").code == STATUS_OK;
    });
    Journal *journal = opened(folder, NULL, &arena);
    snprintf(command, sizeof command, "mkfifo %s/whatif.journal.1", folder);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    CU_ASSERT_STRING_EQUAL(lines(journal, text), "one;");
    arena_free(&arena);
    folder_remove(folder);
}

CU_TestInfo journal_tests[] = {
    {"lines_outlive_their_process", lines_outlive_their_process},
    {"processes_have_slots_and_blocks_of_their_own", processes_have_slots_and_blocks_of_their_own},
    {"one_process_answers", one_process_answers},
    {"who_waits_takes_over_from_a_writer_that_died", who_waits_takes_over_from_a_writer_that_died},
    {"points_of_a_journal_that_was_removed_are_not_taken",
     points_of_a_journal_that_was_removed_are_not_taken},
    {"a_journal_of_another_grid_is_refused", a_journal_of_another_grid_is_refused},
    {"what_is_no_file_is_refused", what_is_no_file_is_refused},
    {"a_pipe_among_the_slots_is_passed_over", a_pipe_among_the_slots_is_passed_over},
    CU_TEST_INFO_NULL,
};
