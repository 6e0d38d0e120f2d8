// backend/cuda/attention_tiles.h - sizes of tiles to choose from, in a build that measures them.
//
// With -DATTENTION_TILES=ON, MESHWRIGHT_ATTENTION_TILES="201" takes row 2 of the forward's sizes,
// row 0 of those of dk and dv, row 1 of those of dq. Elsewhere it is row 0, and the others are not
// compiled.
#pragma once

#include <stdlib.h>
#include <string.h>

typedef enum { TILES_FORWARD, TILES_KEYS, TILES_QUERIES, NUM_TILES } TilesOf;

static inline int tiles_row(TilesOf of) {
#ifdef MESHWRIGHT_TILES
    const char *rows = getenv("MESHWRIGHT_ATTENTION_TILES");
    return rows && strlen(rows) == NUM_TILES ? rows[of] - '0' : 0;
#else
    (void)of;
    return 0;
#endif
}

// Calls function<D, ...>(arguments) of the row: tiles, 16-row units of a warp, warps, blocks on
// an SM that registers are kept for.
#ifdef MESHWRIGHT_TILES
#define TILES_RUN(of, function, row0, row1, row2, row3, ...)                                       \
    (tiles_row(of) == 1   ? function<TILES_ARGS row1>(__VA_ARGS__)                                 \
     : tiles_row(of) == 2 ? function<TILES_ARGS row2>(__VA_ARGS__)                                 \
     : tiles_row(of) == 3 ? function<TILES_ARGS row3>(__VA_ARGS__)                                 \
                          : function<TILES_ARGS row0>(__VA_ARGS__))
#else
#define TILES_RUN(of, function, row0, row1, row2, row3, ...) function<TILES_ARGS row0>(__VA_ARGS__)
#endif
#define TILES_ARGS(d, tile, units, warps, blocks) d, tile, units, warps, blocks
