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

CU_TestInfo arena_tests[] = {
    {"memory_is_zeroed_and_aligned", memory_is_zeroed_and_aligned},
    {"reused_memory_is_zeroed", reused_memory_is_zeroed},
    {"allocations_larger_than_a_block_fit", allocations_larger_than_a_block_fit},
    {"owned_things_are_freed_once", owned_things_are_freed_once},
    CU_TEST_INFO_NULL,
};
