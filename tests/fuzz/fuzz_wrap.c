// Records of a wrapped process.
#include "profiler/wrap_file.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    WrapLog log;
    (void)text;
    (void)size;
    wrap_log_load(fuzz_path(), arena, &log);
}
