// plan/schedule_file.h - a pipeline order of the user's own: `schedule: "file:PATH"`.
//
// A text file with one line of work for each rank, from the first on:
//
//   # two ranks, two micro-batches
//   F0 F1 B0 B1
//   F0 B0 F1 B1
//
// F, B, W are forward, backward, and weight part of a backward. The number says of which
// micro-batch. After a point follows of which chunk of the rank, in pipeline order from 0, which
// may be left out where there is one. Where a micro-batch has a W, its B is the input part. Before
// a B that follows an F, '+' exchanges the messages of both in one group where messages block, '&'
// runs both at the same time (plan/work_item.h). '#' begins a comment. Before the first line of
// work may stand
//
//   placement round|v|dual         which chunks a rank holds (Placement); default round
//   messages asynchronous|blocking default: blocking unless the stack hides them
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "plan/schedule/schedule.h"

#include <stdbool.h>

typedef struct {
    const char *name; // of the contract, "file:PATH"
    const char *file; // where it lies
    Placement placement;
    bool receives_ahead;  // messages are asynchronous, whatever the stack
    bool splits_backward; // all backwards are in two parts
    bool mixes_backwards; // some are
    int num_ranks;
    const RankOrder *orders; // [num_ranks]
    const int *lines;        // [num_ranks] where they stand in the file, from 1
} ScheduleFile;

struct Plan;

// Reads the file that `path` leads to from base_file. Chunks are still those of the rank, -1 where
// they are not named.
Status schedule_file_read(const char *base_file, const char *path, Arena *arena, ScheduleFile *out);

// Sets the chunks of what was read and finds the split backwards. Refuses what is not one forward
// and one backward of each chunk and micro-batch of the plan, and what cannot run because ranks
// would wait for each other. The plan's degrees are legal, its derived fields set.
Status schedule_file_bind(const ScheduleFile *read, const struct Plan *plan, Arena *arena,
                          ScheduleFile *out);

// The refusal of an order whose blocking messages wait for each other in a circle, found at the
// message of this item.
Status schedule_file_refuse_circle(const ScheduleFile *schedule, const struct Plan *plan, int rank,
                                   const WorkItem *item);

// The schedule with all that it points to, in this arena.
const ScheduleFile *schedule_file_copy(const ScheduleFile *schedule, Arena *arena);

// Any plan's order as such a file.
const char *schedule_file_text(const struct Plan *plan, const RankOrder *orders,
                               bool receives_ahead, Arena *arena);

// How an item stands in the file of a plan.
const char *work_item_text(const struct Plan *plan, const WorkItem *item, Arena *arena);
