#include "profiler/result_file.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const HEADER = "op,n,latency_ms";

typedef struct {
    char path[64];
    Arena arena;
} FileCase;

static void case_build(FileCase *c, const char *text) {
    *c = (FileCase){.path = "/tmp/meshwright-test-XXXXXX"};
    int file = mkstemp(c->path);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

static void case_free(FileCase *c) {
    unlink(c->path);
    arena_free(&c->arena);
}

static void assert_content(const FileCase *c, const char *expected) {
    char text[512] = "";
    FILE *stream = fopen(c->path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    fclose(stream);
    CU_ASSERT_STRING_EQUAL(text, expected);
}

// Opens, adds add,2,"7" where it is not there yet, closes.
static ResultFile add_one(FileCase *c) {
    ResultFile file;
    CU_ASSERT_EQUAL(result_file_open(c->path, HEADER, 2, &c->arena, &file).code, STATUS_OK);
    if (!result_file_has(&file, "add,2"))
        CU_ASSERT_EQUAL(result_file_add(&file, "add,2", "7").code, STATUS_OK);
    CU_ASSERT(result_file_has(&file, "add,2"));
    CU_ASSERT_EQUAL(result_file_close(&file).code, STATUS_OK);
    return file;
}

static void a_new_file_gets_its_header(void) {
    FileCase c;
    case_build(&c, "");
    unlink(c.path);
    CU_ASSERT(!add_one(&c).torn);
    assert_content(&c, "op,n,latency_ms\nadd,2,7\n");
    case_free(&c);
}

static void rows_that_are_there_are_kept_and_known(void) {
    FileCase c;
    case_build(&c, "op,n,latency_ms\nadd,1,5\nadd,2,6\n");
    CU_ASSERT_EQUAL(add_one(&c).num_rows, 2);
    assert_content(&c, "op,n,latency_ms\nadd,1,5\nadd,2,6\n");
    case_free(&c);
}

// add,2 begins add,22: keys are whole cells.
static void keys_are_whole_cells(void) {
    FileCase c;
    case_build(&c, "op,n,latency_ms\nadd,22,5\n");
    add_one(&c);
    assert_content(&c, "op,n,latency_ms\nadd,22,5\nadd,2,7\n");
    case_free(&c);
}

// Cut off anywhere in its last row, a file ends up as if that row had never been begun.
static void a_torn_row_is_removed_wherever_it_ends(void) {
    const char *whole = "op,n,latency_ms\nadd,1,5\nadd,2,6\n";
    size_t from = strlen("op,n,latency_ms\nadd,1,5\n");
    for (size_t length = from; length < strlen(whole); length++) {
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)length, whole);
        FileCase c;
        case_build(&c, text);
        CU_ASSERT_EQUAL(add_one(&c).torn, length > from);
        assert_content(&c, "op,n,latency_ms\nadd,1,5\nadd,2,7\n");
        case_free(&c);
    }
}

static void a_torn_header_is_written_again(void) {
    for (size_t length = 0; length <= strlen(HEADER); length++) {
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)length, HEADER);
        FileCase c;
        case_build(&c, text);
        add_one(&c);
        assert_content(&c, "op,n,latency_ms\nadd,2,7\n");
        case_free(&c);
    }
}

// Somebody else's file is refused and stays as it is, with its last line.
static void other_headers_are_refused(void) {
    static const char *const OTHERS[] = {"op,m,latency_ms\nadd,1,5\nad", "op,n\nadd,1\n", "hello",
                                         "op,n,latency_ms,more\n", "\nop,n,latency_ms\nadd,1,5\n"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        FileCase c;
        ResultFile file;
        case_build(&c, OTHERS[i]);
        char sentence[300];
        snprintf(sentence, sizeof sentence,
                 "%s: row 1: the header is \"%.*s\"; expected \"op,n,latency_ms\": choose another "
                 "folder",
                 c.path, (int)strcspn(OTHERS[i], "\n"), OTHERS[i]);
        ASSERT_REFUSED(result_file_check(c.path, HEADER, 2, &c.arena), sentence);
        ASSERT_REFUSED(result_file_open(c.path, HEADER, 2, &c.arena, &file), sentence);
        CU_ASSERT_PTR_NULL(file.stream);
        assert_content(&c, OTHERS[i]);
        case_free(&c);
    }
}

static void rows_of_other_cells_are_refused(void) {
    FileCase c;
    ResultFile file;
    const char *text = "op,n,latency_ms\nadd,1,5\nadd,2\nad";
    case_build(&c, text);
    char sentence[200];
    snprintf(sentence, sizeof sentence, "%s: row 3: 2 cells; the header names 3 columns", c.path);
    ASSERT_REFUSED(result_file_check(c.path, HEADER, 2, &c.arena), sentence);
    ASSERT_REFUSED(result_file_open(c.path, HEADER, 2, &c.arena, &file), sentence);
    assert_content(&c, text); // with its torn row
    case_free(&c);
}

static void a_check_changes_nothing(void) {
    static const char *const TEXTS[] = {"", "op,n", "op,n,latency_ms\nadd,1,5\nad"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        FileCase c;
        case_build(&c, TEXTS[i]);
        CU_ASSERT_EQUAL(result_file_check(c.path, HEADER, 2, &c.arena).code, STATUS_OK);
        assert_content(&c, TEXTS[i]);
        unlink(c.path);
        CU_ASSERT_EQUAL(result_file_check(c.path, HEADER, 2, &c.arena).code, STATUS_OK);
        CU_ASSERT(access(c.path, F_OK) != 0);
        case_free(&c);
    }
}

// A reader sees a row as soon as it is added.
static void every_row_is_flushed(void) {
    FileCase c;
    ResultFile file;
    case_build(&c, "");
    CU_ASSERT_EQUAL(result_file_open(c.path, HEADER, 2, &c.arena, &file).code, STATUS_OK);
    for (int i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof key, "add,%d", i);
        CU_ASSERT_EQUAL(result_file_add(&file, key, "1").code, STATUS_OK);
    }
    CU_ASSERT(result_file_has(&file, "add,0") && result_file_has(&file, "add,199"));
    FILE *stream = fopen(c.path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    int lines = 0;
    for (int letter; (letter = getc(stream)) != EOF;) lines += letter == '\n';
    fclose(stream);
    CU_ASSERT_EQUAL(lines, 201);
    CU_ASSERT_EQUAL(result_file_close(&file).code, STATUS_OK);
    case_free(&c);
}

CU_TestInfo result_file_tests[] = {
    {"a_new_file_gets_its_header", a_new_file_gets_its_header},
    {"rows_that_are_there_are_kept_and_known", rows_that_are_there_are_kept_and_known},
    {"keys_are_whole_cells", keys_are_whole_cells},
    {"a_torn_row_is_removed_wherever_it_ends", a_torn_row_is_removed_wherever_it_ends},
    {"a_torn_header_is_written_again", a_torn_header_is_written_again},
    {"other_headers_are_refused", other_headers_are_refused},
    {"rows_of_other_cells_are_refused", rows_of_other_cells_are_refused},
    {"a_check_changes_nothing", a_check_changes_nothing},
    {"every_row_is_flushed", every_row_is_flushed},
    CU_TEST_INFO_NULL,
};
