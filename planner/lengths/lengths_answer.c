// Plans for many lengths as JSON.
#include "planner/lengths/lengths.h"

static cJSON *bucket_to_json(int64_t length, int num_sequences) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "length", (double)length);
    json_add_number(json, "num_sequences", num_sequences);
    return json;
}

static cJSON *group_to_json(const LengthsAnswer *answer, const LengthsGroup *group) {
    const LengthsProblem *p = &answer->problem;
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "cp", p->sizes[group->size].size);
    json_add_number(json, "time_s", group->time_s);
    cJSON *sequences = cJSON_AddArrayToObject(json, "sequences");
    for (int i = 0; i < p->num_buckets; i++)
        if (group->counts[i] > 0)
            cJSON_AddItemToArray(sequences, bucket_to_json(p->buckets[i].length, group->counts[i]));
    return json;
}

static cJSON *round_to_json(const LengthsAnswer *answer, const LengthsRound *round) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "time_s", round->time_s);
    cJSON *groups = cJSON_AddArrayToObject(json, "groups");
    for (int g = 0; g < round->num_groups; g++)
        cJSON_AddItemToArray(groups, group_to_json(answer, &round->groups[g]));
    return json;
}

// What the cost model says of packs on groups of one size.
static cJSON *size_to_json(const LengthsSize *size) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "cp", size->size);
    json_add_number(json, "capacity_tokens", size->capacity_tokens);
    json_add_number(json, "fixed_s", size->fixed_s);
    json_add_number(json, "floor_s", size->floor_s);
    json_add_number(json, "step_s", size->step_s);
    return json;
}

static cJSON *answer_to_json(const LengthsAnswer *answer, double num_tokens) {
    const LengthsSchedule *schedule = &answer->schedule;
    if (schedule->num_rounds == 0) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "step_time_s", schedule->step_time_s);
    json_add_number(json, "tokens_per_s", num_tokens / schedule->step_time_s);
    const int first = schedule->rounds[0].groups[0].size; // of the largest group
    cJSON_AddItemToObject(json, "parallel", plan_to_json(answer->plans[first]));
    cJSON *sizes = cJSON_AddArrayToObject(json, "sizes");
    for (int d = 0; d < answer->problem.num_sizes; d++)
        cJSON_AddItemToArray(sizes, size_to_json(&answer->problem.sizes[d]));
    cJSON *rounds = cJSON_AddArrayToObject(json, "rounds");
    for (int m = 0; m < schedule->num_rounds; m++)
        cJSON_AddItemToArray(rounds, round_to_json(answer, &schedule->rounds[m]));
    return json;
}

cJSON *lengths_to_json(const LengthsResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddStringToObject(json, "objective", "throughput");
    cJSON *buckets = cJSON_AddArrayToObject(json, "sequence_lengths");
    for (int i = 0; i < result->num_buckets; i++)
        cJSON_AddItemToArray(
            buckets, bucket_to_json(result->buckets[i].length, result->buckets[i].num_sequences));
    cJSON *left_out = cJSON_AddArrayToObject(json, "left_out");
    for (int i = 0; i < result->num_left_out; i++)
        cJSON_AddItemToArray(left_out, cJSON_CreateNumber((double)result->left_out[i]));
    json_add_number(json, "num_tokens", result->num_tokens);
    cJSON_AddItemToObject(json, "one_size", answer_to_json(&result->one_size, result->num_tokens));
    cJSON_AddItemToObject(json, "many_sizes",
                          answer_to_json(&result->many_sizes, result->num_tokens));
    if (lengths_fits(result)) {
        json_add_number(json, "gain_frac", lengths_gain_frac(result));
        json_add_number(json, "bound_s", result->bound_s);
        json_add_number(json, "gap_frac", result->gap_frac);
    }
    json_add_number(json, "longest_tokens", result->longest_tokens);
    cJSON *search = cJSON_AddObjectToObject(json, "search");
    json_add_number(search, "shapes", result->num_shapes);
    json_add_number(search, "bounded", result->num_bounded);
    json_add_number(search, "scheduled", result->num_scheduled);
    cJSON_AddBoolToObject(search, "stopped_early", result->stopped_early);
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->wall_s);
    return json;
}
