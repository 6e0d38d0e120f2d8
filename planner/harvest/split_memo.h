// planner/harvest/split_memo.h - the splits found of configurations with several chunks a rank, for
// those that differ from them in how the optimizer's state is sharded alone.
//
// With ZeRO 0 and 1 that changes neither what a chunk takes nor what it keeps for its backward; of
// several chunks a rank only some splits are priced anyway (planner/harvest/split_search.h). So the
// one with the most shards, which has room for most splits, is searched, whether it is legal or
// not, and all try the split that it found: they are searched themselves only where that does not
// fit. What is found of a configuration hangs neither on the order in which they are asked for nor
// on a limit.
#pragma once

#include "planner/harvest/split_search.h"

enum { SPLIT_MEMO_BUCKETS = 256 };

// What is known of a configuration and those like it.
typedef struct SplitMemoEntry {
    struct SplitMemoEntry *next; // of its bucket
    Plan asked;                  // the first; others are like it
    int most_layers;
    Plan found; // the best split of the one with the most shards, or that one where none fits
    GroupVerdict verdict;
    bool known;
} SplitMemoEntry;

// Zero-initialise.
typedef struct {
    SplitMemoEntry *buckets[SPLIT_MEMO_BUCKETS];
} SplitMemo;

// The entry of a plan, made where there is none; NULL of plans that are always searched. What it
// knows may be used, and changed, by one thread at a time.
//   most_layers  as in SplitTask
SplitMemoEntry *split_memo_entry(SplitMemo *memo, const Plan *plan, int most_layers, Arena *arena);

// split_search, or what the entry knows instead.
//   entry  NULL: search
//   arena  of the entry's chunks and the plans in out
Status split_memo_search(SplitMemoEntry *entry, GroupPricing *pricing, const Plan *plan,
                         const SplitTask *task, Arena *arena, GroupSplit *out);
