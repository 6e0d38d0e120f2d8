// whatif/rays.h - points of a grid that differ in how fast their links are, planned together.
//
// A ray is the points that differ in one axis only, along which links get slower or stay as they
// are. A segment of it is planned at its fastest point, where all configurations are kept that may
// take no longer than a known plan takes at its slowest (planner/search/shortlist.h); its points
// then choose among these. Their answers are the same, and proven as well. Called from any thread.
#pragma once

#include "planner/search/shortlist.h"
#include "whatif/point.h"

// The rays of a grid whose points are planned anew; NULL where it has none. The grid has to outlive
// them.
Rays *rays_new(const Grid *grid, int64_t num_points);

void rays_free(Rays *rays); // NULL is accepted

// The list for the search of a point; NULL where all has to be searched: nothing is known that
// bounds its segment, it is too short to be worth it, or another thread is measuring it.
//   like    a point whose plan fits here; NULL: none
//   step_s  that its plan takes here
Shortlist *rays_list(Rays *rays, int64_t index, const WhatifPoint *like, double step_s);
