// workload/step/program.h - a plan expanded to what each rank does: the chunk level of the design.
//
// One RankProgram per pipeline rank; the tp x cp x dp ranks of a stage all run it (multiplicity).
// Instructions stand in the order in which the rank issues them; those of one stream run in that
// order, and each also waits for up to two earlier instructions of its own rank. A SEND and its
// RECV name each other (`peer`, `match`). Those of one rank that share `p2p_group` (>= 0) are one
// NCCL group. They are launched together when their waits are done. Each message moves when both
// ends have launched, and the NCCL group is done when all its messages are. With p2p_group -1 a
// message is asynchronous: it moves when its SEND's waits are done, whatever the receiver does. A
// collective with a pipeline_queue is among all pipeline ranks, and every rank has those of one
// queue in the same order. The n-th runs when the waits of all its members and the one before it in
// its queue are done, whatever else they run.
#pragma once

#include "base/arena.h"
#include "plan/plan.h"
#include "plan/plan_orders.h"
#include "workload/pass/block.h"

#include <stdint.h>

typedef enum {
    INSTRUCTION_FORWARD,
    INSTRUCTION_BACKWARD, // both parts
    INSTRUCTION_BACKWARD_INPUT,
    INSTRUCTION_BACKWARD_WEIGHT,
    INSTRUCTION_SEND,
    INSTRUCTION_RECV,
    INSTRUCTION_COLLECTIVE,
    INSTRUCTION_OPTIMIZER,
    NUM_INSTRUCTION_KINDS
} InstructionKind;

extern const char *const INSTRUCTION_NAMES[NUM_INSTRUCTION_KINDS];

typedef struct {
    uint8_t kind;   // InstructionKind
    uint8_t stream; // Stream
    uint8_t phase;  // Phase; of a message: forward activations or backward gradients
    uint8_t part;   // a computation split for overlap: piece `part` of `num_parts`
    uint8_t num_parts;
    uint8_t embedding; // 1: a message that exchanges the gradients of tied embeddings
    uint8_t copies;    // 1: that exchanges those of a chunk with the rank that holds its copy
    int16_t chunk;     // computed; or whose output is sent, whose input is received; -1: all
    int16_t peer;      // pipeline rank at the other end of a message; -1
    int32_t microbatch;
    int32_t p2p_group;
    int32_t match;      // index of the other end in the peer's list; -1
    int32_t collective; // index into Program.collectives; -1
    int32_t waits[2];   // indices in this list; -1
} Instruction;

typedef struct {
    CollectiveKind kind;
    GroupKind group;
    double message_bytes;
    const char *name;   // "grad_reduce_scatter", "param_all_gather", "tp_grad_all_reduce", ...
    int num_calls;      // of message_bytes each, one after the other
    int pipeline_queue; // 1 .. NUM_PIPELINE_QUEUES - 1; 0: not among pipeline ranks
    int pool;           // of the cluster, whose ranks run it
    int stage; // pipeline rank + 1 whose ranks run it, where links between ranks differ; 0:
               // any, all are alike
} ProgramCollective;

typedef struct {
    const Instruction *instructions;
    int num_instructions;
} RankProgram;

typedef struct {
    int num_ranks;            // pipeline ranks
    int multiplicity;         // GPUs that run each RankProgram
    int block_gpus;           // of them that follow each other (plan/rank_place.h)
    const RankProgram *ranks; // [num_ranks]
    const ProgramCollective *collectives;
    int num_collectives;
    double message_bytes;           // of one SEND of one GPU
    double embedding_message_bytes; // of one that has `embedding` set
    const double *copies_bytes; // [num_chunks] of one that has `copies` set; NULL: there is none
} Program;

// The ranks whose groups run a collective at the same time.
RankSpan program_collective_ranks(const Plan *plan, const ProgramCollective *collective,
                                  const Pool *pool);

// Bytes of one SEND (or RECV) of one GPU.
double program_message_bytes(const Program *program, const Instruction *message);

enum { NUM_PIPELINE_QUEUES = 5 };

// The queue of an instruction that is a collective among pipeline ranks; 0 of any other.
static inline int program_pipeline_queue(const Program *program, const Instruction *instruction) {
    if (instruction->kind != INSTRUCTION_COLLECTIVE) return 0;
    return program->collectives[instruction->collective].pipeline_queue;
}

// Collectives of one pipeline queue on each rank.
int program_num_meetings(const Program *program, int queue);

// Whether messages are asynchronous. Where the stack hides them, those of chunks that alternate on
// a rank and those of split backwards are. They are everywhere where the schedule receives ahead,
// and where passes over a spread vocabulary run between the work.
bool program_hides_messages(const Scenario *scenario, const Plan *plan);

// Expands the plan. Cannot fail: plan and schedule were checked.
Program program_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                      Arena *arena);

// Number of the rank (0 .. num_gpus - 1) that plays pipeline rank `stage`, replica `lane`
// (0 .. multiplicity - 1), and what a rank plays (plan/rank_place.h).
int program_gpu(const Program *program, int stage, int lane);
RankPlace program_place(const Program *program, int gpu);
