// runtime/engine.h - one process runs its list of the Program: one instruction after the other, as
// they stand there, on one stream.
//
// In one place this goes another way than the Program. What the holders of a tied matrix exchange
// is sent before gradients are reduced over dp, not after. The sums are the same, and a rank then
// has its whole gradient still (from ZeRO-2 on that of its shard, as the Program says).
#pragma once

#include "runtime/chunk_run.h"
#include "runtime/instruction_times.h"
#include "runtime/update.h"
#include "workload/step/program.h"

// A message that left while other work goes on.
typedef struct {
    CommRequest *request;
    Tensor *tensor;
} Sent;

typedef struct {
    Rank *rank;
    const Program *program;
    const Instruction *instructions; // of this pipeline rank
    int num_instructions;
    int num_microbatches;
    int *local; // [num_chunks of the plan] place in rank->chunks; -1: of another rank
    // [num_chunks of the rank][num_microbatches]
    ChunkStash **stashes;
    Tensor **inputs, **outputs;            // of forwards: arrived or made here; to be sent
    Tensor **gradients, **input_gradients; // of outputs, of inputs: likewise
    CommRequest **input_requests, **gradient_requests; // of those that are still to arrive
    Sent *sent;                                        // [num_sent] not known to have left
    int num_sent;
    int num_sent_last;   // of them, that left together last
    Way *ways;           // [num_ways] of messages that do not block, of all pipeline ranks
    uint8_t *way_phases; // [num_ways] what goes there: Phase
    int num_ways;
    InstructionTimes *times; // NULL: nobody asks
    bool gradients_closed;   // what comes before the reduction is done
} Engine;

Status engine_create(Rank *rank, const Program *program, Arena *arena, Engine *out);

// One step. Tokens and targets are on the device.
//   hook  called before weights change, all gradients made; NULL: none
typedef struct {
    Status (*call)(void *context, const StepValues *values);
    void *context;
} EngineHook;

Status engine_step(Engine *engine, const UpdateSettings *settings, int64_t step, EngineHook hook,
                   StepValues *values);

// --- engine_messages.c

// Place of a chunk and micro-batch in the tables above.
static inline int64_t engine_place(const Engine *engine, const Instruction *i) {
    return (int64_t)engine->local[i->chunk] * engine->num_microbatches + i->microbatch;
}

// Opens the ways of messages that do not block; nothing where there are none.
Status engine_open_ways(Engine *engine, Arena *arena);

// The messages that follow each other as one group, from `first` on. Returns how many there are.
int engine_exchange(Engine *engine, int first);

// Takes what has arrived at a place, waiting for it; NULL: nothing is to arrive there.
Tensor *engine_take(Engine *engine, Tensor **place, CommRequest **request);

// Gives back what has left, but not what was sent last; all: that too, and waits for it.
void engine_sent_drop(Engine *engine, bool all);

// Adds what the other holder of a tied matrix has to its gradient; nothing where there is none.
void engine_exchange_tied(Engine *engine);
