#include "sim/player.h"

#include "sim/sgx.h"

// Activities are handed to SimGrid only when they begin: its work per event grows with those alive.
typedef struct {
    const Dag *dag;
    Playback *playback;
    int32_t *num_waits; // [num_nodes] what is still to end
    int32_t *ready;     // stack of nodes that may begin now
    int num_ready;
    int num_ended;
} Player;

static void node_end(Player *player, int node) {
    const Dag *dag = player->dag;
    player->playback->end_s[node] = sgx_now_s();
    player->num_ended++;
    for (int i = dag->first_successor[node]; i < dag->first_successor[node + 1]; i++) {
        int after = dag->successors[i];
        if (--player->num_waits[after] == 0) player->ready[player->num_ready++] = after;
    }
}

static void node_move(Player *player, int node) {
    const DagNode *activity = &player->dag->nodes[node];
    // Less than half a byte is none to SimGrid.
    if (activity->route == NO_ROUTE || activity->bytes < 0.5) {
        node_end(player, node);
        return;
    }
    const DagRoute *route = &player->dag->routes[activity->route];
    player->playback->num_activities++;
    sgx_start_flow(route->links, route->num_links, activity->bytes, node);
}

// Begins all that is ready, and what becomes ready by ends without duration.
static void begin_ready(Player *player) {
    while (player->num_ready > 0) {
        int node = player->ready[--player->num_ready];
        player->playback->start_s[node] = sgx_now_s();
        if (player->dag->nodes[node].delay_s > 0) {
            player->playback->num_activities++;
            sgx_start_timer(player->dag->nodes[node].delay_s, node);
        } else {
            node_move(player, node);
        }
    }
}

static void timer_done(void *context, int node) {
    node_move(context, node);
    begin_ready(context);
}

static void flow_done(void *context, int node) {
    node_end(context, node);
    begin_ready(context);
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

Status dag_play(const Network *network, const Dag *dag, Arena *arena, Playback *out) {
    *out = (Playback){
        .start_s = ARENA_ARRAY(arena, dag->num_nodes, double),
        .end_s = ARENA_ARRAY(arena, dag->num_nodes, double),
    };
    Player player = {
        .dag = dag,
        .playback = out,
        .num_waits = ARENA_ARRAY(arena, dag->num_nodes, int32_t),
        .ready = ARENA_ARRAY(arena, dag->num_nodes, int32_t),
    };
    TRY(sgx_open(used_links(network, dag, arena), network->num_links));
    for (int i = dag->num_nodes; i-- > 0;) {
        player.num_waits[i] = dag->num_waits[i];
        if (player.num_waits[i] == 0) player.ready[player.num_ready++] = i;
    }
    begin_ready(&player);
    SgxEvents events = {.timer_done = timer_done, .flow_done = flow_done, .context = &player};
    TRY(sgx_run(&events));
    if (player.num_ended == dag->num_nodes) return status_ok();
    return status_error(STATUS_MACHINE, "%d of %d activities never began: they wait in a circle",
                        dag->num_nodes - player.num_ended, dag->num_nodes);
}
