// base/memo.h - a table of doubles by key, filled by several threads without locks.
//
// Model:  direct-mapped; a slot holds the value's bits and key XOR bits, so that halves written by
//         two threads do not match the key and read as absent. A newer value takes the place of an
//         older one.
// Source: Hyatt and Mann, "A lock-less transposition table implementation for parallel search",
//         ICGA Journal 25(1), 2002.
// Limits: different inputs with the same 64-bit key would share a value; with the thousands of
//         inputs of one run that is a chance of 1e-12.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Memo Memo;

Memo *memo_new(Arena *arena); // empty

// A key of some numbers; never 0.
uint64_t memo_key(const double *numbers, int num_numbers);

bool memo_find(Memo *memo, uint64_t key, double *value);
void memo_keep(Memo *memo, uint64_t key, double value);
