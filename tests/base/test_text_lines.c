#include "base/text_lines.h"

#include <CUnit/CUnit.h>

#include <string.h>

enum { MOST_LINE = 8, MOST_TEXT = 20 };

// Reads a text to its end, or to what is refused.
static Status text_read(const char *text, size_t size, Arena *arena, int *num_lines,
                        const char **last) {
    FILE *stream = fmemopen((void *)(size_t)text, size, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    TextLines lines = {
        .stream = stream, .file = "text", .max_line_bytes = MOST_LINE, .max_bytes = MOST_TEXT};
    bool more = true;
    Status status = status_ok();
    *num_lines = 0;
    *last = "";
    while (status.code == STATUS_OK && more) {
        status = text_lines_next(&lines, arena, &more);
        if (status.code != STATUS_OK || !more) break;
        *last = arena_strdup(arena, lines.line);
        ++*num_lines;
    }
    fclose(stream);
    return status;
}

static void lines_come_to_the_last(void) {
    static const struct {
        const char *text, *last;
        int num_lines;
    } cases[] = {
        {"a\nbc\n", "bc", 2},
        {"a\nbc", "bc", 2}, // without an end
        {"\n\n", "", 2},
        {"12345678\n", "12345678", 1},       // the longest line
        {"12345678\n12345678\n1\n", "1", 3}, // the longest text
        {"12345678\r", NULL, 0},             // its end counts
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena arena = {0};
        int num_lines;
        const char *last;
        const Status status =
            text_read(cases[i].text, strlen(cases[i].text), &arena, &num_lines, &last);
        CU_ASSERT_EQUAL(status.code, cases[i].last ? STATUS_OK : STATUS_INVALID);
        if (cases[i].last) {
            CU_ASSERT_EQUAL(num_lines, cases[i].num_lines);
            CU_ASSERT_STRING_EQUAL(last, cases[i].last);
        }
        arena_free(&arena);
    }
}

static void limits_are_said_with_their_line(void) {
    static const struct {
        const char *text;
        size_t size;
        const char *says;
    } cases[] = {
        {"a\n123456789\n", 12,
         "text: line 2: a line of more than 8 bytes; expected a text of lines"},
        {"12345678\n12345678\n12\n", 21,
         "text: line 3: the text has more than 20 bytes; expected a text of lines"},
        {"a\nb\0c\n", 6, "text: line 2: a NUL byte; expected text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena arena = {0};
        int num_lines;
        const char *last;
        const Status status = text_read(cases[i].text, cases[i].size, &arena, &num_lines, &last);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_STRING_EQUAL(status.text, cases[i].says);
        arena_free(&arena);
    }
}

CU_TestInfo text_lines_tests[] = {
    {"lines_come_to_the_last", lines_come_to_the_last},
    {"limits_are_said_with_their_line", limits_are_said_with_their_line},
    CU_TEST_INFO_NULL,
};
