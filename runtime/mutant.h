// runtime/mutant.h - mistakes on purpose, so that the tests can show that they catch such ones.
//
// Only the executable of tests/runtime is built with MESHWRIGHT_MUTANTS; elsewhere there are none.
#pragma once

#include <stdbool.h>

#ifdef MESHWRIGHT_MUTANTS
#include <stdlib.h>
#include <string.h>

// Whether the environment asks for this mistake: MESHWRIGHT_MUTANT=name.
static inline bool mutant(const char *name) {
    const char *wanted = getenv("MESHWRIGHT_MUTANT");
    return wanted && strcmp(wanted, name) == 0;
}
#else
static inline bool mutant(const char *name) {
    (void)name;
    return false;
}
#endif
