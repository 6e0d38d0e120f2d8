// planner/harvest/price_shelf.h - prices of shapes that searches of like jobs share.
//
// What a micro-batch of a shape costs (planner/harvest/loose.h) does not depend on the batch, nor
// on how much memory there is or what a GPU costs. Where one question searches many jobs - the
// points of a grid, the plans that may fit beside those that do - those that are alike but for
// these take the prices from a shelf. The answers are the same to the bit: a price is worked out
// from the same numbers, whoever does it. Called from any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct PriceShelf PriceShelf;

PriceShelf *price_shelf_new(void);
void price_shelf_free(PriceShelf *shelf); // NULL is accepted

// Where a search finds prices: jobs with the same key have the same.
typedef struct PriceSource {
    PriceShelf *shelf;
    const char *key;
    int num_gpus; // of the job; one of another size finds nothing here
} PriceSource;

// How many prices were taken from the shelf, and how many were worked out and laid there.
typedef struct {
    int64_t num_taken, num_made;
} PriceShelfStats;

PriceShelfStats price_shelf_stats(PriceShelf *shelf);

// --- For loose.c

struct LooseEntry;

// Fills in what is known of the wanted prices. Waits where another thread is about to lay prices of
// this key for the first time.
//   returns  whether there is a place for this key: then what is made has to be laid there
bool price_shelf_take(const PriceSource *source, struct LooseEntry *entries, int num_entries);

// Lays down the known prices.
//   first  the first time since they were taken
void price_shelf_lay(const PriceSource *source, const struct LooseEntry *entries, int num_entries,
                     bool first);
