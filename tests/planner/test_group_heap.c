#include "planner/groups/group_heap.h"

#include <CUnit/CUnit.h>

enum { NUM_ITEMS = 3000 };

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

// Bounds of a few values, so that many are equal; some rise when they come first.
static void the_least_bound_comes_first(void) {
    Arena arena = {0};
    GroupHeap heap = {0};
    uint64_t state = 7;
    for (int i = 0; i < NUM_ITEMS; i++)
        group_heap_add(&heap,
                       &(GroupOpen){.bound_s = (int)(100 * draw(&state)),
                                    .index = i,
                                    .bounded = draw(&state) < 0.5},
                       &arena);
    double last_s = -1;
    int64_t last_index = -1;
    int num = 0, num_wrong = 0;
    while (heap.num > 0) {
        GroupOpen *first = &heap.items[0];
        if (!first->bounded) {
            first->bounded = true;
            first->bound_s += (int)(20 * draw(&state));
            group_heap_settle(&heap);
            continue;
        }
        num_wrong += first->bound_s < last_s;
        num_wrong += first->bound_s == last_s && first->index < last_index;
        last_s = first->bound_s;
        last_index = first->index;
        group_heap_drop(&heap);
        num++;
    }
    CU_ASSERT_EQUAL(num, NUM_ITEMS);
    CU_ASSERT_EQUAL(num_wrong, 0);
    arena_free(&arena);
}

// 0 to 99 thirty times each: 0 to 41 stay.
static void what_is_above_the_limit_goes(void) {
    Arena arena = {0};
    GroupHeap heap = {0};
    for (int i = 0; i < NUM_ITEMS; i++)
        group_heap_add(&heap, &(GroupOpen){.bound_s = i * 37 % 100, .index = i}, &arena);
    group_heap_trim(&heap, 41);
    CU_ASSERT_EQUAL(heap.num, 42 * 30);
    int num_wrong = 0;
    for (int i = 0; i < 42 * 30; i++) {
        num_wrong += heap.items[0].bound_s != i / 30;
        group_heap_drop(&heap);
    }
    CU_ASSERT_EQUAL(num_wrong, 0);
    group_heap_trim(&heap, 0);
    CU_ASSERT_EQUAL(heap.num, 0);
    arena_free(&arena);
}

CU_TestInfo group_heap_tests[] = {
    {"the_least_bound_comes_first", the_least_bound_comes_first},
    {"what_is_above_the_limit_goes", what_is_above_the_limit_goes},
    CU_TEST_INFO_NULL,
};
