#include "sim/player.h"

#include "sim/sgx.h"

#include <math.h>

// Only flows are SimGrid's: when all that an activity without one waits for has an end, it has,
// too, though that be in the future. So nothing happens at the end of a computation but in
// SimGrid's time where a flow begins then. Flows are handed to SimGrid when they begin: its work
// per event grows with those alive.
typedef struct {
    const Network *network;
    const Dag *dag;
    Playback *playback; // start_s: so far, the end of the last that each waits for
    Arena *scratch;
    int32_t *num_waits; // [num_nodes] what has no end yet
    int32_t *ready;     // stack of nodes whose beginning is known
    int num_ready, max_ready;
    int num_flows; // that wait for their beginning, or are under way
    int num_ended;
    bool *is_down; // [num_flaps] of the network
} Player;

static void ready_push(Player *player, int node) {
    if (player->num_ready == player->max_ready) {
        player->max_ready = player->max_ready ? 2 * player->max_ready : 1024;
        player->ready = arena_grow(player->scratch, player->ready,
                                   (size_t)player->max_ready * sizeof *player->ready);
    }
    player->ready[player->num_ready++] = node;
}

static void node_end(Player *player, int node, double end_s) {
    const Dag *dag = player->dag;
    double *start_s = player->playback->start_s;
    player->playback->end_s[node] = end_s;
    player->num_ended++;
    for (int i = dag->first_successor[node]; i < dag->first_successor[node + 1]; i++) {
        int after = dag->successors[i];
        if (start_s[after] < end_s) start_s[after] = end_s;
        if (--player->num_waits[after] == 0) ready_push(player, after);
    }
}

static void flow_start(Player *player, int node) {
    const DagNode *activity = &player->dag->nodes[node];
    const DagRoute *route = &player->dag->routes[activity->route];
    player->playback->num_activities++;
    const SgxRoute over = {route->links, route->more, route->num_links};
    sgx_start_flow(&over, activity->bytes, node);
}

static void node_begin(Player *player, int node) {
    const DagNode *activity = &player->dag->nodes[node];
    if (activity->delay_s > 0) player->playback->num_activities++;
    double moves_s = player->playback->start_s[node] + activity->delay_s;
    // Less than half a byte is none to SimGrid.
    if (activity->route == NO_ROUTE || activity->bytes < 0.5) {
        node_end(player, node, moves_s);
        return;
    }
    player->num_flows++;
    if (moves_s > sgx_now_s())
        sgx_start_timer(moves_s, node);
    else
        flow_start(player, node);
}

static void begin_ready(Player *player) {
    while (player->num_ready > 0) node_begin(player, player->ready[--player->num_ready]);
}

// A link that is down keeps so much of its capacity: flows stall, and the engine, which knows no
// link without any, can go on with them.
static const double DOWN_FRAC = 1e-9;

// Gives the link of a flap what is left to it, for several may share it.
static void link_set(const Player *player, int link) {
    const Network *network = player->network;
    double whole = network->link_bytes_per_s[link], left = whole;
    for (int i = 0; i < network->num_flaps; i++) {
        const LinkFlap *flap = &network->flaps[i];
        if (flap->link == link && player->is_down[i]) left -= flap->bytes_per_s;
    }
    sgx_set_link(link, fmax(left, DOWN_FRAC * whole));
}

// Flaps are timers with the numbers behind those of the nodes. They end with the last flow: without
// one, all that is left has its end.
static void flap_turn(Player *player, int number) {
    if (player->num_flows == 0) return;
    const LinkFlap *flap = &player->network->flaps[number];
    bool *is_down = &player->is_down[number];
    *is_down = !*is_down;
    link_set(player, flap->link);
    double lasts_s = *is_down ? flap->down_s : flap->period_s - flap->down_s;
    sgx_start_timer(sgx_now_s() + lasts_s, player->dag->num_nodes + number);
}

static void flaps_begin(Player *player) {
    for (int i = 0; i < player->network->num_flaps; i++) {
        const LinkFlap *flap = &player->network->flaps[i];
        double first_turn_s = flap->first_down_s;
        if (flap->first_down_s <= 0) {
            player->is_down[i] = true;
            link_set(player, flap->link);
            first_turn_s += flap->down_s;
        }
        sgx_start_timer(first_turn_s, player->dag->num_nodes + i);
    }
}

static void timer_done(void *context, int id) {
    Player *player = context;
    if (id >= player->dag->num_nodes) {
        flap_turn(player, id - player->dag->num_nodes);
        return;
    }
    flow_start(player, id);
}

static void flow_done(void *context, int node) {
    Player *player = context;
    player->num_flows--;
    node_end(player, node, sgx_now_s());
    begin_ready(player);
}

// The capacities of the links that flows cross, 0 for all others.
static double *used_links(const Network *network, const Dag *dag, Arena *arena) {
    double *bytes_per_s = ARENA_ARRAY(arena, network->num_links, double);
    for (int i = 0; i < dag->num_routes; i++) {
        for (int hop = 0; hop < dag->routes[i].num_links; hop++) {
            int link = dag->routes[i].links[hop];
            bytes_per_s[link] = network->link_bytes_per_s[link];
        }
    }
    return bytes_per_s;
}

static Status player_run(Player *player) {
    const Dag *dag = player->dag;
    double *bytes_per_s = used_links(player->network, dag, player->scratch);
    TRY(sgx_open(bytes_per_s, player->network->num_links));
    for (int i = dag->num_nodes; i-- > 0;) {
        player->num_waits[i] = dag->num_waits[i];
        if (player->num_waits[i] == 0) ready_push(player, i);
    }
    flaps_begin(player);
    begin_ready(player);
    SgxEvents events = {.timer_done = timer_done, .flow_done = flow_done, .context = player};
    TRY(sgx_run(&events));
    if (player->num_ended == dag->num_nodes) return status_ok();
    return status_error(STATUS_MACHINE, "%d of %d activities never began: they wait in a circle",
                        dag->num_nodes - player->num_ended, dag->num_nodes);
}

Status dag_play(const Network *network, const Dag *dag, Arena *arena, Playback *out) {
    Arena scratch = {0};
    *out = (Playback){
        .start_s = ARENA_ARRAY(arena, dag->num_nodes, double),
        .end_s = ARENA_ARRAY(arena, dag->num_nodes, double),
    };
    Player player = {
        .network = network,
        .dag = dag,
        .playback = out,
        .scratch = &scratch,
        .num_waits = ARENA_ARRAY(&scratch, dag->num_nodes, int32_t),
        .is_down = ARENA_ARRAY(&scratch, network->num_flaps, bool),
    };
    Status status = player_run(&player);
    arena_free(&scratch);
    return status;
}
