#include "base/memo.h"

#include "base/numbers.h"

#include <stdatomic.h>
#include <string.h>

enum { NUM_SLOTS = 1 << 12 };

typedef struct {
    _Atomic uint64_t check; // key XOR bits
    _Atomic uint64_t bits;  // of the value
} Slot;

struct Memo {
    Slot slots[NUM_SLOTS];
};

Memo *memo_new(Arena *arena) {
    return ARENA_NEW(arena, Memo);
}

uint64_t memo_key(const double *numbers, int num_numbers) {
    uint64_t key = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < num_numbers; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        key = mix64(key + bits);
    }
    return key ? key : 1;
}

bool memo_find(Memo *memo, uint64_t key, double *value) {
    Slot *slot = &memo->slots[key % NUM_SLOTS];
    uint64_t bits = atomic_load_explicit(&slot->bits, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&slot->check, memory_order_relaxed);
    if ((check ^ bits) != key) return false;
    memcpy(value, &bits, sizeof bits);
    return true;
}

void memo_keep(Memo *memo, uint64_t key, double value) {
    Slot *slot = &memo->slots[key % NUM_SLOTS];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(&slot->bits, bits, memory_order_relaxed);
    atomic_store_explicit(&slot->check, key ^ bits, memory_order_relaxed);
}
