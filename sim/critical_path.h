// sim/critical_path.h - the instructions that set the length of a simulated step, one after the
// other: each begins when the one before it ends, the first at 0, the last ends the Program.
//
// Of several activities that another waited for and that ended at the same time, the path takes
// computations before messages and low ranks before high ones. Pieces of a computation are one.
// Each second of the path stands in one total, beside what the estimate grants the same work. What
// the estimate's step has beyond the sum of that is slack: in the estimate this path was not
// critical. So the simulated step is the estimate's, plus what the totals took beyond what was
// granted, less the slack.
#pragma once

#include "base/arena.h"
#include "sim/lower.h"
#include "sim/player.h"

enum { MAX_PATH_ITEMS = 4096 }; // that an answer lists

typedef enum {
    PATH_FORWARD,
    PATH_BACKWARD,
    PATH_BACKWARD_INPUT,
    PATH_BACKWARD_WEIGHT,
    PATH_OPTIMIZER,
    PATH_MESSAGE_LATENCY,
    PATH_MESSAGE_TRANSFER,
    PATH_COLLECTIVE_LATENCY,
    PATH_COLLECTIVE_TRANSFER,
    PATH_INNER_TP, // collectives inside computations that are flows, latency and transfer
    PATH_INNER_CP,
    PATH_INNER_EP,
    PATH_INNER_SHARDS, // of ZeRO 2 and 3
    PATH_HOST,         // what a step takes beside the Program
    NUM_PATH_KINDS
} PathKind;

extern const char *const PATH_KIND_NAMES[NUM_PATH_KINDS];

// Of a message its SEND, of a collective that of its first member.
typedef struct {
    int stage, lane, instruction;
    double start_s, end_s;
} PathItem;

typedef struct {
    int count; // instructions, in each of the totals that they have a part in
    double simulated_s, estimated_s;
    int last_item; // how many items there were when the last was counted
} PathTotal;

typedef struct {
    const PathItem *items; // [num_items] by time; what takes no time is left out
    int num_items;
    PathTotal totals[NUM_PATH_KINDS];
    double slack_s;
} CriticalPath;

//   lowered          undisturbed: with the durations that the estimate grants
//   step_s           what a step takes beside the Program (Prices.step_s)
//   estimate_step_s  the estimate's whole step
CriticalPath critical_path_find(const Lowered *lowered, const Program *program,
                                const Playback *playback, double step_s, double estimate_step_s,
                                Arena *arena);
