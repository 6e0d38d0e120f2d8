// The config.json of a model, as Hugging Face has it.
#include "config/model/model.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    JsonNode value = fuzz_path_node(arena);
    Model model;
    (void)text;
    (void)size;
    if (model_load(&value, arena, &model).code == STATUS_OK) model_num_parameters(&model);
}
