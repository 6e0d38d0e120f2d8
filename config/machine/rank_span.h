// config/machine/rank_span.h - ranks that are neighbours, or blocks of such at one distance.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t first, num; // of all of them
    int64_t block;      // neighbours of a block, which divides num; 0: all of them
    int64_t pitch;      // from the first of a block to the first of the next
} RankSpan;

// The i-th rank of a span, 0 <= i < num.
static inline int64_t span_rank(const RankSpan *span, int64_t i) {
    if (span->block == 0) return span->first + i;
    return span->first + i / span->block * span->pitch + i % span->block;
}

static inline bool span_holds(const RankSpan *span, int64_t rank) {
    const int64_t after = rank - span->first;
    if (after < 0) return false;
    if (span->block == 0) return after < span->num;
    return after % span->pitch < span->block &&
           after / span->pitch * span->block + after % span->pitch < span->num;
}

static inline bool spans_are_equal(const RankSpan *a, const RankSpan *b) {
    return a->first == b->first && a->num == b->num && a->block == b->block && a->pitch == b->pitch;
}
