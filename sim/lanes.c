#include "sim/lanes.h"

#include "sim/meeting.h"

Lanes lanes_of(int num_folded, int num_replicas, int num_lanes, const int *of, Arena *arena) {
    int *replica = ARENA_ARRAY(arena, num_lanes, int);
    int *num_alike = ARENA_ARRAY(arena, num_lanes, int);
    for (int i = 0; i < num_replicas; i++)
        if (num_alike[of[i]]++ == 0) replica[of[i]] = i;
    return (Lanes){num_folded, num_replicas, num_lanes, of, replica, num_alike};
}

Lanes lanes_by_period(int num_folded, int num_replicas, int num_lanes, Arena *arena) {
    int *of = ARENA_ARRAY(arena, num_replicas, int);
    for (int i = 0; i < num_replicas; i++) of[i] = i % num_lanes;
    return lanes_of(num_folded, num_replicas, num_lanes, of, arena);
}

static int replica_stride(const Lanes *lanes, Group group) {
    return group.size > 1 ? group.stride / lanes->num_folded : 0;
}

int replica_place(const Lanes *lanes, Group group, int replica) {
    const int stride = replica_stride(lanes, group);
    return stride > 0 ? replica / stride % group.size : 0;
}

int replica_at_place(const Lanes *lanes, Group group, int replica, int place) {
    return replica + (place - replica_place(lanes, group, replica)) * replica_stride(lanes, group);
}

// --- What is joined

static int first_of(const int *firsts, int lane) {
    while (firsts[lane] != lane) lane = firsts[lane];
    return lane;
}

static void lanes_join(int *firsts, int lane, int other) {
    const int a = first_of(firsts, lane), b = first_of(firsts, other);
    firsts[a > b ? a : b] = a > b ? b : a;
}

static int *each_itself(const Lanes *lanes, Arena *arena) {
    int *firsts = ARENA_ARRAY(arena, lanes->num_lanes, int);
    for (int lane = 0; lane < lanes->num_lanes; lane++) firsts[lane] = lane;
    return firsts;
}

static const int *firsts_settle(const Lanes *lanes, int *firsts) {
    for (int lane = 0; lane < lanes->num_lanes; lane++) firsts[lane] = first_of(firsts, lane);
    return firsts;
}

const int *lanes_group_firsts(const Lanes *lanes, Group group, Arena *arena) {
    int *firsts = each_itself(lanes, arena);
    for (int i = 0; i < lanes->num_replicas; i++)
        lanes_join(firsts, lanes->of[i], lanes->of[replica_at_place(lanes, group, i, 0)]);
    return firsts_settle(lanes, firsts);
}

const int *lanes_meeting_firsts(const Lanes *lanes, const Plan *plan, Arena *arena) {
    Arena scratch = {0};
    const int num_ranks = lanes->num_replicas * lanes->num_folded;
    const int *met = meeting_firsts(plan, num_ranks, num_ranks, &scratch);
    int *firsts = each_itself(lanes, arena);
    for (int i = 0; i < lanes->num_replicas; i++) {
        const int first = met[i * lanes->num_folded] / lanes->num_folded;
        lanes_join(firsts, lanes->of[i], lanes->of[first]);
    }
    arena_free(&scratch);
    return firsts_settle(lanes, firsts);
}
