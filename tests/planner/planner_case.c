#include "tests/planner/planner_case.h"

#include "tests/sample.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

int case_count(int all) {
    return sample_is_full() ? all : all / 3;
}

int case_count_slow(int all) {
    return sample_first(all, 3);
}

// Knuth's linear congruential generator (TAOCP 2, 3.3.4); the high bits.
static int draw(uint64_t *state, int num_values) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)(*state >> 33) % num_values;
}

static const char *case_model(uint64_t *state, Arena *arena) {
    static const int HEADS[] = {4, 6, 8, 12};
    int heads = HEADS[draw(state, 4)], layers = 1 + draw(state, 9);
    const char *experts = "";
    if (draw(state, 3) == 0) {
        static const int EXPERTS[] = {2, 4, 6};
        experts = arena_printf(arena,
                               ", \"num_experts\": %d, \"num_experts_per_tok\": 1, "
                               "\"moe_intermediate_size\": %d, \"first_k_dense_replace\": %d",
                               EXPERTS[draw(state, 3)], 64 * heads, draw(state, 2));
    }
    return arena_printf(arena,
                        "{\"model_type\": \"generic\", \"hidden_size\": %d, "
                        "\"intermediate_size\": %d, \"num_hidden_layers\": %d, "
                        "\"num_attention_heads\": %d, \"vocab_size\": %d, "
                        "\"max_position_embeddings\": 512%s}",
                        64 * heads, 256 * heads, layers, heads, 1000 * (1 + draw(state, 8)),
                        experts);
}

Status case_scenario(int number, Arena *arena, Scenario *out) {
    static const int NUM_GPUS[] = {1, 2, 3, 4, 6, 8, 12, 24};
    static const int BATCHES[] = {6, 8, 12, 24};
    static const char *const STACKS[] = {"runtime", "megatron-core", "torchtitan"};
    uint64_t state = (uint64_t)number * 2654435761u + 1;
    draw(&state, 2); // the first draws of neighbouring seeds are alike
    const char *model = case_model(&state, arena);
    int num_gpus = NUM_GPUS[draw(&state, 8)], per_node = num_gpus % 4 == 0 ? 4 : num_gpus;
    const char *cluster = arena_printf(
        arena,
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": %d, \"scale_up\": "
        "{\"link\": \"nvlink4\", \"domain_gpus\": %d}, \"scale_out\": {\"nics_per_node\": 1, "
        "\"nic_bytes_per_s\": %de9}}",
        num_gpus, per_node, per_node, 1 + draw(&state, 50));
    const char *training =
        arena_printf(arena, "{\"seq_len\": %d, \"global_batch\": %d, \"stack\": \"%s\"}",
                     128 << draw(&state, 3), BATCHES[draw(&state, 4)], STACKS[draw(&state, 3)]);
    return scenario_of(scenario_text(arena, model, cluster, training, NULL), arena, out);
}

double case_memory_bytes(int number, const Scenario *scenario) {
    const Stack *stack = &scenario->execution.stack;
    double all = 18 * model_num_parameters(&scenario->model);
    double activations = 40.0 * (double)scenario->training.seq_len * scenario->model.hidden_size *
                         scenario->model.num_layers;
    double frac = 0.25 + 0.25 * (number % 5);
    return stack->residency.context_bytes + 2 * stack->residency.comm_bytes_per_group +
           frac * (all + activations);
}

Status case_preset(const char *model, const char *cluster, int seq_len, int global_batch,
                   const char *parallel, Arena *arena, Scenario *out) {
    const char *training =
        arena_printf(arena, "{\"seq_len\": %d, \"global_batch\": %d}", seq_len, global_batch);
    model = arena_printf(arena, "\"%s\"", model);
    cluster = arena_printf(arena, "\"%s\"", cluster);
    return scenario_of(scenario_text(arena, model, cluster, training, parallel), arena, out);
}

const char *case_key(const Plan *plan, Arena *arena) {
    const char *key = arena_printf(arena, "%s cp_method %d sp %d zero_group %d chunks",
                                   plan_describe(plan, arena), (int)plan->cp_method,
                                   plan->sequence_parallel, plan->zero_group);
    for (int c = 0; c < plan->num_chunks; c++)
        key = arena_printf(arena, "%s %d", key, plan->chunks[c].num_layers);
    return key;
}

int case_num_plans(const SpaceFamily *family) {
    int num = family->num_plans;
    for (int i = 0; i < family->num_plans; i++) num += family->num_layers[i];
    return num;
}

Plan case_plan(const SpaceFamily *family, int i) {
    int plan = 0;
    for (; i > family->num_layers[plan]; plan++) i -= 1 + family->num_layers[plan];
    return i == 0 ? family->plans[plan] : space_first_layers(&family->plans[plan], i);
}

PlannerResult case_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena) {
    PlannerResult result = {0};
    Status status = planner_search(scenario, options, arena, &result);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    return result;
}

Status case_search_gpus(int num_gpus, int batch, const char *parallel, Arena *arena,
                        PlannerResult *out) {
    const char *cluster =
        arena_printf(arena,
                     "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": %d, "
                     "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, "
                     "\"nic_bytes_per_s\": 50e9}}",
                     num_gpus, num_gpus % 8 == 0 ? 8 : num_gpus);
    const char *training = arena_printf(arena, "{\"seq_len\": 4096, \"global_batch\": %d}", batch);
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    TRY(scenario_of(scenario_text(arena, "\"llama-3.1-8b\"", cluster, training, parallel), arena,
                    scenario));
    return planner_search(scenario, &(PlannerOptions){.top = 2}, arena, out);
}

bool case_adds_up(const SearchStats *stats) {
    return stats->considered == stats->pruned_by_memory + stats->pruned_by_bound + stats->priced;
}

int case_num_layers(const Plan *plan) {
    int layers = 0;
    for (int c = 0; c < plan->num_chunks; c++) layers += plan->chunks[c].num_layers;
    return layers;
}

// 8 does not divide 126, but 128 = 126 + 2: the contract counts embedding and loss as layers.
