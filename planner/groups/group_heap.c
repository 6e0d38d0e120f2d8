#include "planner/groups/group_heap.h"

static bool comes_first(const GroupOpen *a, const GroupOpen *b) {
    if (a->bound_s != b->bound_s) return a->bound_s < b->bound_s;
    return a->index < b->index;
}

static void swap(GroupOpen *a, GroupOpen *b) {
    const GroupOpen kept = *a;
    *a = *b;
    *b = kept;
}

void group_heap_add(GroupHeap *heap, const GroupOpen *item, Arena *arena) {
    if (heap->num == heap->capacity) {
        heap->capacity = heap->capacity ? 2 * heap->capacity : 1024;
        heap->items = arena_grow(arena, heap->items, heap->capacity * sizeof *heap->items);
    }
    size_t i = heap->num++;
    heap->items[i] = *item;
    for (; i > 0 && comes_first(&heap->items[i], &heap->items[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&heap->items[i], &heap->items[(i - 1) / 2]);
}

// Lets an item sink to its place below i.
static void sink(GroupHeap *heap, size_t i) {
    for (size_t child; (child = 2 * i + 1) < heap->num; i = child) {
        if (child + 1 < heap->num && comes_first(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!comes_first(&heap->items[child], &heap->items[i])) return;
        swap(&heap->items[i], &heap->items[child]);
    }
}

void group_heap_settle(GroupHeap *heap) {
    sink(heap, 0);
}

void group_heap_drop(GroupHeap *heap) {
    heap->items[0] = heap->items[--heap->num];
    group_heap_settle(heap);
}

void group_heap_trim(GroupHeap *heap, double limit_s) {
    size_t num = 0;
    for (size_t i = 0; i < heap->num; i++)
        if (heap->items[i].bound_s <= limit_s) heap->items[num++] = heap->items[i];
    heap->num = num;
    for (size_t i = num / 2; i-- > 0;) sink(heap, i);
}
