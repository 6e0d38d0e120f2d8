// tests/sample.h - of many alike cases a run takes a sample, another one at each commit.
//
// ./dev makes MESHWRIGHT_TEST_SEED of the commit; with MESHWRIGHT_TEST_FULL all cases are taken.
#pragma once

#include <stdbool.h>
#include <stdlib.h>

static inline bool sample_is_full(void) {
    return getenv("MESHWRIGHT_TEST_FULL") != NULL;
}

static inline long sample_seed(void) {
    const char *seed = getenv("MESHWRIGHT_TEST_SEED");
    return seed ? strtol(seed, NULL, 10) : 0;
}

// Whether case `number` is of the sample: one of so many.
static inline bool sample_has(long number, long one_of) {
    return sample_is_full() || (number + sample_seed()) % one_of == 0;
}

// Of `all` alike cases that cost their time many times over under the sanitizers, the first so
// many.
static inline int sample_first(int all, int one_of) {
#ifdef MESHWRIGHT_SANITIZE
    one_of *= 3;
#endif
    return sample_is_full() ? all : all / one_of;
}
