#include "tests/planner/group_case.h"

#include "tests/support.h"

static int draw(uint64_t *state, int num_values) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)(*state >> 33) % num_values;
}

static const char *case_model(uint64_t *state, Arena *arena) {
    static const int HEADS[] = {4, 8, 16};
    const int heads = HEADS[draw(state, 3)], layers = 2 + draw(state, 4);
    const char *experts = "";
    if (draw(state, 3) == 0)
        experts = arena_printf(arena,
                               ", \"num_experts\": 4, \"num_experts_per_tok\": 1, "
                               "\"moe_intermediate_size\": %d, \"first_k_dense_replace\": %d",
                               128 * heads, draw(state, 3));
    return arena_printf(arena,
                        "{\"model_type\": \"generic\", \"hidden_size\": %d, "
                        "\"intermediate_size\": %d, \"num_hidden_layers\": %d, "
                        "\"num_attention_heads\": %d, \"vocab_size\": %d, "
                        "\"tie_word_embeddings\": %s, \"max_position_embeddings\": 4096%s}",
                        128 * heads, 512 * heads, layers, heads, 2000 * (1 + draw(state, 8)),
                        draw(state, 2) ? "true" : "false", experts);
}

static const char *case_group(uint64_t *state, int num_gpus, Arena *arena) {
    static const char *const MACHINES[][2] = {
        {"h100-sxm-80g", "nvlink4"}, {"a100-sxm-80g", "nvlink3"}, {"v100-sxm2-32g", "nvlink2"}};
    const int machine = draw(state, 3);
    return arena_printf(arena,
                        "{\"gpu\": \"%s\", \"num_gpus\": %d, \"gpus_per_node\": 2, "
                        "\"scale_up\": {\"link\": \"%s\"}, \"scale_out\": {\"nics_per_node\": 1, "
                        "\"nic_bytes_per_s\": %de9}, \"price_usd_per_gpu_hour\": %d}",
                        MACHINES[machine][0], num_gpus, MACHINES[machine][1], 1 + draw(state, 50),
                        1 + machine);
}

Status group_case(int number, Arena *arena, Scenario *out) {
    static const int BATCHES[] = {4, 8, 12};
    static const char *const STACKS[] = {"runtime", "megatron-core", "megatron-2021"};
    uint64_t state = (uint64_t)number * 2654435761u + 17;
    draw(&state, 2); // the first draws of neighbouring seeds are alike
    const char *model = case_model(&state, arena), *groups = "";
    const int num_groups = 2 + (draw(&state, 4) == 0);
    for (int i = 0; i < num_groups; i++)
        groups = arena_printf(arena, "%s%s%s", groups, i ? ", " : "",
                              case_group(&state, 2 * (1 + draw(&state, 2)), arena));
    const char *cluster = arena_printf(
        arena, "{\"groups\": [%s], \"between\": {\"bytes_per_s\": %de8, \"latency_s\": 1e-5}}",
        groups, 1 + draw(&state, 100));
    const char *training = arena_printf(
        arena,
        "{\"seq_len\": %d, \"global_batch\": %d, \"precision\": \"fp16\", \"stack\": \"%s\"}",
        256 << draw(&state, 3), BATCHES[draw(&state, 3)], STACKS[draw(&state, 3)]);
    return scenario_of(scenario_text(arena, model, cluster, training, NULL), arena, out);
}

double group_case_memory_bytes(int number, const Scenario *scenario) {
    const Stack *stack = &scenario->execution.stack;
    const double all = 18 * model_num_parameters(&scenario->model);
    const double activations = 40.0 * (double)scenario->training.seq_len *
                               scenario->model.hidden_size * scenario->model.num_layers;
    const double frac = 0.2 + 0.2 * (number % 5);
    return stack->residency.context_bytes + 2 * stack->residency.comm_bytes_per_group +
           frac * (all + activations);
}
