#include "report/table.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

// Collects what is printed on a paper of some width.
typedef struct {
    Paper paper;
    char *text;
    size_t size;
} Sheet;

static void sheet_open(Sheet *sheet, int width, bool colour) {
    sheet->text = NULL;
    sheet->paper = (Paper){
        .stream = open_memstream(&sheet->text, &sheet->size), .width = width, .colour = colour};
}

static void sheet_expect(Sheet *sheet, const char *expected) {
    fclose(sheet->paper.stream);
    CU_ASSERT_STRING_EQUAL(sheet->text, expected);
    if (strcmp(sheet->text, expected) != 0) printf("\ngot:\n%s", sheet->text);
    free(sheet->text);
}

static const TableColumn COLUMNS[] = {{"name", false, 0}, {"size", true, 0}, {"remark", false, 1}};

static void print_two_rows(const Paper *paper) {
    Arena arena = {0};
    Table table = table_new(&arena, COLUMNS, 3);
    table_add(&table, STYLE_PLAIN, (const char *const[]){"a", "1000", "x y"}, NULL);
    table_add(&table, STYLE_GOOD, (const char *const[]){"long", "7", NULL}, "below it");
    table_print(&table, paper);
    arena_free(&arena);
}

static void columns_line_up(void) {
    Sheet sheet;
    sheet_open(&sheet, 80, false);
    print_two_rows(&sheet.paper);
    sheet_expect(&sheet, "name  size  remark\n"
                         "a     1000  x y\n"
                         "long     7\n"
                         "      below it\n");
}

// 18 columns are needed, 12 without the remark, which stands below its row then.
static void the_least_important_column_goes_first_and_below(void) {
    Sheet sheet;
    sheet_open(&sheet, 17, false);
    print_two_rows(&sheet.paper);
    sheet_expect(&sheet, "name  size\n"
                         "a     1000\n"
                         "      remark x y\n"
                         "long     7\n"
                         "      below it\n");
}

// 1 + 2 + 25 + 2 + 6 columns are needed: the texts get 14 of 25, and go on below.
static void texts_go_on_in_further_lines(void) {
    static const TableColumn columns[] = {{"#", true, 0}, {"plan", false, 0}, {"step", true, 0}};
    Sheet sheet;
    sheet_open(&sheet, 25, false);
    Arena arena = {0};
    Table table = table_new(&arena, columns, 3);
    table_add(&table, STYLE_PLAIN,
              (const char *const[]){"1", "tp 4 cp 2 pp 4 vpp 5 dp 4", "12.3 s"}, NULL);
    table_print(&table, &sheet.paper);
    arena_free(&arena);
    sheet_expect(&sheet, "#  plan              step\n"
                         "1  tp 4 cp 2 pp 4  12.3 s\n"
                         "   vpp 5 dp 4\n");
}

static void colour_only_where_asked_for(void) {
    Sheet sheet;
    sheet_open(&sheet, 80, true);
    paper_heading(&sheet.paper, "T");
    sheet_expect(&sheet, "\033[1mT\033[0m\n");
    sheet_open(&sheet, 80, false);
    paper_heading(&sheet.paper, "T");
    sheet_expect(&sheet, "T\n");
}

static void sentences_break_at_spaces(void) {
    Sheet sheet;
    sheet_open(&sheet, 12, false);
    paper_wrap(&sheet.paper, 2, STYLE_PLAIN, "one two three 4.1 % incomprehensible");
    sheet_expect(&sheet, "  one two\n  three\n  4.1 %\n  incomprehensible\n");
}

static void bars_grow_with_the_share(void) {
    Sheet sheet;
    sheet_open(&sheet, 52, false); // 52 - 2 - 16 - 12 - 12 = 10 columns for a whole bar
    paper_bar(&sheet.paper, "half", "1 s", 0.5, STYLE_PLAIN);
    paper_bar(&sheet.paper, "none", "0 s", 0, STYLE_PLAIN);
    paper_bar(&sheet.paper, "twice", "4 s", 2, STYLE_PLAIN);
    sheet_expect(&sheet, "  half                      1 s   50.0 %  #####\n"
                         "  none                      0 s    0.0 %\n"
                         "  twice                     4 s  200.0 %  ##########\n");
}

// 16 and 1 and 12 columns of label and text together, whoever needs them.
static void a_long_label_takes_room_of_the_text(void) {
    Sheet sheet;
    sheet_open(&sheet, 52, false);
    paper_bar(&sheet.paper, "nic:0.0 out", "", 0.5, STYLE_PLAIN);
    paper_bar(&sheet.paper, "socket:0.0-socket:0.1", "", 0.5, STYLE_PLAIN);
    paper_bar(&sheet.paper, "socket:0.0-socket:0.1", "1 s", 0.5, STYLE_PLAIN);
    sheet_expect(&sheet, "  nic:0.0 out                     50.0 %  #####\n"
                         "  socket:0.0-socket:0.1           50.0 %  #####\n"
                         "  socket:0.0-socket:0.1     1 s   50.0 %  #####\n");
}

static void a_file_is_no_terminal(void) {
    FILE *file = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    Paper paper = paper_of(file);
    CU_ASSERT_EQUAL(paper.width, TABLE_PLAIN_WIDTH);
    CU_ASSERT_FALSE(paper.colour);
    fclose(file);
}

CU_TestInfo table_tests[] = {
    {"columns_line_up", columns_line_up},
    {"the_least_important_column_goes_first_and_below",
     the_least_important_column_goes_first_and_below},
    {"texts_go_on_in_further_lines", texts_go_on_in_further_lines},
    {"colour_only_where_asked_for", colour_only_where_asked_for},
    {"sentences_break_at_spaces", sentences_break_at_spaces},
    {"bars_grow_with_the_share", bars_grow_with_the_share},
    {"a_long_label_takes_room_of_the_text", a_long_label_takes_room_of_the_text},
    {"a_file_is_no_terminal", a_file_is_no_terminal},
    CU_TEST_INFO_NULL,
};
