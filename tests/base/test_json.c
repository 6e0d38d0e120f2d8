#include "base/json.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status parse(const char *text, Arena *arena, JsonNode *root) {
    return json_parse(text, strlen(text), "a.json", arena, root);
}

static void assert_parse_refused(const char *text, const char *sentence) {
    Arena arena = {0};
    JsonNode root;
    ASSERT_REFUSED(parse(text, &arena, &root), sentence);
    arena_free(&arena);
}

static void syntax_error_names_line_and_column(void) {
    assert_parse_refused("{\n  \"a\": 1,\n  \"b\": ]\n}",
                         "a.json: line 3, column 8: syntax error: expected a value, found \"]\"");
    assert_parse_refused("{\"a\": [{\"b\": 1, 2: 3}]}",
                         "a.json: line 1, column 17: syntax error: expected a key in double quotes "
                         "or \"}\", found \"2\"");
}

static void columns_count_characters(void) {
    // Three characters of two bytes, quotes and comma: the bracket is in column 8.
    assert_parse_refused("[\"\xC3\xA4\xC3\xB6\xC3\xBC\",}",
                         "a.json: line 1, column 8: syntax error: expected a value, found \"}\"");
}

static void empty_input_is_refused(void) {
    assert_parse_refused("", "a.json: empty; expected one JSON document");
    assert_parse_refused(" \n\t ", "a.json: empty; expected one JSON document");
}

static void text_after_the_document_is_refused(void) {
    assert_parse_refused("{} {}",
                         "a.json: line 1, column 4: syntax error: text after the document");
    assert_parse_refused("1\nx", "a.json: line 2, column 1: syntax error: text after the document");
}

static void repeated_key_is_refused(void) {
    assert_parse_refused("{\"a\": {\"b\": 1, \"c\": 2, \"b\": 3}}",
                         "a.json: a.b: the key stands here twice");
}

static void number_beyond_double_is_refused(void) {
    assert_parse_refused("{\"a\": [0, 1e999]}",
                         "a.json: a[1]: the number is beyond what a double holds");
}

static void bytes_that_are_no_text_are_refused(void) {
    assert_parse_refused("{\"a\": \"\xFF\"}", "a.json: line 1, column 8: not valid UTF-8");
    assert_parse_refused("\"\xC0\x80\"", "a.json: line 1, column 2: not valid UTF-8");
    assert_parse_refused("\"\xED\xA0\x80\"", "a.json: line 1, column 2: not valid UTF-8");
    Arena arena = {0};
    JsonNode root;
    ASSERT_REFUSED(json_parse("[1,\0002]", 6, "a.json", &arena, &root),
                   "a.json: line 1, column 4: syntax error: a NUL byte");
    arena_free(&arena);
}

static void deep_nesting_is_refused(void) {
    enum { DEPTH = 10000 };
    char *text = malloc(2 * DEPTH + 1);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    text[2 * DEPTH] = '\0';
    assert_parse_refused(text, "a.json: line 1, column 65: nested deeper than 64 levels");
    // 64 levels are legal; brackets inside a string are none.
    Arena arena = {0};
    JsonNode root;
    memset(text + 64, ']', 64);
    text[64] = '\0';
    CU_ASSERT_EQUAL(parse(text, &arena, &root).code, STATUS_INVALID);
    text[64] = ']';
    text[128] = '\0';
    CU_ASSERT_EQUAL(parse(text, &arena, &root).code, STATUS_OK);
    memset(text, '[', DEPTH);
    text[0] = text[DEPTH] = '"';
    text[DEPTH + 1] = '\0';
    CU_ASSERT_EQUAL(parse(text, &arena, &root).code, STATUS_OK);
    arena_free(&arena);
    free(text);
}

static void hundred_megabytes_are_refused(void) {
    const size_t size = (size_t)100 << 20;
    char path[] = "/tmp/meshwright-json-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(ftruncate(fd, (off_t)size), 0); // sparse: takes no room
    close(fd);
    Arena arena = {0};
    JsonNode root;
    char sentence[200];
    snprintf(sentence, sizeof sentence, "%s: larger than 16 MiB; expected one JSON document", path);
    ASSERT_REFUSED(json_load(path, &arena, &root), sentence);
    arena_free(&arena);
    unlink(path);
}

static void unreadable_file_is_refused(void) {
    Arena arena = {0};
    JsonNode root;
    ASSERT_REFUSED(json_load("no/such/file.json", &arena, &root),
                   "no/such/file.json: cannot be read: No such file or directory");
    ASSERT_REFUSED(json_load("/tmp", &arena, &root), "/tmp: cannot be read: Is a directory");
    arena_free(&arena);
}

static Status lines_of(const char *text, Arena *arena, JsonNode **roots, int *num_roots) {
    char path[] = "/tmp/meshwright-lines-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    Status status = json_load_lines(path, arena, roots, num_roots);
    unlink(path);
    char *place = strstr(status.text, path);
    if (status.code != STATUS_OK && place == status.text)
        memmove(place, place + strlen(path), strlen(place + strlen(path)) + 1);
    return status;
}

static void every_line_is_a_document(void) {
    Arena arena = {0};
    JsonNode *roots;
    int num_roots;
    CU_ASSERT_EQUAL(lines_of("{\"a\": 1}\n\n[2]\r\n3", &arena, &roots, &num_roots).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(num_roots, 3);
    int value;
    JsonNode a = json_get(&roots[0], "a");
    CU_ASSERT_EQUAL(json_read_int(&a, 0, 9, &value).code, STATUS_OK);
    CU_ASSERT_EQUAL(value, 1);
    CU_ASSERT_EQUAL(json_size(&roots[1]), 1);
    CU_ASSERT_STRING_EQUAL(strrchr(roots[1].file, ':'), ":3"); // the blank line counts
    CU_ASSERT_STRING_EQUAL(strrchr(roots[2].file, ':'), ":4");
    arena_free(&arena);
}

static void a_bad_line_is_refused_with_its_number(void) {
    Arena arena = {0};
    JsonNode *roots;
    int n;
    ASSERT_REFUSED(lines_of("{}\n{\"a\": ]}\n", &arena, &roots, &n),
                   ": line 2, column 7: syntax error: expected a value, found \"]\"");
    ASSERT_REFUSED(lines_of("{}\n\n{} {}\n", &arena, &roots, &n),
                   ": line 3, column 4: syntax error: text after the document");
    ASSERT_REFUSED(lines_of("{}\n{\"a\": 1, \"a\": 2}\n", &arena, &roots, &n),
                   ":2: a: the key stands here twice");
    ASSERT_REFUSED(lines_of("{\n\"a\": 1}\n", &arena, &roots, &n),
                   ": line 1, column 2: syntax error: the text ends here; expected a key in double "
                   "quotes or \"}\"");
    ASSERT_REFUSED(lines_of(" \n\n", &arena, &roots, &n),
                   ": empty; expected one JSON document per line");
    arena_free(&arena);
}

static void byte_order_mark_is_skipped(void) {
    Arena arena = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(parse("\xEF\xBB\xBF{}", &arena, &root).code, STATUS_OK);
    arena_free(&arena);
}

typedef struct {
    double rate;
    int count;
    int64_t tokens;
    bool flag;
    signed char tri;
    const char *text;
    int colour;
} Thing;

static const char *const COLOURS[] = {"red", "green", NULL};
static const JsonField THING_FIELDS[] = {
    {"rate", JSON_FIELD_DOUBLE, offsetof(Thing, rate), 0, 10, NULL, true},
    {"count", JSON_FIELD_INT, offsetof(Thing, count), 1, 5, NULL, false},
    {"tokens", JSON_FIELD_INT64, offsetof(Thing, tokens), 0, 1e15, NULL, false},
    {"flag", JSON_FIELD_BOOL, offsetof(Thing, flag), 0, 0, NULL, false},
    {"tri", JSON_FIELD_TRI, offsetof(Thing, tri), 0, 0, NULL, false},
    {"text", JSON_FIELD_STRING, offsetof(Thing, text), 0, 0, NULL, false},
    {"colour", JSON_FIELD_NAME, offsetof(Thing, colour), 0, 0, COLOURS, false},
};

static Status thing_read(const char *text, Arena *arena, Thing *thing) {
    JsonNode root;
    *thing = (Thing){.tri = JSON_UNSET, .count = -7};
    TRY(parse(text, arena, &root));
    return json_read_object(&root, THING_FIELDS, sizeof THING_FIELDS / sizeof *THING_FIELDS, arena,
                            thing);
}

static void object_is_read_by_its_table(void) {
    Arena arena = {0};
    Thing thing;
    Status status = thing_read("{\"rate\": 2.5, \"tokens\": 1e12, \"flag\": true, \"tri\": false, "
                               "\"text\": \"t\", \"colour\": \"green\", \"count\": null}",
                               &arena, &thing);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(thing.rate, 2.5);
    CU_ASSERT_EQUAL(thing.count, -7); // null means absent: left as it was
    CU_ASSERT_EQUAL(thing.tokens, 1000000000000);
    CU_ASSERT_TRUE(thing.flag);
    CU_ASSERT_EQUAL(thing.tri, 0);
    CU_ASSERT_STRING_EQUAL(thing.text, "t");
    CU_ASSERT_EQUAL(thing.colour, 1);
    arena_free(&arena);
}

static void object_refusals_name_the_field(void) {
    static const struct {
        const char *text, *sentence;
    } CASES[] = {
        {"[]", "a.json: expected an object, found a list"},
        {"{}", "a.json: rate: missing"},
        {"{\"rate\": null}", "a.json: rate: missing"},
        {"{\"rate\": \"one\"}", "a.json: rate: expected a number, found a string"},
        {"{\"rate\": 10.5}", "a.json: rate: 10.5 is out of range; expected 0 to 10"},
        {"{\"rate\": 1, \"count\": 0}", "a.json: count: 0 is out of range; expected 1 to 5"},
        {"{\"rate\": 1, \"count\": 1.5}", "a.json: count: 1.5 is not a whole number"},
        {"{\"rate\": 1, \"count\": true}",
         "a.json: count: expected a whole number, found true or false"},
        {"{\"rate\": 1, \"flag\": 1}", "a.json: flag: expected true or false, found a number"},
        {"{\"rate\": 1, \"text\": \"\"}", "a.json: text: expected a string that is not empty"},
        {"{\"rate\": 1, \"colour\": \"blue\"}",
         "a.json: colour: \"blue\" is unknown; expected one of red, green"},
        {"{\"rate\": 1, \"coutn\": 2}",
         "a.json: coutn: unknown key; the nearest known one is \"count\""},
        {"{\"rate\": 1, \"zzzzzz\": 2}", "a.json: zzzzzz: unknown key; known are rate, count, "
                                         "tokens, flag, tri, text, colour"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Thing thing;
        ASSERT_REFUSED(thing_read(CASES[i].text, &arena, &thing), CASES[i].sentence);
        arena_free(&arena);
    }
}

static void numbers_are_read_by_their_names(void) {
    Arena arena = {0};
    JsonNode root;
    double shares[2] = {-1, -1};
    CU_ASSERT_EQUAL(parse("{\"green\": 3}", &arena, &root).code, STATUS_OK);
    CU_ASSERT_EQUAL(json_read_numbers(&root, COLOURS, 2, 0, 5, false, shares).code, STATUS_OK);
    CU_ASSERT_EQUAL(shares[0], -1); // as it was
    CU_ASSERT_EQUAL(shares[1], 3);
    ASSERT_REFUSED(json_read_numbers(&root, COLOURS, 2, 0, 5, true, shares),
                   "a.json: red: missing");
    ASSERT_REFUSED(json_read_numbers(&root, COLOURS, 2, 0, 2, false, shares),
                   "a.json: green: 3 is out of range; expected 0 to 2");
    arena_free(&arena);
}

static void items_are_counted(void) {
    Arena arena = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(parse("[[], [1, 2]]", &arena, &root).code, STATUS_OK);
    JsonNode none = json_at(&root, 0), two = json_at(&root, 1), one = json_at(&two, 0);
    int num_items;
    CU_ASSERT_EQUAL(json_expect_items(&two, "points", 2, &num_items).code, STATUS_OK);
    CU_ASSERT_EQUAL(num_items, 2);
    ASSERT_REFUSED(json_expect_items(&two, "points", 1, &num_items),
                   "a.json: [1]: 2 points; expected 1 to 1");
    ASSERT_REFUSED(json_expect_items(&none, "points", 2, &num_items),
                   "a.json: [0]: 0 points; expected 1 to 2");
    ASSERT_REFUSED(json_expect_items(&one, "points", 2, &num_items),
                   "a.json: [1][0]: expected a list, found a number");
    arena_free(&arena);
}

static void path_names_keys_and_indices(void) {
    Arena arena = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(parse("{\"a\": {\"b\": [0, {\"c\": 1}]}}", &arena, &root).code, STATUS_OK);
    JsonNode a = json_get(&root, "a"), b = json_get(&a, "b"), second = json_at(&b, 1);
    JsonNode c = json_get(&second, "c");
    char path[100];
    json_path(&c, path, sizeof path);
    CU_ASSERT_STRING_EQUAL(path, "a.b[1].c");
    json_path(&c, path, 4);
    CU_ASSERT_STRING_EQUAL(path, "a.b");
    CU_ASSERT_STRING_EQUAL(json_error(&root, "wrong").text, "a.json: wrong");
    arena_free(&arena);
}

static void nearest_name_forgives_slips(void) {
    static const char *const NAMES[] = {"micro_batch", "global_batch", "tp", "schedule", NULL};
    CU_ASSERT_STRING_EQUAL(name_nearest("mircobatch", NAMES), "micro_batch");
    CU_ASSERT_STRING_EQUAL(name_nearest("schedul", NAMES), "schedule");
    CU_ASSERT_STRING_EQUAL(name_nearest("pt", NAMES), "tp"); // a swap is one step
    CU_ASSERT_PTR_NULL(name_nearest("wombat", NAMES));
    // Half of the letters are not enough.
    static const char *const TYPES[] = {"gemma2", NULL};
    CU_ASSERT_PTR_NULL(name_nearest("mamba2", TYPES));
    CU_ASSERT_STRING_EQUAL(name_nearest("gema2", TYPES), "gemma2");
}

// cJSON prints 15 digits where they are within DBL_EPSILON of the value, else 17.
static void written_numbers_read_back(void) {
    static const double VALUES[] = {0.1, 1e-300, 1.0 / 3, 9007199254740993.0, 5e-324, -2.5};
    cJSON *tree = cJSON_CreateObject();
    for (int i = 0; i < 6; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        json_add_number(tree, key, VALUES[i]);
    }
    json_add_number(tree, "n", NAN);
    char path[] = "/tmp/meshwright-json-XXXXXX";
    close(mkstemp(path));
    CU_ASSERT_EQUAL(json_save(tree, path).code, STATUS_OK);
    Arena arena = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(json_load(path, &arena, &root).code, STATUS_OK);
    for (int i = 0; i < 6; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        JsonNode node = json_get(&root, key);
        CU_ASSERT(fabs(node.item->valuedouble - VALUES[i]) <= DBL_EPSILON * fabs(VALUES[i]));
    }
    JsonNode null = json_get(&root, "n");
    CU_ASSERT_FALSE(json_is_present(&null));
    arena_free(&arena);
    cJSON_Delete(tree);
    unlink(path);
}

CU_TestInfo json_tests[] = {
    {"syntax_error_names_line_and_column", syntax_error_names_line_and_column},
    {"columns_count_characters", columns_count_characters},
    {"empty_input_is_refused", empty_input_is_refused},
    {"text_after_the_document_is_refused", text_after_the_document_is_refused},
    {"repeated_key_is_refused", repeated_key_is_refused},
    {"number_beyond_double_is_refused", number_beyond_double_is_refused},
    {"bytes_that_are_no_text_are_refused", bytes_that_are_no_text_are_refused},
    {"deep_nesting_is_refused", deep_nesting_is_refused},
    {"hundred_megabytes_are_refused", hundred_megabytes_are_refused},
    {"unreadable_file_is_refused", unreadable_file_is_refused},
    {"every_line_is_a_document", every_line_is_a_document},
    {"a_bad_line_is_refused_with_its_number", a_bad_line_is_refused_with_its_number},
    {"byte_order_mark_is_skipped", byte_order_mark_is_skipped},
    {"object_is_read_by_its_table", object_is_read_by_its_table},
    {"object_refusals_name_the_field", object_refusals_name_the_field},
    {"numbers_are_read_by_their_names", numbers_are_read_by_their_names},
    {"items_are_counted", items_are_counted},
    {"path_names_keys_and_indices", path_names_keys_and_indices},
    {"nearest_name_forgives_slips", nearest_name_forgives_slips},
    {"written_numbers_read_back", written_numbers_read_back},
    CU_TEST_INFO_NULL,
};
