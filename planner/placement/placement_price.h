// planner/placement/placement_price.h - a plan's step as a function of how slow its traffic is, and
// what a placement's search needs to know of it without asking the estimator each time.
//
// Step:   the estimator's critical path with the slowdowns put in the place of the matrix
//         (KnownSlowdown). It is the longest of many paths through the Program, each of which takes
//         so many messages and collectives: the largest of planes over the slowdowns.
// Model:  the largest of the planes found so far, one at each point that was priced. It agrees with
//         the estimator there; elsewhere it is as good as its planes (Kelley, "The cutting-plane
//         method for solving convex programs", J. SIAM 8(4), 1960).
// Limits: what overlap takes from computation, and which of NCCL's protocols is fastest, bend the
//         step otherwise: what the model finds is priced by the estimator before it is believed.
#pragma once

#include "costmodel/pass/price.h"
#include "planner/placement/placement_links.h"

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const Workload *workload;
    const Program *program;
    const PlacementLinks *links;
    Arena *scratch; // reset by every price
} PlacementPricer;

// Seconds of the step.
//   slowdown  [num_traffics] >= 0
double placement_step_s(const PlacementPricer *pricer, const double *slowdown);

enum { PLACEMENT_MAX_PLANES = 24 };

typedef struct {
    int num_traffics, num_planes;
    double base_s[PLACEMENT_MAX_PLANES];
    double *slope_s[PLACEMENT_MAX_PLANES]; // [num_traffics] >= 0
} PlacementModel;

// Adds the plane at a point; the oldest goes where there are too many.
//   at  [num_traffics]
void placement_add_plane(const PlacementPricer *pricer, const double *at, Arena *arena,
                         PlacementModel *model);

// Seconds that the model says.
double placement_model_s(const PlacementModel *model, const double *slowdown);
