// runtime/traffic.h - what a rank sends in a step, by group and collective: as the Program says and
// as its Comms counted, both by the convention of workload/pass/operator.h.
//
// Beyond the Program a rank sends two things over ep and etp: how many rows come, and a number a
// row that the router's gradient is made of (runtime/experts.h). It also pads the flat buffers that
// ZeRO cuts to equal shards of whole packs, and to the logits' rows (runtime/parameter.h). All that
// is apart here.
#pragma once

#include "runtime/rank.h"
#include "workload/step/program.h"

typedef struct {
    double bytes[NUM_GROUPS][NUM_COMM_KINDS];
} Traffic;

// Of one step of a pipeline rank, by the Program and the blocks' operators.
Traffic traffic_of_program(const Plan *plan, const Workload *workload, const Program *program,
                           int stage);

// The Program lets every expert have as many tokens: makes what it says that of the rows counted.
void traffic_feed(Traffic *program, const Rank *rank);

// Counted so far, a step.
Traffic traffic_of_comms(const Rank *rank, int64_t num_steps);

// The most bytes that a collective of a group is off.
double traffic_difference(const Traffic *program, const Traffic *counted);

// A line with both, of a step, and one with how far any process is off, `off_bytes`; nothing where
// nothing is sent.
void traffic_print(const Traffic *program, const Traffic *counted, double off_bytes);
