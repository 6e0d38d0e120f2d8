#include "cli/plan/plan_answer.h"

#include "base/shown_text.h"

#include "cli/command.h"
#include "planner/space/space_text.h"
#include "report/lengths_report.h"
#include "report/report.h"
#include "report/rival_report.h"
#include "report/sizing_report.h"

void plan_answer_print(const PlanAnswer *answer, FILE *stream) {
    const PlannerResult *result = &answer->result;
    if (answer->stack.note) shown_line(stream, "%s", answer->stack.note);
    if (answer->stack.note) fputc('\n', stream);
    if (answer->layers) {
        report_layers(answer->scenario, answer->layers, stream);
        return;
    }
    if (answer->lengths) {
        report_lengths(answer->scenario, answer->lengths, stream);
        return;
    }
    if (answer->sizing)
        report_sizing(answer->scenario, answer->sizing, result, answer->run_tokens, stream);
    if (answer->sizing && answer->sizing->num_gpus == 0) return;
    if (result->num_axes > 0)
        report_frontier(answer->scenario, result, stream);
    else
        report_plans(answer->scenario, result, stream);
    if (answer->tuning) report_line(answer->tuning_text, stream);
    if (answer->rival) report_rival(answer->rival, answer->rival_text, result, stream);
}

static cJSON *totals_to_json(const PlanAnswer *answer) {
    const RunTotals totals =
        run_totals(answer->scenario, &answer->result.entries[0].estimate, answer->run_tokens);
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "tokens", answer->run_tokens);
    json_add_number(json, "num_steps", totals.num_steps);
    json_add_number(json, "run_s", totals.run_s);
    json_add_number(json, "gpu_hours", totals.gpu_hours);
    json_add_number(json, "cost_usd", totals.cost_usd);
    json_add_number(json, "energy_joules", totals.energy_joules);
    return json;
}

static cJSON *sizing_only_to_json(const Sizing *sizing) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddArrayToObject(json, "plans");
    cJSON_AddItemToObject(json, "sizing", sizing_to_json(sizing));
    json_add_number(cJSON_AddObjectToObject(json, "timing"), "wall_s", sizing->wall_s);
    return json;
}

// What every kind of answer says of its scenario.
static cJSON *calibrated(cJSON *tree, const PlanAnswer *answer) {
    cJSON *stack = stack_choice_to_json(&answer->stack);
    if (stack) cJSON_AddItemToObject(tree, "stack", stack);
    answer_add_calibration(tree, answer->scenario);
    return answer_with_warnings(tree, answer->scenario);
}

// Says beside the counts of a search what they were of.
static cJSON *with_space(cJSON *tree, const char *text) {
    cJSON *search = cJSON_GetObjectItemCaseSensitive(tree, "search");
    cJSON_AddStringToObject(search, "space", text);
    return tree;
}

static cJSON *result_to_json(const PlanAnswer *answer) {
    Arena scratch = {0};
    cJSON *tree = planner_to_json(&answer->result);
    if (answer->result.num_entries > 0)
        with_space(tree, space_text(answer->scenario, &answer->result, &scratch));
    arena_free(&scratch);
    return tree;
}

cJSON *plan_answer_to_json(const PlanAnswer *answer) {
    if (answer->layers)
        return calibrated(with_space(layer_result_to_json(answer->layers), space_text_of_layers()),
                          answer);
    if (answer->lengths) return calibrated(lengths_to_json(answer->lengths), answer);
    if (answer->sizing && answer->sizing->num_gpus == 0) return sizing_only_to_json(answer->sizing);
    cJSON *tree = result_to_json(answer);
    cJSON *timing = cJSON_DetachItemFromObjectCaseSensitive(tree, "timing"); // stays last
    if (answer->rival)
        cJSON_AddItemToObject(tree, "compare", rival_to_json(answer->rival, answer->rival_text));
    if (answer->tuning) cJSON_AddItemToObject(tree, "tuned", tuning_to_json(answer->tuning));
    if (answer->sizing) {
        cJSON *sizing = sizing_to_json(answer->sizing);
        if (answer->run_tokens > 0 && answer->result.num_entries > 0)
            cJSON_AddItemToObject(sizing, "run", totals_to_json(answer));
        cJSON_AddItemToObject(tree, "sizing", sizing);
    }
    cJSON_AddItemToObject(tree, "timing", timing);
    return calibrated(tree, answer);
}
