// plan/work_item.h - what a pipeline rank computes, and in which order.
#pragma once

#include <stdint.h>

typedef enum {
    WORK_FORWARD,
    WORK_BACKWARD, // both parts
    WORK_BACKWARD_INPUT,
    WORK_BACKWARD_WEIGHT,
    NUM_WORK_KINDS
} WorkKind;

// How an item goes with the one right before it.
typedef enum {
    JOINED_NOT,
    JOINED_MESSAGES, // where messages block, those of both are exchanged in one group around the
                     // pair
    JOINED_OVERLAP, // both run at the same time: the pair begins when the inputs of both are there,
                    // and what they make leaves when both are done. It takes as long as both.
} Joined;

typedef struct {
    uint8_t kind;       // WorkKind
    uint8_t joined;     // Joined
    int16_t chunk;      // in pipeline order, 0 .. pp x vpp - 1; then those of the vocabulary
    int32_t microbatch; // 0 .. num_microbatches - 1
} WorkItem;

// All that one rank does in a step.
typedef struct {
    WorkItem *items; // [num_items]
    int num_items;
} RankOrder;
