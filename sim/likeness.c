#include "sim/likeness.h"

#include "base/numbers.h"
#include "config/cluster/node_order.h"
#include "sim/job_flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What takes more rounds to sort is told apart by its distance from some end, one by one.
enum { MAX_ROUNDS = 64 };

// A played flow crosses a link at most so many times: beyond that, whole numbers are rounded ones.
static const double MAX_CROSSINGS = 4096;

typedef struct {
    const Network *network;
    const JobFlows *flows;
    bool *is_left_out;   // [num_links]
    uint64_t *link_sort; // [num_links]
    int *sort;           // [num_replicas]
    int num_sorts;
} Sorting;

// --- Numbers that tell apart

static uint64_t mix_both(uint64_t a, uint64_t b) {
    return mix64(a ^ mix64(b));
}

// Of links that carry nothing yet: what they are and what they can carry.
static uint64_t link_seed(const Network *network, int link) {
    LinkName name = {0};
    int way = 0;
    uint64_t capacity;
    network_name_of(network, link, &name, &way);
    memcpy(&capacity, &network->link_bytes_per_s[link], sizeof capacity);
    return mix_both(capacity, (uint64_t)(2 * (int)name.kind + way));
}

// --- Leaves that limit nothing

static bool is_leaf(const Network *network, int link) {
    LinkName name;
    int way;
    return network_name_of(network, link, &name, &way) && name.kind == LINK_LEAF;
}

// The NICs beside the leaves of a route: what leaves a leaf has come from one, and goes to one.
static int leaves_leave_out(const Network *network, const JobFlows *flows, bool *is_left_out) {
    Arena scratch = {0};
    double *fed_bytes_per_s = ARENA_ARRAY(&scratch, network->num_links, double);
    bool *is_noted = ARENA_ARRAY(&scratch, network->num_links, bool); // a NIC, by its leaf
    bool *leaf = ARENA_ARRAY(&scratch, network->num_links, bool);
    for (int link = 0; link < network->num_links; link++) leaf[link] = is_leaf(network, link);
    const int num_flows = flows->num_ways * flows->num_replicas;
    for (int flow = 0; flow < num_flows; flow++) {
        for (int i = flows->first_link[flow]; i < flows->first_link[flow + 1]; i++) {
            LinkName name;
            int way;
            if (!leaf[flows->links[i]]) continue;
            network_name_of(network, flows->links[i], &name, &way);
            const int nic = flows->links[way ? i + 1 : i - 1]; // up comes after, down before it
            if (is_noted[nic]) continue;
            is_noted[nic] = true;
            fed_bytes_per_s[flows->links[i]] += network->link_bytes_per_s[nic];
        }
    }
    int num = 0;
    for (int link = 0; link < network->num_links; link++) {
        if (!leaf[link]) continue;
        is_left_out[link] = fed_bytes_per_s[link] <= network->link_bytes_per_s[link] * (1 + 1e-9);
        num += is_left_out[link];
    }
    arena_free(&scratch);
    return num;
}

// --- Rounds

static void links_sort(Sorting *sorting) {
    const JobFlows *flows = sorting->flows;
    for (int link = 0; link < sorting->network->num_links; link++) sorting->link_sort[link] = 0;
    for (int way = 0; way < flows->num_ways; way++) {
        for (int replica = 0; replica < flows->num_replicas; replica++) {
            const int flow = way * flows->num_replicas + replica;
            const uint64_t sort = mix_both((uint64_t)way, (uint64_t)sorting->sort[replica]);
            for (int i = flows->first_link[flow]; i < flows->first_link[flow + 1]; i++)
                sorting->link_sort[flows->links[i]] += sort;
        }
    }
    for (int link = 0; link < sorting->network->num_links; link++)
        sorting->link_sort[link] =
            mix_both(sorting->link_sort[link], link_seed(sorting->network, link));
}

static void links_add(const Sorting *sorting, uint64_t *marks) {
    const JobFlows *flows = sorting->flows;
    for (int way = 0; way < flows->num_ways; way++) {
        for (int replica = 0; replica < flows->num_replicas; replica++) {
            const int flow = way * flows->num_replicas + replica;
            for (int i = flows->first_link[flow]; i < flows->first_link[flow + 1]; i++) {
                const int link = flows->links[i];
                if (sorting->is_left_out[link]) continue;
                marks[replica] = mix_both(marks[replica], sorting->link_sort[link]);
            }
            marks[replica] = mix64(marks[replica]);
        }
    }
}

// Which sorts are in the group of each, however many of one.
static void group_add(const Sorting *sorting, const int *firsts, uint64_t *marks, Arena *scratch) {
    const int num = sorting->flows->num_replicas;
    // By group, its members one after the other.
    int *next = ARENA_ARRAY(scratch, num, int), *head = ARENA_ARRAY(scratch, num, int);
    int *seen = ARENA_ARRAY(scratch, sorting->num_sorts, int); // 1 + the last group with it
    for (int i = 0; i < num; i++) head[i] = -1;
    for (int i = 0; i < num; i++) {
        next[i] = head[firsts[i]];
        head[firsts[i]] = i;
    }
    for (int group = 0; group < num; group++) {
        uint64_t all = 0;
        for (int i = head[group]; i >= 0; i = next[i]) {
            int *last = &seen[sorting->sort[i]];
            if (*last != group + 1) all += mix64((uint64_t)sorting->sort[i]);
            *last = group + 1;
        }
        for (int i = head[group]; i >= 0; i = next[i]) marks[i] = mix_both(marks[i], all);
    }
}

typedef struct {
    uint64_t mark;
    int replica;
} Marked;

static int marked_compare(const void *a, const void *b) {
    const Marked *x = a, *y = b;
    if (x->mark != y->mark) return x->mark < y->mark ? -1 : 1;
    return x->replica - y->replica;
}

// Sorts numbered in the order of their first replicas.
static void sorts_number(Sorting *sorting, const uint64_t *marks, Arena *scratch) {
    const int num = sorting->flows->num_replicas;
    Marked *marked = ARENA_ARRAY(scratch, num, Marked);
    int *first = ARENA_ARRAY(scratch, num, int);
    for (int i = 0; i < num; i++) marked[i] = (Marked){marks[i], i};
    qsort(marked, (size_t)num, sizeof *marked, marked_compare);
    for (int i = 0; i < num; i++) {
        const bool same = i > 0 && marked[i - 1].mark == marked[i].mark;
        first[marked[i].replica] = same ? first[marked[i - 1].replica] : marked[i].replica;
    }
    sorting->num_sorts = 0;
    for (int i = 0; i < num; i++)
        sorting->sort[i] = first[i] == i ? sorting->num_sorts++ : sorting->sort[first[i]];
}

static void round_go(Sorting *sorting) {
    Arena scratch = {0};
    const int num = sorting->flows->num_replicas;
    uint64_t *marks = ARENA_ARRAY(&scratch, num, uint64_t);
    for (int i = 0; i < num; i++) marks[i] = mix64((uint64_t)sorting->sort[i]);
    links_sort(sorting);
    links_add(sorting, marks);
    for (int i = 0; i < sorting->flows->num_groups; i++)
        group_add(sorting, sorting->flows->group_firsts[i], marks, &scratch);
    sorts_number(sorting, marks, &scratch);
    arena_free(&scratch);
}

// Whether enough are alike when nothing tells them apart any more.
static bool sort_to_end(Sorting *sorting) {
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const int before = sorting->num_sorts;
        round_go(sorting);
        if (2 * sorting->num_sorts > sorting->flows->num_replicas) return false;
        if (sorting->num_sorts == before) return true;
    }
    return false;
}

// As many rounds, one or more, as leave so many sorts at most; the same of these.
static bool sort_up_to(Sorting *sorting, int most_sorts) {
    Arena scratch = {0};
    const int num_replicas = sorting->flows->num_replicas, num_links = sorting->network->num_links;
    int *sort = ARENA_ARRAY(&scratch, num_replicas, int);
    uint64_t *link_sort = ARENA_ARRAY(&scratch, num_links, uint64_t);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const int before = sorting->num_sorts;
        memcpy(sort, sorting->sort, (size_t)num_replicas * sizeof *sort);
        memcpy(link_sort, sorting->link_sort, (size_t)num_links * sizeof *link_sort);
        round_go(sorting);
        if (sorting->num_sorts == before) break;
        if (round == 0 || sorting->num_sorts <= most_sorts) continue;
        sorting->num_sorts = before;
        memcpy(sorting->sort, sort, (size_t)num_replicas * sizeof *sort);
        memcpy(sorting->link_sort, link_sort, (size_t)num_links * sizeof *link_sort);
        break;
    }
    arena_free(&scratch);
    return 2 * sorting->num_sorts <= num_replicas;
}

// --- Links that are played

typedef struct {
    uint64_t sort;
    int link;
} SortedLink;

static int sorted_link_compare(const void *a, const void *b) {
    const SortedLink *x = a, *y = b;
    if (x->sort != y->sort) return x->sort < y->sort ? -1 : 1;
    return x->link - y->link;
}

// Which stands for which, and for how many.
static int *links_stand_in(const Sorting *sorting, int *num_alike, Arena *arena) {
    Arena scratch = {0};
    const int num_links = sorting->network->num_links;
    SortedLink *sorted = ARENA_ARRAY(&scratch, num_links, SortedLink);
    int *stand_in = ARENA_ARRAY(arena, num_links, int);
    for (int i = 0; i < num_links; i++) sorted[i] = (SortedLink){sorting->link_sort[i], i};
    qsort(sorted, (size_t)num_links, sizeof *sorted, sorted_link_compare);
    for (int i = 0; i < num_links; i++) {
        const int link = sorted[i].link;
        const bool same = i > 0 && sorted[i - 1].sort == sorted[i].sort;
        stand_in[link] = same ? stand_in[sorted[i - 1].link] : link;
        num_alike[stand_in[link]]++;
    }
    for (int i = 0; i < num_links; i++)
        if (sorting->is_left_out[i]) stand_in[i] = LINK_LEFT_OUT;
    arena_free(&scratch);
    return stand_in;
}

// Of the replicas that the played flows over a link stand for: common divisor, and most.
static void crossings_find(const JobFlows *flows, const Likeness *likeness, int *divisor,
                           int *most) {
    const Lanes *lanes = &likeness->lanes;
    for (int way = 0; way < flows->num_ways; way++) {
        for (int lane = 0; lane < lanes->num_lanes; lane++) {
            const int flow = way * flows->num_replicas + lanes->replica[lane];
            const int num = lanes->num_alike[lane];
            for (int i = flows->first_link[flow]; i < flows->first_link[flow + 1]; i++) {
                const int link = likeness->stand_in[flows->links[i]];
                if (link == LINK_LEFT_OUT) continue;
                divisor[link] = (int)common_divisor(num, divisor[link]);
                if (num > most[link]) most[link] = num;
            }
        }
    }
}

// All links of a sort together carry what all replicas of the flows over them send. So the played
// one is all of them, over what the numbers of these flows have in common, so that each crosses it
// a whole number of times. Where the sorting has come to its end, the links of a sort share out
// each of these numbers evenly.
static bool links_measure(const Sorting *sorting, bool exact, const int *num_alike, Arena *arena,
                          Likeness *likeness) {
    Arena scratch = {0};
    const Network *network = sorting->network;
    int *divisor = ARENA_ARRAY(&scratch, network->num_links, int);
    int *most = ARENA_ARRAY(&scratch, network->num_links, int);
    double *unit = ARENA_ARRAY(arena, network->num_links, double);
    double *bytes_per_s = ARENA_ARRAY(arena, network->num_links, double);
    bool whole = true;
    crossings_find(sorting->flows, likeness, divisor, most);
    for (int link = 0; link < network->num_links; link++) {
        if (divisor[link] == 0) continue;
        unit[link] = fmin(1.0 / divisor[link], MAX_CROSSINGS / most[link]);
        whole &=
            divisor[link] % num_alike[link] == 0 && most[link] <= MAX_CROSSINGS * divisor[link];
        bytes_per_s[link] = network->link_bytes_per_s[link] * num_alike[link] * unit[link];
    }
    likeness->link_unit = unit;
    likeness->link_bytes_per_s = bytes_per_s;
    arena_free(&scratch);
    return whole || !exact;
}

// --- The whole

bool likeness_find(const LowerInput *input, int num_folded, int most_lanes, Arena *arena,
                   Likeness *out) {
    Arena scratch = {0};
    const Network network = network_build(input->cluster, num_folded, &scratch);
    const JobFlows flows = job_flows(input, &network, num_folded, &scratch);
    Sorting sorting = {.network = &network, .flows = &flows, .num_sorts = 1};
    sorting.is_left_out = ARENA_ARRAY(&scratch, network.num_links, bool);
    sorting.link_sort = ARENA_ARRAY(&scratch, network.num_links, uint64_t);
    sorting.sort = ARENA_ARRAY(arena, flows.num_replicas, int);
    *out = (Likeness){0};
    out->num_leaves_left_out = leaves_leave_out(&network, &flows, sorting.is_left_out);
    const bool exact = most_lanes == LIKENESS_EXACT;
    bool found = exact ? sort_to_end(&sorting) : sort_up_to(&sorting, most_lanes);
    if (found) {
        int *num_alike = ARENA_ARRAY(&scratch, network.num_links, int);
        out->lanes =
            lanes_of(num_folded, flows.num_replicas, sorting.num_sorts, sorting.sort, arena);
        out->stand_in = links_stand_in(&sorting, num_alike, arena);
        found = links_measure(&sorting, exact, num_alike, arena, out);
    }
    arena_free(&scratch);
    return found;
}

void network_merge(Network *network, const LowerInput *input, const Likeness *likeness,
                   Arena *arena) {
    const Lanes *lanes = &likeness->lanes;
    int *num_alike = ARENA_ARRAY(arena, network->num_gpus, int);
    for (int rank = 0; rank < input->program->num_ranks; rank++) {
        for (int lane = 0; lane < lanes->num_lanes; lane++) {
            const int number =
                program_gpu(input->program, rank, lanes->replica[lane] * lanes->num_folded);
            num_alike[cluster_gpu_of_rank(input->cluster, number)] = lanes->num_alike[lane];
        }
    }
    for (int link = 0; link < network->num_links; link++)
        if (likeness->link_unit[link] > 0)
            network->link_bytes_per_s[link] = likeness->link_bytes_per_s[link];
    network->stand_in = likeness->stand_in;
    network->link_unit = likeness->link_unit;
    network->num_alike = num_alike;
}
