// planner/groups/group_heap.h - configurations in the order of their bounds, which may rise
// meanwhile.
#pragma once

#include "base/arena.h"
#include "plan/plan.h"

#include <stddef.h>

typedef struct {
    Plan plan;
    double bound_s; // no step is shorter
    int64_t index;  // of equal bounds the lower comes first
    bool bounded;   // by the bound of the configuration, not only of its mean rank
} GroupOpen;

// A binary heap; zero-initialise.
typedef struct {
    GroupOpen *items; // [num] items[0] has the least bound
    size_t num, capacity;
} GroupHeap;

void group_heap_add(GroupHeap *heap, const GroupOpen *item, Arena *arena);

// After the bound of items[0] has risen.
void group_heap_settle(GroupHeap *heap);

// Without items[0].
void group_heap_drop(GroupHeap *heap);

// Without those whose bound is above the limit.
void group_heap_trim(GroupHeap *heap, double limit_s);
