#include "workload/technique/technique_rows.h"

#include <stddef.h>

static const Technique *const ROWS[NUM_TECHNIQUES] = {
#define TECHNIQUE(kind, key) [TECHNIQUE_##kind] = &TECHNIQUE_ROW_##kind,
#include "config/software/techniques.def"
};

const Technique *technique_find(TechniqueKind kind) {
    return (int)kind >= 0 && kind < NUM_TECHNIQUES ? ROWS[kind] : NULL;
}

bool technique_matters(TechniqueKind kind, const Scenario *scenario) {
    const Technique *row = technique_find(kind);
    return !row->matters || row->matters(scenario);
}

// Those with keys of other values say in `applies` whether they are on.
static bool is_on(TechniqueKind kind, const Execution *execution) {
    switch (kind) {
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate)                                      \
    case TECHNIQUE_##kind:                                                                         \
        return execution->key;
#include "config/software/techniques.def"
    default:
        return true;
    }
}

static bool applies(TechniqueKind kind, const Builder *b) {
    return is_on(kind, b->execution) && (!ROWS[kind]->applies || ROWS[kind]->applies(b));
}

void techniques_load(const Builder *b, ExpertLoad *load) {
    for (TechniqueKind kind = 0; kind < NUM_TECHNIQUES; kind++)
        if (ROWS[kind]->load && applies(kind, b)) ROWS[kind]->load(b, load);
}

void techniques_operators(Builder *b) {
    for (TechniqueKind kind = 0; kind < NUM_TECHNIQUES; kind++)
        if (ROWS[kind]->operators && applies(kind, b)) ROWS[kind]->operators(b);
}

void techniques_list(const Builder *b, OperatorList *list) {
    for (TechniqueKind kind = 0; kind < NUM_TECHNIQUES; kind++)
        if (ROWS[kind]->list && applies(kind, b)) ROWS[kind]->list(b, list);
}

StepTraits step_traits(const Execution *execution) {
    // Compiled layers are fewer kernels, launched by less Python.
    StepTraits traits = {
        .begins_together = true,
        .launched_frac = execution->compile ? execution->stack.launch.host_compiled_frac : 1,
    };
    for (TechniqueKind kind = 0; kind < NUM_TECHNIQUES; kind++)
        if (ROWS[kind]->step && is_on(kind, execution)) ROWS[kind]->step(execution, &traits);
    return traits;
}

bool blocks_have_shards(const Builder *b) {
    return b->split.zero_stage >= 2;
}

void shards_beside_blocks(OperatorList *list, CollectiveKind kind) {
    for (int i = 0; i < list->num; i++) {
        Op *op = &list->ops[i];
        if (op->stream == STREAM_DP && op_is_collective(op, kind))
            op->collective.beside = BESIDE_BLOCKS;
    }
}
