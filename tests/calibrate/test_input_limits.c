// The largest log and table of kernels that is read, and the first that is refused.
#include "calibrate/kernel_table.h"
#include "calibrate/run_log.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

// --- Logs

#define JOB                                                                                        \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:2\", \"training\": "     \
    "{\"seq_len\": 4096, \"global_batch\": 64}, \"parallel\": {\"tp\": 4}}"

// Five steps of Megatron-LM, 1 s each: as few as are read.
#define STEP(n)                                                                                    \
    " iteration " n "/ 100 | elapsed time per iteration (ms): 1000.0 | global batch size: 64 |\n"
#define STEPS STEP("10") STEP("20") STEP("30") STEP("40") STEP("50")

// A text with `num` times the letter x in the middle.
typedef struct {
    const char *head;
    size_t head_size, num;
    const char *tail;
} Text;

static void text_write(const Text *text, FILE *stream) {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    fwrite(text->head, 1, text->head_size, stream);
    for (size_t left = text->num; left > 0;) {
        const size_t size = left < sizeof block ? left : sizeof block;
        fwrite(block, 1, size, stream);
        left -= size;
    }
    fputs(text->tail, stream);
}

// What the reader says of such a log, through a pipe: the largest is a quarter of a gigabyte.
static Status log_read(const Text *text, RunLog *run, Arena *arena) {
    Scenario scenario;
    Plan plan;
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(scenario_of(JOB, arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        close(ends[0]);
        FILE *stream = fdopen(ends[1], "w");
        text_write(text, stream);
        fflush(stream);
        _exit(0);
    }
    close(ends[1]);
    const char *path = arena_printf(arena, "/dev/fd/%d", ends[0]);
    const Status status = run_log_load(path, &scenario, &plan, arena, run);
    close(ends[0]); // what is left ends by SIGPIPE
    waitpid(child, NULL, 0);
    return status;
}

// What it says behind the name of the log; "" where it reads it.
static void log_says(const Text *text, const char *expected) {
    Arena arena = {0};
    RunLog run = {0};
    const Status status = log_read(text, &run, &arena);
    CU_ASSERT_EQUAL(status.code, expected[0] ? STATUS_INVALID : STATUS_OK);
    if (expected[0]) {
        const char *said = strchr(status.text, ':');
        CU_ASSERT_PTR_NOT_NULL_FATAL(said);
        CU_ASSERT_STRING_EQUAL(said, expected);
    } else {
        CU_ASSERT_EQUAL(run.num_lines, 5);
        CU_ASSERT_EQUAL(run.step_s, 1);
    }
    arena_free(&arena);
}

static void logs_have_so_many_bytes(void) {
    const size_t rest = RUN_LOG_MAX_BYTES - strlen(STEPS);
    log_says(&(Text){STEPS, strlen(STEPS), rest, ""}, "");
    log_says(&(Text){STEPS, strlen(STEPS), rest + 1, ""},
             ":6: here the log is longer than 256 MiB");
    log_says(&(Text){STEPS, strlen(STEPS), rest, "\n"}, ":6: here the log is longer than 256 MiB");
}

// The fifth step stands behind letters of its own line: the bar behind its time is the last letter
// that counts, then the first that does not.
static void of_a_line_so_many_bytes_count(void) {
    static const char HEAD[] = STEP("10") STEP("20") STEP("30") STEP("40"), TAIL[] = STEP("50");
    const size_t size = RUN_LOG_MAX_LINE_BYTES - strlen(" iteration 50/ 100 | elapsed time per "
                                                        "iteration (ms): 1000.0 |");
    log_says(&(Text){HEAD, strlen(HEAD), size, TAIL}, "");
    log_says(
        &(Text){HEAD, strlen(HEAD), size + 1, TAIL},
        ":5: the line ends before its time; expected \"elapsed time per iteration (ms): 1234.5 "
        "|\"");
}

// A line of 100 MB between two steps is skipped.
static void long_lines_are_skipped(void) {
    static const char HEAD[] = STEP("10") STEP("20");
    log_says(&(Text){HEAD, strlen(HEAD), 100000000, "\n" STEP("30") STEP("40") STEP("50")}, "");
}

// Wherever it stands: in a line, alone, at the end of the log, behind what counts of a line.
static void no_log_has_a_nul(void) {
    static const char INSIDE[] = STEPS "a\0b\n", ALONE[] = STEPS "\0\n", LAST[] = STEPS "abc\0";
    static const char FIRST[] = "\0";
    log_says(&(Text){INSIDE, sizeof INSIDE - 1, 0, ""}, ":6: a NUL byte; expected text");
    log_says(&(Text){ALONE, sizeof ALONE - 1, 0, STEPS}, ":6: a NUL byte; expected text");
    log_says(&(Text){LAST, sizeof LAST - 1, 0, ""}, ":6: a NUL byte; expected text");
    log_says(&(Text){FIRST, 1, 0, STEPS}, ":1: a NUL byte; expected text");
}

static void no_log_has_a_nul_behind_what_counts(void) {
    char *head = malloc(RUN_LOG_MAX_LINE_BYTES + 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(head);
    memset(head, 'x', RUN_LOG_MAX_LINE_BYTES + 100);
    head[RUN_LOG_MAX_LINE_BYTES + 50] = '\0';
    log_says(&(Text){head, RUN_LOG_MAX_LINE_BYTES + 100, 0, "\n" STEPS},
             ":1: a NUL byte; expected text");
    free(head);
}

// --- Tables

// What the reader says of head, `num` times a piece, and tail, packed; "" where it reads `rows`.
static void table_says(const char *head, const char *piece, int num, const char *tail, int rows,
                       const char *expected) {
    Arena arena = {0};
    KernelTable table;
    char path[] = "/tmp/meshwright-table-XXXXXX";
    gzFile stream = gzdopen(mkstemp(path), "wb1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    gzputs(stream, head);
    for (int i = 0; i < num; i++) gzputs(stream, piece);
    gzputs(stream, tail);
    gzclose(stream);
    const Status status = kernel_table_load(path, &arena, &table);
    unlink(path);
    CU_ASSERT_EQUAL(status.code, expected[0] ? STATUS_INVALID : STATUS_OK);
    if (expected[0]) {
        CU_ASSERT_STRING_EQUAL(status.text + strlen(path), expected);
    } else {
        CU_ASSERT_EQUAL(table.num_rows, rows);
    }
    arena_free(&arena);
}

// With and without a newline at the end, which begins no row; blank rows count.
static void tables_have_so_many_rows(void) {
    const int most = KERNEL_TABLE_MAX_ROWS;
    table_says("m\n", "1\n", most, "", most, "");
    table_says("m\n", "1\n", most - 1, "1", most, "");
    table_says("m\n", "1\n", most, "1", 0, ": row 1000002: more than 1000000 rows");
    table_says("m\n", "\n", most - 1, "1\n", 1, "");
    table_says("m\n", "\n", most, "1\n", 0, ": row 1000002: more than 1000000 rows");
}

static char *header_make(int num_columns) {
    char *text = malloc((size_t)num_columns * 8 + 2), *at = text;
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (int i = 0; i < num_columns; i++) at += sprintf(at, "%sc%d", i ? "," : "", i);
    strcpy(at, "\n");
    return text;
}

static void tables_have_so_many_columns(void) {
    char *most = header_make(KERNEL_TABLE_MAX_COLUMNS),
         *more = header_make(KERNEL_TABLE_MAX_COLUMNS + 1);
    table_says(most, "", 0, "", 0, "");
    table_says(more, "", 0, "", 0, ": row 1: more than 64 columns");
    free(most);
    free(more);
}

// Pieces are cells of 64 KiB between quotes.
static void tables_have_so_many_bytes(void) {
    enum { PIECE = 1 << 16 };
    static char piece[PIECE + 1], rest[PIECE + 1];
    memset(piece, 'x', PIECE);
    memcpy(piece, "\"", 1);
    memcpy(piece + PIECE - 2, "\"\n", 2);
    memset(rest, 'x', PIECE - 2); // with the header's two bytes
    const int num = KERNEL_TABLE_MAX_BYTES / PIECE - 1;
    table_says("m\n", piece, num, rest, num + 1, "");
    rest[PIECE - 2] = 'x';
    table_says("m\n", piece, num, rest, 0, ": larger than 64 MiB");
}

CU_TestInfo input_limits_tests[] = {
    {"logs_have_so_many_bytes", logs_have_so_many_bytes},
    {"of_a_line_so_many_bytes_count", of_a_line_so_many_bytes_count},
    {"long_lines_are_skipped", long_lines_are_skipped},
    {"no_log_has_a_nul", no_log_has_a_nul},
    {"no_log_has_a_nul_behind_what_counts", no_log_has_a_nul_behind_what_counts},
    {"tables_have_so_many_rows", tables_have_so_many_rows},
    {"tables_have_so_many_columns", tables_have_so_many_columns},
    {"tables_have_so_many_bytes", tables_have_so_many_bytes},
    CU_TEST_INFO_NULL,
};
