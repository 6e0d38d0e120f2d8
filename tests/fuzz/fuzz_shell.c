// A start script of Megatron-LM.
#include "import/import.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    const ImportOptions options = {.cluster = "dgx-h100:1"};
    Imported imported;
    (void)text;
    (void)size;
    import_file(IMPORT_MEGATRON, fuzz_path(), &options, arena, &imported);
}
