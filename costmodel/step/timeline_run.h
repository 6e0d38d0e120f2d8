// costmodel/step/timeline_run.h - a Program while the timeline runs it. Included by timeline*.c
// only.
#pragma once

#include "costmodel/step/timeline.h"

#include <math.h>

typedef struct {
    const Instruction *list; // [num]
    int num;
    double begin_s;  // no instruction starts before it
    int next;        // first that is not dealt with
    int awaited;     // whose end `next` needs; -1
    double *start_s; // [num] of a message: when it moves
    double *end_s;   // [num] of a message of a group: when the whole group is done
    double free_s[NUM_STREAMS];
    double egress_free_s[2]; // for asynchronous messages forward and backward

    int num_joined[NUM_PIPELINE_QUEUES]; // collectives among pipeline ranks
    int *joined;                         // [queue][max_meetings] which instruction that was

    // The open group
    int group_first, group_count;
    int group_open; // messages that have not moved; 0: none is open
    double group_launch_s;
    double group_end_s; // latest end so far
} RankRun;

// One collective among the pipeline ranks: who has joined, and when the last of them could.
typedef struct {
    int num_ranks;
    int collective;
    double ready_s;
} Meeting;

typedef struct {
    const Program *program;
    const Prices *prices;
    RankRun *ranks; // [num_ranks]
    int *ready;     // stack of ranks that can go on
    int num_ready;
    int max_meetings;  // most in a queue of collectives among pipeline ranks
    Meeting *meetings; // [queue][max_meetings]
    int num_run[NUM_PIPELINE_QUEUES];
    double free_s[NUM_PIPELINE_QUEUES]; // when the last that was run is done
} Run;

static inline double message_s(const Run *run, const Instruction *message, int rank) {
    return instruction_message_price(run->program, run->prices, rank, message).time_s;
}

// Messages of the group that begins at `first`.
static inline int group_size(const RankRun *rank, int first) {
    int end = first + 1;
    while (end < rank->num && rank->list[end].p2p_group == rank->list[first].p2p_group) end++;
    return end - first;
}

static inline double rank_end_s(const RankRun *rank) {
    double end_s = fmax(rank->egress_free_s[0], rank->egress_free_s[1]);
    for (int s = 0; s < NUM_STREAMS; s++) end_s = fmax(end_s, rank->free_s[s]);
    return end_s;
}

// From its own begin to its own end.
static inline double rank_span_s(const RankRun *rank) {
    return rank_end_s(rank) - rank->begin_s;
}

// Sets the terms of a step that was run: step_time_s must be set.
void timeline_breakdown(const Run *run, Timeline *out);
