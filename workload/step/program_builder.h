// workload/step/program_builder.h - a Program while it is built, and what is emitted to it beside
// the computation: messages. Included by program*.c only.
#pragma once

#include "workload/step/program_sync.h"
#include "workload/step/program_vocab.h"
#include "workload/technique/technique.h"

// The whole, and the rank that is being built: ranks are one after the other.
typedef struct {
    const Plan *plan;
    StepTraits traits;
    SyncPlan sync;
    int num_chunks, num_microbatches;
    int num_gradients_due; // of each chunk but those of a spread vocabulary
    int tied_chunks[2];    // with embedding and loss, where they exchange gradients; else -1
    const double *copies_bytes;

    Instruction *all; // of all ranks, one after the other
    int64_t *base;    // [pp] where a rank begins in all
    int32_t *places;  // [num_chunks][2][num_microbatches] 1 + index of a message's first end
    int32_t tied_places[2];
    int32_t *copies_places; // [num_chunks] of the message that the holder of a chunk sends
    int *num_forwards;      // [num_chunks] emitted so far
    int *num_gradients;     // [num_chunks]
    int *first_gather;      // [num_chunks] index of the first gather of its weights
    int32_t *vocab[NUM_VOCAB_COLLECTIVES]; // [num_microbatches] index in the rank's list

    // The rank being built
    int rank;
    Instruction *out; // its instructions in all
    int num;          // so far
    int num_p2p_groups;
    int last_compute, last_reduce; // indices; -1
    // The next pass whose broadcast is not emitted yet, and the end of the rank's work.
    const WorkItem *vocab_next[NUM_VOCAB_COLLECTIVES], *items_end;
} ProgramBuilder;

// Adds an instruction to the rank being built. Returns its index.
static inline int program_emit(ProgramBuilder *b, const Instruction *instruction) {
    b->out[b->num] = *instruction;
    return b->num++;
}

// Sends the output of an item if it leaves the rank, receives its input if it comes from another.
//   p2p_group  -1: asynchronous
//   returns    its index or -1
int program_emit_send(ProgramBuilder *b, const WorkItem *item, int p2p_group);
int program_emit_recv(ProgramBuilder *b, const WorkItem *item, int p2p_group);

// One group: sends of items [begin, middle), receives of items [middle, end).
// Returns one of its messages, or -1.
int program_emit_group(ProgramBuilder *b, const WorkItem *items, int begin, int middle, int end);

// Both holders of a tied embedding send theirs to the other and add what they receive: for two
// ranks this is an all-reduce. Returns one of the messages, or -1.
int program_emit_tied(ProgramBuilder *b);

// All chunks of the rank at once with the rank that holds their copies, both ways. Returns one of
// the messages.
int program_emit_copies(ProgramBuilder *b);
