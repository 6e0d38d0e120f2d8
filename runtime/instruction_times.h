// runtime/instruction_times.h - when the instructions of a process ran: events of the device's
// compute stream before and behind each, seconds from the step's begin.
//
// All processes leave a step together (they agree on its peak of memory), so they begin the next
// one within what such an agreement takes, and their times are shown on one axis. CPUs of one
// machine have one clock for it: there the first to begin is the axis' begin.
#pragma once

#include "backend/backend.h"
#include "base/times_file.h"
#include "runtime/world.h"

typedef struct {
    Backend *backend;
    int num;               // instructions
    BackendEvent **events; // [1 + 2 num] the step's begin; begin and end of each instruction
    int *together;         // [num] how many ran with it
    double *pairs;         // [2 most + 1] begin and end, and when the step began
    int most;              // instructions of the process that has most
    TimesFile file;        // of the first process: of all
    double *all;           // the same: [processes][2 most + 1]
    bool one_clock;        // of all processes
} InstructionTimes;

//   num_of  [world->size] instructions of each process
Status instruction_times_create(const char *path, Backend *backend, const World *world,
                                const int *num_of, InstructionTimes *out);
Status instruction_times_free(InstructionTimes *times); // accepts a zeroed one

// All three take NULL, where nobody asks for times.
void instruction_times_step(InstructionTimes *times);
void instruction_times_begin(InstructionTimes *times, int instruction);
// Of that and those behind it, which ran together.
void instruction_times_end(InstructionTimes *times, int instruction, int num_together);

// Behind a step that is over: all processes bring their times to the first, which writes them.
Status instruction_times_write(InstructionTimes *times, const World *world);
