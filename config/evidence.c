#include "config/evidence.h"

#include "base/data_dir.h"
#include "base/json.h"

enum { DENSE, EXPERTS, NUM_MODEL_KINDS };
static const char *const MODEL_KINDS[NUM_MODEL_KINDS + 1] = {"dense", "experts", NULL};

static Status spreads_read(const JsonNode *root, const char *stack, double *spreads) {
    JsonNode stacks = json_get(root, "stacks"), other = json_get(root, "other");
    JsonNode own = json_get(&stacks, stack);
    return json_read_numbers(json_is_present(&own) ? &own : &other, MODEL_KINDS, NUM_MODEL_KINDS, 0,
                             10, true, spreads);
}

Status evidence_find(const Model *model, const Training *training, Arena *arena,
                     const Evidence **out) {
    JsonNode root;
    double spreads[NUM_MODEL_KINDS];
    Evidence *evidence = ARENA_NEW(arena, Evidence);
    TRY(json_load(data_path(arena, "hw-profiles", "memory"), arena, &root));
    TRY(spreads_read(&root, training->stack.name, spreads));
    evidence->memory_spread = spreads[model->num_experts > 0 ? EXPERTS : DENSE];
    *out = evidence;
    return status_ok();
}
