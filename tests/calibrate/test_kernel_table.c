#include "calibrate/kernel_table.h"

#include "calibrate/backward_rows.h"
#include "calibrate/known_formats.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

// A file of this text; removed by the caller.
static const char *file_of(const char *text, bool packed, Arena *arena) {
    char *path = arena_strdup(arena, "/tmp/meshwright-table-XXXXXX");
    int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    if (packed) {
        gzFile stream = gzdopen(file, "wb");
        gzputs(stream, text);
        gzclose(stream);
    } else {
        CU_ASSERT_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
        close(file);
    }
    return path;
}

static Status table_of(const char *text, Arena *arena, KernelTable *out) {
    const char *path = file_of(text, false, arena);
    Status status = kernel_table_load(path, arena, out);
    unlink(path);
    out->file = "t.csv"; // for messages that tests can expect
    return status;
}

static void columns_are_found_by_name(void) {
    Arena arena = {0};
    KernelTable table;
    double *m;
    CU_ASSERT_EQUAL(table_of("k, m\r\n1,20\r\n\n3 , 4e1\n", &arena, &table).code, STATUS_OK);
    CU_ASSERT_EQUAL(table.num_rows, 2);
    CU_ASSERT_EQUAL(kernel_table_column(&table, "n"), -1);
    CU_ASSERT_EQUAL(kernel_table_counts(&table, "m", 0, 100, &arena, &m).code, STATUS_OK);
    CU_ASSERT_EQUAL(m[0], 20);
    CU_ASSERT_EQUAL(m[1], 40);
    CU_ASSERT_EQUAL(table.line_numbers[1], 4); // the blank line counts
    CU_ASSERT_STRING_EQUAL(table.lines[0], "1,20");
    arena_free(&arena);
}

// A cell with a comma is one, a line end inside quotes ends no row, and what is printed again is
// what stood there.
static void quoted_cells_are_read(void) {
    Arena arena = {0};
    KernelTable table;
    double *m;
    CU_ASSERT_EQUAL(
        table_of("\"m\",note\n1,\"hello, there\"\n2,\"a \"\"b\"\"\nc\"\n\"3\",d\n", &arena, &table)
            .code,
        STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(table.num_rows, 3);
    CU_ASSERT_EQUAL(table.num_columns, 2);
    const char **notes = kernel_table_texts(&table, "note", &arena);
    CU_ASSERT_STRING_EQUAL(notes[0], "hello, there");
    CU_ASSERT_STRING_EQUAL(notes[1], "a \"b\"\nc");
    CU_ASSERT_EQUAL(kernel_table_counts(&table, "m", 0, 9, &arena, &m).code, STATUS_OK);
    CU_ASSERT_EQUAL(m[2], 3);
    CU_ASSERT_STRING_EQUAL(table.lines[0], "1,\"hello, there\"");
    CU_ASSERT_EQUAL(table.line_numbers[1], 3);
    CU_ASSERT_EQUAL(table.line_numbers[2], 5);
    arena_free(&arena);
}

static void broken_quotes_are_refused_with_row(void) {
    Arena arena = {0};
    KernelTable table;
    static const char *const CASES[][2] = {
        {"m\n1\n\"2\n3\n", "row 3: a quote that opens a cell is not closed"},
        {"m,\"n\n1,2\n", "row 1: a quote that opens a cell is not closed"},
        {"m\n\"1\"2\n",
         "row 2: text stands behind a closing quote; expected a comma, or two quotes "
         "for one inside a cell"},
        {"m\n5\"\n",
         "row 2: a quote stands inside a cell without quotes; expected the whole cell in "
         "quotes, and two for each inside"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *path = file_of(CASES[i][0], false, &arena);
        ASSERT_REFUSED(kernel_table_load(path, &arena, &table),
                       arena_printf(&arena, "%s: %s", path, CASES[i][1]));
        unlink(path);
    }
    arena_free(&arena);
}

static void packed_and_plain_read_alike(void) {
    Arena arena = {0};
    KernelTable table;
    const char *path = file_of("a,b\nx,1\n", true, &arena);
    CU_ASSERT_EQUAL(kernel_table_load(path, &arena, &table).code, STATUS_OK);
    CU_ASSERT_EQUAL(table.num_rows, 1);
    CU_ASSERT_STRING_EQUAL(kernel_table_texts(&table, "a", &arena)[0], "x");
    unlink(path);
    arena_free(&arena);
}

static void bad_tables_are_refused_with_row(void) {
    Arena arena = {0};
    KernelTable table;
    double *numbers;
    static const char *const WANTED[] = {"m", "n", NULL};
    table_of("m\n1\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_require(&table, WANTED),
                   "t.csv: row 1: the column \"n\" is missing; found \"m\"");
    static const char *const MORE[] = {"m", "n", "k", NULL};
    ASSERT_REFUSED(kernel_table_require(&table, MORE),
                   "t.csv: row 1: the columns \"n\", \"k\" are missing; found \"m\"");
    table_of("m\n1\nx7\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_counts(&table, "m", 0, 9, &arena, &numbers),
                   "t.csv: row 3: m: \"x7\"; expected a whole number from 0 to 9");
    table_of("m\n1\n12\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_counts(&table, "m", 0, 9, &arena, &numbers),
                   "t.csv: row 3: m: \"12\"; expected a whole number from 0 to 9");
    table_of("m\n1\n1.5\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_counts(&table, "m", 0, 9, &arena, &numbers),
                   "t.csv: row 3: m: \"1.5\"; expected a whole number from 0 to 9");
    CU_ASSERT_EQUAL(table_of("m,n\n1,2\n3\n", &arena, &table).code, STATUS_INVALID);
    CU_ASSERT_EQUAL(table_of("m,m\n1,2\n", &arena, &table).code, STATUS_INVALID);
    CU_ASSERT_EQUAL(table_of("", &arena, &table).code, STATUS_INVALID);
    CU_ASSERT_EQUAL(kernel_table_load("/nonexistent.csv", &arena, &table).code, STATUS_INVALID);
    arena_free(&arena);
}

static void latencies_that_are_none_are_refused(void) {
    Arena arena = {0};
    KernelTable table;
    double *latency_s;
    table_of("latency_ms\n0.5\n-2\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_latency_s(&table, &arena, &latency_s),
                   "t.csv: row 3: latency_ms: \"-2\"; expected a time in milliseconds");
    table_of("latency_ms\n0.5\n0.00002\n", &arena, &table);
    ASSERT_REFUSED(
        kernel_table_latency_s(&table, &arena, &latency_s),
        "t.csv: row 3: latency_ms: 2e-05 ms is shorter than any kernel; is it in seconds?");
    table_of("latency_ms\n5e6\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_latency_s(&table, &arena, &latency_s),
                   "t.csv: row 2: latency_ms: 5e+06 ms is over ten minutes; is it in nanoseconds?");
    table_of("m\n5e6\n", &arena, &table);
    ASSERT_REFUSED(kernel_table_latency_s(&table, &arena, &latency_s),
                   "t.csv: row 1: the column \"latency_ms\" is missing; found \"m\"");
    arena_free(&arena);
}

static void unknown_names_are_listed(void) {
    static const char *const NAMES[] = {"half", "int8", NULL};
    Arena arena = {0};
    KernelTable table;
    table_of("d\nint8\nint5\n", &arena, &table);
    int *choices = kernel_table_choices(&table, "d", NAMES, &arena);
    CU_ASSERT_EQUAL(choices[0], 1);
    CU_ASSERT_EQUAL(choices[1], -1);
    ASSERT_REFUSED(kernel_table_check_choices(&table, "d", choices, NAMES),
                   "t.csv: row 3: d: \"int5\"; expected one of half, int8");
    arena_free(&arena);
}

// Rows 2 and 4 have the same shape, whatever their times.
static void shapes_are_counted_once(void) {
    static const char *const SHAPE[] = {"m", "n", NULL};
    Arena arena = {0};
    KernelTable table;
    table_of("m,n,latency_ms\n1,22,3\n12,2,3\n1,22,4\n", &arena, &table);
    CU_ASSERT_EQUAL(kernel_table_num_shapes(&table, SHAPE), 2);
    arena_free(&arena);
}

// 1 ms and 4 ms are repeats; 4.1 ms is not, whichever of both comes first.
static void repeats_that_differ_are_refused(void) {
    static const char *const SHAPE[] = {"m", NULL};
    static const char *const CASES[][2] = {
        {"m,latency_ms\n7,4\n8,90\n7,1\n7,2\n", NULL},
        {"m,latency_ms\n7,4.1\n8,90\n7,1\n", "t.csv: row 4: latency_ms: 1 ms, but row 2 has the "
                                             "same shape and 4.1 ms; expected at most "
                                             "4 times between them"},
        {"m,latency_ms\n7,2\n7,1\n7,30\n",
         "t.csv: row 4: latency_ms: 30 ms, but row 3 has the same shape and 1 ms; expected at most "
         "4 times between them"},
    };
    Arena arena = {0};
    for (int i = 0; i < 3; i++) {
        KernelTable table;
        double *latency_s;
        table_of(CASES[i][0], &arena, &table);
        CU_ASSERT_EQUAL_FATAL(kernel_table_latency_s(&table, &arena, &latency_s).code, STATUS_OK);
        Status status = kernel_table_check_repeats(&table, SHAPE, latency_s);
        if (CASES[i][1])
            ASSERT_REFUSED(status, CASES[i][1]);
        else
            CU_ASSERT_EQUAL(status.code, STATUS_OK);
    }
    arena_free(&arena);
}

// Row 3 says 0.4 ms where the hardware needs 1 ms at least: 2.5 times too fast.
static void faster_than_the_hardware_is_refused(void) {
    Arena arena = {0};
    KernelTable table;
    double *latency_s, least_s[] = {1e-3, 1e-3}, work_s[] = {1e-3, 1e-3};
    KernelLimits limits = {least_s, work_s};
    table_of("latency_ms\n2\n0.4\n", &arena, &table);
    CU_ASSERT_EQUAL(kernel_table_latency_s(&table, &arena, &latency_s).code, STATUS_OK);
    ASSERT_REFUSED(kernel_table_check_limits(&table, latency_s, &limits, "the peak"),
                   "t.csv: row 3: latency_ms: 0.4 ms is 2.5 times faster than the peak allows, and "
                   "1 of 2 rows are; are all in milliseconds, and of this GPU?");
    least_s[1] = 1e-4;
    CU_ASSERT_EQUAL(kernel_table_check_limits(&table, latency_s, &limits, "the peak").code,
                    STATUS_OK);
    arena_free(&arena);
}

// 4 ms and a hundred times 1 ms are 104 ms.
static void slower_than_any_kernel_is_refused(void) {
    Arena arena = {0};
    KernelTable table;
    double *latency_s, least_s[] = {1e-3, 1e-3}, work_s[] = {1e-3, 1e-3};
    KernelLimits limits = {least_s, work_s};
    table_of("latency_ms\n103\n105\n", &arena, &table);
    CU_ASSERT_EQUAL(kernel_table_latency_s(&table, &arena, &latency_s).code, STATUS_OK);
    ASSERT_REFUSED(kernel_table_check_limits(&table, latency_s, &limits, "the peak"),
                   "t.csv: row 3: latency_ms: 105 ms; expected at most 104 ms, a hundred times "
                   "what the work of the row takes; is it in microseconds?");
    arena_free(&arena);
}

// NUM_ROWS rows of 1 ms, as the fit has them.
enum { NUM_ROWS = 20000 };

static KernelTable made_up_table(double *latency_s, Arena *arena) {
    int *line_numbers = ARENA_ARRAY(arena, NUM_ROWS, int);
    for (int i = 0; i < NUM_ROWS; i++) {
        latency_s[i] = 1e-3;
        line_numbers[i] = i + 2;
    }
    return (KernelTable){.file = "t.csv", .num_rows = NUM_ROWS, .line_numbers = line_numbers};
}

// Two of 20,000 rows 1.25 times too fast are a timer's slip; three are not, nor is one 1.3 times.
static void a_slip_is_rare_and_small(void) {
    Arena arena = {0};
    double *latency_s = ARENA_ARRAY(&arena, NUM_ROWS, double);
    double *least_s = ARENA_ARRAY(&arena, NUM_ROWS, double);
    double *work_s = ARENA_ARRAY(&arena, NUM_ROWS, double);
    KernelLimits limits = {least_s, work_s};
    KernelTable table = made_up_table(latency_s, &arena);
    least_s[7] = least_s[9] = 1.25e-3;
    CU_ASSERT_EQUAL(kernel_table_check_limits(&table, latency_s, &limits, "the peak").code,
                    STATUS_OK);
    least_s[11] = 1.09e-3; // a clock above the datasheet's
    CU_ASSERT_EQUAL(kernel_table_check_limits(&table, latency_s, &limits, "the peak").code,
                    STATUS_OK);
    least_s[11] = 1.11e-3;
    ASSERT_REFUSED(kernel_table_check_limits(&table, latency_s, &limits, "the peak"),
                   "t.csv: row 9: latency_ms: 1 ms is 1.25 times faster than the peak allows, and "
                   "3 of 20000 rows are; are all in milliseconds, and of this GPU?");
    least_s[9] = least_s[11] = 0;
    least_s[7] = 1.31e-3;
    ASSERT_REFUSED(kernel_table_check_limits(&table, latency_s, &limits, "the peak"),
                   "t.csv: row 9: latency_ms: 1 ms is 1.31 times faster than the peak allows, and "
                   "1 of 20000 rows are; are all in milliseconds, and of this GPU?");
    arena_free(&arena);
}

// 80 of 20,000 rows 12 times beside the fit are odd; 81, or one 260 times, is another unit.
static void rows_that_contradict_the_others_are_refused(void) {
    Arena arena = {0};
    double *latency_s = ARENA_ARRAY(&arena, NUM_ROWS, double);
    double *fitted_s = ARENA_ARRAY(&arena, NUM_ROWS, double);
    KernelTable table = made_up_table(latency_s, &arena);
    for (int i = 0; i < NUM_ROWS; i++) fitted_s[i] = 1e-3;
    for (int i = 0; i < 80; i++) latency_s[i] = 12e-3;
    CU_ASSERT_EQUAL(kernel_table_check_fit(&table, latency_s, fitted_s).code, STATUS_OK);
    latency_s[80] = 1e-3 / 13;
    ASSERT_REFUSED(kernel_table_check_fit(&table, latency_s, fitted_s),
                   "t.csv: row 82: latency_ms: 0.0769231 ms contradicts the other rows, which make "
                   "it about 1 ms; 81 of 20000 rows do; are all in milliseconds?");
    latency_s[80] = 1e-3;
    latency_s[5] = 0.26;
    ASSERT_REFUSED(kernel_table_check_fit(&table, latency_s, fitted_s),
                   "t.csv: row 7: latency_ms: 260 ms contradicts the other rows, which make it "
                   "about 1 ms; 80 of 20000 rows do; are all in milliseconds?");
    arena_free(&arena);
}

// Of four rows in bfloat16 one writes another format and one adds to what is there; other formats
// are left, whatever they write.
static void plain_backward_products_are_added(void) {
    static const char *const SHAPE[] = {"gemm_dtype", "m", "n", "k", NULL};
    Arena arena = {0};
    KernelTable table, backward;
    double *m, *latency_s;
    CU_ASSERT_EQUAL(
        table_of("k,gemm_dtype,m,n,timer,latency_ms\n8,bfloat16,2,4,cupti,1\n", &arena, &table)
            .code,
        STATUS_OK);
    CU_ASSERT_EQUAL(table_of("gemm_dtype,m,n,k,layout,out_dtype,beta,latency_ms\n"
                             "bfloat16,3,4,8,backward_input,bfloat16,0,2\n"
                             "bfloat16,4,4,8,backward_weight,float32,0,3\n"
                             "bfloat16,5,4,8,backward_weight,bfloat16,1,4\n\n"
                             "bfloat16,2,4,8,backward_weight,bfloat16,0,5\n"
                             "float16,6,4,8,backward_input,float16,0,6\n"
                             "tf32,6,4,8,backward_input,float32,0,6\n"
                             "fp8,6,4,8,backward_weight,bfloat16,0,6\n"
                             "fp8,6,4,8,backward_weight,float32,1,6\n",
                             &arena, &backward)
                        .code,
                    STATUS_OK);
    backward.file = "b.csv";
    CU_ASSERT_EQUAL(kernel_table_require(&backward, BACKWARD_COLUMNS).code, STATUS_OK);
    backward_rows_add(&backward, &table, &arena);
    CU_ASSERT_EQUAL_FATAL(table.num_rows, 3);
    CU_ASSERT_EQUAL(kernel_table_counts(&table, "m", 0, 100, &arena, &m).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernel_table_latency_s(&table, &arena, &latency_s).code, STATUS_OK);
    CU_ASSERT_EQUAL(m[1], 3);
    CU_ASSERT_DOUBLE_EQUAL(latency_s[1], 2e-3, 1e-12);
    CU_ASSERT_STRING_EQUAL(kernel_table_texts(&table, "timer", &arena)[1], "");
    CU_ASSERT_EQUAL(kernel_table_num_shapes(&table, SHAPE), 2);
    ASSERT_REFUSED(kernel_table_check_repeats(&table, SHAPE, latency_s),
                   "b.csv: row 6: latency_ms: 5 ms, but row 2 of t.csv has the same shape and 1 "
                   "ms; expected at most 4 times between them");
    ASSERT_REFUSED(kernel_table_error(&table, 0, "odd"), "t.csv: row 2: odd");
    arena_free(&arena);
}

static void expect_table_refused(const char *text, const char *sentence) {
    Arena arena = {0};
    KernelTable table;
    const Status status = table_of(text, &arena, &table);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, sentence));
    if (!strstr(status.text, sentence)) printf("%s\n  not %s\n", status.text, sentence);
    arena_free(&arena);
}

// Rows are printed as they were read.
static void what_a_terminal_obeys_is_refused(void) {
    Arena arena = {0};
    KernelTable table;
    expect_table_refused("m,note\n1,a\n2,\x1b[2J\n", ": row 3: the character \\u001b;");
    expect_table_refused("m,no\x07te\n1,a\n", ": row 1: the character \\u0007;");
    expect_table_refused("m,note\n1,\xe2\x80\xae\n", ": row 2: the character \\u202e;");
    expect_table_refused("m,note\n1,\xe9\n", ": row 2: the character \\xe9;");
    CU_ASSERT_EQUAL(table_of("\xef\xbb\xbfm,note\r\n1,\t\xc3\xa9\r\n", &arena, &table).code,
                    STATUS_OK);
    arena_free(&arena);
}

static void numbers_are_decimal(void) {
    static const char *const CELLS[] = {"0x10", "inf", "nan", "1_0", "\xef\xbc\x91"};
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS; i++) {
        Arena arena = {0};
        KernelTable table;
        double *m;
        const char *text = arena_printf(&arena, "m\n%s\n", CELLS[i]);
        CU_ASSERT_EQUAL_FATAL(table_of(text, &arena, &table).code, STATUS_OK);
        ASSERT_REFUSED(kernel_table_counts(&table, "m", 1, 100, &arena, &m),
                       arena_printf(&arena,
                                    "t.csv: row 2: m: \"%s\"; expected a whole number from 1 to "
                                    "100",
                                    CELLS[i]));
        arena_free(&arena);
    }
}

// Rows of formats that nothing models are counted, named and left out; an empty cell names none.
static void rows_of_unmodelled_formats_are_left_out(void) {
    static const char TEXT[] = "attn_dtype,kv_cache_dtype,latency_ms\nbfloat16,fp8,1\nfp6,fp8,2\n"
                               "fp6,int4,3\nbfloat16,int4,4\n,fp8,5\n";
    static const char *const COLUMNS[] = {"attn_dtype", "kv_cache_dtype", NULL};
    const Kind kind = {.name = "attention", .columns = COLUMNS};
    Arena arena = {0};
    KernelTable table;
    const char *skipped;
    CU_ASSERT_EQUAL_FATAL(table_of(TEXT, &arena, &table).code, STATUS_OK);
    CU_ASSERT_EQUAL(known_formats_keep(&kind, &table, &arena, &skipped), 3);
    CU_ASSERT_STRING_EQUAL(skipped, "t.csv: 3 of 5 rows in formats that are not modelled: "
                                    "attn_dtype fp6 (2); known are bfloat16, fp8; "
                                    "kv_cache_dtype int4 (2); known are bfloat16, fp8");
    CU_ASSERT_EQUAL_FATAL(table.num_rows, 2);
    CU_ASSERT_EQUAL(table.line_numbers[1], 6);
    CU_ASSERT_STRING_EQUAL(table.cells[3], "");
    CU_ASSERT_EQUAL(known_formats_keep(&kind, &table, &arena, &skipped), 0);
    CU_ASSERT_PTR_NULL(skipped);
    // Nothing else: for the fit to refuse.
    CU_ASSERT_EQUAL_FATAL(
        table_of("attn_dtype,kv_cache_dtype,latency_ms\nbf16,fp8,1\n", &arena, &table).code,
        STATUS_OK);
    CU_ASSERT_EQUAL(known_formats_keep(&kind, &table, &arena, &skipped), 0);
    CU_ASSERT_EQUAL(table.num_rows, 1);
    CU_ASSERT_PTR_NULL(skipped);
    arena_free(&arena);
}

static void a_folder_is_no_table(void) {
    Arena arena = {0};
    KernelTable table;
    ASSERT_REFUSED(kernel_table_load("/tmp", &arena, &table),
                   "/tmp: cannot be read: Is a directory");
    arena_free(&arena);
}

CU_TestInfo kernel_table_tests[] = {
    {"columns_are_found_by_name", columns_are_found_by_name},
    {"quoted_cells_are_read", quoted_cells_are_read},
    {"broken_quotes_are_refused_with_row", broken_quotes_are_refused_with_row},
    {"packed_and_plain_read_alike", packed_and_plain_read_alike},
    {"bad_tables_are_refused_with_row", bad_tables_are_refused_with_row},
    {"latencies_that_are_none_are_refused", latencies_that_are_none_are_refused},
    {"unknown_names_are_listed", unknown_names_are_listed},
    {"shapes_are_counted_once", shapes_are_counted_once},
    {"repeats_that_differ_are_refused", repeats_that_differ_are_refused},
    {"plain_backward_products_are_added", plain_backward_products_are_added},
    {"a_slip_is_rare_and_small", a_slip_is_rare_and_small},
    {"faster_than_the_hardware_is_refused", faster_than_the_hardware_is_refused},
    {"slower_than_any_kernel_is_refused", slower_than_any_kernel_is_refused},
    {"rows_that_contradict_the_others_are_refused", rows_that_contradict_the_others_are_refused},
    {"what_a_terminal_obeys_is_refused", what_a_terminal_obeys_is_refused},
    {"numbers_are_decimal", numbers_are_decimal},
    {"rows_of_unmodelled_formats_are_left_out", rows_of_unmodelled_formats_are_left_out},
    {"a_folder_is_no_table", a_folder_is_no_table},
    CU_TEST_INFO_NULL,
};
