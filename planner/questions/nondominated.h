// planner/questions/nondominated.h - the plans that no other plan is at least as good as on every
// axis.
//
// Axes are step time (or the upper end of its interval), memory of the worst GPU and, where the
// cluster's power is known, energy; on a given number of GPUs at a given price cost is
// proportional to time and no axis of its own.
#pragma once

#include "base/arena.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"

typedef enum { AXIS_TIME, AXIS_MEMORY, AXIS_ENERGY, MAX_AXES } Axis;

// Less is better; what differs by less than the rounding of sums counts as equal.
typedef struct {
    double value[MAX_AXES]; // [num_axes]
} Point;

typedef struct {
    Point point;
    Plan plan; // its chunks belong to the caller
    Estimate estimate;
} FrontierItem;

typedef struct {
    int num_axes;
    FrontierItem *items; // [num_items] in no order
    int num_items, capacity;
    Arena arena; // owns the items
} Nondominated;

void nondominated_free(Nondominated *set);

// Whether some item is at least as good as the point on every axis.
bool nondominated_covers(const Nondominated *set, const Point *point);

// Adds what no item covers and drops the items that it covers.
//   returns  whether it was added
bool nondominated_add(Nondominated *set, const FrontierItem *item);

// How far the point gets below the item that it beats by least: the least fraction by which it
// improves on one item on every axis at most; 0 where it is covered.
double nondominated_gap_frac(const Nondominated *set, const Point *point);
