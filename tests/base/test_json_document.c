// A document that is written piece by piece is the one that is written whole.
#include "base/file_hash.h"
#include "base/json_document.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *element_text(const void *context, int64_t index, Arena *arena) {
    char *text = cJSON_PrintUnformatted(cJSON_GetArrayItem(context, (int)index));
    const char *copy = arena_strdup(arena, text);
    cJSON_free(text);
    return copy;
}

static void stream_text(FILE *stream, Arena *arena, char **out) {
    const long size = ftell(stream);
    rewind(stream);
    *out = arena_alloc(arena, (size_t)size + 1);
    CU_ASSERT_EQUAL(fread(*out, 1, (size_t)size, stream), (size_t)size);
    fclose(stream);
}

// Written with its member "list" taken out, where it has one, and put in again one by one.
static void written_alike(const char *text) {
    Arena arena = {0};
    cJSON *whole = cJSON_Parse(text), *frame = cJSON_Duplicate(whole, true);
    CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(whole, "list");
    JsonDocument document = {.tree = frame};
    if (list) {
        cJSON_ReplaceItemInObjectCaseSensitive(frame, "list", cJSON_CreateArray());
        document = (JsonDocument){frame, "list", cJSON_GetArraySize(list), element_text, list};
    }
    FILE *streams[2] = {tmpfile(), tmpfile()};
    char *texts[2];
    CU_ASSERT_EQUAL(json_write(whole, streams[0]).code, STATUS_OK);
    CU_ASSERT_EQUAL(json_document_write(&document, streams[1]).code, STATUS_OK);
    for (int i = 0; i < 2; i++) stream_text(streams[i], &arena, &texts[i]);
    CU_ASSERT_STRING_EQUAL(texts[0], texts[1]);
    cJSON *member;
    cJSON_ArrayForEach(member, frame) {
        char *plain = cJSON_PrintUnformatted(cJSON_GetObjectItem(whole, member->string));
        const char *hash;
        CU_ASSERT_EQUAL(json_document_hash(&document, member, &arena, &hash).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(hash, text_hash(plain, &arena));
        cJSON_free(plain);
    }
    cJSON_Delete(frame);
    cJSON_Delete(whole);
    arena_free(&arena);
}

static void pieces_are_the_whole(void) {
    written_alike("{}");
    written_alike("{\"a\": {}, \"b\": [], \"c\": [{}], \"d\": [[], [{}, {}]], \"e\": {\"f\": {}}}");
    written_alike(
        "{\"a\": -1.5e300, \"b\": [true, false, null, 0.1], \"c\": {\"d\": [1, {\"e\": 2}]}}");
    written_alike("{\"head\": 1, \"list\": [], \"tail\": {\"x\": 1}}");
    written_alike("{\"head\": 1, \"list\": [{\"a\": 1}], \"tail\": 2}");
    written_alike("{\"list\": [{\"a\": [1, 2]}, 3, \"four\", {}, [], {\"b\": {\"c\": []}}]}");
}

// Marks of JSON, escapes, what a terminal obeys and what is no UTF-8, in keys and in texts.
static void texts_keep_their_escapes(void) {
    written_alike(
        "{\"{a,b:[\": \"},]:\", \"list\": [\"a\\\\\", \"\\\"{\", {\"\\\"\": \"\\\\\\\"\"}]}");
    written_alike("{\"list\": [\"\\u001b[2J\\n\\t\\u007f\", \"\xc2\x9b\xe2\x80\xae\xff\xc3\"], "
                  "\"\xc3\xa9\xc2\x9b\": \"\xf0\x9f\x98\x80\"}");
}

static const char *no_text(const void *context, int64_t index, Arena *arena) {
    (void)context, (void)arena;
    return index < 2 ? "1" : NULL;
}

// Nothing stands under its name.
static void a_failure_leaves_no_file(void) {
    cJSON *frame = cJSON_Parse("{\"list\": []}");
    const JsonDocument document = {frame, "list", 3, no_text, NULL};
    char path[] = "/tmp/meshwright-document-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    CU_ASSERT_EQUAL(json_document_save(&document, path).code, STATUS_MACHINE);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    cJSON_Delete(frame);
}

CU_TestInfo json_document_tests[] = {
    {"pieces_are_the_whole", pieces_are_the_whole},
    {"texts_keep_their_escapes", texts_keep_their_escapes},
    {"a_failure_leaves_no_file", a_failure_leaves_no_file},
    CU_TEST_INFO_NULL,
};
