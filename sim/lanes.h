// sim/lanes.h - which replicas of a stage are played, and which of them each other replica does as.
//
// A block of num_folded tensor-parallel ranks (sim/fold.h) is one replica here. A lane is one that
// is played, in all stages at once; every replica is of the lane that does the same.
#pragma once

#include "base/arena.h"
#include "plan/plan.h"
#include "workload/pass/group.h"

typedef struct {
    int num_folded;
    int num_replicas; // tp x cp x dp / num_folded
    int num_lanes;
    const int *of;        // [num_replicas] the lane of each
    const int *replica;   // [num_lanes] which it is: the first of its replicas
    const int *num_alike; // [num_lanes] its replicas
} Lanes;

// From the lane of each replica, numbered by their first.
Lanes lanes_of(int num_folded, int num_replicas, int num_lanes, const int *of, Arena *arena);

// Replicas whose numbers differ by multiples of num_lanes are alike.
Lanes lanes_by_period(int num_folded, int num_replicas, int num_lanes, Arena *arena);

// The place of a replica in its group, and the replica at another place of that. The group is of
// lanes (plan_lane_group), its ranks at least num_folded apart.
int replica_place(const Lanes *lanes, Group group, int replica);
int replica_at_place(const Lanes *lanes, Group group, int replica, int place);

// The first lane of those that share a group with a lane, or with one that does, and so on:
// [num_lanes]. Where the ranks of the groups are folded, and where there is one, each lane itself.
const int *lanes_group_firsts(const Lanes *lanes, Group group, Arena *arena);

// The first lanes of those that meet inside computations (sim/meeting.h), in the same form.
const int *lanes_meeting_firsts(const Lanes *lanes, const Plan *plan, Arena *arena);
