// How deep a TOML document may be, in every way that one can.
#include "import/toml.h"

#include "base/arena.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

// `part` so many times, with `between` between each two.
static const char *repeated(Arena *arena, const char *part, const char *between, int times) {
    char *text = arena_alloc(arena, (strlen(part) + strlen(between)) * (size_t)times + 1);
    char *end = text;
    for (int i = 0; i < times; i++) end = stpcpy(stpcpy(end, i > 0 ? between : ""), part);
    return text;
}

// The line at which a text is too deep; 0: it is read.
static int deep_at(const char *text) {
    char message[200] = "";
    int line = -1;
    cJSON *tree = toml_parse_text(text, message, sizeof message);
    if (tree) {
        cJSON_Delete(tree);
        return 0;
    }
    if (strstr(message, "nested deeper than 256")) sscanf(message, "line %d", &line);
    return line;
}

static void documents_are_at_most_256_deep(void) {
    static const struct {
        const char *before, *part, *between, *value, *part_end, *after;
        int most;
    } WAYS[] = {
        {"\n", "a", ".", "", "", " = 1\n", 256},
        {"\n", "\"a\"", " . ", "", "", " = 1\n", 256},
        {"\n", "'a'", ".", "", "", "= 1\n", 256},
        {"\n[", "a", ".", "", "", "]\nx = 1\n", 255},
        {"\n[[", "a", ".", "", "", "]]\nx = 1\n", 255},
        {"\nx = ", "[", "", "1", "]", "\n", 254},
        {"\nx = ", "{ a = ", "", "1", " }", "\n", 127},
        {"\nx = ", "{ a.b.c = ", "", "1", " }", "\n", 63},
        {"[a.b]\nc.d = ", "[", "", "1", "]", "\n", 251},
    };
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        for (int times = WAYS[i].most - 1; times <= 100000; times += times > 300 ? 99743 : 1) {
            Arena arena = {0};
            const char *text =
                arena_printf(&arena, "%s%s%s%s%s", WAYS[i].before,
                             repeated(&arena, WAYS[i].part, WAYS[i].between, times), WAYS[i].value,
                             repeated(&arena, WAYS[i].part_end, "", times), WAYS[i].after);
            const int line = deep_at(text);
            CU_ASSERT_EQUAL(line > 0, times > WAYS[i].most);
            CU_ASSERT(line >= 0);
            arena_free(&arena);
        }
}

static void a_line_is_named(void) {
    Arena arena = {0};
    const char *deep = repeated(&arena, "a", ".", 300);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = 1\n\n%s = 1\n", deep)), 3);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = \"\"\"\n\n\"\"\"\n[%s]\n", deep)), 4);
    arena_free(&arena);
}

// What looks deep and is none.
static void texts_and_comments_are_not_deep(void) {
    Arena arena = {0};
    const char *deep = repeated(&arena, "a", ".", 300), *open = repeated(&arena, "[", "", 300);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "# %s\n# %s\nx = 1\n", deep, open)), 0);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = \"%s\\\"%s\"\n", deep, open)), 0);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = '%s\\'\ny = '%s'\n", deep, open)), 0);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = \"\"\"\n%s\n\"%s\"\"\"\n", deep, open)), 0);
    CU_ASSERT_EQUAL(deep_at(arena_printf(&arena, "x = '''\n%s\n%s'''\n", deep, open)), 0);
    CU_ASSERT_EQUAL(
        deep_at(arena_printf(&arena, "x = [%s]\n", repeated(&arena, "[1.5]", ",\n", 300))), 0);
    CU_ASSERT_EQUAL(deep_at(repeated(&arena, "[a.b]\nc = 1\n[d]\nb.c = 2\n", "#\n", 1)), 0);
    arena_free(&arena);
}

// Characters at both ends of what toml++ cannot tell from spaces, and some that are.
static const char *const LETTERS[] = {
    "\u00a1", "\u0430", "\u0499", "\u049a", "\u2c5e",     "\u3056",
    "\u3058", "\ufb26", "\ufefe", "\u4e00", "\U0001f600",
};
static const char *const SPACES[] = {"\u00a0", "\u1680", "\u2003", "\u3000"};

// A text with the character in place of %s is refused at this line.
static void refused_at(const char *format, const char *letter, int expected) {
    Arena arena = {0};
    char message[200] = "";
    int line = 0;
    cJSON *tree = toml_parse_text(arena_printf(&arena, format, letter), message, sizeof message);
    CU_ASSERT_PTR_NULL(tree);
    CU_ASSERT_EQUAL(sscanf(message, "line %d", &line), 1);
    CU_ASSERT_EQUAL(line, expected);
    cJSON_Delete(tree);
    arena_free(&arena);
}

static void bare_letters_of_no_key_are_refused(void) {
    static const char *const FORMATS[] = {
        "x = 1\n%s = 1\n",
        "x = 1\n%s",
        "x = 1\n  %s=1\n",
        "x = 1\ny %s= 1\n",
        "x = 1\ny.%s = 1\n",
        "x = 1\ny = 1 %s\n",
        "x = 1\ny = [%s]\n",
        "x = 1\n[y]%s\n",
        "x = 1\ny = {%s}\n",
        "x = 1\ny = 1%s\n",
        "x = 1\n[%s]\n",
        "x = 1\n[y.%s]\n",
        "x = 1\ny = \"\"\"z\"\"\"\" %s\n",
    };
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        for (size_t j = 0; j < sizeof LETTERS / sizeof *LETTERS; j++)
            refused_at(FORMATS[i], LETTERS[j], 2);
        for (size_t j = 0; j < sizeof SPACES / sizeof *SPACES; j++)
            refused_at(FORMATS[i], SPACES[j], 2);
    }
}

// Between quotes they are texts, also where spaces before them are skipped.
static void quoted_letters_are_read(void) {
    static const char *const FORMATS[] = {
        "x = \"%s\"\n",
        "x = '%s'\n",
        "x = \"\"\"%s\"\"\"\n",
        "x = \"\"\"\\\n%s\"\"\"\n",
        "x = \"\"\"\\  \n \n  %s\"\"\"\n",
        "# %s\nx = \"%s\" # %s\n",
    };
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        for (size_t j = 0; j < sizeof LETTERS / sizeof *LETTERS; j++) {
            Arena arena = {0};
            char message[200] = "";
            const char *letter = LETTERS[j];
            const char *text = arena_printf(&arena, FORMATS[i], letter, letter, letter);
            cJSON *tree = toml_parse_text(text, message, sizeof message);
            CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
            CU_ASSERT_STRING_EQUAL(
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "x")), letter);
            cJSON_Delete(tree);
            arena_free(&arena);
        }
}

CU_TestInfo toml_tests[] = {
    {"documents_are_at_most_256_deep", documents_are_at_most_256_deep},
    {"a_line_is_named", a_line_is_named},
    {"texts_and_comments_are_not_deep", texts_and_comments_are_not_deep},
    {"bare_letters_of_no_key_are_refused", bare_letters_of_no_key_are_refused},
    {"quoted_letters_are_read", quoted_letters_are_read},
    CU_TEST_INFO_NULL,
};
