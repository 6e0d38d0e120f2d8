#include "base/spill.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { NUM_TEXTS = 600, TEXT_BYTES = 100000 }; // 60 MB: three quarters of them in the file

static void text_make(int number, char *text, size_t size) {
    memset(text, 'a' + number % 26, size);
    snprintf(text, 16, "%d", number);
    text[strlen(text)] = ' ';
    text[size] = '\0';
}

// Sizes differ, and one is larger than a part of the file.
static size_t text_size(int number) {
    return number == NUM_TEXTS / 2 ? (size_t)40 << 20 : TEXT_BYTES + (size_t)(number * 7);
}

static void texts_are_read_as_they_were_added(void) {
    Arena arena = {0};
    Spill *spill = spill_new(&arena);
    static const char *kept[NUM_TEXTS];
    char *text = malloc(((size_t)40 << 20) + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (int i = 0; i < NUM_TEXTS; i++) {
        text_make(i, text, text_size(i));
        CU_ASSERT_EQUAL(spill_add(spill, text, &kept[i]).code, STATUS_OK);
    }
    CU_ASSERT(arena_used(&arena) < SPILL_MEMORY_BYTES + ((size_t)1 << 20));
    for (int round = 0; round < 2; round++, spill_forget(spill)) {
        for (int i = 0; i < NUM_TEXTS; i++) {
            text_make(i, text, text_size(i));
            CU_ASSERT_STRING_EQUAL(kept[i], text);
        }
    }
    free(text);
    arena_free(&arena);
}

static void no_room_is_said(void) {
    Arena arena = {0};
    Spill *spill = spill_new(&arena);
    const char *kept;
    struct rlimit before, none = {SPILL_MEMORY_BYTES / 4, SPILL_MEMORY_BYTES / 4};
    char *text = malloc(SPILL_MEMORY_BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    text_make(1, text, SPILL_MEMORY_BYTES - 1);
    CU_ASSERT_EQUAL(spill_add(spill, text, &kept).code, STATUS_OK); // in memory
    getrlimit(RLIMIT_FSIZE, &before);
    none.rlim_max = before.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    const Status status = spill_add(spill, text, &kept);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "a temporary file cannot be written"));
    free(text);
    arena_free(&arena);
}

CU_TestInfo spill_tests[] = {
    {"texts_are_read_as_they_were_added", texts_are_read_as_they_were_added},
    {"no_room_is_said", no_room_is_said},
    CU_TEST_INFO_NULL,
};
