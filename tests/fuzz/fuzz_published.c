// Published measurements: a JSON document a line.
#include "calibrate/published.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    PublishedCase *cases;
    int num_cases;
    (void)text;
    (void)size;
    published_load(fuzz_path(), arena, &cases, &num_cases);
}
