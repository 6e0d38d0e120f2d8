#include "config/software/rule_variables.h"

#include "config/job/parallel.h"
#include "config/job/training.h"
#include "config/machine/gpu.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(NUM_RULE_VARIABLES <= 128, "a RuleSet holds 128");

const char *const RULE_SWITCH_NAMES[] = {"false", "true", NULL};
const char *const RULE_ARCHITECTURE_NAMES[] = {"volta",     "ampere",        "ada",   "hopper",
                                               "blackwell", "blackwell-rtx", "cdna2", "cdna3",
                                               "cdna4",     "cpu",           "other", NULL};
const char *const RULE_POSITION_NAMES[] = {"rope", "learned", "alibi", "none", NULL};
const char *const RULE_NORM_NAMES[] = {"rmsnorm", "layernorm", NULL};
const char *const RULE_ACTIVATION_NAMES[] = {"unstated", "silu",  "gelu", "relu",
                                             "relu2",    "other", NULL};
const char *const RULE_ROPE_NAMES[] = {"plain", "linear", "llama3", "other", NULL};
const char *const RULE_FRONT_NAMES[] = {"none", "encoder", "vision", NULL};
const char *const RULE_SCHEDULE_NAMES[] = {
#define X(kind, name) name,
#include "config/job/schedules.def"
#undef X
    "file", NULL};

// As in plan/plan.h, which stands above.
static const char *const PLAN_ORDER_NAMES[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", NULL};

#define ROW(id, name, names) [RULE_##id] = {name, names},
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) ROW(kind, #key, RULE_SWITCH_NAMES)
const RuleVariableKind RULE_VARIABLES[NUM_RULE_VARIABLES] = {
#include "config/software/techniques.def"
    RULE_SCENARIO_VARIABLES(ROW) RULE_PLAN_VARIABLES(ROW)};

int rule_variable_find(const char *name) {
    for (int i = 0; i < NUM_RULE_VARIABLES; i++)
        if (strcmp(RULE_VARIABLES[i].name, name) == 0) return i;
    return -1;
}
