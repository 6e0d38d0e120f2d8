#include "runtime/expert_load.h"

#include "runtime/rank.h"

ExpertLoad expert_load_new(int num_layers, Arena *arena) {
    return (ExpertLoad){.num_layers = num_layers,
                        .rows = ARENA_ARRAY(arena, num_layers, double),
                        .even = ARENA_ARRAY(arena, num_layers, double)};
}

void expert_load_add(ExpertLoad *load, int layer, double rows, double even) {
    if (layer >= load->num_layers) return;
    load->rows[layer] += rows;
    load->even[layer] += even;
}

// The largest of all processes, of layers that this one may not have.
static Status layers_reduce(const Rank *rank, const ExpertLoad *load, double *sum, int *num) {
    double most[RANK_REDUCE_MOST];
    for (int from = 0; from < load->num_layers; from += RANK_REDUCE_MOST) {
        const int left = load->num_layers - from;
        const int count = left < RANK_REDUCE_MOST ? left : RANK_REDUCE_MOST;
        for (int i = 0; i < count; i++) {
            const double even = load->even[from + i];
            most[i] = even > 0 ? load->rows[from + i] / even : 0;
        }
        TRY(rank_reduce(rank, most, count, REDUCE_MAX));
        for (int i = 0; i < count; i++) {
            *sum += most[i];
            *num += most[i] > 0;
        }
    }
    return status_ok();
}

Status expert_load_of_step(Rank *rank, ExpertImbalance *out) {
    ExpertLoad *load = &rank->expert_load;
    *out = (ExpertImbalance){0};
    if (load->num_layers == 0) return status_ok();
    double rows = 0, even = 0, sum = 0;
    int num = 0;
    TRY(layers_reduce(rank, load, &sum, &num));
    for (int l = 0; l < load->num_layers; l++) {
        rows += load->rows[l];
        even += load->even[l];
        load->rows[l] = load->even[l] = 0;
    }
    double own = even > 0 ? rows / even : 0;
    TRY(rank_reduce(rank, &own, 1, REDUCE_MAX));
    *out = (ExpertImbalance){.of_layers = num > 0 ? sum / num : 0, .of_rank = own};
    return status_ok();
}
