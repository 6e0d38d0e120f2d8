// A job file of torchtitan, which is TOML.
#include "import/import.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    const ImportOptions options = {.cluster = "dgx-h100:1"};
    Imported imported;
    (void)text;
    (void)size;
    import_file(IMPORT_TORCHTITAN, fuzz_path(), &options, arena, &imported);
}
