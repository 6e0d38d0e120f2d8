// workload/step/program_vocab.h - the collectives among the pipeline ranks that go with the passes
// of plan/schedule/schedule_vocab.h, and how long the passes take beside the chunks' work.
//
// Source: sail-sg/VocabularyParallelism, megatron/core/pipeline_parallel/schedules.py: what is
// broadcast and what is summed up, each on a stream of its own beside the computation.
#pragma once

#include "workload/step/program.h"

typedef enum {
    VOCAB_LOOKUP_SUM,      // after a lookup: rows of other ranks, input of the first chunk
    VOCAB_INPUT_BROADCAST, // from the last chunk to S
    VOCAB_STATISTICS_SUM,  // after S: the largest logit, the sum of exponentials, the target's
    VOCAB_GRADIENT_SUM,    // after S (one barrier) or T (two): the gradient of the last chunk's
                           // output
    VOCAB_ROWS_BROADCAST,  // from the first chunk's backward to the gradient of the rows
    NUM_VOCAB_COLLECTIVES
} VocabCollective;

bool vocab_is_broadcast(VocabCollective which);

// The pipeline rank that a broadcast of a micro-batch comes from.
int vocab_root(const Plan *plan, VocabCollective which, int microbatch);

ProgramCollective vocab_collective(const Plan *plan, const Workload *workload,
                                   VocabCollective which);

// The collectives of a Program: those given, then these where the vocabulary is spread.
const ProgramCollective *vocab_join_collectives(const Plan *plan, const Workload *workload,
                                                const ProgramCollective *others, int num_others,
                                                Arena *arena);

// One of them, behind num_others that are not; wait is the instruction it waits for, or -1.
Instruction vocab_instruction(int num_others, VocabCollective which, int microbatch, int wait);

// What a work item waits for; NUM_VOCAB_COLLECTIVES where that is nothing of these.
VocabCollective vocab_awaited(const Plan *plan, const WorkItem *item);

// The collectives that follow a work item, in their order: up to 2, ended by NUM_VOCAB_COLLECTIVES.
typedef struct {
    VocabCollective which[3];
} VocabCollectives;
VocabCollectives vocab_following(const Plan *plan, const WorkItem *item);

// What schedules need to know of a plan; with the passes' durations on the GPU as its peak rates
// say.
ScheduleShape program_shape(const Scenario *scenario, const Plan *plan, const Workload *workload);
