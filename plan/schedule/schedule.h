// plan/schedule/schedule.h - pipeline orders: what each rank computes in which order.
#pragma once

#include "base/arena.h"
#include "config/job/parallel.h"
#include "plan/work_item.h"

#include <stdbool.h>

// Chunk k of rank r, of pp ranks, is in pipeline order
typedef enum {
    PLACEMENT_ROUND, // k pp + r
    PLACEMENT_V,     // r, and 2 pp - 1 - r
    PLACEMENT_DUAL,  // the same, but chunks pp to 2 pp - 1 are copies of 0 to pp - 1 (plan_is_dual)
    NUM_PLACEMENTS
} Placement;

// Of a vocabulary that is spread over all ranks: its rows of the word table, and of the matrix of
// the logits with the loss.
enum { VOCAB_INPUT, VOCAB_OUTPUT, NUM_VOCAB_CHUNKS };

// Passes over a vocabulary that is spread over all ranks (plan/schedule/schedule_vocab.h), and how
// long they and the work of a chunk take, in units of which a forward has about 16.
typedef struct {
    int barriers; // 0: there are none; 1, 2: each keeps a micro-batch more in flight
    int chunk_units[NUM_WORK_KINDS];
    int pass_units[NUM_VOCAB_CHUNKS][NUM_WORK_KINDS];
} VocabPasses;

// What a schedule needs to know.
typedef struct {
    int pp, vpp;
    int num_microbatches;
    VocabPasses vocab;
} ScheduleShape;

// Without a spread vocabulary.
static inline ScheduleShape schedule_shape(int pp, int vpp, int num_microbatches) {
    return (ScheduleShape){.pp = pp, .vpp = vpp, .num_microbatches = num_microbatches};
}

// Where the order of a rank repeats itself: from item `first` on, num_periods times, the next
// num_items items are those before them with num_microbatches added. No chunk's first forward or
// last backward is among them. A shape with num_microbatches more has one period more and is the
// same before and after.
typedef struct {
    int num_microbatches; // 0: the order is not known to repeat itself
    int num_items;
    int first;       // differs from rank to rank: the ranks get there as the pipeline runs
    int num_periods; // the same on all ranks, >= 0
} SteadyOrder;

typedef struct Schedule Schedule;
struct Schedule {
    ScheduleKind kind;
    Placement placement; // which chunks a rank holds
    int num_chunks;      // of a rank, where there is a pipeline; 0: any number, and worth a search
                         // from 2 on
    const Schedule *with_one_chunk;   // what it is called with one chunk a rank; NULL: itself
    const Schedule *with_more_chunks; // and with more; NULL: as num_chunks says
    int least_microbatches;           // of a replica, for each rank; 0: any number
    bool splits_backward;             // work is F, B (input), W instead of F, B
    bool mixes_backwards;             // some backwards are split like that, others whole
    bool receives_ahead; // more than the next item's inputs arrive before it: where messages block,
                         // ranks would wait for each other in a circle
    // A rank holds no more at its peak than the rank before it whose chunks are alike, one by one.
    // So where all ranks do their forwards in one order, their backwards in one order, and before
    // each backward as many forwards more or fewer as the rank before does.
    bool first_holds_most;
    bool holds_in_groups; // what a rank holds are groups of pp micro-batches through one of its
                          // chunks, then the next, whole ones first
    bool runs_one_ahead;  // a rank does one more forward ahead of its backwards than the rank after
                          // it, and then one backward after each forward
    bool takes_turns;     // groups of pp micro-batches go through one of a rank's chunks, then the
                      // next; one backward after each forward (planner/stages/interleaved_bound.h)
    bool layerwise; // plan --layerwise knows how long it fills and drains

    // All below but the orders of schedule_orders is of the chunks alone, vocabulary apart.

    // Number of work items of a rank.
    int (*num_items)(const ScheduleShape *shape, int rank);
    // The order of one rank: fills items[num_items]. NULL where only the whole is known.
    void (*order)(const ScheduleShape *shape, int rank, WorkItem *items);
    // The orders of all ranks: fills orders[rank].items; NULL where `order` says all.
    void (*orders)(const ScheduleShape *shape, Arena *scratch, const RankOrder *orders);
    // Where it repeats itself; NULL where that is not known. Only of undivided backwards.
    SteadyOrder (*steady)(const ScheduleShape *shape, int rank);
    // Most chunk inputs held at once by a rank (one unit: one chunk and micro-batch), those that
    // barriers keep included. An input is held from its forward to its backward. Where that is
    // split, it is held to the weight part, which gives back the last of them (how much is left for
    // it: Chunk.deferred_bytes). Of the V schedules the most of any rank, where there are more
    // micro-batches than ranks; else a bound.
    int (*in_flight)(const ScheduleShape *shape, int rank);
    // Idle time of a rank over its busy time in a step that begins and ends on all ranks at once;
    // equal chunks, no messages, and backward = 2 forward: F = B = W where it is split. Exact where
    // pp divides num_microbatches and where that is below pp, else an upper bound. Where passes
    // over a spread vocabulary take no time, it is the same with them, but for DualPipe, which says
    // what they add. For the V schedules, and for ZB-H1 and ZB-H2 below 2 pp micro-batches, it is
    // not stated.
    double (*bubble_frac)(const ScheduleShape *shape);
    const char *source; // of the order and the closed forms

    // What other software calls it; NULL: it has no such schedule.
    const char *torch_class;           // of torch.distributed.pipelining, without "Schedule"
    const char *torch_class_one_chunk; // the same with one chunk a rank, where that is another
    const char *megatron_deepspeed_flag;
};

// The row of a kind; NULL of SCHEDULE_FILE.
const Schedule *schedule_find(ScheduleKind kind);

// What is run with so many chunks a rank where nothing is stated.
ScheduleKind schedule_default(int vpp);

// The name that a schedule has with so many chunks a rank.
ScheduleKind schedule_with_chunks(ScheduleKind kind, int vpp);

// The orders of all ranks, of the work of the chunks alone: [pp].
const RankOrder *schedule_chunk_orders(const Schedule *schedule, const ScheduleShape *shape,
                                       Arena *arena);

// Those orders with the passes over a spread vocabulary put in: [pp].
const RankOrder *schedule_orders(const Schedule *schedule, const ScheduleShape *shape,
                                 Arena *arena);
