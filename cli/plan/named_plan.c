#include "cli/plan/named_plan.h"

#include "whatif/change.h"

#include <string.h>

enum { MAX_NAMED = 32 };

typedef struct {
    const char *paths[MAX_NAMED]; // "parallel.tp"
    int num_named;
    cJSON *values; // an object: key -> value
} Named;

static Status text_error(const char *text, const char *what) {
    return status_error(STATUS_INVALID,
                        "meshwright: --compare: \"%.200s\": %s; expected KEY=VALUE,..., as in "
                        "tp=4,pp=8,recompute=full",
                        text, what);
}

// One "KEY=VALUE".
static Status pair_add(Named *named, const char *text, char *pair, Arena *arena) {
    char *equals = strchr(pair, '=');
    if (!equals || equals == pair || !equals[1])
        return text_error(text, equals && equals != pair ? "a value is missing"
                                : equals                 ? "a key is missing"
                                                         : "there is no =");
    *equals = '\0';
    if (cJSON_GetObjectItemCaseSensitive(named->values, pair))
        return text_error(text, arena_printf(arena, "%.60s stands there twice", pair));
    if (named->num_named == MAX_NAMED) return text_error(text, "too many keys");
    cJSON *value = cJSON_ParseWithOpts(equals + 1, NULL, true);
    cJSON_AddItemToObject(named->values, pair, value ? value : cJSON_CreateString(equals + 1));
    named->paths[named->num_named++] = arena_printf(arena, "parallel.%s", pair);
    return status_ok();
}

static Status named_parse(const char *text, Arena *arena, Named *out) {
    *out = (Named){.values = cJSON_CreateObject()};
    json_own(arena, out->values);
    char *rest = arena_strdup(arena, text);
    for (char *pair; (pair = strsep(&rest, ",")) != NULL;) TRY(pair_add(out, text, pair, arena));
    return status_ok();
}

// Keys, types and ranges, before anything else of the scenario can be blamed.
static Status values_check(const Named *named, Arena *arena) {
    const JsonNode root = {.file = "meshwright: --compare", .item = named->values};
    ParallelSpec ignored;
    TRY(parallel_load(&root, arena, &ignored));
    if (ignored.schedule != SCHEDULE_FILE) return status_ok();
    return status_error(STATUS_INVALID,
                        "meshwright: --compare: schedule file:... is an order for one number of "
                        "ranks and micro-batches; expected a schedule by name");
}

Status named_scenario(const Scenario *scenario, const char *text, Arena *arena, Scenario *out) {
    Named named;
    TRY(named_parse(text, arena, &named));
    TRY(values_check(&named, arena));
    const cJSON *base;
    TRY(change_base(scenario, named.paths, named.num_named, false, arena, &base));
    cJSON *document = cJSON_Duplicate(base, true);
    json_own(arena, document);
    change_derive(document, named.paths, named.num_named);
    const cJSON *value = named.values->child;
    for (int i = 0; i < named.num_named; i++, value = value->next)
        TRY(change_set(scenario, document, named.paths[i], value));
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = scenario->file, .item = document};
    TRY(scenario_read(root, arena, out));
    return scenario_refuse_unsupported(out);
}
