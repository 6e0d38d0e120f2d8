#include "base/folder.h"
#include "tests/base/folder_case.h"

#include <CUnit/CUnit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// --- What stays and what goes

static void an_earlier_answer_is_replaced_and_removed(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A"), b = folder_answer_plan(&c, "B");
    folder_answer_expect_given(&a);
    folder_case_expect(&c, FOLDER_PLAN_A);
    folder_case_put(&c, "mine", "me");
    folder_answer_expect_given(&b);
    folder_case_expect(&c, "a=B c=B mine=me t=B");
    folder_case_free(&c);
}

static void launch_files_of_the_same_plan_are_added(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer plan = folder_answer_plan(&c, "A"),
                       more = folder_answer_launch(&c, "A", "u", "A"),
                       other = folder_answer_launch(&c, "B", "v", "B"),
                       next = folder_answer_plan(&c, "B");
    folder_answer_expect_given(&plan);
    folder_answer_expect_given(&more);
    folder_case_expect(&c, "a=A b=A s=A u=A");
    folder_answer_expect_given(&plan); // the same once more keeps them
    folder_case_expect(&c, "a=A b=A s=A u=A");
    folder_answer_expect_refused(
        &other, "a: is of another answer (plan); expected another folder, or --force, "
                "which removes it");
    folder_answer_expect_given(&next);
    folder_case_expect(&c, FOLDER_PLAN_B);
    folder_case_free(&c);
}

static void a_users_file_is_refused_unless_forced(void) {
    FolderCase c;
    folder_case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    folder_case_put(&c, "b", "mine");
    FolderAnswer a = folder_answer_plan(&c, "A");
    folder_answer_expect_refused(
        &a, "b: is there already, and is of no answer that is listed here; expected "
            "another folder, or --force, which overwrites it");
    folder_case_expect(&c, "b=mine");
    a.spec.force = true;
    folder_answer_expect_given(&a);
    folder_case_expect(&c, FOLDER_PLAN_A);
    folder_case_free(&c);
}

static void a_changed_file_is_refused_unless_forced(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    FolderAnswer b = folder_answer_plan(&c, "B");
    folder_answer_expect_given(&a);
    folder_case_put(&c, "s", "mine");
    folder_answer_expect_refused(
        &a, "s: was changed since it was written; expected another folder, or --force, "
            "which overwrites it");
    folder_answer_expect_refused(
        &b, "s: was changed since it was written; expected another folder, or --force, "
            "which removes it");
    folder_case_expect(&c, "a=A b=A s=mine");
    b.spec.force = true;
    folder_answer_expect_given(&b);
    folder_case_expect(&c, FOLDER_PLAN_B);
    folder_case_free(&c);
}

static void a_file_that_is_the_same_is_none_of_a_user(void) {
    FolderCase c;
    folder_case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    folder_case_put(&c, "u", "text");
    FolderAnswer launch = folder_answer_launch(&c, "A", "u", "text");
    folder_answer_expect_given(&launch);
    launch.texts[0].text = "other";
    folder_answer_expect_refused(&launch, "u: is there already; --force overwrites it");
    folder_case_expect(&c, "u=text");
    folder_case_free(&c);
}

static void an_answer_beside_another_is_refused(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    FolderAnswer grid = {
        .c = &c,
        .spec = {.folder = c.path, .parts = {{"whatif", "W", false}}, .num_parts = 1, .of = "W"},
        .texts = {{"w", "whatif", "W"}}};
    folder_answer_expect_given(&a);
    folder_answer_expect_refused(
        &grid, "a: is of another answer (plan); expected another folder, or --force, "
               "which removes it");
    char input[200]; // of the plan that is there
    snprintf(input, sizeof input, "%s/a", c.path);
    const char *inputs[] = {input};
    grid.spec.inputs = inputs;
    grid.spec.num_inputs = 1;
    folder_answer_expect_given(&grid);
    folder_case_expect(&c, "a=A b=A s=A w=W");
    grid.texts[0] = (FolderText){"b", "whatif", "W"};
    folder_answer_expect_refused(
        &grid, "b: is of another answer (plan); expected another folder, or --force, "
               "which overwrites it");
    folder_case_free(&c);
}

static void an_input_is_never_removed(void) {
    FolderCase c;
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A");
    folder_answer_expect_given(&a);
    folder_case_put(&c, "a", "edited");
    char input[200];
    snprintf(input, sizeof input, "%s/a", c.path);
    const char *inputs[] = {input};
    FolderAnswer other = folder_answer_launch(&c, "B", "v", "B");
    other.spec.inputs = inputs;
    other.spec.num_inputs = 1;
    other.spec.force = true;
    folder_answer_expect_given(&other);
    folder_case_expect(&c, "a=edited v=B");
    folder_case_free(&c);
}

static void links_and_folders_are_a_users(void) {
    FolderCase c;
    char link[200], aim[200];
    folder_case_build(&c);
    CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
    snprintf(link, sizeof link, "%s/b", c.path);
    snprintf(aim, sizeof aim, "%s/aim", c.root);
    CU_ASSERT_EQUAL(symlink(aim, link), 0);
    FolderAnswer a = folder_answer_plan(&c, "A");
    folder_answer_expect_refused(
        &a, "b: is there already, and is of no answer that is listed here; expected "
            "another folder, or --force, which overwrites it");
    CU_ASSERT_EQUAL(unlink(link), 0);
    CU_ASSERT_EQUAL(mkdir(link, 0777), 0);
    a.spec.force = true;
    folder_answer_expect_refused(&a, "b: cannot be written: it is a folder");
    CU_ASSERT_EQUAL(access(aim, F_OK), -1);
    folder_case_free(&c);
}

// --- The manifest

static void a_manifest_lists_nothing_outside(void) {
    static const char *const NAMES[] = {"../victim", "/etc/passwd", ".meshwright.json", "..",
                                        "x/y"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        FolderCase c;
        char text[300];
        folder_case_build(&c);
        CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
        folder_case_put(&c, "../victim", "me");
        snprintf(text, sizeof text,
                 "{\"schema\": 1, \"files\": [{\"name\": \"%s\", \"part\": \"plan\", \"answer\": "
                 "\"B\", \"of\": \"B\", \"file_bytes\": 2, \"fnv1a64\": \"08e31307b5a7b4e1\"}]}",
                 NAMES[i]);
        folder_case_put(&c, ".meshwright.json", text);
        const FolderAnswer a = folder_answer_plan(&c, "A");
        const Status status = folder_answer_give(&a);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "is no name of an answer's file"));
        char victim[200];
        snprintf(victim, sizeof victim, "%s/victim", c.root);
        CU_ASSERT_EQUAL(access(victim, F_OK), 0);
        folder_case_free(&c);
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
        folder_case_build(&c);
        CU_ASSERT_EQUAL(mkdir(c.path, 0777), 0);
        folder_case_put(&c, ".meshwright.json", TEXTS[i]);
        const FolderAnswer a = folder_answer_plan(&c, "A");
        CU_ASSERT_EQUAL(folder_answer_give(&a).code, STATUS_INVALID);
        folder_case_expect(&c, "");
        folder_case_free(&c);
    }
}

// --- New folders, own writing

static void a_new_folder_goes_where_nothing_was_written(void) {
    FolderCase c;
    folder_case_build(&c);
    Arena arena = {0};
    AnswerFolder folder;
    const FolderAnswer a = folder_answer_plan(&c, "A");
    CU_ASSERT_EQUAL(answer_folder_open(&a.spec, &arena, &folder).code, STATUS_OK);
    CU_ASSERT_EQUAL(folder_answer_save(&folder, &a.texts[0]).code, STATUS_OK);
    const Status status = answer_folder_close(
        &folder, status_error(STATUS_MACHINE, "%s/a: a failure", commit_path("out", "", &arena)));
    CU_ASSERT_STRING_EQUAL(status.text, "out//a: a failure"); // the place aside is not named
    CU_ASSERT_EQUAL(access(c.path, F_OK), -1);
    arena_free(&arena);
    folder_case_free(&c);
}

static void a_file_written_by_itself_stays_one_of_the_answer(void) {
    FolderCase c;
    char path[200];
    folder_case_build(&c);
    const FolderAnswer a = folder_answer_plan(&c, "A"), b = folder_answer_plan(&c, "B");
    folder_answer_expect_given(&a);
    folder_case_put(&c, "b", "simulated");
    snprintf(path, sizeof path, "%s/b", c.path);
    answer_folder_rewrote(path);
    folder_answer_expect_given(&b);
    folder_case_expect(&c, FOLDER_PLAN_B);
    folder_case_free(&c);
}

static void a_folder_may_be_named_by_a_link(void) {
    FolderCase c;
    folder_case_build(&c);
    Arena arena = {0};
    const FolderAnswer plan = folder_answer_plan(&c, "A"), next = folder_answer_plan(&c, "B");
    const char *real = arena_printf(&arena, "%s/real", c.root);
    CU_ASSERT_EQUAL(mkdir(real, 0777), 0);
    CU_ASSERT_EQUAL(symlink("real", c.path), 0);
    folder_answer_expect_given(&plan);
    folder_case_expect(&c, FOLDER_PLAN_A);
    folder_answer_expect_given(&next);
    folder_case_expect(&c, FOLDER_PLAN_B);
    CU_ASSERT_EQUAL(access(arena_printf(&arena, "%s/c", real), F_OK), 0);
    arena_free(&arena);
    folder_case_free(&c);
}

// Before any search.
static void a_link_that_leads_nowhere_is_refused(void) {
    FolderCase c;
    folder_case_build(&c);
    Arena arena = {0};
    CU_ASSERT_EQUAL(symlink("nowhere", c.path), 0);
    const char *const asked[] = {c.path, arena_printf(&arena, "%s/", c.path),
                                 arena_printf(&arena, "%s/deeper", c.path)};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const Status status = folder_check(asked[i]);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "is a link that leads nowhere"));
    }
    arena_free(&arena);
    folder_case_free(&c);
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
    {"a new folder goes where nothing was written", a_new_folder_goes_where_nothing_was_written},
    {"a file written by itself stays one of the answer",
     a_file_written_by_itself_stays_one_of_the_answer},
    {"a folder may be named by a link", a_folder_may_be_named_by_a_link},
    {"a link that leads nowhere is refused", a_link_that_leads_nowhere_is_refused},
    CU_TEST_INFO_NULL,
};
