// sim/likeness.h - replicas that are alike by what they do, send and meet, though no symmetry turns
// the job into itself.
//
// Replicas are sorted as long as something tells two of one sort apart: that they send over links
// of different sorts, or begin and end something with replicas of different sorts. Links are told
// apart by how many flows of each sort cross them. When nothing does any more, all of a sort begin
// and end everything at the same time. The reason is that the max-min share of a flow depends on
// nothing but what crosses its links, and of such shares there is one solution. So one replica of
// each sort is played, on one link of each sort, which a flow crosses once for each of its sort
// that does.
//
// A leaf switch whose uplinks carry all that its NICs can send or receive limits nothing that the
// NICs do not: it leaves the shares as they are, and is left out. So stages that do not fill leaves
// are alike wherever they begin, unless oversubscription makes them differ.
//
// Source: the sorting is colour refinement (the coarsest equitable partition; Berkholz, Bonsma and
//         Grohe, "Tight Lower and Upper Bounds for the Complexity of Canonical Colour Refinement",
//         Theory Comput. Syst. 60, 2017).
// Limits: sorts that are still mixed (where the sorting is to end with so many) take the mean of
//         what theirs meet; then the fold is approximate.
#pragma once

#include "sim/lanes.h"
#include "sim/lower.h"

enum { LIKENESS_EXACT = 0 };

typedef struct Likeness {
    Lanes lanes;
    const int *stand_in;            // [num_links] the link that is played for each, LINK_LEFT_OUT
    const double *link_bytes_per_s; // [num_links] of those that are played
    const double *link_unit; // [num_links] a flow crosses the link so often for each that it is
    int num_leaves_left_out;
} Likeness;

// Sorts the replicas of a job that is undisturbed and on one network without wires.
//   most_lanes  LIKENESS_EXACT, or where to stop sorting, though not before what each sends is told
//               apart by what is sent over the same links
//   returns     false where fewer than half of the replicas can be left out
bool likeness_find(const LowerInput *input, int num_folded, int most_lanes, Arena *arena,
                   Likeness *out);

// Puts the links that are played in the place of all. The likeness outlives the network.
void network_merge(Network *network, const LowerInput *input, const Likeness *likeness,
                   Arena *arena);
