// What processes that are killed, fail or meet leave of answers.
#include "base/output_file.h"
#include "tests/base/folder_case.h"
#include "tests/base/traced_process.h"

#include <CUnit/CUnit.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Faults

static int give_in_child(void *context) {
    return (int)folder_answer_give(context).code;
}

// What a process that was killed, or failed, may leave: nothing of both answers together.
static bool is_of_one(const char *seen) {
    return !(strstr(seen, "=A") && strstr(seen, "=B"));
}

// Without what the folder's bookkeeping has left, whose names come first.
static const char *visible(const char *seen) {
    while (seen[0] == '.') seen += strcspn(seen, " ") + (strchr(seen, ' ') != NULL);
    return seen;
}

// Every system call of one case in all runs of the tests, of the others one in three.
static int stride(bool all) {
    return all || getenv("MESHWRIGHT_TEST_FULL") ? 1 : 3;
}

static int num_begun; // cases with a commit that was decided and not done

// Plan B over plan A beside a user's file, in a child with a fault; then any next answer.
static void fault_try(const TraceFault *fault, bool fresh, TraceEnd *end) {
    Arena arena = {0};
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    FolderAnswer b = folder_answer_plan(&c, "B");
    if (!fresh) {
        folder_answer_expect_given(&a);
        folder_case_put(&c, "mine", "me");
    }
    const char *before = fresh ? "" : "a=A b=A mine=me s=A";
    const char *after = fresh ? FOLDER_PLAN_B : "a=B c=B mine=me t=B";
    CU_ASSERT_TRUE_FATAL(traced_run(give_in_child, &b, fault, end));
    const char *seen = folder_case_content(&c, &arena);
    CU_ASSERT_TRUE(is_of_one(seen));
    if (!end->killed && end->exit_code == STATUS_OK) CU_ASSERT_STRING_EQUAL(visible(seen), after);
    if (!end->killed && end->exit_code != STATUS_OK)
        CU_ASSERT_TRUE(strcmp(seen, before) == 0 || strstr(seen, ".meshwright"));
    // Whoever comes next finds one answer, whole: a check alone brings that about.
    const char *const none[] = {NULL};
    if (access(c.path, F_OK) == 0) {
        const Status status = answer_folder_check(&b.spec, none, &arena);
        CU_ASSERT_TRUE(status.code == STATUS_OK);
    }
    const char *settled = folder_case_content(&c, &arena);
    num_begun += strcmp(seen, settled) != 0 && strcmp(settled, after) == 0;
    CU_ASSERT_TRUE(strcmp(settled, before) == 0 || strcmp(settled, after) == 0);
    if (strcmp(settled, before) != 0 && strcmp(settled, after) != 0)
        printf("call %ld: %s, then %s\n", fault->kill_at + fault->fail_at + 1, seen, settled);
    folder_answer_expect_given(&b); // and it can be written to
    CU_ASSERT_STRING_EQUAL(folder_case_content(&c, &arena), after);
    folder_case_free(&c);
    arena_free(&arena);
}

// What the first answer of a process alone asks the system for (memory of a sanitizer's allocator)
// is asked for before calls are counted.
static void first_answers_give(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A"), b = folder_answer_plan(&c, "B");
    for (int i = 0; i < 8; i++) folder_answer_expect_given(i % 2 ? &b : &a);
    folder_case_free(&c);
}

static void it_may_be_killed_at_every_system_call(void) {
    first_answers_give();
    for (int fresh = 0; fresh < 2; fresh++) {
        TraceFault fault = {-1, -1, 0};
        TraceEnd whole, end;
        num_begun = 0;
        fault_try(&fault, fresh, &whole);
        CU_ASSERT_TRUE(whole.exit_code == STATUS_OK && whole.num_calls > 50);
        for (fault.kill_at = 0; fault.kill_at < whole.num_calls; fault.kill_at += stride(!fresh)) {
            fault_try(&fault, fresh, &end);
            CU_ASSERT_TRUE(end.killed);
        }
        CU_ASSERT_TRUE(num_begun >= 5); // or the moves were not among what was interrupted
    }
}

static void every_system_call_may_fail(void) {
    static const int ERRORS[] = {EIO, ENOSPC};
    if (!traced_can_fail()) return;
    for (int e = 0; e < 2; e++) {
        TraceFault fault = {-1, -1, ERRORS[e]};
        TraceEnd whole, end;
        int num_failed = 0, num_refused = 0;
        fault_try(&fault, e == 1, &whole);
        for (fault.fail_at = 0; fault.fail_at < whole.num_calls; fault.fail_at += stride(e == 0)) {
            fault_try(&fault, e == 1, &end);
            num_failed += end.failed;
            num_refused += end.exit_code != STATUS_OK;
        }
        CU_ASSERT_TRUE(num_failed > 30 && num_refused > 15);
    }
}

static void a_file_changed_before_the_moves_are_finished_stays(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    FolderAnswer b = folder_answer_plan(&c, "B");
    Arena arena = {0};
    TraceFault fault = {0, -1, 0};
    TraceEnd end = {.killed = true};
    const char *seen = "";
    // Until a kill leaves all of A aside and nothing of B in its place.
    folder_answer_expect_given(&a);
    for (; end.killed && strcmp(seen, ".meshwright.lock .meshwright.next") != 0; fault.kill_at++) {
        folder_case_free(&c);
        CU_ASSERT_EQUAL(mkdir(c.root, 0777), 0);
        folder_answer_expect_given(&a);
        CU_ASSERT_TRUE_FATAL(traced_run(give_in_child, &b, &fault, &end));
        seen = folder_case_content(&c, &arena);
    }
    CU_ASSERT_STRING_EQUAL(seen, ".meshwright.lock .meshwright.next");
    folder_case_put(&c, "c", "mine");
    folder_answer_expect_refused(
        &b, "c: was changed while an answer was written here; expected another place "
            "for it, or --force, which overwrites it");
    b.spec.force = true;
    folder_answer_expect_given(&b);
    folder_case_expect(&c, FOLDER_PLAN_B);
    folder_case_free(&c);
    arena_free(&arena);
}

// A disk that is full: no file may be longer than 8 bytes.
static int give_on_full_disk(void *context) {
    const struct rlimit limit = {8, 8};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return (int)folder_answer_give(context).code;
}

static void a_full_disk_leaves_what_was_there(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    FolderAnswer b = folder_answer_plan(&c, "B");
    folder_answer_expect_given(&a);
    b.texts[2].text = "a longer text";
    const pid_t pid = fork();
    if (pid == 0) _exit(give_on_full_disk(&b));
    int state = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &state, 0), pid);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == STATUS_MACHINE);
    folder_case_expect(&c, FOLDER_PLAN_A);
    folder_case_free(&c);
}

static void an_interruption_leaves_what_was_there(void) {
    static const int SIGNALS[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        FolderCase c;
        Arena arena = {0};
        AnswerFolder folder;
        folder_case_build(&c);
        const FolderAnswer a = folder_answer_plan(&c, "A"), b = folder_answer_plan(&c, "B");
        folder_answer_expect_given(&a);
        CU_ASSERT_EQUAL(answer_folder_open(&b.spec, &arena, &folder).code, STATUS_OK);
        CU_ASSERT_EQUAL(folder_answer_save(&folder, &b.texts[0]).code, STATUS_OK);
        raise(SIGNALS[i]); // held back, or this test would end here
        CU_ASSERT_EQUAL(folder_answer_save(&folder, &b.texts[1]).code, STATUS_MACHINE);
        const Status status = answer_folder_close(&folder, status_ok());
        CU_ASSERT_STRING_EQUAL(status.text, "interrupted: no answer");
        CU_ASSERT_FALSE(output_interrupted());
        folder_case_expect(&c, FOLDER_PLAN_A);
        arena_free(&arena);
        folder_case_free(&c);
    }
}

// --- Two writers

static void writers_wait_for_each_other(void) {
    enum { NUM_WRITERS = 4, NUM_ROUNDS = 25 };
    FolderCase c;
    folder_case_build(&c);
    pid_t writers[NUM_WRITERS];
    for (int i = 0; i < NUM_WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] != 0) continue;
        const FolderAnswer own = folder_answer_plan(&c, i % 2 ? "A" : "B");
        bool good = true;
        for (int n = 0; n < NUM_ROUNDS; n++)
            good = folder_answer_give(&own).code == STATUS_OK && good;
        _exit(good ? 0 : 1);
    }
    for (int i = 0; i < NUM_WRITERS; i++) {
        int state = -1;
        CU_ASSERT_EQUAL(waitpid(writers[i], &state, 0), writers[i]);
        CU_ASSERT_EQUAL(state, 0);
    }
    Arena arena = {0};
    const char *seen = folder_case_content(&c, &arena);
    CU_ASSERT_TRUE(strcmp(seen, FOLDER_PLAN_A) == 0 || strcmp(seen, FOLDER_PLAN_B) == 0);
    arena_free(&arena);
    folder_case_free(&c);
}

CU_TestInfo answer_faults_tests[] = {
    {"it may be killed at every system call", it_may_be_killed_at_every_system_call},
    {"every system call may fail", every_system_call_may_fail},
    {"a file changed before the moves are finished stays",
     a_file_changed_before_the_moves_are_finished_stays},
    {"a full disk leaves what was there", a_full_disk_leaves_what_was_there},
    {"an interruption leaves what was there", an_interruption_leaves_what_was_there},
    {"writers wait for each other", writers_wait_for_each_other},
    CU_TEST_INFO_NULL,
};
