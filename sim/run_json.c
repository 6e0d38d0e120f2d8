#include "sim/not_played.h"
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

static void not_played_add(cJSON *json, const Run *run) {
    Arena arena = {0};
    const char *const *sentences;
    const int num_sentences = not_played_list(&run->scenario, &run->plan, &arena, &sentences);
    cJSON_AddItemToObject(json, "not_played", cJSON_CreateStringArray(sentences, num_sentences));
    arena_free(&arena);
}

// All effects add up to the step less the estimate's; without disturbances theirs are 0.
static void difference_add(cJSON *json, const Run *run) {
    cJSON *difference = cJSON_AddObjectToObject(json, "difference_s");
    for (int effect = 0; effect < NUM_EFFECTS; effect++)
        json_add_number(difference, EFFECT_NAMES[effect], run->difference.effect_s[effect]);
    for (int cause = CAUSE_STRAGGLERS; cause < NUM_CAUSES; cause++)
        json_add_number(difference, CAUSE_NAMES[cause],
                        run->repeated ? run->summary.cause_s[cause] : 0);
}

// --- The critical path

static void path_totals_add(cJSON *json, const CriticalPath *path) {
    cJSON *totals = cJSON_AddArrayToObject(json, "totals");
    for (int kind = 0; kind < NUM_PATH_KINDS; kind++) {
        const PathTotal *total = &path->totals[kind];
        if (total->count == 0) continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", PATH_KIND_NAMES[kind]);
        json_add_number(object, "count", total->count);
        json_add_number(object, "simulated_s", total->simulated_s);
        json_add_number(object, "estimated_s", total->estimated_s);
        cJSON_AddItemToArray(totals, object);
    }
}

static cJSON *path_item_json(const Run *run, const PathItem *item) {
    const Program *program = &run->parts.program;
    const Instruction *instruction = &program->ranks[item->stage].instructions[item->instruction];
    bool collective = instruction->kind == INSTRUCTION_COLLECTIVE;
    cJSON *json = cJSON_CreateObject();
    const int replica = run->lowered.lanes.replica[item->lane];
    json_add_number(json, "rank",
                    program_gpu(program, item->stage, replica * run->folding.num_folded));
    json_add_number(json, "stage", item->stage);
    cJSON_AddStringToObject(json, "instruction",
                            collective ? program->collectives[instruction->collective].name
                                       : INSTRUCTION_NAMES[instruction->kind]);
    json_add_number(json, "chunk", instruction->chunk);
    json_add_number(json, "micro_batch", instruction->microbatch);
    json_add_number(json, "start_s", item->start_s);
    json_add_number(json, "end_s", item->end_s);
    return json;
}

static void path_add(cJSON *json, const Run *run) {
    const CriticalPath *path = &run->path;
    cJSON *object = cJSON_AddObjectToObject(json, "critical_path");
    path_totals_add(object, path);
    json_add_number(object, "slack_s", path->slack_s);
    json_add_number(object, "num_instructions", path->num_items);
    cJSON *items = cJSON_AddArrayToObject(object, "instructions");
    for (int i = 0; i < path->num_items && i < MAX_PATH_ITEMS; i++)
        cJSON_AddItemToArray(items, path_item_json(run, &path->items[i]));
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
    difference_add(json, run);
    if (run->repeated) disturbed_add(json, run);
    json_add_number(json, "activities", (double)run->playback.num_activities);
    cJSON_AddStringToObject(json, "folding", run->folding.name);
    cJSON_AddStringToObject(json, "folding_reason", run->folding.reason);
    cJSON_AddItemToObject(json, "contended", cJSON_CreateBool(outcome->contended));
    json_add_number(json, "flow_lost_frac", outcome->flow_lost_frac);
    json_add_number(json, "flow_gained_frac", outcome->flow_gained_frac);
    not_played_add(json, run);
    links_add(json, outcome);
    path_add(json, run);
    json_add_number(json, "num_folded", run->folding.num_folded);
    json_add_number(json, "num_lanes", run->lowered.num_lanes);
    json_add_number(json, "last_lane", outcome->last_lane);
    if (run->folding.likeness)
        cJSON_AddItemToObject(
            json, "lane_of",
            cJSON_CreateIntArray(run->lowered.lanes.of, run->lowered.lanes.num_replicas));
    cJSON *counts = cJSON_AddArrayToObject(json, "num_instructions");
    for (int rank = 0; rank < run->parts.program.num_ranks; rank++) {
        int count = run->parts.program.ranks[rank].num_instructions;
        cJSON_AddItemToArray(counts, cJSON_CreateNumber(count));
    }
    return json;
}
