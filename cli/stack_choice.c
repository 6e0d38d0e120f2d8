#include "cli/stack_choice.h"

#include "launch/launch.h"
#include "plan/rule_check.h"
#include "planner/why/relax.h"
#include "whatif/change.h"

#include <string.h>

// Those for which `launch` writes files (the tables say by which target), the most used first; then
// one that trains any model.
static const char *const STACKS[] = {"megatron-core", "torchtitan", "megatron-2021", "runtime",
                                     "pytorch-fsdp"};
enum { NUM_STACKS = sizeof STACKS / sizeof *STACKS };

// Rules about the model that the stack breaks: how many, and the first.
static int model_rules(const Scenario *scenario, const Rule **first) {
    const Rule *broken[RULES_MAX];
    const int all = scenario_broken_rules(scenario, NULL, broken);
    int num = 0;
    for (int i = 0; i < all; i++) {
        if (strncmp(broken[i]->key, "model", 5) != 0) continue;
        if (num++ == 0) *first = broken[i];
    }
    return num;
}

static bool states_stack(const Scenario *scenario) {
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(scenario->document, "training");
    return cJSON_IsString(cJSON_GetObjectItemCaseSensitive(training, "stack"));
}

static Status scenario_with(const Scenario *scenario, const char *stack, Arena *arena,
                            Scenario *out) {
    const char *const path = "training.stack";
    const cJSON *document;
    TRY(change_base(scenario, &path, 1, false, arena, &document));
    cJSON *value = cJSON_CreateString(stack);
    const Status status = change_set(scenario, (cJSON *)document, path, value);
    cJSON_Delete(value);
    TRY(status);
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    return scenario_read(root, arena, out);
}

typedef struct {
    const char *stack; // NULL: none can
    Scenario scenario;
    bool launchable;
} StackFound;

// The first stack that can train the model with a plan that fits, one that launches before others.
static StackFound candidate_find(const Scenario *scenario, Arena *arena) {
    StackFound found = {0};
    const Rule *ignored;
    for (int i = 0; i < NUM_STACKS && !found.launchable; i++) {
        Scenario other;
        if (strcmp(STACKS[i], scenario->execution.stack.name) == 0) continue;
        if (scenario_with(scenario, STACKS[i], arena, &other).code != STATUS_OK) continue;
        if (model_rules(&other, &ignored) > 0) continue;
        const bool launchable = launch_has_model(&other, arena);
        if (found.stack && !launchable) continue;
        if (!relax_reaches(&other, HARVEST_FIT, 1, arena, NULL)) continue;
        found = (StackFound){STACKS[i], other, launchable};
    }
    return found;
}

// What is done about it; `other` could train the model.
static const char *note_of(const StackChoice *choice, const char *other, Arena *arena) {
    const char *can_not = arena_printf(arena, "%s %s.", choice->reason, choice->rule);
    const char *done = arena_printf(arena, "Planned for %s as what is closest", choice->stack);
    if (choice->stated)
        done = arena_printf(arena, "Planned for %s all the same, as training.stack states",
                            choice->stack);
    else if (other)
        done = arena_printf(arena, "Planned for %s, which can", other);
    const char *files = choice->launchable ? "" : "; no launch files for this model";
    const char *more = "training.stack chooses another";
    if (choice->stated && other) more = arena_printf(arena, "training.stack %s can run it", other);
    return arena_printf(arena, "%s %s%s; %s.", can_not, done, files, more);
}

Status stack_choose(const Scenario *scenario, Arena *arena, Scenario *out, StackChoice *choice) {
    const Rule *first;
    *out = *scenario;
    *choice = (StackChoice){.stack = scenario->execution.stack.name, .launchable = true};
    if (model_rules(scenario, &first) == 0) return status_ok();
    const StackFound found = candidate_find(scenario, arena);
    choice->stated = states_stack(scenario);
    choice->refused = scenario->execution.stack.name;
    choice->rule = rule_name_text(scenario->execution.stack.rules, first, arena);
    choice->reason =
        arena_printf(arena, "%s cannot run %s: %s", choice->refused, scenario->model.name,
                     rule_says_text(scenario, NULL, first, arena));
    choice->launchable = !choice->stated && found.launchable;
    if (!choice->stated && found.stack) {
        *out = found.scenario;
        choice->stack = found.stack;
    }
    choice->note = note_of(choice, found.stack, arena);
    return status_ok();
}

cJSON *stack_choice_to_json(const StackChoice *choice) {
    if (!choice->note) return NULL;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "cannot_run_model", choice->refused);
    cJSON_AddStringToObject(json, "reason", choice->reason);
    cJSON_AddStringToObject(json, "rule", choice->rule);
    cJSON_AddStringToObject(json, "planned_for", choice->stack);
    cJSON_AddBoolToObject(json, "launchable", choice->launchable);
    return json;
}
