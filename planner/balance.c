#include "planner/balance.h"

#include "costmodel/price.h"
#include "workload/block.h"

// A pipeline of single pieces - embedding, one layer of each kind, head - so that the cost model
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
    single.vpp = 1;
    single.pp = single.num_chunks = num_kinds + 2;
    single.chunks = pieces;
    single.recompute = RECOMPUTE_NONE;
    plan_derive(scenario, &single);
    Workload workload = workload_build(scenario, &single, arena);
    Prices prices = chunks_price(scenario, &single, &workload, arena);

    double *layer_s = ARENA_ARRAY(arena, model->num_layers, double);
    for (int i = 0; i < model->num_layers; i++) {
        int piece = 1 + model->layer_kind[i];
        layer_s[i] = prices.forward[piece].time_s + prices.backward[piece].time_s;
    }
    int last = num_kinds + 1;
    return (BalanceCosts){
        .layer_s = layer_s,
        .num_layers = model->num_layers,
        .first_s = prices.forward[0].time_s + prices.backward[0].time_s,
        .last_s = prices.forward[last].time_s + prices.backward[last].time_s,
    };
}

const PlanChunk *balance_chunks(const BalanceCosts *costs, int pp, int vpp, const PlanChunk *even,
                                Arena *arena, Arena *scratch) {
    int num_chunks = pp * vpp;
    int *even_layers = ARENA_ARRAY(scratch, num_chunks, int);
    for (int c = 0; c < num_chunks; c++) even_layers[c] = even[c].num_layers;
    int *layers = ARENA_ARRAY(scratch, num_chunks, int);
    double busiest_s = partition_interleaved(costs, pp, vpp, scratch, layers);
    double even_s = partition_cost(costs, pp, vpp, even_layers);
    if (busiest_s > (1 - BALANCE_MIN_GAIN_FRAC) * even_s) return NULL;

    PlanChunk *chunks = ARENA_ARRAY(arena, num_chunks, PlanChunk);
    for (int c = 0, layer = 0; c < num_chunks; c++) {
        chunks[c] = even[c];
        chunks[c].first_layer = layer;
        chunks[c].num_layers = layers[c];
        layer += layers[c];
    }
    return chunks;
}
