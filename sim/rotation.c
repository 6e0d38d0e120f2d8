#include "sim/rotation.h"

#include "plan/rank_place.h"

enum { NONE = -1 };

// What turns into what, of things of one numbering, and back.
typedef struct {
    int *image;  // [count] or NONE
    int *origin; // the same
} Turn;

static Turn turn_new(int count, Arena *arena) {
    Turn turn = {ARENA_ARRAY(arena, count, int), ARENA_ARRAY(arena, count, int)};
    for (int i = 0; i < count; i++) turn.image[i] = turn.origin[i] = NONE;
    return turn;
}

// Fails where one would turn into two, or two into one.
static bool turn_note(Turn *turn, int from, int to) {
    if (turn->image[from] == NONE && turn->origin[to] == NONE) {
        turn->image[from] = to;
        turn->origin[to] = from;
    }
    return turn->image[from] == to && turn->origin[to] == from;
}

static int rotated_gpu(const Rotation *rotation, int gpu) {
    const RankPlace place = rank_place(rotation->block_gpus, rotation->num_stages, gpu);
    return (int)rank_at(rotation->block_gpus, rotation->num_stages, place.stage,
                        (place.lane + rotation->period) % rotation->multiplicity);
}

// Whether a rotation moves every GPU by whole nodes or domains of this size.
static bool moves_whole(const Rotation *rotation, int size) {
    if (rotation->block_gpus == rotation->multiplicity)
        return rotation->period % size == 0 && rotation->multiplicity % size == 0;
    return rotation->period % rotation->block_gpus == 0 &&
           rotation->period * rotation->num_stages % size == 0 &&
           rotation->multiplicity * rotation->num_stages % size == 0;
}

// Notes what the links of all GPUs turn into.
static const char *links_turn(const Network *network, const Rotation *rotation, Turn *links) {
    static const char *const obstacles[GPU_LINKS] = {
        "",
        "",
        "they share NICs unevenly",
        "they share NICs unevenly",
        "they share leaf switches unevenly",
        "they share leaf switches unevenly",
    };
    for (int gpu = 0; gpu < rotation->num_stages * rotation->multiplicity; gpu++) {
        int from[GPU_LINKS], to[GPU_LINKS];
        network_gpu_links(network, gpu, from);
        network_gpu_links(network, rotated_gpu(rotation, gpu), to);
        for (int i = 0; i < GPU_LINKS; i++)
            if (!turn_note(links, from[i], to[i])) return obstacles[i];
    }
    const int domain = network->domain_gpus;
    for (int gpu = 0; gpu < rotation->num_stages * rotation->multiplicity; gpu += domain) {
        int from, to, num = network_domain_links(network, gpu / domain, &from);
        network_domain_links(network, rotated_gpu(rotation, gpu) / domain, &to);
        for (int i = 0; i < num; i++) turn_note(links, from + i, to + i);
    }
    return NULL;
}

static bool domains_turn(const Network *network, const Rotation *rotation, Arena *arena) {
    Turn domains = turn_new(network->num_gpus / network->domain_gpus + 1, arena);
    for (int gpu = 0; gpu < rotation->num_stages * rotation->multiplicity; gpu++) {
        int to = rotated_gpu(rotation, gpu);
        if (!turn_note(&domains, gpu / network->domain_gpus, to / network->domain_gpus))
            return false;
    }
    return true;
}

const char *network_rotates(const Network *network, const Rotation *rotation) {
    if (network->sites) {
        return network->sites->kind == SITE_NODE
                   ? "a bandwidth_matrix makes the network uneven for them"
                   : "the cluster is of several groups";
    }
    // Pairs of GPUs of a domain differ where it has no switch.
    if (network->wires && !moves_whole(rotation, network->domain_gpus))
        return "they are not whole scale-up domains, inside of which links are uneven";
    // Routes between rails depend on the place in the node.
    if (network->topology == TOPOLOGY_RAIL_ONLY && !moves_whole(rotation, network->gpus_per_node)) {
        return "they are not whole nodes, which rail-only needs";
    }
    Arena scratch = {0};
    Turn links = turn_new(network->num_links, &scratch);
    const char *why = NULL;
    if (!domains_turn(network, rotation, &scratch)) {
        why = "they lie across scale-up domains unevenly";
    } else {
        why = links_turn(network, rotation, &links);
    }
    arena_free(&scratch);
    return why;
}

void network_rotate(Network *network, const Rotation *rotation, Arena *arena) {
    Arena scratch = {0};
    Turn links = turn_new(network->num_links, &scratch);
    links_turn(network, rotation, &links);
    int num_turns = rotation->multiplicity / rotation->period;
    int *stand_in = ARENA_ARRAY(arena, network->num_links, int);
    for (int i = 0; i < network->num_links; i++) stand_in[i] = NONE;
    for (int first = 0; first < network->num_links; first++) {
        if (stand_in[first] != NONE) continue;
        if (links.image[first] == NONE) {
            stand_in[first] = first;
            continue;
        }
        int num_links = 0; // that turn into one another
        for (int i = first; stand_in[i] == NONE; i = links.image[i]) {
            stand_in[i] = first;
            num_links++;
        }
        network->link_bytes_per_s[first] /= (double)num_turns / num_links;
    }
    network->stand_in = stand_in;
    arena_free(&scratch);
}
