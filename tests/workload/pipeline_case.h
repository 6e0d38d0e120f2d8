// tests/workload/pipeline_case.h - a pipeline of equal chunks made by hand, for the tests of
// programs and timelines. Change what a test is about, then call pipeline_build.
#pragma once

#include "costmodel/step/timeline.h"

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    Workload workload;
    Chunk *chunks; // [num_chunks] of workload; 1 layer of 1000 dense parameters each
    Program program;

    Prices prices; // F = 1 s, B = 2 s a chunk, half of it each part, a quarter of that each pass
                   // over a spread vocabulary (plan.vocab_barriers); all else takes no time
    Price *forward, *backward;
    Price *backward_input, *backward_weight; // of schedules that split it; else not used
    double *message_s;                       // [pp]
    double *message_alpha_s;
    double *copies_s, *copies_alpha_s; // [pp] the same to the rank with the copies
    double *collective_s;              // [num_collectives], after pipeline_build
    double *optimizer_s;
} PipelineCase;

// tp, cp, dp 1; ZeRO 1; nothing overlaps; messages of 8 bytes. To be freed with pipeline_free.
PipelineCase pipeline_new(ScheduleKind kind, int pp, int vpp, int num_microbatches);

// Whether a schedule takes these ranks, chunks a rank and micro-batches (the rules of
// plan/plan_check.c; at pp 1 any).
bool schedule_takes(ScheduleKind kind, int pp, int vpp, int num_microbatches);

// Makes the Program; collectives take collective_s seconds each.
void pipeline_build(PipelineCase *c, double collective_s);

// Sets the price of a chunk's forward or backward to `compute_s` of computation.
Price price_of_compute(double compute_s);

// Runs the timeline, with its times; the Status must be good.
Timeline pipeline_run(PipelineCase *c);

void pipeline_free(PipelineCase *c);

// The index of an instruction of a rank by kind, chunk and micro-batch (the first such), or -1.
int instruction_find(const Program *program, int rank, InstructionKind kind, int chunk,
                     int microbatch);

// All instructions of a rank as text, separated by spaces: "F0.1" forward of chunk 0, micro-batch
// 1 ("B", "I", "W" backwards), "s" and "r" a message, "c<name>" a collective, "O" the optimizer;
// "/1of2" a piece, "g3" its group of messages, "<5" what it waits for.
const char *program_text(const Program *program, int rank, Arena *arena);
