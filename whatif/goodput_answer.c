// The answer about failures as JSON.
#include "whatif/goodput.h"

static cJSON *inputs_to_json(const Goodput *g) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "failures_per_gpu_hour", g->used.failures_per_gpu_hour);
    json_add_number(json, "hardware_frac", g->used.hardware_frac);
    json_add_number(json, "storage_bytes_per_s", g->used.storage_bytes_per_s);
    json_add_number(json, "restart_s", g->used.restart_s);
    json_add_number(json, "repair_s", g->used.repair_s);
    json_add_number(json, "checkpoint_bytes", g->checkpoint_bytes);
    json_add_number(json, "num_tokens", g->used.num_tokens);
    json_add_number(json, "num_runs", g->used.num_runs);
    json_add_number(json, "seed", (double)g->used.seed);
    return json;
}

static void statistics_add(cJSON *json, const FailureStatistics *s) {
    json_add_number(json, "goodput_frac", s->goodput_frac);
    json_add_number(json, "goodput_error_frac", s->goodput_error_frac);
    json_add_number(json, "wall_s", s->mean.wall_s);
    json_add_number(json, "useful_s", s->mean.useful_s);
    json_add_number(json, "write_s", s->mean.write_s);
    json_add_number(json, "lost_s", s->mean.lost_s);
    json_add_number(json, "restart_s", s->mean.restart_s);
    json_add_number(json, "wait_s", s->mean.wait_s);
    json_add_number(json, "failures_per_run", (double)s->mean.num_failures / s->num_runs);
}

static cJSON *formulas_to_json(const Goodput *g) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "young_interval_s", g->young_s);
    json_add_number(json, "daly_interval_s", g->daly_s);
    json_add_number(json, "goodput_frac", g->daly.goodput_frac);
    json_add_number(json, "write_frac", g->daly.write_frac);
    json_add_number(json, "restart_frac", g->daly.restart_frac);
    json_add_number(json, "lost_frac", g->daly.lost_frac);
    return json;
}

static cJSON *intervals_to_json(const Goodput *g) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < g->num_intervals; i++) {
        const GoodputInterval *interval = &g->intervals[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToArray(list, json);
        json_add_number(json, "num_steps", (double)interval->num_steps);
        json_add_number(json, "interval_s", interval->interval_s);
        json_add_number(json, "formula_goodput_frac", interval->formula_frac);
        statistics_add(json, &interval->runs);
    }
    return list;
}

cJSON *goodput_to_json(const Goodput *g) {
    const GoodputInterval *best = &g->intervals[g->best];
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "goodput_frac", g->goodput_frac);
    json_add_number(json, "num_gpus", g->num_gpus);
    json_add_number(json, "num_nodes", g->num_nodes);
    json_add_number(json, "step_time_s", g->step_time_s);
    json_add_number(json, "num_steps", g->num_steps);
    json_add_number(json, "mean_time_between_failures_s", g->mtbf_s);
    json_add_number(json, "checkpoint_bytes", g->checkpoint_bytes);
    json_add_number(json, "checkpoint_write_s", g->write_s);
    json_add_number(json, "restart_s", g->restart_s);
    json_add_number(json, "checkpoint_every_steps", (double)best->num_steps);
    json_add_number(json, "checkpoint_interval_s", best->interval_s);
    cJSON_AddItemToObject(json, "formulas", formulas_to_json(g));
    cJSON *spares = cJSON_AddObjectToObject(json, "spares");
    json_add_number(spares, "best_num_nodes", g->best_spares);
    json_add_number(spares, "num_nodes", g->used.num_spares);
    json_add_number(spares, "nodes_under_repair", g->load);
    json_add_number(spares, "available_frac", g->available_frac);
    json_add_number(spares, "available_without_frac", g->without_spares_frac);
    cJSON *simulated = cJSON_AddObjectToObject(json, "simulated");
    statistics_add(simulated, &g->whole);
    cJSON_AddItemToObject(json, "intervals", intervals_to_json(g));
    cJSON_AddItemToObject(json, "inputs", inputs_to_json(g));
    return json;
}
