#include "base/answer_folder.h"

#include "base/file_hash.h"
#include "base/output_file.h"
#include "tests/base/traced_process.h"

#include <CUnit/CUnit.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Folders

typedef struct {
    char root[64];
    char path[80]; // of the answers, within it
} FolderCase;

static void case_build(FolderCase *c) {
    // In memory, where there is such a folder: thousands of syncs of a disk take a minute.
    const bool in_memory = access("/dev/shm", W_OK) == 0;
    strcpy(c->root,
           in_memory ? "/dev/shm/meshwright-answer-XXXXXX" : "/tmp/meshwright-answer-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(c->root));
    snprintf(c->path, sizeof c->path, "%s/out", c->root);
}

static void case_free(const FolderCase *c) {
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", c->root);
    CU_ASSERT_EQUAL(system(command), 0);
}

static void file_put(const FolderCase *c, const char *name, const char *text) {
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

// "a=one b=two", of the regular files whose names do not begin with a dot; ".next" and so on for
// what else is there but the manifest.
static const char *content(const FolderCase *c, Arena *arena) {
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

static void assert_content(const FolderCase *c, const char *expected) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(content(c, &arena), expected);
    arena_free(&arena);
}

// --- Answers

typedef struct {
    const char *name, *part, *text;
} Text;

typedef struct {
    const FolderCase *c;
    AnswerSpec spec;
    Text texts[4];
} Answer;

// "plan" with files a, b, s (plan A), or a, c, t (any other), and launch files of the second part.
static Answer plan_of(const FolderCase *c, const char *id) {
    const bool first = strcmp(id, "A") == 0;
    Answer answer = {.c = c,
                     .spec = {.folder = c->path,
                              .parts = {{"plan", id, false}, {"launch", id, true}},
                              .num_parts = 2,
                              .of = id},
                     .texts = {{"a", "plan", id},
                               {first ? "b" : "c", "plan", id},
                               {first ? "s" : "t", "launch", id}}};
    return answer;
}

static Answer launch_of(const FolderCase *c, const char *id, const char *name, const char *text) {
    return (Answer){.c = c,
                    .spec = {.folder = c->path,
                             .parts = {{"launch", id, true}},
                             .num_parts = 1,
                             .of = id,
                             .keeps = true},
                    .texts = {{name, "launch", text}}};
}

static Status text_save(AnswerFolder *folder, const Text *text) {
    OutputFile file;
    TRY(output_open(answer_folder_path(folder, text->name, text->part), &file));
    fputs(text->text, file.stream);
    return output_close(&file, status_ok());
}

static Status give(const Answer *answer) {
    Arena arena = {0};
    AnswerFolder folder;
    Status status = answer_folder_open(&answer->spec, &arena, &folder);
    if (status.code == STATUS_OK) {
        for (int i = 0; i < 4 && answer->texts[i].name && status.code == STATUS_OK; i++)
            status = text_save(&folder, &answer->texts[i]);
        status = answer_folder_close(&folder, status);
    }
    arena_free(&arena);
    return status;
}

static void assert_given(const Answer *answer) {
    const Status status = give(answer);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) printf("%s\n", status.text);
}

// expected: the sentence behind the folder's path.
static void assert_refused(const Answer *answer, const char *expected) {
    const Status status = give(answer);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text + strlen(answer->c->path) + 1, expected);
}

static const char PLAN_A[] = "a=A b=A s=A", PLAN_B[] = "a=B c=B t=B";

// --- What stays and what goes

static void an_earlier_answer_is_replaced_and_removed(void) {
    FolderCase c;
    case_build(&c);
    const Answer a = plan_of(&c, "A"), b = plan_of(&c, "B");
    assert_given(&a);
    assert_content(&c, PLAN_A);
    file_put(&c, "mine", "me");
    assert_given(&b);
    assert_content(&c, "a=B c=B mine=me t=B");
    case_free(&c);
}

static void launch_files_of_the_same_plan_are_added(void) {
    FolderCase c;
    case_build(&c);
    const Answer plan = plan_of(&c, "A"), more = launch_of(&c, "A", "u", "A"),
                 other = launch_of(&c, "B", "v", "B"), next = plan_of(&c, "B");
    assert_given(&plan);
    assert_given(&more);
    assert_content(&c, "a=A b=A s=A u=A");
    assert_given(&plan); // the same once more keeps them
    assert_content(&c, "a=A b=A s=A u=A");
    assert_refused(&other, "a: is of another answer (plan); expected another folder, or --force, "
                           "which removes it");
    assert_given(&next);
    assert_content(&c, PLAN_B);
    case_free(&c);
}

static void a_users_file_is_refused_unless_forced(void) {
    FolderCase c;
    case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    file_put(&c, "b", "mine");
    Answer a = plan_of(&c, "A");
    assert_refused(&a, "b: is there already, and is of no answer that is listed here; expected "
                       "another folder, or --force, which overwrites it");
    assert_content(&c, "b=mine");
    a.spec.force = true;
    assert_given(&a);
    assert_content(&c, PLAN_A);
    case_free(&c);
}

static void a_changed_file_is_refused_unless_forced(void) {
    FolderCase c;
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    Answer b = plan_of(&c, "B");
    assert_given(&a);
    file_put(&c, "s", "mine");
    assert_refused(&a, "s: was changed since it was written; expected another folder, or --force, "
                       "which overwrites it");
    assert_refused(&b, "s: was changed since it was written; expected another folder, or --force, "
                       "which removes it");
    assert_content(&c, "a=A b=A s=mine");
    b.spec.force = true;
    assert_given(&b);
    assert_content(&c, PLAN_B);
    case_free(&c);
}

static void a_file_that_is_the_same_is_none_of_a_user(void) {
    FolderCase c;
    case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    file_put(&c, "u", "text");
    Answer launch = launch_of(&c, "A", "u", "text");
    assert_given(&launch);
    launch.texts[0].text = "other";
    assert_refused(&launch, "u: is there already; --force overwrites it");
    assert_content(&c, "u=text");
    case_free(&c);
}

static void an_answer_beside_another_is_refused(void) {
    FolderCase c;
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    Answer grid = {
        .c = &c,
        .spec = {.folder = c.path, .parts = {{"whatif", "W", false}}, .num_parts = 1, .of = "W"},
        .texts = {{"w", "whatif", "W"}}};
    assert_given(&a);
    assert_refused(&grid, "a: is of another answer (plan); expected another folder, or --force, "
                          "which removes it");
    char input[200]; // of the plan that is there
    snprintf(input, sizeof input, "%s/a", c.path);
    const char *inputs[] = {input};
    grid.spec.inputs = inputs;
    grid.spec.num_inputs = 1;
    assert_given(&grid);
    assert_content(&c, "a=A b=A s=A w=W");
    grid.texts[0] = (Text){"b", "whatif", "W"};
    assert_refused(&grid, "b: is of another answer (plan); expected another folder, or --force, "
                          "which overwrites it");
    case_free(&c);
}

static void an_input_is_never_removed(void) {
    FolderCase c;
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    assert_given(&a);
    file_put(&c, "a", "edited");
    char input[200];
    snprintf(input, sizeof input, "%s/a", c.path);
    const char *inputs[] = {input};
    Answer other = launch_of(&c, "B", "v", "B");
    other.spec.inputs = inputs;
    other.spec.num_inputs = 1;
    other.spec.force = true;
    assert_given(&other);
    assert_content(&c, "a=edited v=B");
    case_free(&c);
}

static void links_and_folders_are_a_users(void) {
    FolderCase c;
    char link[200], aim[200];
    case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    snprintf(link, sizeof link, "%s/b", c.path);
    snprintf(aim, sizeof aim, "%s/aim", c.root);
    CU_ASSERT_EQUAL(symlink(aim, link), 0);
    Answer a = plan_of(&c, "A");
    assert_refused(&a, "b: is there already, and is of no answer that is listed here; expected "
                       "another folder, or --force, which overwrites it");
    CU_ASSERT_EQUAL(unlink(link), 0);
    CU_ASSERT_EQUAL(mkdir(link, 0777), 0);
    a.spec.force = true;
    assert_refused(&a, "b: cannot be written: it is a folder");
    CU_ASSERT_EQUAL(access(aim, F_OK), -1);
    case_free(&c);
}

// --- The manifest

static void a_manifest_lists_nothing_outside(void) {
    static const char *const NAMES[] = {"../victim", "/etc/passwd", ".meshwright.json", "..",
                                        "x/y"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        FolderCase c;
        char text[300];
        case_build(&c);
        CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
        file_put(&c, "../victim", "me");
        snprintf(text, sizeof text,
                 "{\"schema\": 1, \"files\": [{\"name\": \"%s\", \"part\": \"plan\", \"answer\": "
                 "\"B\", \"of\": \"B\", \"file_bytes\": 2, \"fnv1a64\": \"08e31307b5a7b4e1\"}]}",
                 NAMES[i]);
        file_put(&c, ".meshwright.json", text);
        const Answer a = plan_of(&c, "A");
        const Status status = give(&a);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "is no name of an answer's file"));
        char victim[200];
        snprintf(victim, sizeof victim, "%s/victim", c.root);
        CU_ASSERT_EQUAL(access(victim, F_OK), 0);
        case_free(&c);
    }
}

static void what_is_no_manifest_is_refused(void) {
    static const char *const TEXTS[] = {"",
                                        "{",
                                        "[]",
                                        "{\"schema\": 2, \"files\": []}",
                                        "{\"schema\": 1}",
                                        "{\"schema\": 1, \"files\": [7]}"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        FolderCase c;
        case_build(&c);
        CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
        file_put(&c, ".meshwright.json", TEXTS[i]);
        const Answer a = plan_of(&c, "A");
        CU_ASSERT_EQUAL(give(&a).code, STATUS_INVALID);
        assert_content(&c, "");
        case_free(&c);
    }
}

// --- Faults

static int give_in_child(void *context) {
    return (int)give(context).code;
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
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    Answer b = plan_of(&c, "B");
    if (!fresh) {
        assert_given(&a);
        file_put(&c, "mine", "me");
    }
    const char *before = fresh ? "" : "a=A b=A mine=me s=A";
    const char *after = fresh ? PLAN_B : "a=B c=B mine=me t=B";
    CU_ASSERT_TRUE_FATAL(traced_run(give_in_child, &b, fault, end));
    const char *seen = content(&c, &arena);
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
    const char *settled = content(&c, &arena);
    num_begun += strcmp(seen, settled) != 0 && strcmp(settled, after) == 0;
    CU_ASSERT_TRUE(strcmp(settled, before) == 0 || strcmp(settled, after) == 0);
    if (strcmp(settled, before) != 0 && strcmp(settled, after) != 0)
        printf("call %ld: %s, then %s\n", fault->kill_at + fault->fail_at + 1, seen, settled);
    assert_given(&b); // and it can be written to
    CU_ASSERT_STRING_EQUAL(content(&c, &arena), after);
    case_free(&c);
    arena_free(&arena);
}

static void it_may_be_killed_at_every_system_call(void) {
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
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    Answer b = plan_of(&c, "B");
    Arena arena = {0};
    TraceFault fault = {0, -1, 0};
    TraceEnd end = {.killed = true};
    const char *seen = "";
    // Until a kill leaves all of A aside and nothing of B in its place.
    assert_given(&a);
    for (; end.killed && strcmp(seen, ".meshwright.lock .meshwright.next") != 0; fault.kill_at++) {
        case_free(&c);
        CU_ASSERT_EQUAL(mkdir(c.root, 0777), 0);
        assert_given(&a);
        CU_ASSERT_TRUE_FATAL(traced_run(give_in_child, &b, &fault, &end));
        seen = content(&c, &arena);
    }
    CU_ASSERT_STRING_EQUAL(seen, ".meshwright.lock .meshwright.next");
    file_put(&c, "c", "mine");
    assert_refused(&b, "c: was changed while an answer was written here; expected another place "
                       "for it, or --force, which overwrites it");
    b.spec.force = true;
    assert_given(&b);
    assert_content(&c, PLAN_B);
    case_free(&c);
    arena_free(&arena);
}

// A disk that is full: no file may be longer than 8 bytes.
static int give_on_full_disk(void *context) {
    const struct rlimit limit = {8, 8};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return (int)give(context).code;
}

static void a_full_disk_leaves_what_was_there(void) {
    FolderCase c;
    case_build(&c);
    const Answer a = plan_of(&c, "A");
    Answer b = plan_of(&c, "B");
    assert_given(&a);
    b.texts[2].text = "a longer text";
    const pid_t pid = fork();
    if (pid == 0) _exit(give_on_full_disk(&b));
    int state = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &state, 0), pid);
    CU_ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == STATUS_MACHINE);
    assert_content(&c, PLAN_A);
    case_free(&c);
}

static void an_interruption_leaves_what_was_there(void) {
    static const int SIGNALS[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        FolderCase c;
        Arena arena = {0};
        AnswerFolder folder;
        case_build(&c);
        const Answer a = plan_of(&c, "A"), b = plan_of(&c, "B");
        assert_given(&a);
        CU_ASSERT_EQUAL(answer_folder_open(&b.spec, &arena, &folder).code, STATUS_OK);
        CU_ASSERT_EQUAL(text_save(&folder, &b.texts[0]).code, STATUS_OK);
        raise(SIGNALS[i]); // held back, or this test would end here
        CU_ASSERT_EQUAL(text_save(&folder, &b.texts[1]).code, STATUS_MACHINE);
        const Status status = answer_folder_close(&folder, status_ok());
        CU_ASSERT_STRING_EQUAL(status.text, "interrupted: no answer");
        CU_ASSERT_FALSE(output_interrupted());
        assert_content(&c, PLAN_A);
        arena_free(&arena);
        case_free(&c);
    }
}

// --- Two writers

static void writers_wait_for_each_other(void) {
    enum { NUM_WRITERS = 4, NUM_ROUNDS = 25 };
    FolderCase c;
    case_build(&c);
    pid_t writers[NUM_WRITERS];
    for (int i = 0; i < NUM_WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] != 0) continue;
        const Answer own = plan_of(&c, i % 2 ? "A" : "B");
        bool good = true;
        for (int n = 0; n < NUM_ROUNDS; n++) good = give(&own).code == STATUS_OK && good;
        _exit(good ? 0 : 1);
    }
    for (int i = 0; i < NUM_WRITERS; i++) {
        int state = -1;
        CU_ASSERT_EQUAL(waitpid(writers[i], &state, 0), writers[i]);
        CU_ASSERT_EQUAL(state, 0);
    }
    Arena arena = {0};
    const char *seen = content(&c, &arena);
    CU_ASSERT_TRUE(strcmp(seen, PLAN_A) == 0 || strcmp(seen, PLAN_B) == 0);
    arena_free(&arena);
    case_free(&c);
}

static void a_new_folder_goes_where_nothing_was_written(void) {
    FolderCase c;
    case_build(&c);
    Arena arena = {0};
    AnswerFolder folder;
    const Answer a = plan_of(&c, "A");
    CU_ASSERT_EQUAL(answer_folder_open(&a.spec, &arena, &folder).code, STATUS_OK);
    CU_ASSERT_EQUAL(text_save(&folder, &a.texts[0]).code, STATUS_OK);
    const Status status = answer_folder_close(
        &folder, status_error(STATUS_MACHINE, "%s/a: a failure", commit_path("out", "", &arena)));
    CU_ASSERT_STRING_EQUAL(status.text, "out//a: a failure"); // the place aside is not named
    CU_ASSERT_EQUAL(access(c.path, F_OK), -1);
    arena_free(&arena);
    case_free(&c);
}

static void a_file_written_by_itself_stays_one_of_the_answer(void) {
    FolderCase c;
    char path[200];
    case_build(&c);
    const Answer a = plan_of(&c, "A"), b = plan_of(&c, "B");
    assert_given(&a);
    file_put(&c, "b", "simulated");
    snprintf(path, sizeof path, "%s/b", c.path);
    answer_folder_rewrote(path);
    assert_given(&b);
    assert_content(&c, PLAN_B);
    case_free(&c);
}

CU_TestInfo answer_folder_tests[] = {
    {"an earlier answer is replaced and removed", an_earlier_answer_is_replaced_and_removed},
    {"launch files of the same plan are added", launch_files_of_the_same_plan_are_added},
    {"a user's file is refused unless forced", a_users_file_is_refused_unless_forced},
    {"a changed file is refused unless forced", a_changed_file_is_refused_unless_forced},
    {"a file that is the same is none of a user", a_file_that_is_the_same_is_none_of_a_user},
    {"an answer beside another is refused", an_answer_beside_another_is_refused},
    {"an input is never removed", an_input_is_never_removed},
    {"links and folders are a user's", links_and_folders_are_a_users},
    {"a manifest lists nothing outside", a_manifest_lists_nothing_outside},
    {"what is no manifest is refused", what_is_no_manifest_is_refused},
    {"it may be killed at every system call", it_may_be_killed_at_every_system_call},
    {"every system call may fail", every_system_call_may_fail},
    {"a file changed before the moves are finished stays",
     a_file_changed_before_the_moves_are_finished_stays},
    {"a full disk leaves what was there", a_full_disk_leaves_what_was_there},
    {"an interruption leaves what was there", an_interruption_leaves_what_was_there},
    {"writers wait for each other", writers_wait_for_each_other},
    {"a new folder goes where nothing was written", a_new_folder_goes_where_nothing_was_written},
    {"a file written by itself stays one of the answer",
     a_file_written_by_itself_stays_one_of_the_answer},
    CU_TEST_INFO_NULL,
};
