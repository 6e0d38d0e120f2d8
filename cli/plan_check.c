#include "cli/plan_check.h"

#include "base/shown_text.h"
#include "cli/command.h"
#include "plan/rule_check.h"
#include "report/units.h"

#include <math.h>
#include <stdio.h>

// False where the old figure is absent.
static bool figure_differs(const cJSON *predicted, const char *key, double now, double *then) {
    static const double SAME_FRAC = 1e-6; // more than a number loses on its way through the file
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(predicted, key);
    if (!cJSON_IsNumber(item)) return false;
    *then = item->valuedouble;
    return fabs(*then - now) > SAME_FRAC * fabs(now);
}

void plan_warn_changed(const Scenario *scenario, const Estimate *now) {
    const cJSON *origin = cJSON_GetObjectItemCaseSensitive(scenario->document, "provenance");
    const cJSON *predicted = cJSON_GetObjectItemCaseSensitive(origin, "predicted");
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(origin, "version");
    double then_s, then_bytes;
    char a[UNITS_SIZE], b[UNITS_SIZE], what[200];
    if (figure_differs(predicted, "step_time_s", now->step_time_s, &then_s))
        snprintf(what, sizeof what, "predicted a step of %s, now it is %s",
                 units_seconds(then_s, a), units_seconds(now->step_time_s, b));
    else if (figure_differs(predicted, "memory_device_bytes", now->memory.device_bytes,
                            &then_bytes))
        snprintf(what, sizeof what, "predicted %s on the worst GPU, now it is %s",
                 units_bytes(then_bytes, a), units_bytes(now->memory.device_bytes, b));
    else
        return;
    shown_line(stderr,
               "%s: provenance: %s: the file was changed since, or the prediction (it was written "
               "by %s)",
               scenario->file, what,
               cJSON_IsString(version) ? version->valuestring : "an unknown version");
}

void plan_warn_misfit(const Scenario *scenario, const Estimate *now) {
    if (now->fits) return;
    Status misfit =
        status_does_not_fit(scenario->file, now->memory.device_bytes, now->memory_available_bytes);
    fprintf(stderr, "%s\n", misfit.text);
}

void plan_warn_rules(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Rule *broken[RULES_MAX];
    const int num = plan_broken_rules(scenario, NULL, plan, broken);
    for (int i = 0; i < num; i++)
        shown_line(stderr, "%s: %s: %s; priced all the same %s", scenario->file, broken[i]->key,
                   rule_says_text(scenario, plan, broken[i], arena),
                   rule_name_text(scenario->execution.stack.rules, broken[i], arena));
}

cJSON *plan_broken_rules_json(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Rule *broken[RULES_MAX];
    const int num = plan_broken_rules(scenario, NULL, plan, broken);
    if (num == 0) return NULL;
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < num; i++) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(
            entry, "rule",
            arena_printf(arena, "%s/%s", scenario->execution.stack.name, broken[i]->id));
        cJSON_AddStringToObject(entry, "key", broken[i]->key);
        cJSON_AddStringToObject(entry, "text", rule_sentence(scenario, plan, broken[i], arena));
        cJSON_AddStringToObject(entry, "source", rule_source_text(broken[i], arena));
        cJSON_AddItemToArray(list, entry);
    }
    return list;
}
