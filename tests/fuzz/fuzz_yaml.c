// Scenarios as YAML, and YAML as NeMo's files have it.
#include "base/yaml.h"
#include "config/job/scenario.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    char message[400];
    cJSON_Delete(yaml_parse_text(text, size, (YamlOptions){0}, message, sizeof message));
    JsonNode root;
    Scenario scenario;
    if (json_parse(text, size, "input.yaml", arena, &root).code == STATUS_OK)
        scenario_read(&root, arena, &scenario);
}
