// planner/groups/batch_split.h - a batch over groups that train side by side and end a step
// together: the split whose slowest group is fastest.
//
// Method: from a split by speed, the slowest group gives as many units as it must lose to take
//         less. Each unit goes to the group that ends first with it, one after the other, as long
//         as all then take less than the slowest did. Where no group takes less for more, the split
//         it ends with is the best of all: in a better one the slowest group has as many units
//         less, and the others do not take them in less time. Where some do (a batch that a plan
//         cannot divide), a few more units are tried, taken and given, but the split may not be the
//         best.
// Source: the exchange argument for min-max allocation: Ibaraki and Katoh, "Resource Allocation
//         Problems", MIT Press, 1988, chapter 5.
#pragma once

#include "base/arena.h"
#include "base/status.h"

// Seconds of a group's step on 1 <= units of the batch; INFINITY where it cannot.
typedef Status (*BatchTime)(void *context, int group, int units, double *time_s);

typedef struct {
    int num_groups, num_units; // num_units >= num_groups >= 1: each group has one at least
    const double *speed;       // [num_groups] units a second, about: where to begin
    BatchTime time;            // asked once for each group and number of units
    void *context;
} BatchProblem;

//   units    [num_groups], in the arena
//   time_s   of the slowest group; INFINITY where a group cannot
Status batch_split(const BatchProblem *problem, Arena *arena, const int **units, double *time_s);
