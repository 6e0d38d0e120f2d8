// costmodel/step/timeline.h - the critical path of a Program: when each instruction runs if links
// are never shared by two groups.
//
// Model:  a computation or collective starts when its stream is free and its waits are done. A
//         message of a group moves when both ends have launched theirs; an asynchronous one when
//         its SEND's waits are done and the message before it in that direction (forward, backward)
//         has left. A collective among the pipeline ranks runs when the waits of all of them and
//         the one of its kind before it are done.
// Times:  a message starts when it begins to move; one of a group ends when the whole group does.
// Terms:  a computation adds its Price. Idle time before it is TERM_PP while the message it waits
//         for moves, TERM_BUBBLE before that, TERM_DP while it waits for a collective (TERM_TP
//         for one over tp). What a rank waits at the end for the last one is TERM_BUBBLE.
#pragma once

#include "base/arena.h"
#include "costmodel/pass/price.h"
#include "workload/step/program.h"

typedef struct {
    double step_time_s;
    double begin_s;           // of the rank that begins last; 0 where they begin together
    int slowest_rank;         // the one with the least bubble: the others wait for it
    double term_s[NUM_TERMS]; // of the slowest rank; adds up to step_time_s
    int stuck_rank, stuck_at; // where a circle was found: the rank and its instruction
    double mean_working_s;    // TERM_COMPUTE + TERM_OPTIMIZER, mean over the ranks
    const double **start_s;   // [num_ranks][num_instructions]; NULL unless asked for
    const double **end_s;     // the same
} Timeline;

// Runs the Program. keep_times asks for start_s and end_s.
// Fails (STATUS_INVALID) only where messages wait for each other in a circle: names rank and
// instruction, and sets stuck_rank and stuck_at.
Status timeline_run(const Program *program, const Prices *prices, bool keep_times, Arena *arena,
                    Timeline *out);

// Runs steps one after the other. A rank begins each when it has ended its last one, whatever the
// others do. Then step_time_s is what one step takes once they follow each other evenly. It is the
// cycle time of the max-plus system "ends of a step from those of the last" (Baccelli et al.,
// Synchronization and Linearity, 1992, section 3.2). It is found by running steps until all ranks
// take the same time. Where that does not come about, it is the longest of a rank. Times that are
// kept are those of the last step, of which the first rank begins at 0.
Status timeline_run_steady(const Program *program, const Prices *prices, bool keep_times,
                           Arena *arena, Timeline *out);
