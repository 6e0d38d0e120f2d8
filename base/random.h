// base/random.h - random numbers that are a function of their place, so that nothing is remembered.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011
//         (Philox4x32 with 10 rounds); Box and Muller, Ann. Math. Stat. 29(2), 1958.
#pragma once

#include <stdint.h>

enum { RANDOM_WORDS = 4 };

// Philox4x32-10: 128 random bits of a key and a counter.
void random_words(uint64_t key, const uint32_t counter[RANDOM_WORDS], uint32_t out[RANDOM_WORDS]);

// A number between 0 and 1, both excluded, and one of the standard normal distribution.
double random_uniform(uint64_t key, const uint32_t counter[RANDOM_WORDS]);
double random_normal(uint64_t key, const uint32_t counter[RANDOM_WORDS]);
