#include "sim/run.h"

static void links_add(cJSON *json, const Outcome *outcome) {
    cJSON *links = cJSON_AddArrayToObject(json, "links");
    for (int i = 0; i < outcome->num_links; i++) {
        cJSON *link = cJSON_CreateObject();
        cJSON_AddStringToObject(link, "name", outcome->links[i].name);
        json_add_number(link, "utilization_frac", outcome->links[i].utilization_frac);
        cJSON_AddItemToArray(links, link);
    }
}

static void disturbed_add(cJSON *json, const Run *run) {
    const RunSummary *summary = &run->summary;
    cJSON *disturbed = cJSON_AddObjectToObject(json, "disturbed");
    json_add_number(disturbed, "repetitions", run->num_repetitions);
    json_add_number(disturbed, "undisturbed_step_time_s", summary->undisturbed_s);
    json_add_number(disturbed, "mean_step_time_s", summary->mean_s);
    json_add_number(disturbed, "p95_step_time_s", summary->p95_s);
    cJSON *causes = cJSON_AddObjectToObject(disturbed, "difference_s");
    for (int cause = CAUSE_STRAGGLERS; cause < NUM_CAUSES; cause++)
        json_add_number(causes, CAUSE_NAMES[cause], summary->cause_s[cause]);
    cJSON *steps = cJSON_AddArrayToObject(disturbed, "step_times_s");
    for (int i = 0; i < run->num_repetitions; i++)
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(summary->step_s[i]));
}

cJSON *run_to_json(const Run *run) {
    const Outcome *outcome = &run->outcome;
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddStringToObject(json, "version", MESHWRIGHT_VERSION);
    json_add_number(json, "step_time_s",
                    run->repeated ? run->summary.mean_s : outcome->step_time_s);
    json_add_number(json, "estimate_step_time_s", run->estimate.step_time_s);
    if (run->repeated) disturbed_add(json, run);
    json_add_number(json, "activities", (double)run->playback.num_activities);
    cJSON_AddStringToObject(json, "folding", run->folding.name);
    cJSON_AddStringToObject(json, "folding_reason", run->folding.reason);
    cJSON_AddItemToObject(json, "contended", cJSON_CreateBool(outcome->contended));
    json_add_number(json, "flow_lost_frac", outcome->flow_lost_frac);
    json_add_number(json, "flow_gained_frac", outcome->flow_gained_frac);
    links_add(json, outcome);
    cJSON *counts = cJSON_AddArrayToObject(json, "num_instructions");
    for (int rank = 0; rank < run->parts.program.num_ranks; rank++) {
        int count = run->parts.program.ranks[rank].num_instructions;
        cJSON_AddItemToArray(counts, cJSON_CreateNumber(count));
    }
    return json;
}
