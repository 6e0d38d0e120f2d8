#include "base/arena.h"
#include "calibrate/csv.h"

#include <CUnit/CUnit.h>
#include <string.h>

enum { MAX_CELLS = 4 };

// The cells of one record, joined by '|'; or the text of what is wrong.
static const char *cells_of(const char *record, Arena *arena) {
    const char *cells[MAX_CELLS], *joined = "";
    CsvFault fault;
    int num_cells = csv_cells(arena_strdup(arena, record), cells, MAX_CELLS, &fault);
    if (fault) return CSV_FAULT_TEXTS[fault];
    for (int i = 0; i < num_cells && i < MAX_CELLS; i++)
        joined = arena_printf(arena, "%s%s%s", joined, i ? "|" : "", cells[i]);
    return joined;
}

static void cells_are_cut_at_commas(void) {
    static const char *const CASES[][2] = {
        {"a,b,c", "a|b|c"},
        {" a ,\tb\r", "a|b"},
        {"a,,", "a||"},
        {"", ""},
        {"\"hello, there\",2", "hello, there|2"},
        {" \"a\" , \" b \"\r", "a| b "},
        {"\"say \"\"so\"\"\",1", "say \"so\"|1"},
        {"\"\",\"\"\"\"", "|\""},
        {"\"two\nlines\",1", "two\nlines|1"},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        CU_ASSERT_STRING_EQUAL(cells_of(CASES[i][0], &arena), CASES[i][1]);
    arena_free(&arena);
}

static void cells_beyond_the_last_are_counted(void) {
    char record[] = "1,2,3,4,5,6";
    const char *cells[MAX_CELLS];
    CsvFault fault;
    CU_ASSERT_EQUAL(csv_cells(record, cells, MAX_CELLS, &fault), 6);
    CU_ASSERT_STRING_EQUAL(cells[3], "4");
}

static void broken_quotes_are_told_apart(void) {
    static const struct {
        const char *record;
        CsvFault fault;
    } CASES[] = {
        {"\"a", CSV_UNCLOSED},          {"1,\"", CSV_UNCLOSED},         {"\"a\"\"", CSV_UNCLOSED},
        {"\"a\"b,1", CSV_BEHIND_QUOTE}, {"a\"b\",1", CSV_QUOTE_INSIDE}, {"1,5\"", CSV_QUOTE_INSIDE},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        CU_ASSERT_STRING_EQUAL(cells_of(CASES[i].record, &arena), CSV_FAULT_TEXTS[CASES[i].fault]);
    arena_free(&arena);
}

// Two lines in quotes are one record; quotes inside a cell without quotes open nothing.
static void records_end_outside_quotes(void) {
    char text[] = "a,\"b\n\"\"c,\"\r\nx\"y\n\n\"open\nz";
    static const struct {
        const char *record;
        int num_lines;
    } EXPECTED[] = {{"a,\"b\n\"\"c,\"", 2}, {"x\"y", 1}, {"", 1}, {"\"open\nz", 2}};
    char *record = text;
    for (size_t i = 0; i < 4; i++) {
        int num_lines;
        CU_ASSERT_PTR_NOT_NULL_FATAL(record);
        char *next = csv_record(record, &num_lines);
        CU_ASSERT_STRING_EQUAL(record, EXPECTED[i].record);
        CU_ASSERT_EQUAL(num_lines, EXPECTED[i].num_lines);
        record = next;
    }
    CU_ASSERT_PTR_NULL(record);
}

CU_TestInfo csv_tests[] = {
    {"cells_are_cut_at_commas", cells_are_cut_at_commas},
    {"cells_beyond_the_last_are_counted", cells_beyond_the_last_are_counted},
    {"broken_quotes_are_told_apart", broken_quotes_are_told_apart},
    {"records_end_outside_quotes", records_end_outside_quotes},
    CU_TEST_INFO_NULL,
};
