#include "planner/stages/balance.h"

#include "costmodel/pass/price.h"
#include "workload/pass/block.h"

// One rank of single pieces - embedding, one layer of each kind, head - so that the cost model
// prices each piece as a chunk of its own.
BalanceCosts balance_costs(const Scenario *scenario, const Plan *plan, Arena *arena) {
    const Model *model = &scenario->model;
    int num_kinds = model->num_kinds;
    PlanChunk *pieces = ARENA_ARRAY(arena, num_kinds + 2, PlanChunk);
    pieces[0].embedding = true;
    for (int kind = 0; kind < num_kinds; kind++) {
        PlanChunk *piece = &pieces[1 + kind];
        piece->num_layers = 1;
        while (model->layer_kind[piece->first_layer] != kind) piece->first_layer++;
    }
    pieces[num_kinds + 1].loss = true;
    pieces[num_kinds + 1].num_mtp = model->num_mtp_layers;

    Plan single = *plan;
    single.micro_batch = 1;
    single.pp = 1; // on the GPUs of one stage, which are there
    single.vpp = single.num_chunks = num_kinds + 2;
    single.chunks = pieces;
    single.recompute = RECOMPUTE_NONE;
    plan_derive(scenario, &single);
    Workload workload = workload_build(scenario, &single, arena);
    Prices prices = chunks_price(scenario, &single, &workload, arena);

    const int num_front = model->num_front_layers;
    double *layer_s = ARENA_ARRAY(arena, model->num_layers, double);
    double first_s = prices.forward[0].time_s + prices.backward[0].time_s;
    for (int i = 0; i < model->num_layers; i++) {
        int piece = 1 + model->layer_kind[i];
        layer_s[i] = prices.forward[piece].time_s + prices.backward[piece].time_s;
        if (i < num_front) first_s += layer_s[i]; // they stay with the embedding
    }
    int last = num_kinds + 1;
    return (BalanceCosts){
        .layer_s = layer_s + num_front,
        .num_layers = model_own_layers(model),
        .first_s = first_s,
        .last_s = prices.forward[last].time_s + prices.backward[last].time_s,
    };
}

const PlanChunk *balance_chunks(const BalanceCosts *costs, int pp, int vpp, const PlanChunk *even,
                                Arena *arena, Arena *scratch) {
    int num_chunks = pp * vpp;
    int *even_layers = ARENA_ARRAY(scratch, num_chunks, int), num_front = -costs->num_layers;
    for (int c = 0; c < num_chunks; c++) num_front += even_layers[c] = even[c].num_layers;
    even_layers[0] -= num_front;
    int *layers = ARENA_ARRAY(scratch, num_chunks, int);
    double busiest_s = partition_interleaved(costs, pp, vpp, scratch, layers);
    double even_s = partition_cost(costs, pp, vpp, even_layers);
    if (busiest_s > (1 - BALANCE_MIN_GAIN_FRAC) * even_s) return NULL;

    PlanChunk *chunks = ARENA_ARRAY(arena, num_chunks, PlanChunk);
    for (int c = 0, layer = 0; c < num_chunks; c++) {
        chunks[c] = even[c];
        chunks[c].first_layer = layer;
        chunks[c].num_layers = layers[c] + (c == 0 ? num_front : 0);
        layer += chunks[c].num_layers;
    }
    return chunks;
}
