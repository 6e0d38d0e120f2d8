// Scenarios as JSON, to a plan that is checked.
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read(char *text, size_t size, Arena *arena) {
    JsonNode root;
    Scenario scenario;
    Plan plan;
    if (json_parse(text, size, "input.json", arena, &root).code != STATUS_OK) return;
    if (scenario_read(&root, arena, &scenario).code != STATUS_OK) return;
    if (scenario_refuse_unsupported(&scenario).code != STATUS_OK) return;
    if (plan_resolve(&scenario, arena, &plan).code == STATUS_OK) plan_check(&scenario, &plan);
}
