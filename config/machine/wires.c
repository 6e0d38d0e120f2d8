#include "config/machine/wires.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// --- Links and routes of a mesh

// NVLinks from one GPU to another, given back link by link while rings are found.
typedef struct {
    int num_gpus;
    int count[LINK_MAX_MESH][LINK_MAX_MESH];
} Mesh;

static int link_of(const Link *link, const Wires *wires, int from, int to) {
    if (link->mesh[from][to] == 0) return -1;
    for (int i = 0; i < wires->num_links; i++)
        if (wires->ends[i][0] == from && wires->ends[i][1] == to) return i;
    return -1;
}

// Directly, or over the GPU with the most NVLinks on the narrower part of the way, the first of
// those. A GPU that no other joins to the next has none: link_read has seen to that.
static WireRoute route_find(const Link *link, const Wires *wires, int from, int to) {
    int direct = link_of(link, wires, from, to), over = -1, widest = 0;
    if (direct >= 0) return (WireRoute){1, {direct}};
    for (int gpu = 0; gpu < wires->num_gpus; gpu++) {
        int first = link->mesh[from][gpu], second = link->mesh[gpu][to];
        int width = first < second ? first : second;
        if (width <= widest) continue;
        widest = width;
        over = gpu;
    }
    if (over < 0) return (WireRoute){0};
    return (WireRoute){2, {link_of(link, wires, from, over), link_of(link, wires, over, to)}};
}

// --- Rings

typedef struct {
    Mesh mesh; // NVLinks that no ring has yet
    int size;
    const int *members;
    int wanted; // rings
    int *rings; // [wanted][size]
} RingSearch;

static bool rings_extend(RingSearch *search, int ring, int length);

static bool ring_step(RingSearch *search, int ring, int length, int to) {
    int *order = &search->rings[ring * search->size], from = order[length - 1];
    if (search->mesh.count[from][to] == 0) return false;
    search->mesh.count[from][to]--;
    search->mesh.count[to][from]--;
    bool closed = length == search->size;
    if (!closed) order[length] = to;
    if (closed ? rings_extend(search, ring + 1, 0) : rings_extend(search, ring, length + 1))
        return true;
    search->mesh.count[from][to]++;
    search->mesh.count[to][from]++;
    return false;
}

static bool is_in(const int *order, int length, int gpu) {
    for (int i = 0; i < length; i++)
        if (order[i] == gpu) return true;
    return false;
}

// Finishes ring `ring`, of which `length` members stand, and those after it.
static bool rings_extend(RingSearch *search, int ring, int length) {
    if (ring == search->wanted) return true;
    int *order = &search->rings[ring * search->size];
    if (length == 0) {
        order[0] = search->members[0];
        return rings_extend(search, ring, 1);
    }
    if (length == search->size) return ring_step(search, ring, length, order[0]);
    for (int i = 1; i < search->size; i++) {
        int to = search->members[i];
        if (!is_in(order, length, to) && ring_step(search, ring, length, to)) return true;
    }
    return false;
}

static int fewest_links(const Mesh *mesh, const int *members, int size) {
    int fewest = INT_MAX;
    for (int i = 0; i < size; i++) {
        int sum = 0;
        for (int k = 0; k < size; k++) sum += mesh->count[members[i]][members[k]];
        if (sum < fewest) fewest = sum;
    }
    return fewest;
}

// Rings of three and more use two NVLinks of each member, and are run both ways.
static WireRings rings_find(const Mesh *mesh, const int *members, int size, Arena *arena) {
    int num =
        size == 2 ? mesh->count[members[0]][members[1]] : fewest_links(mesh, members, size) / 2;
    int *orders = ARENA_ARRAY(arena, (num + 1) * 2 * size, int);
    if (size == 2) {
        for (int ring = 0; ring < num; ring++) memcpy(&orders[2 * ring], members, 2 * sizeof(int));
        if (num > 0) return (WireRings){num, orders};
    }
    for (; num > 0; num--) {
        RingSearch search = {*mesh, size, members, num, orders};
        if (rings_extend(&search, 0, 0)) break;
    }
    if (num == 0) {
        memcpy(orders, members, (size_t)size * sizeof(int));
        if (size == 2) return (WireRings){1, orders};
        num = 1;
    }
    for (int ring = 0; ring < num; ring++)
        for (int i = 0; i < size; i++)
            orders[(num + ring) * size + i] = orders[ring * size + size - 1 - i];
    return (WireRings){2 * num, orders};
}

// --- What they get

static void route_load(const Wires *wires, int from, int to, double frac, double *load) {
    const WireRoute *route = wires_route(wires, from, to);
    for (int i = 0; i < route->num_links; i++) load[route->links[i]] += frac;
}

// The rate at which what loads its links like this moves.
static double loaded_bytes_per_s(const Wires *wires, double *load) {
    double least = INFINITY;
    for (int i = 0; i < wires->num_links; i++) {
        if (load[i] > 0) least = fmin(least, wires->bytes_per_s[i] / load[i]);
        load[i] = 0;
    }
    return least;
}

static bool begins_group(int first, int size, int stride, int num_gpus) {
    return first / stride % size == 0 && first + (size - 1) * stride < num_gpus;
}

static WireRings rings_of(const Mesh *mesh, const int *members, int size, Arena *arena) {
    if (mesh) return rings_find(mesh, members, size, arena);
    int *order = ARENA_ARRAY(arena, size, int);
    memcpy(order, members, (size_t)size * sizeof *order);
    return (WireRings){1, order};
}

static void ring_load(const Wires *wires, const WireRings *rings, int size, double *load) {
    for (int i = 0; i < rings->num_rings * size; i++) {
        int next = i % size == size - 1 ? i - size + 1 : i + 1;
        route_load(wires, rings->members[i], rings->members[next], 1.0 / rings->num_rings, load);
    }
}

static void pairs_load(const Wires *wires, int first, int size, int stride, double *load) {
    for (int i = 0; i < size * size; i++)
        if (i / size != i % size)
            route_load(wires, first + i / size * stride, first + i % size * stride,
                       1.0 / (size - 1), load);
}

static WireRates rates_find(const Wires *wires, const WireRings *rings, int size, int stride,
                            RankSpan gpus) {
    WireRates rates = {wires->port_bytes_per_s, wires->port_bytes_per_s};
    double load[WIRES_MAX_LINKS] = {0};
    for (int i = 0; i < wires->num_gpus; i++)
        if (rings[i].num_rings > 0 && span_holds(&gpus, i)) ring_load(wires, &rings[i], size, load);
    rates.ring_bytes_per_s = fmin(rates.ring_bytes_per_s, loaded_bytes_per_s(wires, load));
    for (int i = 0; i < wires->num_gpus; i++)
        if (rings[i].num_rings > 0 && span_holds(&gpus, i))
            pairs_load(wires, i, size, stride, load);
    rates.pairs_bytes_per_s = fmin(rates.pairs_bytes_per_s, loaded_bytes_per_s(wires, load));
    return rates;
}

//   mesh  NULL of a tree
static WireShape shape_find(const Wires *wires, const Mesh *mesh, int size, int stride,
                            Arena *arena) {
    WireRings *rings = ARENA_ARRAY(arena, wires->num_gpus, WireRings);
    int members[WIRES_MAX_GPUS];
    for (int first = 0; first < wires->num_gpus; first++) {
        if (!begins_group(first, size, stride, wires->num_gpus)) continue;
        for (int i = 0; i < size; i++) members[i] = first + i * stride;
        rings[first] = rings_of(mesh, members, size, arena);
    }
    const RankSpan all = {.num = wires->num_gpus};
    return (WireShape){rates_find(wires, rings, size, stride, all), rings};
}

static const WireShape *shapes_find(const Wires *wires, const Mesh *mesh, Arena *arena) {
    const int side = wires->num_gpus + 1;
    WireShape *shapes = ARENA_ARRAY(arena, side * side, WireShape);
    for (int size = 2; size < side; size++)
        for (int stride = 1; (size - 1) * stride < wires->num_gpus; stride++)
            shapes[size * side + stride] = shape_find(wires, mesh, size, stride, arena);
    return shapes;
}

const Wires *wires_mesh(const Link *link, int num_gpus, Arena *arena) {
    Wires *wires = ARENA_NEW(arena, Wires);
    Mesh mesh = {.num_gpus = num_gpus};
    double *bytes_per_s = ARENA_ARRAY(arena, num_gpus * num_gpus, double);
    int(*ends)[2] = arena_array(arena, (size_t)(num_gpus * num_gpus), sizeof *ends);
    *wires = (Wires){.num_gpus = num_gpus,
                     .bytes_per_s = bytes_per_s,
                     .ends = (const int(*)[2])ends,
                     .port_bytes_per_s = link->bandwidth_bytes_per_s};
    for (int i = 0; i < num_gpus * num_gpus; i++) {
        int from = i / num_gpus, to = i % num_gpus, count = link->mesh[from][to];
        mesh.count[from][to] = count;
        if (count == 0) continue;
        ends[wires->num_links][0] = from;
        ends[wires->num_links][1] = to;
        bytes_per_s[wires->num_links++] =
            link->bandwidth_bytes_per_s * count / link->mesh_links_per_gpu;
    }
    WireRoute *routes = ARENA_ARRAY(arena, num_gpus * num_gpus, WireRoute);
    for (int i = 0; i < num_gpus * num_gpus; i++)
        if (i / num_gpus != i % num_gpus)
            routes[i] = route_find(link, wires, i / num_gpus, i % num_gpus);
    wires->routes = routes;
    wires->shapes = shapes_find(wires, &mesh, arena);
    return wires;
}

// --- Trees

// Links of a tree: from switches to roots, back, and from socket to socket.
static int socket_link(const Wires *wires, int num_sockets, int from, int to) {
    return 2 * wires->num_switches + from * num_sockets + to;
}

static WireRoute tree_route(const Wires *wires, const PcieTree *tree, int switches_per_socket,
                            int from, int to) {
    const int up = from / tree->gpus_per_switch, down = to / tree->gpus_per_switch;
    if (up == down) return (WireRoute){0};
    const int out = up / switches_per_socket, in = down / switches_per_socket;
    if (out == in) return (WireRoute){2, {up, wires->num_switches + down}};
    return (WireRoute){
        3, {up, socket_link(wires, tree->num_sockets, out, in), wires->num_switches + down}};
}

const Wires *wires_tree(const PcieTree *tree, double port_bytes_per_s, int whole_gpus, int num_gpus,
                        Arena *arena) {
    const int num_sockets = tree->num_sockets;
    const int switches_per_socket = whole_gpus / tree->gpus_per_switch / num_sockets;
    const int num_switches = (num_gpus + tree->gpus_per_switch - 1) / tree->gpus_per_switch;
    Wires *wires = ARENA_NEW(arena, Wires);
    *wires = (Wires){.num_gpus = num_gpus,
                     .num_links = 2 * num_switches + num_sockets * num_sockets,
                     .num_switches = num_switches,
                     .port_bytes_per_s = port_bytes_per_s};
    double *bytes_per_s = ARENA_ARRAY(arena, wires->num_links, double);
    int(*ends)[2] = arena_array(arena, (size_t)wires->num_links, sizeof *ends);
    for (int i = 0; i < wires->num_links; i++) {
        const int pair = i - 2 * num_switches;
        bytes_per_s[i] = pair < 0 ? port_bytes_per_s : tree->socket_bytes_per_s;
        ends[i][0] = pair >= 0 ? pair / num_sockets : i < num_switches ? i : WIRES_ROOT;
        ends[i][1] = pair >= 0          ? pair % num_sockets
                     : i < num_switches ? WIRES_ROOT
                                        : i - num_switches;
    }
    WireRoute *routes = ARENA_ARRAY(arena, num_gpus * num_gpus, WireRoute);
    for (int i = 0; i < num_gpus * num_gpus; i++)
        routes[i] = tree_route(wires, tree, switches_per_socket, i / num_gpus, i % num_gpus);
    wires->bytes_per_s = bytes_per_s;
    wires->ends = (const int(*)[2])ends;
    wires->routes = routes;
    wires->shapes = shapes_find(wires, NULL, arena);
    return wires;
}

const WireRoute *wires_route(const Wires *wires, int from, int to) {
    return &wires->routes[from * wires->num_gpus + to];
}

const WireShape *wires_shape(const Wires *wires, int size, int stride) {
    if (size < 2 || stride < 1 || (size - 1) * stride >= wires->num_gpus) return NULL;
    return &wires->shapes[size * (wires->num_gpus + 1) + stride];
}

WireRates wires_rates(const Wires *wires, int size, int stride, RankSpan gpus) {
    const WireShape *shape = wires_shape(wires, size, stride);
    if (!shape) return (WireRates){wires->port_bytes_per_s, wires->port_bytes_per_s};
    bool begins = false;
    for (int i = 0; i < wires->num_gpus; i++)
        begins |= shape->rings[i].num_rings > 0 && span_holds(&gpus, i);
    const bool all = gpus.block == 0 && gpus.num == wires->num_gpus;
    if (all || !begins) return shape->rates;
    return rates_find(wires, shape->rings, size, stride, gpus);
}
