// planner/stages/interleaved_bound.h - what no split of layers that are all alike over the chunks
// of an interleaved schedule can be faster than, bubble included.
//
// Model:  rank r runs forwards of pp micro-batches through chunk 0, then of the same through chunk
//         1, and so on; backwards the other way round. Before its first forward of chunk k it has
//         run pp of each chunk below k, and nothing else, and as much follows its last backward of
//         chunk k. That forward can only begin when a micro-batch has come through all chunks
//         before, and that backward's gradient has to go back through them. With a_(j,i) the layers
//         of chunk j of rank i, w a layer's forward and backward and n micro-batches, for every k
//         and r
//             step / w >= n sum over j of a_(j,r) + sum over j < k of (sum of a_(j,.) - pp a_(j,r))
//                         + sum over i < r of a_(k,i)
//         The mean over k, and over r with weights that sum to 1, is a sum of c_(j,i) a_(j,i): of
//         all splits at least the layers times the least c. Weights that rise by about half of the
//         bubble from the first rank to the last make that n / pp and half of the bubble.
// Source: the order of Narayanan et al. 2021 (arXiv 2104.04473, section 2.2); linear programming
//         duality.
#pragma once

#include <stdbool.h>

//   num_ranks         >= 2; num_microbatches is a multiple of them
//   num_chunks        of a rank, >= 2
//   layers_s          one micro-batch there and back through all layers
//   first_s, last_s   the same through what the first chunk and the last have beside layers
double interleaved_bound_s(int num_ranks, int num_chunks, double num_microbatches, double layers_s,
                           double first_s, double last_s);
