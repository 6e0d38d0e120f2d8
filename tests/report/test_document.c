#include "plan/plan.h"
#include "report/answer_sections.h"
#include "report/document.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *written(const Document *document, DocumentFormat format, Arena *arena) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    CU_ASSERT_EQUAL(document_write(document, format, stream).code, STATUS_OK);
    fclose(stream);
    const char *copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

static Document small_document(const char *name) {
    static const DocumentColumn columns[] = {{"name", "name"}, {"time_s", "time"}};
    const SectionSpec spec = {.id = "times", .title = "Times", SECTION_COLUMNS(columns)};
    Document document = document_new("A title");
    document_part(&document, "A part", NULL);
    cJSON *row = section_row(document_section(&document, &spec));
    row_text(row, name);
    row_number(row, 1.5);
    return document;
}

// 68322938414 bytes are 68.3 GB; the unit is the end of the column's key.
static void cells_read_by_their_column(void) {
    static const struct {
        const char *key;
        double value;
        const char *text;
    } cases[] = {
        {"memory_device_bytes", 68322938414, "68.3 GB"},
        {"step_time_s", 69.1566, "69.2 s"},
        {"mfu_frac", 0.43026, "43.0 %"},
        {"tokens_per_s", 121298.7, "121 k"},
        {"bandwidth_bytes_per_s", 4.5e11, "450 GB/s"},
        {"rank", 17, "17"},
        {"time_s", 0, "0"},
        {"time_s", 7300, "2.03 h"},
        {"difference_s", -0.0123, "-12.3 ms"},
        {"difference_bytes", 2.5e9, "+2.50 GB"},
        {"change_frac", 0.0151, "+1.5 %"},
        {"a_figure", 0.4123, "0.412"},
        {"a_figure", 121298.7, "121 k"},
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *cell = cJSON_CreateNumber(cases[i].value);
        CU_ASSERT_STRING_EQUAL(document_cell_text(cases[i].key, cell, &arena), cases[i].text);
        cJSON_Delete(cell);
    }
    arena_free(&arena);
}

static const char *printed(const Document *document, Arena *arena) {
    char *text = NULL;
    size_t size = 0;
    const Paper paper = {.stream = open_memstream(&text, &size), .width = 80};
    document_print(document, &paper);
    fclose(paper.stream);
    const char *copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

// Columns of the report alone and of the text alone; a sentence below a row, another below the
// table, in which the rows of the next section go on; what is said first comes last. In the text
// nothing is "0 ns", and what takes long stays in seconds.
static void a_text_is_made_of_the_sections(void) {
    static const DocumentColumn columns[] = {{"name", "name"},
                                             {"time_s", "time"},
                                             {"share_frac", "share"},
                                             {"bar", "bar"},
                                             {"note", "note"}};
    static const double times_s[] = {0, 7300};
    Arena arena = {0};
    Document document = document_new("A title");
    document_say(&document, "In short.");
    document_part(&document, "A part", "Of the report.");
    for (int i = 0; i < 3; i++) {
        const SectionSpec spec = {.id = "times",
                                  .title = "Times",
                                  .in_text = i < 2 ? "lr-L1n" : NULL,
                                  .goes_on = i == 1,
                                  SECTION_COLUMNS(columns)};
        cJSON *section = document_section(&document, &spec);
        if (i == 0) section_say(section, "Below.");
        cJSON *row = section_row(section);
        row_text(row, i == 0 ? "first" : "second");
        row_number(row, times_s[i % 2]);
        row_number(row, 0.5);
        row_text(row, "##");
        row_text(row, i == 0 ? "why" : "");
    }
    CU_ASSERT_STRING_EQUAL(printed(&document, &arena), "\n"
                                                       "name      time  bar\n"
                                                       "first     0 ns  ##\n"
                                                       "        why\n"
                                                       "second  7300 s  ##\n"
                                                       "\n"
                                                       "Below.\n"
                                                       "\n"
                                                       "In short.\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(written(&document, FORMAT_MD, &arena),
                                  "Below.\n\n"
                                  "| name | time | share | note |\n| --- | --- | --- | --- |\n"
                                  "| first | 0 | 50.0 % | why |\n\n"));
    CU_ASSERT_PTR_NULL(strstr(written(&document, FORMAT_JSON, &arena), "in_text"));
    cJSON_Delete(document.root);
    arena_free(&arena);
}

static void a_list_is_a_line_a_row(void) {
    static const DocumentColumn columns[] = {{"what", "what"}, {"text", "figures"}};
    const SectionSpec spec = {
        .id = "basis", .title = "Basis", .in_text = "*", SECTION_COLUMNS(columns)};
    Arena arena = {0};
    Document document = document_new("A title");
    document_part(&document, "A part", NULL);
    cJSON *row = section_row(document_section(&document, &spec));
    row_text(row, "restart");
    row_text(row, "10 min");
    CU_ASSERT_STRING_EQUAL(printed(&document, &arena), "\nrestart         10 min\n");
    cJSON_Delete(document.root);
    arena_free(&arena);
}

static void a_second_section_gets_a_number(void) {
    Document document = small_document("a");
    static const DocumentColumn columns[] = {{"name", "name"}};
    const SectionSpec spec = {.id = "times", .title = "Times", SECTION_COLUMNS(columns)};
    const cJSON *second = document_section(&document, &spec);
    const cJSON *third = document_section(&document, &spec);
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(second, "id")),
                           "times-2");
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(third, "id")),
                           "times-3");
    cJSON_Delete(document.root);
}

static void texts_are_no_markup(void) {
    Arena arena = {0};
    Document document = small_document("<b>|\n`x`");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(written(&document, FORMAT_MD, &arena), "| &lt;b&gt;\\|\\\\n\\`x\\` | 1.50 s |\n"));
    CU_ASSERT_STRING_EQUAL(written(&document, FORMAT_CSV, &arena),
                           "section,row,column,value\ntimes,1,name,<b>|\\n`x`\n"
                           "times,1,time_s,1.5\n");
    cJSON_Delete(document.root);
    document = small_document("a,\"b\"");
    CU_ASSERT_STRING_EQUAL(written(&document, FORMAT_CSV, &arena),
                           "section,row,column,value\ntimes,1,name,\"a,\"\"b\"\"\"\n"
                           "times,1,time_s,1.5\n");
    cJSON_Delete(document.root);
    arena_free(&arena);
}

static void texts_are_no_formulas(void) {
    Arena arena = {0};
    Document document = small_document("=1+\"2\"");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(written(&document, FORMAT_CSV, &arena), "times,1,name,\"'=1+\"\"2\"\"\"\n"));
    cJSON_Delete(document.root);
    arena_free(&arena);
}

static void what_is_not_finite_is_null(void) {
    cJSON *row = cJSON_CreateArray();
    row_number(row, NAN);
    row_number(row, INFINITY);
    row_number(row, 2);
    CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetArrayItem(row, 0)));
    CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetArrayItem(row, 1)));
    CU_ASSERT_TRUE(cJSON_IsNumber(cJSON_GetArrayItem(row, 2)));
    cJSON_Delete(row);
}

// A plan read from an answer has the name that the plan itself has.
static void plans_have_one_name(void) {
    static const char *const parallels[] = {
        "{\"tp\": 2, \"pp\": 2, \"cp\": 2, \"cp_method\": \"all-gather\", \"micro_batch\": 2}",
        "{\"tp\": 4, \"pp\": 2, \"vpp\": 2, \"recompute\": \"selective\", \"cp\": 1}",
        "{\"tp\": 1, \"pp\": 1, \"zero_stage\": 3, \"recompute\": \"full\"}",
        "{\"pp\": 4, \"recompute\": \"full\", \"recompute_layers\": 3, \"schedule\": \"zb-h1\"}",
    };
    for (size_t i = 0; i < sizeof parallels / sizeof *parallels; i++) {
        Arena arena = {0};
        Scenario scenario;
        Plan plan;
        JsonNode root;
        const char *text = arena_printf(
            &arena,
            "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:1\", "
            "\"training\": {\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"bf16\"}, "
            "\"parallel\": %s}",
            parallels[i]);
        Status status = json_parse(text, strlen(text), "job.json", &arena, &root);
        if (status.code == STATUS_OK) status = scenario_read(&root, &arena, &scenario);
        if (status.code == STATUS_OK) status = plan_resolve(&scenario, &arena, &plan);
        CU_ASSERT_STRING_EQUAL_FATAL(status.code == STATUS_OK ? "" : status.text, "");
        cJSON *parallel = plan_to_json(&plan);
        CU_ASSERT_STRING_EQUAL(parallel_describe(parallel, &arena), plan_describe(&plan, &arena));
        cJSON_Delete(parallel);
        arena_free(&arena);
    }
}

CU_TestInfo document_tests[] = {
    {"cells_read_by_their_column", cells_read_by_their_column},
    {"a_text_is_made_of_the_sections", a_text_is_made_of_the_sections},
    {"a_list_is_a_line_a_row", a_list_is_a_line_a_row},
    {"a_second_section_gets_a_number", a_second_section_gets_a_number},
    {"texts_are_no_markup", texts_are_no_markup},
    {"texts_are_no_formulas", texts_are_no_formulas},
    {"what_is_not_finite_is_null", what_is_not_finite_is_null},
    {"plans_have_one_name", plans_have_one_name},
    CU_TEST_INFO_NULL,
};
