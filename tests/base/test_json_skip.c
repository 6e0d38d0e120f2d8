#include "base/json.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const SKIPPED[] = {"big", "list", NULL};

// Writes the text to a file, loads it without "big" and "list", removes it.
static Status load(const char *text, Arena *arena, JsonNode *root) {
    char path[] = "/tmp/json_skip_XXXXXX";
    int descriptor = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    Status status = json_load_without(path, SKIPPED, arena, root);
    unlink(path);
    return status;
}

static void named_members_read_as_absent(void) {
    Arena arena = {0};
    JsonNode root;
    Status status = load("{\"big\": {\"a\": [1, \"}\\\"\"], \"kept\": 1}, \"kept\": [7, {\"big\": "
                         "[5]}],\n \"list\":[1,2,3], \"text\": \"big\", \"last\": 9}",
                         &arena, &root);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    JsonNode big = json_get(&root, "big"), list = json_get(&root, "list");
    JsonNode kept = json_get(&root, "kept"), last = json_get(&root, "last");
    JsonNode inner = json_at(&kept, 1), deep = json_get(&inner, "big");
    int value;
    CU_ASSERT_FALSE(json_is_present(&big));
    CU_ASSERT_FALSE(json_is_present(&list));
    CU_ASSERT_EQUAL(json_size(&deep), 1); // only members of the root are skipped
    CU_ASSERT_EQUAL(json_read_int(&last, 0, 10, &value).code, STATUS_OK);
    CU_ASSERT_EQUAL(value, 9);
    arena_free(&arena);
}

static void short_values_are_left_alone(void) {
    Arena arena = {0};
    JsonNode root;
    CU_ASSERT_EQUAL(load("{\"big\": {}, \"list\": [1]}", &arena, &root).code, STATUS_OK);
    JsonNode list = json_get(&root, "list");
    CU_ASSERT_EQUAL(json_size(&list), 1);
    arena_free(&arena);
}

// The syntax error stands behind a skipped member, in line 3.
static void messages_name_the_place_in_the_file(void) {
    Arena arena = {0};
    JsonNode root;
    Status status = load("{\"big\": {\"a\":\n 1}, \"b\": 2,\n \"c\": }", &arena, &root);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "line 3, column 7"));
    static const char *const BROKEN[] = {
        "", "{", "{\"big\": {", "{\"big\": [1, 2", "{\"big\": \"", "{\"big\" {\"a\": 1}}", "[1, 2"};
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++)
        CU_ASSERT_EQUAL(load(BROKEN[i], &arena, &root).code, STATUS_INVALID);
    arena_free(&arena);
}

CU_TestInfo json_skip_tests[] = {
    {"named_members_read_as_absent", named_members_read_as_absent},
    {"short_values_are_left_alone", short_values_are_left_alone},
    {"messages_name_the_place_in_the_file", messages_name_the_place_in_the_file},
    CU_TEST_INFO_NULL,
};
