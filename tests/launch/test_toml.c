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

CU_TestInfo toml_tests[] = {
    {"documents_are_at_most_256_deep", documents_are_at_most_256_deep},
    {"a_line_is_named", a_line_is_named},
    {"texts_and_comments_are_not_deep", texts_and_comments_are_not_deep},
    CU_TEST_INFO_NULL,
};
