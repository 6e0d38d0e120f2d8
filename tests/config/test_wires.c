// The hybrid cube mesh of hw-profiles/links/nvlink2.json: 6 NVLinks a GPU, of 25 GB/s each way; and
// a tree of PCIe switches.
#include "config/machine/wires.h"

#include <CUnit/CUnit.h>

#include <string.h>

typedef struct {
    Arena arena;
    Link link;
    const Wires *wires;
} WiresCase;

static bool mesh_case(WiresCase *c, int num_gpus) {
    *c = (WiresCase){0};
    Status status = link_load_named("nvlink2", &c->arena, &c->link);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code == STATUS_OK) c->wires = wires_mesh(&c->link, num_gpus, &c->arena);
    return c->wires != NULL;
}

// The GPUs on a route, as "047".
static const char *way(WiresCase *c, int from, int to) {
    const WireRoute *route = wires_route(c->wires, from, to);
    const char *text = arena_printf(&c->arena, "%d", from);
    for (int i = 0; i < route->num_links; i++) {
        const int *ends = c->wires->ends[route->links[i]];
        CU_ASSERT_EQUAL(ends[0], text[strlen(text) - 1] - '0');
        text = arena_printf(&c->arena, "%s%d", text, ends[1]);
    }
    return text;
}

// 4 and 3 both lie between 0 and 7; to 4 there are two NVLinks all the way, from 3 one.
static void a_message_takes_its_pair_or_the_widest_way(void) {
    WiresCase c;
    if (mesh_case(&c, 8)) {
        CU_ASSERT_STRING_EQUAL(way(&c, 0, 3), "03");
        CU_ASSERT_STRING_EQUAL(way(&c, 0, 7), "047");
        CU_ASSERT_STRING_EQUAL(way(&c, 7, 0), "740");
        CU_ASSERT_STRING_EQUAL(way(&c, 2, 4), "204");
        CU_ASSERT_STRING_EQUAL(way(&c, 5, 0), "510");
        CU_ASSERT_EQUAL(c.wires->num_links, 32);
        CU_ASSERT_EQUAL(c.wires->bytes_per_s[wires_route(c.wires, 0, 4)->links[0]], 50e9);
        CU_ASSERT_EQUAL(c.wires->bytes_per_s[wires_route(c.wires, 4, 5)->links[0]], 25e9);
    }
    arena_free(&c.arena);
}

// How often the rings of a group use each link, which has that many NVLinks or more.
static int num_used(const WiresCase *c, int size, int stride, int first) {
    const WireRings *rings = &wires_shape(c->wires, size, stride)->rings[first];
    int used[64] = {0}, sum = 0;
    for (int i = 0; i < rings->num_rings * size; i++) {
        int next = i % size == size - 1 ? i - size + 1 : i + 1;
        const WireRoute *route = wires_route(c->wires, rings->members[i], rings->members[next]);
        CU_ASSERT_EQUAL(route->num_links, 1);
        used[route->links[0]]++;
    }
    for (int i = 0; i < c->wires->num_links; i++) {
        CU_ASSERT(used[i] <= c->wires->bytes_per_s[i] / 25e9 + 0.5);
        sum += used[i];
    }
    return sum;
}

// Three rings both ways are all 6 NVLinks of 8 GPUs, in each direction.
static void all_gpus_use_all_nvlinks(void) {
    WiresCase c;
    if (mesh_case(&c, 8)) {
        const WireShape *shape = wires_shape(c.wires, 8, 1);
        CU_ASSERT_EQUAL(shape->rings[0].num_rings, 6);
        CU_ASSERT_EQUAL(num_used(&c, 8, 1, 0), 48);
        CU_ASSERT_DOUBLE_EQUAL(shape->rates.ring_bytes_per_s, 150e9, 1);
        for (int ring = 0; ring < 6; ring++) {
            int seen = 0;
            for (int i = 0; i < 8; i++) seen |= 1 << shape->rings[0].members[8 * ring + i];
            CU_ASSERT_EQUAL(seen, 255);
        }
    }
    arena_free(&c.arena);
}

// Two rings both ways in a quad: GPU 0 has 4 NVLinks there. One over 0, 2, 6, 4. Of the pairs that
// are neighbours in number 0, 1 have one NVLink.
static void fewer_gpus_use_those_between_them(void) {
    WiresCase c;
    if (mesh_case(&c, 8)) {
        const WireShape *quads = wires_shape(c.wires, 4, 1), *even = wires_shape(c.wires, 4, 2);
        const WireShape *pairs = wires_shape(c.wires, 2, 1);
        CU_ASSERT(quads->rings[0].num_rings == 4 && quads->rings[4].num_rings == 4);
        CU_ASSERT_EQUAL(num_used(&c, 4, 1, 0), 16);
        CU_ASSERT_DOUBLE_EQUAL(quads->rates.ring_bytes_per_s, 100e9, 1);
        CU_ASSERT_EQUAL(even->rings[0].num_rings, 2);
        CU_ASSERT_DOUBLE_EQUAL(even->rates.ring_bytes_per_s, 50e9, 1);
        CU_ASSERT(pairs->rings[0].num_rings == 1 && pairs->rings[2].num_rings == 2);
        CU_ASSERT_DOUBLE_EQUAL(pairs->rates.ring_bytes_per_s, 25e9, 1);
        CU_ASSERT_PTR_NULL(wires_shape(c.wires, 2, 8));
        CU_ASSERT_DOUBLE_EQUAL(wires_rates(c.wires, 2, 1, (RankSpan){0, 2, 0, 0}).ring_bytes_per_s,
                               25e9, 1);
        CU_ASSERT_DOUBLE_EQUAL(wires_rates(c.wires, 2, 1, (RankSpan){2, 2, 0, 0}).ring_bytes_per_s,
                               50e9, 1);
        CU_ASSERT_DOUBLE_EQUAL(wires_rates(c.wires, 2, 1, (RankSpan){0, 4, 0, 0}).ring_bytes_per_s,
                               25e9, 1);
        CU_ASSERT_DOUBLE_EQUAL(wires_rates(c.wires, 2, 1, (RankSpan){2, 2, 0, 0}).pairs_bytes_per_s,
                               50e9, 1);
        // 0, 1 and 4, 5 of two stages that alternate, and 2, 3 and 6, 7 of the other.
        for (int stage = 0; stage < 2; stage++)
            CU_ASSERT_DOUBLE_EQUAL(
                wires_rates(c.wires, 2, 1, (RankSpan){2 * stage, 4, 2, 4}).ring_bytes_per_s,
                stage ? 50e9 : 25e9, 1);
    }
    arena_free(&c.arena);
}

// 0, 3 and 6: no NVLink between 6 and either, so the ring goes over 2 from 3 to 6 and from 6 to 0,
// and so it does the other way: both share the NVLink from 2 to 6.
static void what_no_ring_joins_goes_over_others(void) {
    WiresCase c;
    if (mesh_case(&c, 8)) {
        const WireShape *shape = wires_shape(c.wires, 3, 3);
        CU_ASSERT_EQUAL(shape->rings[0].num_rings, 2);
        CU_ASSERT_STRING_EQUAL(way(&c, 3, 6), "326");
        CU_ASSERT_DOUBLE_EQUAL(shape->rates.ring_bytes_per_s, 25e9, 1);
    }
    arena_free(&c.arena);
}

// NVIDIA/nccl issue 713: 6 channels over 4 GPUs with 2 NVLinks between each two.
static void four_gpus_joined_in_pairs_make_three_rings(void) {
    Arena arena = {0};
    Link link = {.bandwidth_bytes_per_s = 150e9, .mesh_gpus = 4, .mesh_links_per_gpu = 6};
    for (int i = 0; i < 16; i++) link.mesh[i / 4][i % 4] = i / 4 == i % 4 ? 0 : 2;
    const WireShape *shape = wires_shape(wires_mesh(&link, 4, &arena), 4, 1);
    CU_ASSERT_EQUAL(shape->rings[0].num_rings, 6);
    CU_ASSERT_DOUBLE_EQUAL(shape->rates.ring_bytes_per_s, 150e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(shape->rates.pairs_bytes_per_s, 150e9, 1);
    arena_free(&arena);
}

// A node of which only the first GPUs are there has what lies between those.
static void part_of_a_mesh_is_its_first_gpus(void) {
    WiresCase c;
    for (int num_gpus = 2; num_gpus < 8; num_gpus++) {
        if (mesh_case(&c, num_gpus)) {
            for (int i = 0; i < num_gpus * num_gpus; i++) {
                if (i / num_gpus == i % num_gpus) continue;
                CU_ASSERT(wires_route(c.wires, i / num_gpus, i % num_gpus)->num_links > 0);
            }
            CU_ASSERT(wires_shape(c.wires, num_gpus, 1)->rates.ring_bytes_per_s >= 25e9);
        }
        arena_free(&c.arena);
    }
}

// 8 GPUs of 30 GB/s, 2 to a switch, 2 switches to a socket, 20 GB/s between the sockets. Links: 4
// up, 4 down, then from socket to socket.
static const Wires *tree_case(Arena *arena) {
    const PcieTree tree = {.gpus_per_switch = 2, .num_sockets = 2, .socket_bytes_per_s = 20e9};
    return wires_tree(&tree, 30e9, 8, 8, arena);
}

static void assert_tree_route(const Wires *wires, int from, int to, int num_links,
                              const int links[]) {
    const WireRoute *route = wires_route(wires, from, to);
    CU_ASSERT_EQUAL_FATAL(route->num_links, num_links);
    for (int i = 0; i < num_links; i++) CU_ASSERT_EQUAL(route->links[i], links[i]);
}

static void a_tree_is_climbed_as_far_as_needed(void) {
    Arena arena = {0};
    const Wires *wires = tree_case(&arena);
    CU_ASSERT_EQUAL(wires->num_links, 12);
    assert_tree_route(wires, 0, 1, 0, NULL);
    assert_tree_route(wires, 0, 3, 2, (const int[]){0, 5});
    assert_tree_route(wires, 3, 4, 3, (const int[]){1, 9, 6});
    assert_tree_route(wires, 7, 0, 3, (const int[]){3, 10, 4});
    CU_ASSERT_EQUAL(wires->bytes_per_s[0], 30e9);
    CU_ASSERT_EQUAL(wires->bytes_per_s[9], 20e9);
    arena_free(&arena);
}

// A ring over all goes from socket to socket and back once: 20 GB/s. Pairs and quads stay below
// one: 30. Of GPUs 4 apart, 4 pairs share the 20 GB/s of each direction. All to all 16 of the
// 7 x 8 ways of a seventh each cross: 20 x 7 / 16; in quads 4 of 3 x 4 leave a switch: 30 x 3 / 4.
static void groups_share_what_they_climb(void) {
    Arena arena = {0};
    const Wires *wires = tree_case(&arena);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 8, 1)->rates.ring_bytes_per_s, 20e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 4, 1)->rates.ring_bytes_per_s, 30e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 2, 1)->rates.ring_bytes_per_s, 30e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 2, 4)->rates.ring_bytes_per_s, 5e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 2, 2)->rates.ring_bytes_per_s, 15e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 8, 1)->rates.pairs_bytes_per_s, 20e9 * 7 / 16, 1);
    CU_ASSERT_DOUBLE_EQUAL(wires_shape(wires, 4, 1)->rates.pairs_bytes_per_s, 30e9 * 3 / 4, 1);
    arena_free(&arena);
}

CU_TestInfo wires_tests[] = {
    {"a_message_takes_its_pair_or_the_widest_way", a_message_takes_its_pair_or_the_widest_way},
    {"all_gpus_use_all_nvlinks", all_gpus_use_all_nvlinks},
    {"fewer_gpus_use_those_between_them", fewer_gpus_use_those_between_them},
    {"what_no_ring_joins_goes_over_others", what_no_ring_joins_goes_over_others},
    {"four_gpus_joined_in_pairs_make_three_rings", four_gpus_joined_in_pairs_make_three_rings},
    {"part_of_a_mesh_is_its_first_gpus", part_of_a_mesh_is_its_first_gpus},
    {"a_tree_is_climbed_as_far_as_needed", a_tree_is_climbed_as_far_as_needed},
    {"groups_share_what_they_climb", groups_share_what_they_climb},
    CU_TEST_INFO_NULL,
};
