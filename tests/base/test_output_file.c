#include "base/output_file.h"

#include <CUnit/CUnit.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char folder[64];
    char path[128];
} FolderCase;

static void case_build(FolderCase *c) {
    strcpy(c->folder, "/tmp/meshwright-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(c->folder));
    snprintf(c->path, sizeof c->path, "%s/file", c->folder);
}

static void case_free(FolderCase *c) {
    unlink(c->path);
    CU_ASSERT_EQUAL(rmdir(c->folder), 0); // nothing else is left
}

static int files_in(const FolderCase *c) {
    DIR *folder = opendir(c->folder);
    int n = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) n += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return n;
}

static void assert_content(const FolderCase *c, const char *expected) {
    char text[64] = "";
    FILE *stream = fopen(c->path, "rb");
    if (stream && !fgets(text, sizeof text, stream)) text[0] = '\0';
    if (stream) fclose(stream);
    CU_ASSERT_STRING_EQUAL(text, expected);
}

static Status text_write(const FolderCase *c, const char *text, Status status) {
    OutputFile file;
    TRY(output_open(c->path, &file));
    fputs(text, file.stream);
    return output_close(&file, status);
}

static void it_takes_the_place_of_an_older_one(void) {
    FolderCase c;
    case_build(&c);
    CU_ASSERT_EQUAL(text_write(&c, "one", status_ok()).code, STATUS_OK);
    assert_content(&c, "one");
    CU_ASSERT_EQUAL(text_write(&c, "two", status_ok()).code, STATUS_OK);
    assert_content(&c, "two");
    CU_ASSERT_EQUAL(files_in(&c), 1);
    case_free(&c);
}

static void a_failure_leaves_what_was_there(void) {
    FolderCase c;
    case_build(&c);
    text_write(&c, "one", status_ok());
    Status status = text_write(&c, "two", status_error(STATUS_MACHINE, "a failure"));
    CU_ASSERT_STRING_EQUAL(status.text, "a failure");
    assert_content(&c, "one");
    CU_ASSERT_EQUAL(files_in(&c), 1);
    case_free(&c);
}

// The path is not shown before the file is whole, nor is anything else.
static void nothing_is_seen_before_the_end(void) {
    FolderCase c;
    case_build(&c);
    OutputFile file;
    CU_ASSERT_EQUAL_FATAL(output_open(c.path, &file).code, STATUS_OK);
    fputs("half", file.stream);
    fflush(file.stream);
    CU_ASSERT_EQUAL(access(c.path, F_OK), -1);
    CU_ASSERT_EQUAL(output_close(&file, status_ok()).code, STATUS_OK);
    assert_content(&c, "half");
    case_free(&c);
}

static void an_interruption_leaves_nothing(void) {
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        FolderCase c;
        case_build(&c);
        OutputFile file;
        CU_ASSERT_EQUAL_FATAL(output_open(c.path, &file).code, STATUS_OK);
        CU_ASSERT_FALSE(output_interrupted());
        raise(signals[i]); // held back, or this test would end here
        CU_ASSERT(output_interrupted());
        Status status = output_close(&file, status_ok());
        CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
        CU_ASSERT_STRING_EQUAL(status.text, "interrupted: no answer");
        CU_ASSERT_FALSE(output_interrupted());
        CU_ASSERT_EQUAL(files_in(&c), 0);
        case_free(&c);
    }
}

// Killed in the middle of it; only where the file system has files without a name.
static void a_killed_process_leaves_nothing(void) {
    FolderCase c;
    case_build(&c);
    OutputFile file;
    CU_ASSERT_EQUAL_FATAL(output_open(c.path, &file).code, STATUS_OK);
    bool named = file.named;
    output_close(&file, status_error(STATUS_MACHINE, "not needed"));
    pid_t pid = named ? -1 : fork();
    if (pid == 0) {
        if (output_open(c.path, &file).code != STATUS_OK) _exit(1);
        fputs("half", file.stream);
        fflush(file.stream);
        kill(getpid(), SIGKILL);
    }
    int state = 0;
    if (pid > 0) waitpid(pid, &state, 0);
    if (!named) CU_ASSERT(WIFSIGNALED(state));
    CU_ASSERT_EQUAL(files_in(&c), 0);
    case_free(&c);
}

static void assert_refused(const char *path, const char *expected) {
    OutputFile file;
    Status status = output_open(path, &file);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, expected);
    if (status.code == STATUS_OK) output_close(&file, status_error(STATUS_MACHINE, "no test"));
}

// folder/link leads to folder/inner/link, which leads to ../file: the file gets the text, whether
// it is there already or not, both links stay, and nothing else is left.
static void a_link_stays_and_what_it_leads_to_is_replaced(void) {
    FolderCase c;
    case_build(&c);
    char inner[96], first[96], second[96];
    snprintf(inner, sizeof inner, "%s/inner", c.folder);
    snprintf(first, sizeof first, "%s/link", c.folder);
    snprintf(second, sizeof second, "%s/inner/link", c.folder);
    CU_ASSERT_EQUAL(mkdir(inner, 0777), 0);
    CU_ASSERT_EQUAL(symlink("inner/link", first), 0);
    CU_ASSERT_EQUAL(symlink("../file", second), 0);
    static const char *const TEXTS[] = {"one", "two"};
    for (int i = 0; i < 2; i++) {
        FolderCase link = c;
        strcpy(link.path, first);
        CU_ASSERT_EQUAL(text_write(&link, TEXTS[i], status_ok()).code, STATUS_OK);
        assert_content(&c, TEXTS[i]);
        struct stat info;
        CU_ASSERT(lstat(first, &info) == 0 && S_ISLNK(info.st_mode));
        CU_ASSERT(lstat(second, &info) == 0 && S_ISLNK(info.st_mode));
        CU_ASSERT_EQUAL(files_in(&c), 3);
    }
    unlink(second);
    rmdir(inner);
    unlink(first);
    case_free(&c);
}

static void links_in_a_circle_are_refused(void) {
    FolderCase c;
    case_build(&c);
    CU_ASSERT_EQUAL(symlink("file", c.path), 0);
    char expected[256];
    snprintf(expected, sizeof expected, "%s: cannot be written: Too many levels of symbolic links",
             c.path);
    assert_refused(c.path, expected);
    case_free(&c);
}

static void only_regular_files_are_replaced(void) {
    FolderCase c;
    case_build(&c);
    CU_ASSERT_EQUAL(mkfifo(c.path, 0666), 0);
    char expected[256];
    snprintf(expected, sizeof expected, "%s: cannot be written: it is not a regular file", c.path);
    assert_refused(c.path, expected);
    struct stat info;
    CU_ASSERT(lstat(c.path, &info) == 0 && S_ISFIFO(info.st_mode));
    assert_refused("/dev/null", "/dev/null: cannot be written: it is not a regular file");
    snprintf(expected, sizeof expected, "%s: cannot be written: it is a folder", c.folder);
    assert_refused(c.folder, expected);
    case_free(&c);
}

// 1 MB where a file may have 1 kB: the first write beyond it fails, long before the end.
static void why_a_write_failed_is_kept(void) {
    FolderCase c;
    case_build(&c);
    struct rlimit before, little;
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    OutputFile file;
    CU_ASSERT_EQUAL_FATAL(output_open(c.path, &file).code, STATUS_OK);
    setrlimit(RLIMIT_FSIZE, &little);
    for (int i = 0; i < 100000; i++) fputs("ten bytes ", file.stream);
    errno = 0;
    Status status = output_close(&file, status_ok());
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    char expected[256];
    snprintf(expected, sizeof expected, "%s: cannot be written: File too large", c.path);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, expected);
    CU_ASSERT_EQUAL(files_in(&c), 0);
    case_free(&c);
}

// What everybody may do with it is up to the umask.
static void a_program_can_be_executed(void) {
    FolderCase c;
    case_build(&c);
    mode_t umask_before = umask(027);
    OutputFile file;
    struct stat info;
    CU_ASSERT_EQUAL_FATAL(output_open_program(c.path, &file).code, STATUS_OK);
    CU_ASSERT_EQUAL(output_close(&file, status_ok()).code, STATUS_OK);
    CU_ASSERT(stat(c.path, &info) == 0 && (info.st_mode & 0777) == 0750);
    text_write(&c, "no program", status_ok());
    CU_ASSERT(stat(c.path, &info) == 0 && (info.st_mode & 0777) == 0640);
    umask(umask_before);
    case_free(&c);
}

static void a_folder_that_is_not_there_is_reported(void) {
    OutputFile file;
    Status status = output_open("/nonexistent/file", &file);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "/nonexistent/file: cannot be written: No such file or directory");
}

CU_TestInfo output_file_tests[] = {
    {"it_takes_the_place_of_an_older_one", it_takes_the_place_of_an_older_one},
    {"a_failure_leaves_what_was_there", a_failure_leaves_what_was_there},
    {"nothing_is_seen_before_the_end", nothing_is_seen_before_the_end},
    {"an_interruption_leaves_nothing", an_interruption_leaves_nothing},
    {"a_killed_process_leaves_nothing", a_killed_process_leaves_nothing},
    {"a_link_stays_and_what_it_leads_to_is_replaced",
     a_link_stays_and_what_it_leads_to_is_replaced},
    {"links_in_a_circle_are_refused", links_in_a_circle_are_refused},
    {"only_regular_files_are_replaced", only_regular_files_are_replaced},
    {"why_a_write_failed_is_kept", why_a_write_failed_is_kept},
    {"a_program_can_be_executed", a_program_can_be_executed},
    {"a_folder_that_is_not_there_is_reported", a_folder_that_is_not_there_is_reported},
    CU_TEST_INFO_NULL,
};
