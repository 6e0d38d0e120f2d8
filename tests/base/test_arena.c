#include "base/arena.h"

#include <CUnit/CUnit.h>
#include <stdint.h>
#include <string.h>

static void memory_is_zeroed_and_aligned(void) {
    Arena arena = {0};
    for (size_t size = 0; size < 70; size++) {
        unsigned char *memory = arena_alloc(&arena, size);
        CU_ASSERT_EQUAL((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++) CU_ASSERT_EQUAL(memory[i], 0);
        memset(memory, 0xff, size);
    }
    arena_free(&arena);
}

static void reused_memory_is_zeroed(void) {
    Arena arena = {0};
    memset(arena_alloc(&arena, 1000), 0xff, 1000);
    arena_reset(&arena);
    const unsigned char *memory = arena_alloc(&arena, 1000);
    for (int i = 0; i < 1000; i++) CU_ASSERT_EQUAL(memory[i], 0);
    arena_free(&arena);
}

static void allocations_larger_than_a_block_fit(void) {
    Arena arena = {0};
    char *small = arena_strdup(&arena, "small");
    char *large = arena_alloc(&arena, (size_t)1 << 20);
    large[(1 << 20) - 1] = 'x';
    CU_ASSERT_STRING_EQUAL(small, "small");
    CU_ASSERT_STRING_EQUAL(arena_printf(&arena, "%d-%s", 7, small), "7-small");
    arena_free(&arena);
}

static void a_copy_holds_what_is_copied(void) {
    Arena arena = {0};
    const int numbers[] = {3, 1, 4};
    int *copy = arena_copy(&arena, numbers, sizeof numbers);
    CU_ASSERT_PTR_NOT_EQUAL(copy, numbers);
    CU_ASSERT_EQUAL(memcmp(copy, numbers, sizeof numbers), 0);
    const char *first = arena_copy(&arena, NULL, 0), *second = arena_copy(&arena, NULL, 0);
    CU_ASSERT_PTR_NOT_NULL(first);
    CU_ASSERT_PTR_NOT_EQUAL(first, second);
    arena_free(&arena);
}

static void a_growing_array_keeps_what_it_holds(void) {
    Arena arena = {0};
    int *numbers = NULL, *others = NULL;
    for (int size = 1; size <= 1 << 18; size *= 2) {
        numbers = arena_grow(&arena, numbers, (size_t)size * sizeof *numbers);
        others = arena_grow(&arena, others, (size_t)size * sizeof *others);
        for (int i = size / 2; i < size; i++) {
            numbers[i] = i;
            others[i] = -i;
        }
        memset(arena_alloc(&arena, (size_t)size), 0xff, (size_t)size);
    }
    int num_wrong = 0;
    for (int i = 0; i < 1 << 18; i++) num_wrong += numbers[i] != i || others[i] != -i;
    CU_ASSERT_EQUAL(num_wrong, 0);
    CU_ASSERT_PTR_NULL(arena_grow(&arena, numbers, 0));
    CU_ASSERT_PTR_NULL(arena_grow(&arena, NULL, 0));
    CU_ASSERT_EQUAL(others[(1 << 18) - 1], 1 - (1 << 18));
    arena_reset(&arena);
    CU_ASSERT_PTR_NOT_NULL(arena_grow(&arena, NULL, 1));
    arena_free(&arena);
}

static void count(void *thing) {
    ++*(int *)thing;
}

static void owned_things_are_freed_once(void) {
    int num_freed = 0;
    Arena arena = {0};
    arena_own(&arena, count, &num_freed);
    arena_reset(&arena);
    CU_ASSERT_EQUAL(num_freed, 1);
    arena_own(&arena, count, &num_freed);
    arena_own(&arena, count, &num_freed);
    arena_free(&arena);
    CU_ASSERT_EQUAL(num_freed, 3);
    arena_free(&arena);
    CU_ASSERT_EQUAL(num_freed, 3);
}

static void used_bytes_are_counted(void) {
    Arena arena = {0};
    CU_ASSERT_EQUAL(arena_used(&arena), 0);
    for (int i = 0; i < 1000; i++) arena_alloc(&arena, 1000);
    CU_ASSERT(arena_used(&arena) >= 1000000 && arena_used(&arena) < 1020000);
    arena_free(&arena);
    CU_ASSERT_EQUAL(arena_used(&arena), 0);
}

CU_TestInfo arena_tests[] = {
    {"memory_is_zeroed_and_aligned", memory_is_zeroed_and_aligned},
    {"reused_memory_is_zeroed", reused_memory_is_zeroed},
    {"allocations_larger_than_a_block_fit", allocations_larger_than_a_block_fit},
    {"a_copy_holds_what_is_copied", a_copy_holds_what_is_copied},
    {"a_growing_array_keeps_what_it_holds", a_growing_array_keeps_what_it_holds},
    {"owned_things_are_freed_once", owned_things_are_freed_once},
    {"used_bytes_are_counted", used_bytes_are_counted},
    CU_TEST_INFO_NULL,
};
