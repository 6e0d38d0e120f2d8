// tests/fuzz/mutate.h - spoils JSON documents, always in the same way for the same seed.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} Random;

uint64_t random_next(Random *random);
// 0 .. bound - 1; bound > 0
size_t random_below(Random *random, size_t bound);

enum { MUTATE_MAX_BYTES = 1 << 16 }; // room of the text below

// Spoils text (*size bytes in a room of MUTATE_MAX_BYTES) in one place; donor is another document
// that pieces are taken from. Flips a byte, cuts, copies or cuts out a range, or works on tokens:
// drops, repeats or swaps them, puts an extreme in place of a value, nests or splices subtrees.
void text_mutate(Random *random, const char *donor, size_t donor_size, char *text, size_t *size);
