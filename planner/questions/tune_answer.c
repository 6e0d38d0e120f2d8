// The result of a search over switches as JSON and as a sentence.
#include "planner/questions/tune.h"

cJSON *tuning_to_json(const Tuning *tuning) {
    cJSON *json = cJSON_CreateObject();
    cJSON *chosen = cJSON_AddObjectToObject(json, "training");
    for (int i = 0; i < tuning->num_choices; i++)
        cJSON_AddItemToObject(chosen, tuning->choices[i].row->key,
                              switch_to_json(tuning->choices[i]));
    json_add_number(json, "switches", tuning->num_open);
    json_add_number(json, "combinations", (double)tuning->num_combinations);
    json_add_number(json, "searches", (double)tuning->num_searches);
    cJSON_AddBoolToObject(json, "optimal", tuning->proven);
    return json;
}

const char *tuning_text(const Tuning *tuning, const Execution *before, Arena *arena) {
    const char *list = "";
    for (int i = 0; i < tuning->num_choices; i++) {
        const SwitchChoice choice = tuning->choices[i];
        list = arena_printf(arena, "%s%s%s%s%s%s", list, i ? "; " : "",
                            switch_text(choice, before, arena), choice.row->caution ? " (" : "",
                            choice.row->caution ? choice.row->caution : "",
                            choice.row->caution ? ")" : "");
    }
    return arena_printf(
        arena,
        "Tuned: %s. The %d switches that the scenario leaves open have %lld combinations; %s.",
        tuning->num_choices ? list : "every open switch stays as it is", tuning->num_open,
        (long long)tuning->num_combinations,
        tuning->proven ? "no other has a better plan"
                       : "the search ended early, so that another may have a better plan");
}
